#include "tile/grid.h"

#include "base/checked.h"

tess_axis tess_axis_cut(int64_t size, int64_t tile, int64_t halo, int64_t alignment)
{
    tess_axis axis = {size, alignment, halo, 1, 0};
    if (tile <= 0 || tile >= size)
        return axis;
    int64_t steps = tess_ceil_div(size, alignment), per_tile = tess_max_i64(tile / alignment, 1);
    axis.tiles = tess_ceil_div(steps, per_tile);
    return axis;
}

tess_axis tess_axis_split(int64_t size, int64_t tiles, int64_t halo, int64_t alignment)
{
    const int64_t steps = tess_ceil_div(size, alignment), count = tess_min_i64(tess_max_i64(tiles, 1), steps);
    return (tess_axis){size, alignment, halo, count, tess_min_i64(halo / alignment, (steps - count) / 2)};
}

/* The position where tile `index` begins and the one before it ends. */
static int64_t boundary(const tess_axis *axis, int64_t index)
{
    const int64_t steps = tess_ceil_div(axis->size, axis->alignment);
    if (index == 0 || index == axis->tiles)
        return index ? axis->size : 0;
    return (axis->edge + (steps - 2 * axis->edge) * index / axis->tiles) * axis->alignment;
}

tess_span tess_axis_span(const tess_axis *axis, int64_t index)
{
    tess_span span = {boundary(axis, index), boundary(axis, index + 1), 0, 0};
    span.window_from = tess_max_i64(span.from - axis->halo, 0);
    span.window_to = tess_min_i64(span.to + axis->halo, axis->size);
    return span;
}

int64_t tess_axis_largest_tile(const tess_axis *axis)
{
    int64_t most = 0;
    for (int64_t i = 0; i < axis->tiles; i++) {
        tess_span span = tess_axis_span(axis, i);
        most = tess_max_i64(most, span.to - span.from);
    }
    return most;
}

static int64_t window(const tess_axis *axis, int64_t index)
{
    tess_span span = tess_axis_span(axis, index);
    return span.window_to - span.window_from;
}

int64_t tess_axis_largest_window(const tess_axis *axis)
{
    int64_t most = 0;
    for (int64_t i = 0; i < axis->tiles; i++)
        most = tess_max_i64(most, window(axis, i));
    return most;
}

int64_t tess_axis_total_window(const tess_axis *axis)
{
    int64_t total = 0;
    for (int64_t i = 0; i < axis->tiles; i++)
        total += window(axis, i);
    return total;
}

int64_t tess_axis_run(const tess_axis *axis, int64_t first, int64_t limit)
{
    int64_t count = 1;
    while (count < limit && first + count < axis->tiles && window(axis, first + count) == window(axis, first))
        count++;
    return count;
}
