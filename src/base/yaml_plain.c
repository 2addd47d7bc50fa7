/* yaml_plain.c: what a plain word of YAML means. JSON reads the numbers, because strtod depends on the locale. A word that only
 * looks like a number (.inf, 1_000, 0o17, 007) stays text: no file that is read here needs it, and text in the place of a
 * number is refused with the word in the message. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/yaml.h"

static bool one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(word, *list) != 0)
        list++;
    return *list != NULL;
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Writes the word as a number of JSON, in a list; false if it is none. */
static bool as_number(const char *word, char *to, size_t room)
{
    const char *sign = *word == '-' ? "-" : "", *at = word + (*word == '-' || *word == '+');
    const size_t before = digits(at);
    const char *point = at + before;
    const size_t after = *point == '.' ? digits(point + 1) : 0;
    const char *rest = point + (*point == '.') + after, *exponent = rest;
    if (before + after == 0 || (before > 1 && *at == '0'))
        return false;
    if (*exponent == 'e' || *exponent == 'E') {
        exponent += 1 + (exponent[1] == '+' || exponent[1] == '-');
        const size_t power = digits(exponent);
        if (!power)
            return false;
        exponent += power;
    }
    const bool whole = rest == point && !*rest && before <= 18;
    const int used = snprintf(to, room, "[%s%s%.*s%s%.*s%s]", sign, before ? "" : "0", (int)before, at,
                              whole   ? ""
                              : after ? "."
                                      : ".0",
                              (int)after, point + 1, rest);
    return !*exponent && used > 0 && (size_t)used < room;
}

tess_json *tess_yaml_plain(const char *word)
{
    static const char *const nothing[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", NULL};
    char number[128];
    if (one_of(word, nothing))
        return tess_json_null();
    if (one_of(word, yes) || one_of(word, no))
        return tess_json_bool(one_of(word, yes));
    if (!as_number(word, number, sizeof number))
        return tess_json_string(word);
    tess_json *list = NULL, *value;
    const tess_status status = tess_json_parse(number, strlen(number), &list, NULL);
    if (status != TESS_OK) /* 1e999 */
        return status == TESS_NO_MEMORY ? NULL : tess_json_string(word);
    const tess_json *first = tess_json_at(list, 0);
    value = tess_json_is_int(first) ? tess_json_int(tess_json_as_int(first, 0))
                                    : tess_json_double(tess_json_as_double(first, 0));
    tess_json_free(list);
    return value;
}

tess_status tess_yaml_read(const char *path, tess_json **out, tess_error *error)
{
    FILE *file = NULL;
    *out = NULL;
    TESS_TRY(tess_file_open(path, &file, error));
    char *text = tess_small_alloc(TESS_YAML_BYTES + 1, 1);
    const size_t length = text ? fread(text, 1, TESS_YAML_BYTES + 1, file) : 0;
    const bool failed = ferror(file) != 0;
    fclose(file);
    tess_status status = TESS_OK;
    if (!text)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for the text");
    else if (failed)
        status = tess_fail(error, TESS_IO_FAILED, "cannot be read");
    else
        status = tess_yaml_parse(text, length, out, error);
    tess_small_free(text);
    return status;
}
