#include "job/fill/fill_tiles.h"

#include "base/checked.h"

tess_fill_axis tess_fill_axis_of(int64_t size, int64_t tile, int64_t overlap)
{
    const int64_t count = size <= tile ? 1 : tess_ceil_div(size - overlap, tile - overlap);
    return (tess_fill_axis){size, tile, count};
}

int64_t tess_fill_start(const tess_fill_axis *axis, int64_t index)
{
    return axis->count == 1 ? 0 : index * (axis->size - axis->tile) / (axis->count - 1);
}

/* A smooth step over the `length` pixels of an overlap, so that neither the surface nor its slope jumps; `inside`: pixels
 * from the tile's edge. */
static float ramp(int64_t inside, int64_t length)
{
    const float part = inside >= length ? 1 : ((float)inside + 0.5f) / (float)length;
    return part * part * (3 - 2 * part);
}

float tess_fill_weight(const tess_fill_axis *axis, int64_t index, int64_t at)
{
    const int64_t start = tess_fill_start(axis, index);
    float weight = 1;
    if (index > 0)
        weight *= ramp(at, tess_fill_start(axis, index - 1) + axis->tile - start);
    if (index < axis->count - 1)
        weight *= ramp(axis->tile - 1 - at, start + axis->tile - tess_fill_start(axis, index + 1));
    return weight;
}

void tess_fill_touching(const tess_fill_axis *axis, int64_t from, int64_t to, int64_t *first, int64_t *end)
{
    int64_t low = 0, high = axis->count;
    while (low < high && tess_fill_start(axis, low) + axis->tile <= from)
        low++;
    while (high > low && tess_fill_start(axis, high - 1) >= to)
        high--;
    *first = low;
    *end = high;
}
