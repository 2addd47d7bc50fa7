#include "plan/ranks/strips.h"

#include "base/checked.h"

static tess_strips divide(int64_t step, int64_t least, int64_t grid, int64_t height, int64_t ranks)
{
    const int64_t rest = tess_round_up(height % step, grid),
                  steps = tess_max_i64(height / step + (rest >= least), 1);
    tess_strips s = {.count = tess_min_i64(ranks, steps), .step = step, .height = height};
    s.each = height / (s.count * step);
    /* As few strips are longer as are needed so that the last one, with all rows that are left, is not larger. */
    const int64_t left = height - s.each * (s.count - 1) * step, more = left - (s.each + 1) * step;
    s.longer = more > 0 ? tess_ceil_div(more, step) : 0;
    return s;
}

tess_strips tess_strips_divide(const tess_bound *bound, int64_t grid, int64_t height, int64_t ranks)
{
    const int64_t least = tess_bound_least_strip(bound);
    return divide(tess_round_up(least, tess_bound_alignment(bound)), least, grid, height, ranks);
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
    return index == s->count ? s->height : (s->each * index + tess_min_i64(s->longer, index)) * s->step;
}

int64_t tess_strips_rows(const tess_strips *s, int64_t index)
{
    return tess_strips_row(s, index + 1) - tess_strips_row(s, index);
}
