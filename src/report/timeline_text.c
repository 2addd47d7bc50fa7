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
#include "report/timeline_impl.h"

void tess_text_put(tess_text *t, const char *data, size_t length)
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

void tess_text_word(tess_text *t, const char *word)
{
    tess_text_put(t, word, strlen(word));
}

void tess_text_number(tess_text *t, int64_t value, const char *behind)
{
    char number[32];
    tess_text_put(t, number, (size_t)snprintf(number, sizeof number, "%" PRId64 "%s", value, behind));
}

void tess_text_json(tess_text *t, tess_json *value)
{
    char *dump = tess_json_dump(value, false);
    tess_json_free(value);
    if (dump)
        tess_text_word(t, dump);
    else
        t->failed = true;
    tess_small_free(dump);
}

static const char *name_of(const tess_timeline *t, int32_t name)
{
    return t->names.list[name] + 1; /* behind the letter of the kind */
}

int32_t tess_writing_name(tess_writing *w, int32_t name)
{
    if (name < 0)
        return 0;
    if (!w->names[name]) {
        w->names[name] = (int32_t)tess_json_length(w->used);
        tess_json_append_string(&w->used, name_of(w->of, name));
    }
    return w->names[name];
}

int tess_ranked_by_busy(const void *a, const void *b)
{
    const tess_ranked *x = a, *y = b;
    return x->busy != y->busy ? (x->busy < y->busy) - (x->busy > y->busy) : x->number - y->number;
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
static void put_totals(tess_writing *w)
{
    const tess_timeline *t = w->of;
    tess_ranked *list = tess_small_alloc((size_t)t->names.count + 1, sizeof *list);
    tess_json *rows = tess_json_array();
    tess_timeline_total rest = t->others_total;
    for (int32_t i = 0; list && i < t->names.count; i++)
        list[i] = (tess_ranked){{0, 0}, t->totals[i].busy, i};
    if (list)
        qsort(list, (size_t)t->names.count, sizeof *list, tess_ranked_by_busy);
    for (int32_t i = 0; list && i < t->names.count; i++) {
        const tess_timeline_total *total = &t->totals[list[i].number];
        if (i < t->rows) {
            tess_json_append(&rows, numbers(tess_writing_name(w, list[i].number), total, total->kind));
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
    tess_text_word(&w->out, ",\n\"totals\":");
    tess_text_json(&w->out, rows);
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

static tess_json *facts_of(const tess_writing *w)
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
    tess_writing w = {.of = t, .used = tess_json_array()};
    w.levels = tess_small_alloc((size_t)t->count + 1, 1);
    w.names = tess_small_alloc((size_t)t->names.count + 1, sizeof *w.names);
    w.out.failed = !w.levels || !w.names;
    tess_json_append_string(&w.used, "");
    tess_text_word(&w.out, "{");
    if (!w.out.failed) {
        tess_timeline_levels(t, w.levels);
        tess_writing_tracks(&w);
        put_totals(&w);
        tess_text_word(&w.out, ",\n\"kinds\":");
        tess_text_json(&w.out, kinds_of(t));
        tess_text_word(&w.out, ",\n\"facts\":");
        tess_text_json(&w.out, facts_of(&w));
        tess_text_word(&w.out, ",\n\"names\":");
        tess_text_json(&w.out, w.used);
        tess_text_word(&w.out, "}");
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
