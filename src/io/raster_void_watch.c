#include "io/raster_void_watch.h"

#include <math.h>

/* An island is at least so wide; a spike that was resampled is not. */
enum { LONG_RUN = 8 };

void tess_void_watch_begin(tess_void_watch *watch)
{
    *watch = (tess_void_watch){.low = INFINITY, .high = -INFINITY};
}

void tess_void_watch_count(tess_void_watch *watch, const tess_void_rule *rule, double sample)
{
    const int mark = tess_void_mark_of(sample);
    if (rule->avoid && sample == rule->avoided)
        return; /* a height by the caller's word */
    if (mark >= 0 && !(mark < TESS_VOID_TOPS && rule->heights[mark]))
        watch->counts[mark]++;
    else if (fabs(sample) >= TESS_VOID_ABSURD) {
        watch->absurd++;
        watch->farthest = fabs(sample) > fabs(watch->farthest) ? sample : watch->farthest;
    } else {
        watch->low = fmin(watch->low, sample);
        watch->high = fmax(watch->high, sample);
    }
}

static bool is_number(double sample)
{
    return fabs(sample) < TESS_VOID_ABSURD && tess_void_mark_of(sample) < 0; /* false for NaN */
}

/* The sample at `at`, or NaN where there is none or a mark. */
static double number_at(const double *row, int64_t count, int64_t at)
{
    return at >= 0 && at < count && is_number(row[at]) ? row[at] : (double)NAN;
}

/* Terrain goes on to a mark if the next pixel is no farther from it than twice the step before, or a hundredth of it. */
static void add_end(tess_void_watch *watch, int mark, double next, double second)
{
    const double value = tess_void_marks[mark], step = isnan(second) ? 0 : fabs(next - second);
    if (isnan(next))
        return;
    watch->ends[mark]++;
    watch->near[mark] += fabs(next - value) <= 2 * step + 0.01 * fabs(value);
}

static int64_t add_mark(tess_void_watch *watch, int mark, const double *row, int64_t from, int64_t count)
{
    int64_t to = from;
    while (to < count && row[to] == row[from])
        to++;
    add_end(watch, mark, number_at(row, count, from - 1), number_at(row, count, from - 2));
    add_end(watch, mark, number_at(row, count, to), number_at(row, count, to + 1));
    return to;
}

/* Which side of the limits a sample is on; -1: none. */
static int side_of(const tess_void_rule *rule, double sample)
{
    if (!rule->limits || !is_number(sample) || (sample >= rule->low && sample <= rule->high))
        return -1;
    return sample > rule->high;
}

/* On the line between its neighbours, to a quarter of its distance from the other heights. */
static bool is_joined(double left, double sample, double right, double middle)
{
    const double mean = isnan(left) ? right : isnan(right) ? left : (left + right) / 2;
    return fabs(sample - mean) <= fabs(sample - middle) / 4;
}

static int64_t add_run(tess_void_watch *watch, const tess_void_rule *rule, int side, const double *row,
                       int64_t from, int64_t count)
{
    const double middle = (rule->low + rule->high) / 2;
    tess_void_beyond *beyond = &watch->beyond[side];
    int64_t to = from;
    while (to < count && side_of(rule, row[to]) == side)
        to++;
    for (int64_t i = from; i < to; i++) {
        const double left = number_at(row, count, i - 1), right = number_at(row, count, i + 1);
        if (row[i] == left && row[i] == right)
            continue; /* level terrain, or a constant that marks voids */
        beyond->pixels++;
        if (to - from < LONG_RUN || !is_joined(left, row[i], right, middle))
            continue;
        beyond->joined++;
        if (fabs(row[i] - middle) > fabs(beyond->reach - middle) || beyond->joined == 1)
            beyond->reach = row[i];
    }
    return to;
}

void tess_void_watch_row(tess_void_watch *watch, const tess_void_rule *rule, const double *row, int64_t count)
{
    for (int64_t i = 0; rule->usual && i < count;) {
        const int mark = tess_void_mark_of(row[i]), side = side_of(rule, row[i]);
        if (mark >= 0 && mark < TESS_VOID_TOPS)
            i = add_mark(watch, mark, row, i, count);
        else if (side >= 0)
            i = add_run(watch, rule, side, row, i, count);
        else
            i++;
    }
}

static bool is_terrain(const tess_void_beyond *beyond)
{
    return 2 * beyond->joined > beyond->pixels;
}

static bool goes_on(const tess_void_watch *watch, int mark)
{
    return 2 * watch->near[mark] > watch->ends[mark];
}

bool tess_void_watch_end(tess_void_watch *watch, const tess_void_rule *rule)
{
    bool any = watch->absurd > 0 || is_terrain(&watch->beyond[0]) || is_terrain(&watch->beyond[1]);
    for (int i = 0; i < TESS_VOID_MARKS; i++) {
        if (!(watch->low <= watch->high) || !tess_void_is_far(i, watch->low, watch->high))
            watch->counts[i] = 0;
        any = any || watch->counts[i] > 0 || (i < TESS_VOID_TOPS && goes_on(watch, i) && !rule->heights[i]);
    }
    return any;
}

/* Limits go twice as far as the terrain, so that a summit between two pixels that were looked at stays. */
void tess_void_rule_add(tess_void_rule *rule, const tess_void_watch *watch)
{
    const double middle = (rule->low + rule->high) / 2;
    rule->absurd = rule->absurd || watch->absurd > 0;
    for (int i = 0; i < TESS_VOID_MARKS; i++)
        rule->marks[i] = rule->marks[i] || watch->counts[i] > 0;
    for (int i = 0; i < TESS_VOID_TOPS; i++)
        rule->heights[i] = rule->heights[i] || goes_on(watch, i);
    if (is_terrain(&watch->beyond[0]))
        rule->low = middle + 2 * (watch->beyond[0].reach - middle);
    if (is_terrain(&watch->beyond[1]))
        rule->high = middle + 2 * (watch->beyond[1].reach - middle);
}
