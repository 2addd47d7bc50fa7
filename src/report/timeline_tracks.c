/* The tracks of a timeline in its text: those that are drawn, in their order, each with its spans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/timeline_impl.h"

/* Numbers before texts, which are NaN. */
static int by_order(const void *a, const void *b)
{
    const tess_ranked *x = a, *y = b;
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
static tess_ranked *rank_tracks(const tess_timeline *t, const bool *has_spans, int *count)
{
    tess_ranked *list = tess_small_alloc((size_t)t->track_names.count + 1, sizeof *list);
    *count = 0;
    for (int32_t i = 0; list && i < t->track_names.count; i++)
        if (has_spans[i])
            list[(*count)++] =
                (tess_ranked){{t->tracks[i].order[0], t->tracks[i].order[1]}, t->tracks[i].busy, i};
    if (!list)
        return NULL;
    qsort(list, (size_t)*count, sizeof *list, tess_ranked_by_busy);
    *count = *count < t->shown ? *count : t->shown;
    qsort(list, (size_t)*count, sizeof *list, by_order);
    return list;
}

static void put_span(tess_writing *w, const tess_timeline_span *span, int level, int64_t before)
{
    const int32_t name = tess_writing_name(w, span->name);
    tess_text_number(&w->out, span->start - before, ",");
    tess_text_number(&w->out, span->extent, ",");
    tess_text_number(&w->out, (int64_t)level * w->of->kinds.count + span->kind, ",");
    if (span->count == 1) {
        tess_text_number(&w->out, name, "");
    } else {
        tess_text_number(&w->out, -1 - name, ",");
        tess_text_number(&w->out, span->count, ",");
        tess_text_number(&w->out, span->busy, "");
        w->merged += span->count;
        w->merged_into++;
    }
    w->drawn++;
}

static void put_track(tess_writing *w, int32_t number, int64_t first, int64_t end)
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
    tess_text_word(&w->out, "{\"about\":");
    tess_text_json(&w->out, about);
    tess_text_word(&w->out, ",\"spans\":[");
    int64_t before = t->first;
    bool any = false;
    for (int64_t i = first; i < end; i++) {
        if (w->levels[i] >= TESS_TIMELINE_LEVELS) {
            w->undrawn += t->spans[i].count;
            continue;
        }
        tess_text_word(&w->out, any ? "," : "");
        put_span(w, &t->spans[i], w->levels[i], before);
        before = t->spans[i].start;
        levels = w->levels[i] + 1 > levels ? w->levels[i] + 1 : levels;
        any = true;
    }
    tess_text_word(&w->out, "],\"levels\":");
    tess_text_number(&w->out, levels, "}");
}

/* The tracks, which are runs of spans in the sorted list. */
void tess_writing_tracks(tess_writing *w)
{
    const tess_timeline *t = w->of;
    const size_t most = (size_t)t->track_names.count + 1;
    bool *has = tess_small_alloc(most, sizeof *has);
    int64_t *first = tess_small_alloc(most, sizeof *first), *end = tess_small_alloc(most, sizeof *end);
    tess_ranked *list = NULL;
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
    tess_text_word(&w->out, "\"tracks\":[");
    for (int i = 0; i < count; i++) {
        tess_text_word(&w->out, i ? ",\n" : "\n");
        put_track(w, list[i].number, first[list[i].number], end[list[i].number]);
        has[list[i].number] = false;
    }
    tess_text_word(&w->out, "]");
    for (int64_t i = 0; i < t->count && list; i++) /* those of the other tracks */
        w->undrawn += has[t->spans[i].track] ? t->spans[i].count : 0;
    tess_small_free(has);
    tess_small_free(first);
    tess_small_free(end);
    tess_small_free(list);
}
