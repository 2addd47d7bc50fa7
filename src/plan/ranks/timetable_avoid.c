/* Fewer exchanges: one of `m` rows before m convolutions of a level in place of one row before each. Convolution j of the m
 * then has m - 1 - j rows of the neighbour to compute besides its own. */
#include <math.h>

#include "base/checked.h"
#include "plan/ranks/timetable.h"

/* Stages [from, return value) belong to one level of the network. */
static int level_end(const tess_timetable *s, int from)
{
    int to = from + 1;
    while (to < s->count && !s->stages[to - 1].ends_level &&
           s->stages[to].op.out[0].h == s->stages[from].op.out[0].h)
        to++;
    return to;
}

/* A stage that also computes `more` rows of each neighbour and exchanges `rows` of them, or none. */
static tess_stage changed(const tess_timetable *s, const tess_rates *rates, const tess_stage *old, int more,
                          int rows)
{
    tess_stage stage = *old;
    bool measured = true;
    stage.bytes = old->rows > 0 ? old->bytes / old->rows * rows : 0;
    stage.rows = rows;
    stage.op.out[0].h += (int64_t)s->sides * more;
    stage.op.in[0].h += (int64_t)s->sides * more;
    for (int i = 1; i < stage.op.inputs; i++)
        stage.op.in[i].h = stage.op.out[0].h;
    stage.whole = tess_rates_op_seconds(rates, &stage.op, &measured);
    const bool divided = old->inner > 0 && rows > 0;
    stage.inner = divided ? old->inner : 0;
    stage.edges = divided ? fmax(stage.whole - old->inner, old->edges) : 0;
    return stage;
}

/* Stage i of [from, to) when rows are exchanged for m stages at a time. */
static tess_stage in_group(const tess_timetable *s, const tess_rates *rates, int from, int to, int m, int i)
{
    const int at = (i - from) % m, group = (int)tess_min_i64(m, to - (i - at));
    if (m == 1)
        return s->stages[i];
    return changed(s, rates, &s->stages[i], group - 1 - at, at ? 0 : group * s->stages[i].rows);
}

static double seconds_of(const tess_stage *stage, double exchange)
{
    const double there = stage->bytes > 0 ? exchange : 0;
    return stage->after +
           (stage->inner > 0 ? fmax(stage->inner, there) + stage->edges : there + stage->whole);
}

int tess_timetable_groups(const tess_timetable *s, const tess_rates *rates, const tess_links *links,
                          int ranks, int lower, int most, int *groups)
{
    int used = 1;
    for (int from = 0, to; from < s->count; from = to) {
        double least = INFINITY;
        to = level_end(s, from);
        /* A neighbour can only send rows that it has. */
        for (int m = 1; m <= most && m <= to - from && m <= s->stages[from].op.out[0].h; m++) {
            double seconds = 0;
            for (int i = from; i < to; i++) {
                const tess_stage stage = in_group(s, rates, from, to, m, i);
                seconds += seconds_of(&stage, tess_links_exchange(links, ranks, lower, stage.bytes));
            }
            if (seconds < least) {
                least = seconds;
                for (int i = from; i < to; i++)
                    groups[i] = m;
            }
        }
        used = groups[from] > used ? groups[from] : used;
    }
    return used;
}

void tess_timetable_avoid(tess_timetable *s, const tess_rates *rates, const int *groups)
{
    for (int from = 0, to; from < s->count; from = to) {
        to = level_end(s, from);        /* before its stages change */
        for (int i = from; i < to; i++) /* the stages after i are still the old ones */
            s->stages[i] = in_group(s, rates, from, to, groups[from], i);
    }
}
