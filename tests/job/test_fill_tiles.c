/* The tiles of a map: they cover every pixel, overlap as much as was asked for, stay inside the map, and their weights fall
 * towards their edges. */
#include "check.h"
#include "job/fill/fill_tiles.h"

static void check_axis(int64_t size, int64_t tile, int64_t overlap)
{
    const tess_fill_axis axis = tess_fill_axis_of(size, tile, overlap);
    int64_t end = 0;
    for (int64_t i = 0; i < axis.count; i++) {
        const int64_t start = tess_fill_start(&axis, i);
        CHECK_MSG(start >= 0 && (size <= tile || start + tile <= size), "tile %lld of %lld", (long long)i,
                  (long long)size);
        CHECK_MSG(i == 0 ? start == 0 : end - start >= overlap && start + tile > end,
                  "%lld: tile %lld begins at %lld", (long long)size, (long long)i, (long long)start);
        end = start + tile;
    }
    CHECK(end >= size);
    for (int64_t at = 0; at < size; at++) {
        int64_t first, last;
        float sum = 0;
        tess_fill_touching(&axis, at, at + 1, &first, &last);
        CHECK(first < last && last - first <= 3);
        for (int64_t i = 0; i < axis.count; i++) {
            const int64_t inside = at - tess_fill_start(&axis, i);
            const bool covers = inside >= 0 && inside < tile;
            CHECK(covers == (i >= first && i < last));
            const float weight = covers ? tess_fill_weight(&axis, i, inside) : 0;
            CHECK(!covers || (weight > 0 && weight <= 1));
            sum += weight;
        }
        CHECK_MSG(sum >= 0.5f, "weights at %lld of %lld add up to %g", (long long)at, (long long)size,
                  (double)sum);
    }
}

int main(void)
{
    for (int64_t size = 1; size < 700; size += size < 300 ? 7 : 97)
        for (int64_t overlap = 0; overlap <= 64; overlap += 16)
            check_axis(size, 128, overlap);
    check_axis(20000, 128, 12);
    const tess_fill_axis axis = tess_fill_axis_of(20000, 128, 12);
    CHECK(axis.count == 173);
    return check_end();
}
