/* test_grid.c: random cuts of random lengths: every pixel belongs to one tile, tiles start on the alignment and
 * differ by one step of it, windows are tiles with a halo that ends at the image. */
#define _POSIX_C_SOURCE 200809L
#include "tile/grid.h"

#include "support.h"

static void check_axis(int64_t size, int64_t tile, int64_t halo, int64_t alignment)
{
    const tess_axis axis = tess_axis_cut(size, tile, halo, alignment);
    const bool one = tile <= 0 || tile >= size;
    const int64_t allowed = one ? size : tess_max_i64(tile / alignment, 1) * alignment;
    int64_t at = 0, largest = 0, largest_window = 0, total = 0, least_steps = INT64_MAX, most_steps = 0;
    int wrong = 0;
    for (int64_t i = 0; i < axis.tiles; i++) {
        tess_span span = tess_axis_span(&axis, i);
        wrong += span.from != at || span.to <= span.from || span.from % alignment != 0;
        wrong += span.window_from != tess_max_i64(span.from - halo, 0);
        wrong += span.window_to != tess_min_i64(span.to + halo, size);
        wrong += span.to - span.from > allowed;
        int64_t steps = tess_ceil_div(span.to - span.from, alignment),
                window = span.window_to - span.window_from;
        least_steps = tess_min_i64(least_steps, steps);
        most_steps = tess_max_i64(most_steps, steps);
        largest = tess_max_i64(largest, span.to - span.from);
        largest_window = tess_max_i64(largest_window, window);
        total += window;
        at = span.to;
    }
    CHECK_MSG(wrong == 0 && at == size && axis.size == size && (axis.tiles == 1) == (one || allowed >= size),
              "size %lld, tile %lld, halo %lld, alignment %lld: %d wrong, ends at %lld", (long long)size,
              (long long)tile, (long long)halo, (long long)alignment, wrong, (long long)at);
    CHECK_MSG(most_steps - least_steps <= 1, "%lld to %lld steps", (long long)least_steps,
              (long long)most_steps);
    CHECK(axis.tiles == (one ? 1 : tess_ceil_div(size, allowed))); /* no more tiles than it takes */
    CHECK(tess_axis_largest_tile(&axis) == largest && tess_axis_largest_window(&axis) == largest_window);
    CHECK(tess_axis_total_window(&axis) == total);
    for (int64_t limit = 1; limit <= 5; limit += 2)
        for (int64_t i = 0, run; i < axis.tiles; i += run) {
            tess_span first = tess_axis_span(&axis, i);
            int64_t window = first.window_to - first.window_from, same = 0;
            while (same < limit && i + same < axis.tiles) {
                tess_span next = tess_axis_span(&axis, i + same);
                if (next.window_to - next.window_from != window)
                    break;
                same++;
            }
            run = tess_axis_run(&axis, i, limit);
            CHECK_MSG(run == same, "run of %lld from %lld, expected %lld", (long long)run, (long long)i,
                      (long long)same);
            if (run < 1)
                return;
        }
}

/* The largest window is no larger than with equal tiles, and where every window has its halo they are alike. */
static void check_split(int64_t size, int64_t tiles, int64_t halo, int64_t alignment)
{
    const tess_axis axis = tess_axis_split(size, tiles, halo, alignment);
    const tess_axis equal = {size, alignment, halo, axis.tiles, 0};
    const int64_t steps = tess_ceil_div(size, alignment);
    int64_t at = 0, least = INT64_MAX;
    int wrong = 0;
    for (int64_t i = 0; i < axis.tiles; i++) {
        const tess_span span = tess_axis_span(&axis, i);
        wrong += span.from != at || span.to <= span.from || span.from % alignment != 0;
        wrong += span.window_from != tess_max_i64(span.from - halo, 0);
        wrong += span.window_to != tess_min_i64(span.to + halo, size);
        least = tess_min_i64(least, span.window_to - span.window_from);
        at = span.to;
    }
    CHECK_MSG(wrong == 0 && at == size && axis.tiles == tess_min_i64(tess_max_i64(tiles, 1), steps),
              "size %lld, %lld tiles, halo %lld, alignment %lld: %d wrong, ends at %lld", (long long)size,
              (long long)tiles, (long long)halo, (long long)alignment, wrong, (long long)at);
    CHECK(tess_axis_largest_window(&axis) <= tess_axis_largest_window(&equal));
    if (axis.edge * alignment == halo && axis.edge <= (steps - 2 * axis.edge) / axis.tiles)
        CHECK_MSG(tess_axis_largest_window(&axis) - least < 2 * alignment, "windows of %lld to %lld",
                  (long long)least, (long long)tess_axis_largest_window(&axis));
}

int main(void)
{
    for (int seed = 0; seed < 3000; seed++) {
        dice d = {(uint64_t)seed};
        int64_t alignment = pick(&d, 0, 3) ? (int64_t)1 << pick(&d, 0, 6) : pick(&d, 1, 50);
        int64_t size = pick(&d, 1, pick(&d, 0, 1) ? 200 : 5000);
        int64_t tile = pick(&d, -1, pick(&d, 0, 1) ? size + 10 : 3 * alignment), halo = pick(&d, 0, 200);
        check_axis(size, tile, halo, alignment);
        check_split(size, pick(&d, 0, 12), halo, alignment);
    }
    check_axis(1, 1, 0, 1);
    check_axis(1, 0, 192, 32);
    check_axis(33, 32, 0, 32);
    check_axis(64, 32, 192, 32); /* the halo is larger than the image */
    check_axis(((int64_t)1 << 31) + 5, (int64_t)1 << 24, 64, 32);
    tess_axis axis = tess_axis_cut(100, 40, 8, 8); /* 13 steps in 3 tiles */
    tess_span span = tess_axis_span(&axis, 1);
    CHECK(axis.tiles == 3 && span.from == 32 && span.to == 64 && span.window_from == 24 &&
          span.window_to == 72);
    span = tess_axis_span(&axis, 2);
    CHECK(span.from == 64 && span.to == 100 && span.window_to == 100);
    axis = tess_axis_split(2048, 3, 64, 32); /* 704 + 64, 64 + 640 + 64, 64 + 704 */
    CHECK(tess_axis_largest_window(&axis) == 768 && tess_axis_largest_tile(&axis) == 704);
    return check_end();
}
