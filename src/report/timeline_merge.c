/* Merging of short spans, and the levels of what is left.
 *
 * A trace is written when spans end, so that a span may be read long after those in it. Levels are therefore found at the
 * end, from the long spans alone: a short one is as deep as the long ones around its start, and as deep again as it lay in
 * other short ones when it became short (`under`). */
#include <stdlib.h>

#include "report/timeline.h"

typedef struct open_span {
    int64_t end;
    bool is_short;
} open_span;

/* Spans of one track that have begun and not ended, at one point in time. */
typedef struct open_spans {
    open_span list[4 * TESS_TIMELINE_LEVELS];
    int count, shorts;
} open_spans;

static int order_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Those that contain others come before them. */
static int by_start(const void *a, const void *b)
{
    const tess_timeline_span *x = a, *y = b;
    if (x->track != y->track)
        return order_of(x->track, y->track);
    if (x->start != y->start)
        return order_of(x->start, y->start);
    if ((x->under == TESS_TIMELINE_LONG) != (y->under == TESS_TIMELINE_LONG))
        return x->under == TESS_TIMELINE_LONG ? -1 : 1;
    if (x->extent != y->extent)
        return order_of(y->extent, x->extent);
    return x->kind != y->kind ? order_of(x->kind, y->kind) : order_of(x->name, y->name);
}

/* Long ones first, then those that may be merged, beside one another. */
static int by_lane(const void *a, const void *b)
{
    const tess_timeline_span *x = a, *y = b;
    const bool xs = x->under != TESS_TIMELINE_LONG, ys = y->under != TESS_TIMELINE_LONG;
    if (xs != ys)
        return xs ? 1 : -1;
    if (x->track != y->track)
        return order_of(x->track, y->track);
    if (x->under != y->under)
        return order_of(x->under, y->under);
    if (x->kind != y->kind)
        return order_of(x->kind, y->kind);
    return x->start != y->start ? order_of(x->start, y->start) : order_of(x->name, y->name);
}

static void leave_until(open_spans *open, int64_t time)
{
    while (open->count > 0 && open->list[open->count - 1].end <= time)
        open->shorts -= open->list[--open->count].is_short;
}

static void enter(open_spans *open, const tess_timeline_span *span, bool is_short)
{
    if (open->count == (int)(sizeof open->list / sizeof open->list[0]))
        return; /* deeper than what is drawn */
    open->list[open->count++] = (open_span){span->start + span->extent, is_short};
    open->shorts += is_short;
}

static uint8_t limited(int level)
{
    return (uint8_t)(level < TESS_TIMELINE_LEVELS ? level : TESS_TIMELINE_LEVELS);
}

/* Marks what is shorter than the resolution. */
static void find_short(tess_timeline *t)
{
    open_spans open = {.count = 0};
    qsort(t->spans, (size_t)t->count, sizeof *t->spans, by_start);
    for (int64_t i = 0; i < t->count; i++) {
        tess_timeline_span *span = &t->spans[i];
        if (i > 0 && span->track != span[-1].track)
            open.count = open.shorts = 0;
        leave_until(&open, span->start);
        const bool was_short = span->under != TESS_TIMELINE_LONG, is_short = span->extent < t->resolution;
        if (was_short)
            span->under = limited(span->under + open.shorts);
        else if (is_short)
            span->under = limited(open.shorts);
        if (!was_short)
            enter(&open, span, is_short);
    }
}

static bool joined(const tess_timeline_span *a, const tess_timeline_span *b, int64_t cell)
{
    return a->under != TESS_TIMELINE_LONG && a->track == b->track && a->under == b->under &&
           a->kind == b->kind && (a->start & ~(cell - 1)) == (b->start & ~(cell - 1));
}

static void merge_once(tess_timeline *t)
{
    int64_t kept = 0;
    find_short(t);
    qsort(t->spans, (size_t)t->count, sizeof *t->spans, by_lane);
    for (int64_t i = 0; i < t->count; i++) {
        const tess_timeline_span *span = &t->spans[i];
        tess_timeline_span *to = kept ? &t->spans[kept - 1] : NULL;
        if (!to || !joined(to, span, t->resolution)) {
            t->spans[kept++] = *span;
            continue;
        }
        const int64_t end = span->start + span->extent;
        if (end > to->start + to->extent)
            to->extent = end - to->start;
        to->busy = tess_timeline_sum(to->busy, span->busy);
        to->count += span->count;
        to->name = to->name == span->name ? to->name : -1;
    }
    t->count = kept;
}

/* The smallest resolution at which as many spans as must go are short: below it a pass could not be enough. */
static int64_t least_resolution(const tess_timeline *t, int64_t most)
{
    enum { FIRST = 256, BITS = 62 };
    int64_t by_bits[BITS + 1] = {0}, resolution = FIRST, sum = 0;
    for (int64_t i = 0; i < t->count; i++) {
        int bits = 0;
        while (t->spans[i].under == TESS_TIMELINE_LONG && bits < BITS && t->spans[i].extent >> bits)
            bits++;
        by_bits[bits]++;
    }
    for (int bits = 0; bits <= BITS; bits++) {
        sum += by_bits[bits]; /* of those shorter than 2^bits */
        resolution = (int64_t)1 << bits;
        if (sum >= t->count - most)
            break;
    }
    return resolution > FIRST ? resolution : FIRST;
}

void tess_timeline_merge(tess_timeline *t, int64_t most)
{
    while (t->count > most && t->resolution <= t->last - t->first) {
        const int64_t least = least_resolution(t, most);
        t->resolution = 2 * t->resolution > least ? 2 * t->resolution : least;
        merge_once(t);
    }
}

void tess_timeline_levels(tess_timeline *t, uint8_t *levels)
{
    open_spans open = {.count = 0};
    qsort(t->spans, (size_t)t->count, sizeof *t->spans, by_start);
    for (int64_t i = 0; i < t->count; i++) {
        const tess_timeline_span *span = &t->spans[i];
        if (i > 0 && span->track != span[-1].track)
            open.count = open.shorts = 0;
        leave_until(&open, span->start);
        levels[i] = limited(open.count + (span->under == TESS_TIMELINE_LONG ? 0 : span->under));
        if (span->under == TESS_TIMELINE_LONG)
            enter(&open, span, false);
    }
}
