#include "plan/ranks/strips.h"

#include <math.h>

#include "base/checked.h"

static const double WORTH = 0.97;

tess_strips tess_strips_of_steps(int64_t step, int64_t steps, int64_t height, int64_t ranks)
{
    tess_strips s = {.count = tess_min_i64(ranks, steps), .step = step, .steps = steps, .height = height};
    s.each = height / (s.count * step);
    /* As few strips are longer as are needed so that the last one, with all rows that are left, is not larger. */
    const int64_t left = height - s.each * (s.count - 1) * step, more = left - (s.each + 1) * step;
    s.longer = more > 0 ? tess_ceil_div(more, step) : 0;
    return s;
}

static tess_strips divide(int64_t step, int64_t least, int64_t grid, int64_t height, int64_t ranks)
{
    const int64_t rest = tess_round_up(height % step, grid),
                  steps = tess_max_i64(height / step + (rest >= least), 1);
    return tess_strips_of_steps(step, steps, height, ranks);
}

tess_strips tess_strips_divide(const tess_bound *bound, int64_t grid, int64_t height, int64_t ranks)
{
    const int64_t least = tess_bound_least_strip(bound);
    tess_strips s = divide(tess_round_up(least, tess_bound_alignment(bound)), least, grid, height, ranks);
    s.levels = tess_levels_of(bound);
    return s;
}

tess_strips tess_strips_divide_columns(const tess_bound *bound, int64_t grid, int64_t width, int64_t ranks)
{
    const int64_t least = tess_bound_least_columns(bound);
    return divide(tess_round_up(least, tess_bound_alignment(bound)), least, grid, width, ranks);
}

tess_strips tess_strips_of(int64_t step, int64_t height, int64_t ranks)
{
    return divide(step, step, step, height, ranks);
}

int64_t tess_strips_row(const tess_strips *s, int64_t index)
{
    if (index == s->count)
        return s->height;
    return s->by_speed ? s->starts[0][index] : s->step * (s->each * index + tess_min_i64(s->longer, index));
}

int64_t tess_strips_rows(const tess_strips *s, int64_t index)
{
    return tess_strips_row(s, index + 1) - tess_strips_row(s, index);
}

int64_t tess_strips_most(const tess_strips *s)
{
    int64_t most = 0;
    for (int64_t i = 0; i < s->count; i++)
        most = tess_max_i64(most, tess_strips_rows(s, i));
    return most;
}

int64_t tess_strips_least(const tess_strips *s)
{
    int64_t least = s->height;
    for (int64_t i = 0; i < s->count; i++)
        least = tess_min_i64(least, tess_strips_rows(s, i));
    return least;
}

int64_t tess_strips_level_row(const tess_strips *s, int level, int64_t index)
{
    if (index == s->count)
        return tess_round_up(s->height, s->levels.grid) >> level;
    return s->by_level ? s->starts[level][index] : tess_strips_row(s, index) >> level;
}

tess_level_rows tess_strips_level_rows(const tess_strips *s, int64_t index)
{
    tess_level_rows rows = {{0}};
    for (int l = 0; l < s->levels.count && s->by_level; l++) {
        rows.first[l] = (int32_t)tess_strips_level_row(s, l, index);
        rows.rows[l] = (int32_t)tess_strips_level_row(s, l, index + 1) - rows.first[l];
    }
    return rows;
}

/* The rows of the image that a strip has at a level. */
static int64_t image_rows(const tess_strips *s, int level, int64_t index)
{
    return tess_min_i64(tess_strips_level_row(s, level, index + 1) << level, s->height) -
           (tess_strips_level_row(s, level, index) << level);
}

double tess_strips_longest(const tess_strips *s, const double *speeds)
{
    double longest = 0, sum = 0;
    for (int l = 0; l < s->levels.count && s->by_level; l++) {
        double of_level = 0;
        for (int64_t i = 0; i < s->count; i++)
            of_level = fmax(of_level, (double)image_rows(s, l, i) / speeds[i]);
        sum += s->levels.share[l] * of_level;
    }
    for (int64_t i = 0; i < s->count; i++)
        longest = fmax(longest, (double)tess_strips_rows(s, i) / speeds[i]);
    return s->by_level ? sum : longest;
}

/* The last strip has the rows after the last step, too, or lacks some of that step. */
static double seconds_of(const tess_strips *s, int64_t index, int64_t steps, double speed)
{
    const int64_t beyond = index == s->count - 1 ? s->height - s->steps * s->step : 0;
    return (double)(steps * s->step + beyond) / speed;
}

/* Each step goes to the strip that is done with it first, so that no other division has a shorter longest time. */
static void share_steps(const tess_strips *s, const double *speeds, int64_t *steps)
{
    for (int64_t i = 0; i < s->count; i++)
        steps[i] = 1;
    for (int64_t left = s->steps - s->count; left > 0; left--) {
        int64_t first = 0;
        for (int64_t i = 1; i < s->count; i++)
            if (seconds_of(s, i, steps[i] + 1, speeds[i]) <
                seconds_of(s, first, steps[first] + 1, speeds[first]))
                first = i;
        steps[first]++;
    }
}

/* By more than they are known to. Levels could be divided better than steps allow also where all are equal. */
static bool differ(const double *speeds, int64_t count)
{
    double least = speeds[0], most = speeds[0];
    for (int64_t i = 1; i < count; i++) {
        least = fmin(least, speeds[i]);
        most = fmax(most, speeds[i]);
    }
    return least < WORTH * most;
}

tess_strips tess_strips_by_speed(const tess_strips *equal, const double *speeds)
{
    int64_t steps[TESS_STRIPS_BY_SPEED];
    tess_strips s = *equal, by_level;
    if (s.count < 2 || s.count > TESS_STRIPS_BY_SPEED || s.height > INT32_MAX / 2)
        return *equal;
    for (int64_t i = 0; i < s.count; i++)
        if (!(speeds[i] > 0) || isinf(speeds[i]))
            return *equal;
    share_steps(equal, speeds, steps);
    s.by_speed = true;
    s.starts[0][0] = 0;
    for (int64_t i = 1; i < s.count; i++)
        s.starts[0][i] = s.starts[0][i - 1] + (int32_t)(steps[i - 1] * s.step);
    if (tess_strips_longest(&s, speeds) > WORTH * tess_strips_longest(equal, speeds))
        s = *equal;
    const bool levels = differ(speeds, s.count) && tess_strips_by_level(equal, speeds, &by_level) &&
                        tess_strips_longest(&by_level, speeds) <= WORTH * tess_strips_longest(&s, speeds);
    return levels ? by_level : s;
}
