/* config_kinds.c: how each kind of single value is read from JSON and written to it. Lists are in config_lists.c. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/config_impl.h"

tess_status tess_config_refuse(tess_config_reader *reader, const char *expected, const tess_json *value)
{
    char *text = tess_json_dump(value, false);
    tess_status status =
        tess_fail(reader->error, TESS_BAD_INPUT, "%s: expected %s, got %.60s%s", reader->path, expected,
                  text ? text : "nothing", text && strlen(text) > 60 ? "..." : "");
    tess_small_free(text);
    return status;
}

void tess_config_enter(tess_config_reader *reader, const char *section, const char *key)
{
    snprintf(reader->path, sizeof reader->path, "%s%s%s", section, *section ? "." : "", key);
}

static tess_status no_memory(tess_config_reader *reader)
{
    return tess_fail(reader->error, TESS_NO_MEMORY, "no memory for the configuration");
}

tess_status tess_config_read_integer(tess_config_reader *reader, const tess_json *value, int64_t low,
                                     int64_t high, const char *expected, int64_t *out)
{
    /* 1e5 is a usual way to write a number of steps. */
    const double number = tess_json_as_double(value, 0.5);
    const bool whole = tess_json_is_int(value) ||
                       (tess_json_is_number(value) && number == floor(number) && fabs(number) < 1e15);
    const int64_t integer = tess_json_is_int(value) ? tess_json_as_int(value, 0)
                            : whole                 ? (int64_t)number
                                                    : 0;
    if (!whole || integer < low || integer > high)
        return tess_config_refuse(reader, expected, value);
    *out = integer;
    return TESS_OK;
}

static tess_status read_integer(tess_config_reader *reader, const tess_config_field *field,
                                const tess_json *value, void *target)
{
    return tess_config_read_integer(reader, value, (int64_t)field->low,
                                    field->high < 0x1p63 ? (int64_t)field->high : INT64_MAX, field->expected,
                                    target);
}

static tess_json *write_integer(const tess_config_field *field, const void *target)
{
    (void)field;
    return tess_json_int(*(const int64_t *)target);
}

static tess_status read_number(tess_config_reader *reader, const tess_config_field *field,
                               const tess_json *value, void *target)
{
    const double number = tess_json_as_double(value, NAN);
    if (!(number >= field->low && number <= field->high) || (field->above && number <= field->low))
        return tess_config_refuse(reader, field->expected, value);
    *(double *)target = number;
    return TESS_OK;
}

static tess_json *write_number(const tess_config_field *field, const void *target)
{
    (void)field;
    return tess_json_double(*(const double *)target);
}

static tess_status read_bool(tess_config_reader *reader, const tess_config_field *field,
                             const tess_json *value, void *target)
{
    if (!tess_json_is_bool(value))
        return tess_config_refuse(reader, field->expected, value);
    *(bool *)target = tess_json_as_bool(value, false);
    return TESS_OK;
}

static tess_json *write_bool(const tess_config_field *field, const void *target)
{
    (void)field;
    return tess_json_bool(*(const bool *)target);
}

static tess_status read_word(tess_config_reader *reader, const tess_config_field *field,
                             const tess_json *value, void *target)
{
    const char *text = tess_json_as_string(value, NULL);
    char list[128];
    int used = 0;
    for (const tess_config_word *word = field->words; word->word; word++) {
        if (text && strcmp(text, word->word) == 0) {
            *(int *)target = word->value;
            return TESS_OK;
        }
        const char *before = word == field->words ? "" : word[1].word ? ", " : " or ";
        used += snprintf(list + used, sizeof list - (size_t)used, "%s\"%s\"", before, word->word);
    }
    return tess_config_refuse(reader, list, value);
}

const char *tess_config_word_of(const tess_config_word *words, int value)
{
    while (words->word && words->value != value)
        words++;
    return words->word;
}

/* Null for a value without a word: an architecture that the weight file decides. */
static tess_json *write_word(const tess_config_field *field, const void *target)
{
    return tess_json_string(tess_config_word_of(field->words, *(const int *)target));
}

/* A number and a unit, as the program's options have it: K, M, G or T, with or without B or iB; powers of 1024. */
static bool size_of_text(const char *text, double *bytes)
{
    static const char units[] = "kmgt";
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    const double value = strtod(text, &end);
    while (*end == ' ')
        end++;
    const char *unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    *bytes = unit ? ldexp(value, 10 * (int)(unit - units + 1)) : value;
    if (unit)
        end += tolower((unsigned char)end[1]) == 'i' ? 2 : 1;
    end += tolower((unsigned char)*end) == 'b';
    return *end == '\0';
}

static tess_status read_size(tess_config_reader *reader, const tess_config_field *field,
                             const tess_json *value, void *target)
{
    double bytes = tess_json_as_double(value, -1);
    const char *text = tess_json_as_string(value, NULL);
    if ((text && !size_of_text(text, &bytes)) || !(bytes >= field->low && bytes <= field->high))
        return tess_config_refuse(reader, field->expected, value);
    *(uint64_t *)target = (uint64_t)bytes;
    return TESS_OK;
}

/* 0, which `memory` has by default, means no limit and is left out. */
static tess_json *write_size(const tess_config_field *field, const void *target)
{
    const uint64_t bytes = *(const uint64_t *)target;
    return (double)bytes < field->low ? tess_json_null() : tess_json_int((int64_t)bytes);
}

static tess_status read_automatic(tess_config_reader *reader, const tess_config_field *field,
                                  const tess_json *value, void *target)
{
    if (strcmp(tess_json_as_string(value, ""), "auto") != 0)
        return read_integer(reader, field, value, target);
    *(int64_t *)target = 0;
    return TESS_OK;
}

static tess_json *write_automatic(const tess_config_field *field, const void *target)
{
    (void)field;
    const int64_t number = *(const int64_t *)target;
    return number ? tess_json_int(number) : tess_json_string("auto");
}

static tess_status read_device(tess_config_reader *reader, const tess_config_field *field,
                               const tess_json *value, void *target)
{
    const char *text = tess_json_as_string(value, "");
    bool known = strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0;
    if (strncmp(text, "cuda:", 5) == 0)
        known = text[5] && strlen(text) < 10 && strspn(text + 5, "0123456789") == strlen(text + 5);
    if (!known)
        return tess_config_refuse(reader, field->expected, value);
    strcpy(target, text); /* at most 9 characters */
    return TESS_OK;
}

static tess_json *write_device(const tess_config_field *field, const void *target)
{
    (void)field;
    return tess_json_string(target);
}

tess_status tess_config_read_path(tess_config_reader *reader, const tess_json *value, const char *expected,
                                  tess_train_path *out)
{
    const char *given = tess_json_as_string(value, NULL), *folder = reader->folder;
    if (!given || !*given)
        return tess_config_refuse(reader, expected, value);
    const bool inside = *given != '/' && folder && *folder;
    const size_t size = strlen(given) + (inside ? strlen(folder) : 0) + 2;
    out->given = tess_small_strdup(given);
    out->path = tess_small_alloc(size, 1);
    if (!out->given || !out->path)
        return no_memory(reader);
    snprintf(out->path, size, "%s%s%s", inside ? folder : "", inside ? "/" : "", given);
    return TESS_OK;
}

void tess_config_clear_path(tess_train_path *path)
{
    tess_small_free(path->given);
    tess_small_free(path->path);
    *path = (tess_train_path){0};
}

static tess_status read_path(tess_config_reader *reader, const tess_config_field *field,
                             const tess_json *value, void *target)
{
    return tess_config_read_path(reader, value, field->expected, target);
}

static tess_json *write_path(const tess_config_field *field, const void *target)
{
    (void)field;
    return tess_json_string(((const tess_train_path *)target)->given);
}

const tess_config_kind tess_config_integer = {read_integer, write_integer},
                       tess_config_number = {read_number, write_number},
                       tess_config_bool = {read_bool, write_bool},
                       tess_config_words = {read_word, write_word},
                       tess_config_size = {read_size, write_size},
                       tess_config_automatic = {read_automatic, write_automatic},
                       tess_config_device = {read_device, write_device},
                       tess_config_one_path = {read_path, write_path};
