#define _POSIX_C_SOURCE 200809L
#include "report/lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"

typedef struct reading {
    const char *path;
    FILE *file;
    char *text; /* the line, not terminated */
    size_t length, room;
    int64_t line; /* its number, from 1 */
    bool ended;   /* it ends with a line feed */
    const tess_line_visitor *visitor;
    tess_line_facts *facts;
} reading;

static tess_status no_memory(const reading *r, tess_error *error)
{
    return tess_fail(error, TESS_NO_MEMORY, "%s: no memory for line %lld", r->path, (long long)r->line);
}

/* Text of the file is quoted in messages of the parser; a terminal must not obey it. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

static tess_status put(reading *r, int byte, tess_error *error)
{
    if (r->length == TESS_LINE_MOST)
        return tess_fail(error, TESS_BAD_INPUT, "%s: line %lld is longer than %d MiB; a record is shorter",
                         r->path, (long long)r->line, TESS_LINE_MOST >> 20);
    if (r->length == r->room) {
        const size_t room = r->room ? 2 * r->room : 4096;
        char *text = tess_small_realloc(r->text, room, 1);
        if (!text)
            return no_memory(r, error);
        r->text = text;
        r->room = room;
    }
    r->text[r->length++] = (char)byte;
    return TESS_OK;
}

/* Reads the next line; *more is false behind the last one. */
static tess_status next_line(reading *r, bool *more, tess_error *error)
{
    int byte;
    r->length = 0;
    r->line++;
    while ((byte = getc_unlocked(r->file)) != EOF && byte != '\n')
        TESS_TRY(put(r, byte, error));
    if (ferror(r->file))
        return tess_fail(error, TESS_IO_FAILED, "%s: cannot be read: %s", r->path, strerror(errno));
    if (r->line == 1 && r->length >= 3 && memcmp(r->text, "\xEF\xBB\xBF", 3) == 0) /* some editors' mark */
        memmove(r->text, r->text + 3, r->length -= 3);
    r->ended = byte == '\n';
    *more = r->ended || r->length > 0;
    return TESS_OK;
}

/* NaN and infinities outside strings become null, which may make the text longer by a third. */
static tess_status without_nan(reading *r, char **plain, size_t *length, tess_error *error)
{
    static const char *const words[] = {"NaN", "-Infinity", "Infinity", "-NaN"};
    char *to = *plain = tess_small_alloc(r->length + r->length / 3 + 8, 1);
    if (!to)
        return no_memory(r, error);
    bool string = false;
    for (size_t at = 0; at < r->length;) {
        size_t skipped = 0;
        for (size_t w = 0; !string && w < sizeof words / sizeof words[0] && !skipped; w++)
            if (r->length - at >= strlen(words[w]) && memcmp(r->text + at, words[w], strlen(words[w])) == 0)
                skipped = strlen(words[w]);
        if (skipped) {
            memcpy(to, "null", 4);
            to += 4;
            at += skipped;
            r->facts->not_numbers++;
            continue;
        }
        const bool escape = string && r->text[at] == '\\' && at + 1 < r->length;
        string ^= r->text[at] == '"';
        *to++ = r->text[at++];
        if (escape)
            *to++ = r->text[at++];
    }
    *length = (size_t)(to - *plain);
    return TESS_OK;
}

static bool has_word(const reading *r)
{
    for (size_t at = 0; at + 3 <= r->length; at++)
        if (memcmp(r->text + at, "NaN", 3) == 0 || memcmp(r->text + at, "Inf", 3) == 0)
            return true;
    return false;
}

/* Reads the text as JSON. */
static tess_status parse(reading *r, tess_json **out, tess_error *error)
{
    char *plain = NULL;
    size_t length = 0;
    tess_status status = TESS_OK;
    if (r->length && memchr(r->text, 0, r->length))
        return tess_fail(error, TESS_BAD_INPUT, "has a zero byte, so this is no text");
    const bool words = has_word(r);
    if (words)
        TESS_TRY(without_nan(r, &plain, &length, error));
    status =
        words ? tess_json_parse(plain, length, out, error) : tess_json_parse(r->text, r->length, out, error);
    tess_small_free(plain);
    return status;
}

static tess_status refuse(const reading *r, const tess_error *why, tess_error *error)
{
    char text[TESS_ERROR_TEXT];
    snprintf(text, sizeof text, "%.400s", why->text);
    make_printable(text);
    return tess_fail(error, TESS_BAD_INPUT, "%s: line %lld: %s; records are JSON objects, one a line",
                     r->path, (long long)r->line, text);
}

static tess_status give(reading *r, tess_json *value, int64_t line, tess_error *error)
{
    if (tess_json_is_object(value))
        return r->visitor->take(r->visitor->user, r->facts->lines++, line, value, error);
    tess_json_free(value);
    return tess_fail(error, TESS_BAD_INPUT, "%s: line %lld: is no JSON object, as a record is", r->path,
                     (long long)line);
}

/* The elements of an array are given as texts of their own, because the array owns them. */
static tess_status give_all(reading *r, const tess_json *array, tess_error *error)
{
    tess_status status = TESS_OK;
    for (int64_t i = 0; i < tess_json_length(array) && status == TESS_OK; i++) {
        char *text = tess_json_dump(tess_json_at(array, i), false);
        tess_json *copy = NULL;
        if (!text)
            return no_memory(r, error);
        status = tess_json_parse(text, strlen(text), &copy, error);
        tess_small_free(text);
        if (status == TESS_OK)
            status = give(r, copy, r->line, error);
    }
    return status;
}

static bool is_blank(const reading *r)
{
    for (size_t i = 0; i < r->length; i++)
        if (!strchr(" \t\r", r->text[i]) || !r->text[i])
            return false;
    return true;
}

/* Whether a JSON text goes on behind its first line. */
static bool goes_on(const reading *r)
{
    size_t length = r->length;
    while (length > 0 && strchr(" \t\r", r->text[length - 1]) && r->text[length - 1])
        length--;
    return length > 0 && strchr("{[,:", r->text[length - 1]) && r->text[length - 1];
}

/* The file is one text, whose first line is there. */
static tess_status read_whole(reading *r, tess_error *error)
{
    int byte;
    tess_error why;
    tess_json *value = NULL;
    TESS_TRY(put(r, '\n', error));
    while ((byte = getc_unlocked(r->file)) != EOF)
        TESS_TRY(put(r, byte, error));
    tess_status status = parse(r, &value, &why);
    if (status == TESS_BAD_INPUT) {
        make_printable(why.text);
        return tess_fail(error, status, "%s: %.400s", r->path, why.text);
    }
    if (status != TESS_OK)
        return tess_fail(error, status, "%s: %.400s", r->path, why.text);
    if (!tess_json_is_array(value))
        return give(r, value, r->line, error);
    status = give_all(r, value, error);
    tess_json_free(value);
    return status;
}

static tess_status read_line(reading *r, tess_error *error)
{
    tess_error why = {""};
    tess_json *value = NULL;
    if (!r->visitor->wants(r->visitor->user, r->facts->lines)) {
        r->facts->lines++;
        return TESS_OK;
    }
    const tess_status status = parse(r, &value, &why);
    if (status == TESS_OK)
        return give(r, value, r->line, error);
    if (status != TESS_BAD_INPUT)
        return tess_fail(error, status, "%s: line %lld: %.400s", r->path, (long long)r->line, why.text);
    if (r->ended || r->facts->lines == 0)
        return refuse(r, &why, error);
    r->facts->cut_short = true;
    return TESS_OK;
}

static tess_status read_all(reading *r, tess_stop *stop, tess_error *error)
{
    bool more = true;
    for (;;) {
        TESS_TRY(next_line(r, &more, error));
        if (!more)
            return TESS_OK;
        if (is_blank(r))
            continue;
        if (r->facts->lines == 0 && goes_on(r))
            return read_whole(r, error);
        TESS_TRY(read_line(r, error));
        if (r->line % 256 == 0)
            TESS_TRY(tess_stop_check(stop, error));
    }
}

tess_status tess_lines_read(const char *path, const tess_line_visitor *visitor, tess_stop *stop,
                            tess_line_facts *facts, tess_error *error)
{
    reading r = {.path = path, .visitor = visitor, .facts = facts};
    struct stat about;
    *facts = (tess_line_facts){0};
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "%s: is a folder; name the files of records in it", path);
    tess_status status = tess_file_open(path, &r.file, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, path);
    status = read_all(&r, stop, error);
    fclose(r.file);
    tess_small_free(r.text);
    if (status == TESS_OK && facts->lines == 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: is empty; a file of records has JSON objects, one a line", path);
    return status;
}
