/* A timeline as JSON for the page's script (page/timeline.js).
 *
 * The spans of a track are one flat list of whole numbers, in the order of their starts: start in ns after that of the span
 * before it, extent, level * (number of kinds) + kind, name. Of a merged span the name is -1 - name, and two numbers follow:
 * how many it was made of, and the ns that they took together. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/embed.h"
#include "report/timeline.h"

typedef struct text {
    char *data;
    size_t used, room;
    bool failed;
} text;

typedef struct writing {
    tess_timeline *of;
    text out;
    uint8_t *levels;
    int32_t *names; /* number in the page of each name plus one; 0: not used yet */
    tess_json *used;
    int64_t drawn, merged, merged_into, undrawn;
} writing;

static void put(text *t, const char *data, size_t length)
{
    if (!t->failed && t->room - t->used < length + 1) {
        const size_t room = 2 * t->room + length + 4096;
        char *grown = tess_small_realloc(t->data, room, 1);
        t->failed = !grown;
        if (grown) {
            t->data = grown;
            t->room = room;
        }
    }
    if (t->failed)
        return;
    memcpy(t->data + t->used, data, length);
    t->used += length;
    t->data[t->used] = '\0';
}

static void put_word(text *t, const char *word)
{
    put(t, word, strlen(word));
}

static void put_number(text *t, int64_t value, const char *behind)
{
    char number[32];
    put(t, number, (size_t)snprintf(number, sizeof number, "%" PRId64 "%s", value, behind));
}

static void put_json(text *t, tess_json *value)
{
    char *dump = tess_json_dump(value, false);
    tess_json_free(value);
    if (dump)
        put_word(t, dump);
    else
        t->failed = true;
    tess_small_free(dump);
}

static const char *name_of(const tess_timeline *t, int32_t name)
{
    return t->names.list[name] + 1; /* behind the letter of the kind */
}

/* The number that a name has in the page; 0 is that of several. */
static int32_t page_name(writing *w, int32_t name)
{
    if (name < 0)
        return 0;
    if (!w->names[name]) {
        w->names[name] = (int32_t)tess_json_length(w->used);
        tess_json_append_string(&w->used, name_of(w->of, name));
    }
    return w->names[name];
}

typedef struct ranked {
    double order[2];
    int64_t busy;
    int32_t number;
} ranked;

static int by_busy(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->busy != y->busy ? (x->busy < y->busy) - (x->busy > y->busy) : x->number - y->number;
}

/* Numbers before texts, which are NaN. */
static int by_order(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    for (int i = 0; i < 2; i++) {
        const bool is_text[2] = {x->order[i] != x->order[i], y->order[i] != y->order[i]};
        if (is_text[0] != is_text[1])
            return is_text[0] ? 1 : -1;
        if (!is_text[0] && x->order[i] != y->order[i])
            return x->order[i] < y->order[i] ? -1 : 1;
    }
    return x->number - y->number;
}

/* The busiest tracks with spans, in the order in which they are drawn. NULL: no memory. */
static ranked *rank_tracks(const tess_timeline *t, const bool *has_spans, int *count)
{
    ranked *list = tess_small_alloc((size_t)t->track_names.count + 1, sizeof *list);
    *count = 0;
    for (int32_t i = 0; list && i < t->track_names.count; i++)
        if (has_spans[i])
            list[(*count)++] = (ranked){{t->tracks[i].order[0], t->tracks[i].order[1]}, t->tracks[i].busy, i};
    if (!list)
        return NULL;
    qsort(list, (size_t)*count, sizeof *list, by_busy);
    *count = *count < t->shown ? *count : t->shown;
    qsort(list, (size_t)*count, sizeof *list, by_order);
    return list;
}

static void put_span(writing *w, const tess_timeline_span *span, int level, int64_t before)
{
    const int32_t name = page_name(w, span->name);
    put_number(&w->out, span->start - before, ",");
    put_number(&w->out, span->extent, ",");
    put_number(&w->out, (int64_t)level * w->of->kinds.count + span->kind, ",");
    if (span->count == 1) {
        put_number(&w->out, name, "");
    } else {
        put_number(&w->out, -1 - name, ",");
        put_number(&w->out, span->count, ",");
        put_number(&w->out, span->busy, "");
        w->merged += span->count;
        w->merged_into++;
    }
    w->drawn++;
}

static void put_track(writing *w, int32_t number, int64_t first, int64_t end)
{
    const tess_timeline *t = w->of;
    const tess_timeline_track *track = &t->tracks[number];
    const char *process = t->process_names[track->process],
               *thread = strchr(t->track_names.list[number], ' ');
    char own[2 * TESS_TIMELINE_NAME];
    int levels = 1;
    tess_json *about = tess_json_object();
    snprintf(own, sizeof own, "process %s", t->processes.list[track->process]);
    tess_json_set_string(&about, "process", process && *process ? process : own);
    snprintf(own, sizeof own, "thread%s", thread ? thread : "");
    tess_json_set_string(&about, "thread", track->name && *track->name ? track->name : own);
    put_word(&w->out, "{\"about\":");
    put_json(&w->out, about);
    put_word(&w->out, ",\"spans\":[");
    int64_t before = t->first;
    bool any = false;
    for (int64_t i = first; i < end; i++) {
        if (w->levels[i] >= TESS_TIMELINE_LEVELS) {
            w->undrawn += t->spans[i].count;
            continue;
        }
        put_word(&w->out, any ? "," : "");
        put_span(w, &t->spans[i], w->levels[i], before);
        before = t->spans[i].start;
        levels = w->levels[i] + 1 > levels ? w->levels[i] + 1 : levels;
        any = true;
    }
    put_word(&w->out, "],\"levels\":");
    put_number(&w->out, levels, "}");
}

/* The tracks, which are runs of spans in the sorted list. */
static void put_tracks(writing *w)
{
    const tess_timeline *t = w->of;
    const size_t most = (size_t)t->track_names.count + 1;
    bool *has = tess_small_alloc(most, sizeof *has);
    int64_t *first = tess_small_alloc(most, sizeof *first), *end = tess_small_alloc(most, sizeof *end);
    ranked *list = NULL;
    int count = 0;
    if (has && first && end) {
        for (int64_t i = 0; i < t->count; i++) {
            const uint16_t track = t->spans[i].track;
            if (!has[track])
                first[track] = i;
            has[track] = true;
            end[track] = i + 1;
        }
        list = rank_tracks(t, has, &count);
    }
    w->out.failed |= !list;
    put_word(&w->out, "\"tracks\":[");
    for (int i = 0; i < count; i++) {
        put_word(&w->out, i ? ",\n" : "\n");
        put_track(w, list[i].number, first[list[i].number], end[list[i].number]);
        has[list[i].number] = false;
    }
    put_word(&w->out, "]");
    for (int64_t i = 0; i < t->count && list; i++) /* those of the other tracks */
        w->undrawn += has[t->spans[i].track] ? t->spans[i].count : 0;
    tess_small_free(has);
    tess_small_free(first);
    tess_small_free(end);
    tess_small_free(list);
}

static tess_json *numbers(int64_t name, const tess_timeline_total *total, int kind)
{
    tess_json *row = tess_json_array();
    const int64_t values[] = {name, kind, total->count, total->busy, total->longest};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        tess_json_append_int(&row, values[i]);
    return row;
}

/* [name, kind, number of spans, ns together, ns of the longest], the most expensive first; name 0: all others, kind -1. */
static void put_totals(writing *w)
{
    const tess_timeline *t = w->of;
    ranked *list = tess_small_alloc((size_t)t->names.count + 1, sizeof *list);
    tess_json *rows = tess_json_array();
    tess_timeline_total rest = t->others_total;
    for (int32_t i = 0; list && i < t->names.count; i++)
        list[i] = (ranked){{0, 0}, t->totals[i].busy, i};
    if (list)
        qsort(list, (size_t)t->names.count, sizeof *list, by_busy);
    for (int32_t i = 0; list && i < t->names.count; i++) {
        const tess_timeline_total *total = &t->totals[list[i].number];
        if (i < t->rows) {
            tess_json_append(&rows, numbers(page_name(w, list[i].number), total, total->kind));
            continue;
        }
        rest.count += total->count;
        rest.busy = tess_timeline_sum(rest.busy, total->busy);
        rest.longest = total->longest > rest.longest ? total->longest : rest.longest;
    }
    if (rest.count)
        tess_json_append(&rows, numbers(0, &rest, -1));
    w->out.failed |= !list;
    tess_small_free(list);
    put_word(&w->out, ",\n\"totals\":");
    put_json(&w->out, rows);
}

static tess_json *kinds_of(const tess_timeline *t)
{
    tess_json *kinds = tess_json_array();
    for (int32_t i = 0; i < t->kinds.count; i++) {
        tess_json *kind = tess_json_object();
        tess_json_set_string(&kind, "name", t->kinds.list[i]);
        tess_json_set_int(&kind, "spans", t->by_kind[i].count);
        tess_json_set_int(&kind, "busy", t->by_kind[i].busy);
        tess_json_append(&kinds, kind);
    }
    return kinds;
}

static tess_json *facts_of(const writing *w)
{
    const tess_timeline *t = w->of;
    const char *slash = strrchr(t->path, '/');
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"events", t->facts.events},
                  {"spans", t->all},
                  {"drawn", w->drawn},
                  {"resolution", t->resolution},
                  {"merged", w->merged},
                  {"merged_into", w->merged_into},
                  {"undrawn", w->undrawn + t->untracked},
                  {"tracks", t->track_names.count},
                  {"figures", t->figures},
                  {"others", t->others},
                  {"unreadable", t->unreadable + t->facts.too_large},
                  {"not_recorded", tess_json_get_int(t->facts.about, "left_out", 0)},
                  {"length", t->last - t->first}};
    tess_json *facts = tess_json_object();
    tess_json_set_string(&facts, "name", slash ? slash + 1 : t->path);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        tess_json_set_int(&facts, counts[i].key, counts[i].value);
    tess_json_set_bool(&facts, "cut_short", t->facts.cut_short);
    for (int i = 0; i < 2; i++) {
        const char *const key = i ? "version" : "program",
                          *value = tess_json_get_string(t->facts.about, key, "");
        if (*value && strlen(value) < 64)
            tess_json_set_string(&facts, key, value);
    }
    return facts;
}

static tess_status write_once(tess_timeline *t, tess_error *error)
{
    writing w = {.of = t, .used = tess_json_array()};
    w.levels = tess_small_alloc((size_t)t->count + 1, 1);
    w.names = tess_small_alloc((size_t)t->names.count + 1, sizeof *w.names);
    w.out.failed = !w.levels || !w.names;
    tess_json_append_string(&w.used, "");
    put_word(&w.out, "{");
    if (!w.out.failed) {
        tess_timeline_levels(t, w.levels);
        put_tracks(&w);
        put_totals(&w);
        put_word(&w.out, ",\n\"kinds\":");
        put_json(&w.out, kinds_of(t));
        put_word(&w.out, ",\n\"facts\":");
        put_json(&w.out, facts_of(&w));
        put_word(&w.out, ",\n\"names\":");
        put_json(&w.out, w.used);
        put_word(&w.out, "}");
    } else
        tess_json_free(w.used);
    tess_small_free(w.levels);
    tess_small_free(w.names);
    tess_small_free(t->text);
    t->text = w.out.data;
    t->bytes = w.out.used;
    return w.out.failed ? tess_fail(error, TESS_NO_MEMORY, "no memory for the timeline of %s", t->path)
                        : TESS_OK;
}

tess_status tess_timeline_write(tess_timeline *t, size_t most, tess_error *error)
{
    enum { SPAN = 12 }; /* bytes of a span, at least */
    tess_timeline_merge(t, (int64_t)(most / SPAN));
    for (;;) {
        TESS_TRY(write_once(t, error));
        if (tess_embed_json_bytes(t->text, t->bytes) <= most)
            return TESS_OK;
        if (t->count > 1 && t->resolution <= t->last - t->first)
            tess_timeline_merge(t, t->count - 1);
        else if (t->shown > 1 || t->rows > 1) { /* one span for each lane, and still too many */
            t->shown = (t->shown + 1) / 2;
            t->rows = (t->rows + 1) / 2;
        } else
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: the trace is too large for the page; name fewer files", t->path);
    }
}
