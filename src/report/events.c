#define _POSIX_C_SOURCE 200809L
#include "report/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

enum { SNIFFED = 1 << 20 }; /* bytes at the beginning of a file in which the events must begin */

typedef struct scan {
    const char *path;
    FILE *file;
    int byte; /* the current one; EOF behind the last */
    int64_t line, bytes, most;
    char *text; /* the last value that was kept */
    size_t length, room;
    bool too_large; /* it was longer than an event may be, and was not kept */
} scan;

static void next(scan *s)
{
    s->line += s->byte == '\n';
    s->byte = s->bytes++ < s->most ? getc_unlocked(s->file) : EOF;
}

static int next_word(scan *s) /* behind spaces */
{
    while (s->byte == ' ' || s->byte == '\t' || s->byte == '\r' || s->byte == '\n')
        next(s);
    return s->byte;
}

static tess_status broken(const scan *s, const char *why, tess_error *error)
{
    if (ferror(s->file))
        return tess_fail(error, TESS_IO_FAILED, "%s: cannot be read: %s", s->path, strerror(errno));
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: line %lld: %s; a trace is a JSON object with a list of events, traceEvents",
                     s->path, (long long)s->line,
                     s->byte == EOF ? "the trace ends here, in the middle" : why);
}

static tess_status keep(scan *s, tess_error *error)
{
    if (s->length == TESS_EVENT_MOST)
        s->too_large = true;
    if (s->too_large)
        return TESS_OK;
    if (s->length == s->room) {
        const size_t room = s->room ? 2 * s->room : 4096;
        char *text = tess_small_realloc(s->text, room, 1);
        if (!text)
            return tess_fail(error, TESS_NO_MEMORY, "%s: no memory for line %lld", s->path,
                             (long long)s->line);
        s->text = text;
        s->room = room;
    }
    s->text[s->length++] = (char)s->byte;
    return TESS_OK;
}

static bool ends_word(int byte)
{
    return byte == ',' || byte == ']' || byte == '}' || byte == ':' || byte == ' ' || byte == '\t' ||
           byte == '\r' || byte == '\n';
}

/* Goes behind a value, and keeps its text. Only brackets and strings are looked at: who needs the value parses it. */
static tess_status take_value(scan *s, tess_error *error)
{
    int64_t depth = 0;
    bool string = false, escape = false;
    s->length = 0;
    s->too_large = false;
    for (next_word(s); s->byte != EOF; next(s)) {
        const int byte = s->byte;
        if (!string && depth == 0 && s->length > 0 && ends_word(byte))
            return TESS_OK; /* behind a word or a number */
        TESS_TRY(keep(s, error));
        if (string) {
            string = escape || byte != '"';
            escape = !escape && byte == '\\';
        } else if (byte == '"')
            string = true;
        else
            depth += (byte == '{' || byte == '[') - (byte == '}' || byte == ']');
        if (depth < 0)
            return broken(s, "a bracket is closed that was not opened", error);
        if (!string && depth == 0 && (byte == '}' || byte == ']' || byte == '"')) {
            next(s);
            return TESS_OK;
        }
    }
    return broken(s, "", error);
}

static bool kept_is(const scan *s, const char *text)
{
    return !s->too_large && s->length == strlen(text) && memcmp(s->text, text, s->length) == 0;
}

static void keep_about(const scan *s, tess_event_facts *facts)
{
    tess_error why;
    if (!facts || facts->about || s->too_large ||
        tess_json_parse(s->text, s->length, &facts->about, &why) != TESS_OK)
        return; /* the trace can be drawn without it */
}

/* Goes from key to key of the outer object, from its first or from behind a value, until the events begin; *found is false at
 * the object's end. */
static tess_status find_events(scan *s, bool first, tess_event_facts *facts, bool *found, tess_error *error)
{
    *found = false;
    for (;; first = false) {
        if (next_word(s) == '}')
            return TESS_OK;
        if (!first) {
            if (s->byte != ',')
                return broken(s, "a comma is missing", error);
            next(s);
        }
        if (next_word(s) != '"')
            return broken(s, "a name is missing", error);
        TESS_TRY(take_value(s, error));
        const bool events = kept_is(s, "\"traceEvents\""), about = kept_is(s, "\"otherData\"");
        if (next_word(s) != ':')
            return broken(s, "a colon is missing", error);
        next(s);
        if (next_word(s) == '[' && events) {
            *found = true;
            next(s);
            return TESS_OK;
        }
        TESS_TRY(take_value(s, error));
        if (about)
            keep_about(s, facts);
    }
}

static tess_status give(scan *s, int64_t line, const tess_event_visitor *visitor, tess_event_facts *facts,
                        tess_error *error)
{
    tess_error why;
    tess_json *event = NULL;
    facts->events++;
    if (s->too_large) {
        facts->too_large++;
        return TESS_OK;
    }
    tess_status status = tess_json_parse(s->text, s->length, &event, &why);
    if (status != TESS_OK) {
        for (char *c = why.text; *c; c++) /* a terminal must not obey what the file says */
            *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
        return tess_fail(error, status, "%s: the event at line %lld: %.400s", s->path, (long long)line,
                         why.text);
    }
    status = visitor->take(visitor->user, event, error);
    tess_json_free(event);
    return status;
}

/* The events up to the end of their list. `alone`: the list is the whole file, and may end anywhere behind an event. */
static tess_status read_events(scan *s, bool alone, const tess_event_visitor *visitor, tess_stop *stop,
                               tess_event_facts *facts, tess_error *error)
{
    for (bool first = true; next_word(s) != ']'; first = false) {
        if (!first && s->byte == ',') {
            next(s);
            next_word(s);
        } else if (!first && s->byte != EOF)
            return broken(s, "a comma is missing between two events", error);
        if (s->byte == EOF && alone && !ferror(s->file)) {
            facts->cut_short = true;
            return TESS_OK;
        }
        const int64_t line = s->line;
        TESS_TRY(take_value(s, error));
        TESS_TRY(give(s, line, visitor, facts, error));
        if (facts->events % 1024 == 0)
            TESS_TRY(tess_stop_check(stop, error));
    }
    next(s);
    return TESS_OK;
}

static tess_status read_all(scan *s, const tess_event_visitor *visitor, tess_stop *stop,
                            tess_event_facts *facts, tess_error *error)
{
    bool found = true;
    const bool alone = next_word(s) == '[';
    next(s);
    if (alone)
        TESS_TRY(read_events(s, true, visitor, stop, facts, error));
    for (bool first = true; !alone && found; first = false) {
        TESS_TRY(find_events(s, first, facts, &found, error));
        if (found)
            TESS_TRY(read_events(s, false, visitor, stop, facts, error));
    }
    if (!alone)
        next(s);
    return next_word(s) == EOF ? TESS_OK : broken(s, "there is text behind the trace", error);
}

static tess_status open_scan(scan *s, const char *path, int64_t most, tess_error *error)
{
    *s = (scan){.path = path, .byte = ' ', .line = 1, .most = most};
    TESS_TRY(tess_file_open(path, &s->file, error));
    next(s);
    for (int i = 0; i < 3 && s->byte == (unsigned char)"\xEF\xBB\xBF"[i]; i++) /* some editors' mark */
        next(s);
    return TESS_OK;
}

static void close_scan(scan *s)
{
    fclose(s->file);
    tess_small_free(s->text);
}

static bool is_event(const scan *s)
{
    tess_error why;
    tess_json *event = NULL;
    if (s->too_large || tess_json_parse(s->text, s->length, &event, &why) != TESS_OK)
        return false;
    const bool is = strlen(tess_json_get_string(event, "ph", "")) == 1;
    tess_json_free(event);
    return is;
}

bool tess_events_found(const char *path)
{
    scan s;
    tess_error why;
    bool found = false;
    if (open_scan(&s, path, SNIFFED, &why) != TESS_OK)
        return false;
    const int first = next_word(&s);
    next(&s);
    if (first == '[')
        found = next_word(&s) == '{' && take_value(&s, &why) == TESS_OK && is_event(&s);
    else if (first == '{')
        found = find_events(&s, true, NULL, &found, &why) == TESS_OK && found;
    close_scan(&s);
    return found;
}

tess_status tess_events_read(const char *path, const tess_event_visitor *visitor, tess_stop *stop,
                             tess_event_facts *facts, tess_error *error)
{
    scan s;
    *facts = (tess_event_facts){0};
    const tess_status opened = open_scan(&s, path, INT64_MAX, error);
    if (opened != TESS_OK)
        return tess_fail_prefix(error, opened, path);
    const tess_status status = read_all(&s, visitor, stop, facts, error);
    close_scan(&s);
    return status;
}
