/* Strips by speed, with borders of their own at each level of the network. The deepest level is divided first, because it has the
 * fewest places to begin at. A division of a level is tried for a longest time T: no strip may have more rows than its rank computes
 * in T, which leaves each border an interval, from the first to the last. T is found by bisection. Of all divisions that take T, borders
 * are taken as close as possible to where they would be if rows could be divided at will: then the borders of all levels are close to each
 * other, and layers between levels read few rows of the neighbour.
 *
 * They may read no more than the neighbour has. So borders of a level are kept within a distance of those of the next deeper one,
 * and several distances are tried. */
#include <math.h>

#include "base/checked.h"
#include "plan/ranks/strips.h"

enum { BISECTIONS = 60 };

/* A level whose borders are sought. */
typedef struct division {
    tess_strips *strips; /* with the borders of deeper levels */
    const double *speeds;
    double all; /* the sum of them */
    int level;
    int64_t step;        /* in rows of the level, as are all below */
    int64_t least, last; /* the fewest rows of a strip, and of the last one */
    int64_t distance;    /* of a border from that of the next level */
    int64_t end;
    int64_t low[TESS_STRIPS_BY_SPEED], high[TESS_STRIPS_BY_SPEED]; /* where a strip may begin */
} division;

static int64_t floor_to(int64_t value, int64_t step)
{
    return value / step * step;
}

/* Where a strip would begin to be near its border at the next level. */
static void set_near(const division *d, int64_t index, int64_t *low, int64_t *high)
{
    const tess_strips *s = d->strips;
    *low = 0;
    *high = d->end;
    if (d->level + 1 == s->levels.count)
        return;
    const int64_t middle = 2 * (int64_t)s->starts[d->level + 1][index];
    *low = tess_round_up(tess_max_i64(middle - d->distance, 0), d->step);
    *high = floor_to(tess_min_i64(middle + d->distance, d->end), d->step);
}

/* The most rows of a strip that takes no longer. */
static int64_t most_rows(const division *d, int64_t index, double longest)
{
    const double rows = ldexp(longest * d->speeds[index], -d->level);
    return rows < (double)d->end ? (int64_t)rows : d->end;
}

/* Where a strip may begin, if the next begins at `next`, or the image ends there. */
static void set_before(const division *d, int64_t index, int64_t next, double longest, int64_t *low,
                       int64_t *high)
{
    const int64_t least = index + 1 < d->strips->count ? d->least : d->last;
    *low = tess_max_i64(d->low[index],
                        tess_round_up(tess_max_i64(next - most_rows(d, index, longest), 0), d->step));
    *high = tess_min_i64(d->high[index], floor_to(tess_max_i64(next - least, 0), d->step));
}

static bool fits(division *d, double longest)
{
    const int64_t count = d->strips->count;
    int64_t low, high;
    d->low[0] = d->high[0] = 0;
    for (int64_t i = 1; i < count; i++) {
        const int64_t most = floor_to(most_rows(d, i - 1, longest), d->step);
        set_near(d, i, &low, &high);
        d->low[i] = tess_max_i64(d->low[i - 1] + d->least, low);
        d->high[i] = tess_min_i64(d->high[i - 1] + most, high);
        if (d->low[i] > d->high[i] || most < d->least)
            return false;
    }
    set_before(d, count - 1, d->end, longest, &low, &high);
    return low <= high;
}

/* From the last border to the first, within what fits. */
static void take_nearest(division *d, double longest)
{
    const tess_strips *s = d->strips;
    int64_t next = d->end;
    double before = d->all;
    for (int64_t i = s->count - 1; i > 0; i--) {
        int64_t low, high;
        set_before(d, i, next, longest, &low, &high);
        before -= d->speeds[i];
        const double wanted = (double)d->end * before / d->all;
        next = tess_max_i64(low, tess_min_i64(high, llround(wanted / (double)d->step) * d->step));
        d->strips->starts[d->level][i] = (int32_t)next;
    }
    d->strips->starts[d->level][0] = 0;
}

static bool divide_level(division *d)
{
    double low = 0, high = (double)d->strips->height * 2;
    for (int64_t i = 0; i < d->strips->count; i++)
        high = fmax(high, (double)d->strips->height * 2 / d->speeds[i]);
    if (!fits(d, high))
        return false;
    for (int i = 0; i < BISECTIONS; i++) {
        const double middle = (low + high) / 2;
        if (fits(d, middle))
            high = middle;
        else
            low = middle;
    }
    (void)fits(d, high);
    take_nearest(d, high);
    return true;
}

static int64_t rows_at(const tess_strips *s, int level, int64_t index)
{
    return tess_strips_level_row(s, level, index + 1) - tess_strips_level_row(s, level, index);
}

/* Whether both neighbours of each border have the rows that layers between levels read of them, downwards and upwards. */
static bool have_rows(const tess_strips *s)
{
    bool have = true;
    for (int l = 0; l + 1 < s->levels.count; l++)
        for (int64_t i = 1; i < s->count; i++) {
            const int64_t apart = 2 * tess_strips_level_row(s, l + 1, i) - tess_strips_level_row(s, l, i),
                          rows = apart < 0 ? -apart : apart;
            for (int64_t side = i - 1; side <= i; side++)
                have = have && rows_at(s, l, side) >= rows && 2 * rows_at(s, l + 1, side) >= rows;
        }
    return have;
}

/* `distance`: in rows of the image. */
static bool divide(tess_strips *s, const double *speeds, int64_t distance)
{
    division d = {.strips = s, .speeds = speeds};
    bool possible = true;
    for (int64_t i = 0; i < s->count; i++)
        d.all += speeds[i];
    for (int l = s->levels.count - 1; l >= 0 && possible; l--) {
        d.level = l;
        d.step = s->levels.step[l];
        d.distance = distance >> l;
        d.end = tess_strips_level_row(s, l, s->count);
        d.least = tess_round_up(s->levels.least[l], d.step);
        d.last = tess_max_i64(s->levels.least[l], l ? 0 : d.end - s->height + 1); /* a row of the image */
        possible = divide_level(&d);
    }
    return possible && have_rows(s);
}

bool tess_strips_by_level(const tess_strips *equal, const double *speeds, tess_strips *best)
{
    tess_strips s = *equal;
    bool found = false;
    double least = INFINITY;
    if (!s.levels.count)
        return false;
    s.by_speed = s.by_level = true;
    for (int64_t distance = tess_strips_most(equal); distance >= s.levels.step[0]; distance /= 2) {
        if (!divide(&s, speeds, distance))
            continue;
        const double longest = tess_strips_longest(&s, speeds);
        if (longest > least)
            continue;
        least = longest;
        *best = s;
        found = true;
    }
    return found;
}
