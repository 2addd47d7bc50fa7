/* voids_distance.c: the exact Euclidean distance transform (Felzenszwalb and Huttenlocher, 2012): the distance along
 * columns first, then along each row the lower envelope of parabolas.
 *
 * The distance upwards is known when going down, the one downwards is not. A first pass from the bottom keeps the rows of
 * distances downwards that lie about sqrt(h) rows from each other; the second goes down block by block and recomputes the
 * rows of a block from the one below it. In a row, a run of void pixels lies between valid ones, which are nearer than
 * anything beyond them: so each run has its own envelope, and only void pixels cost time. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/terrain/voids.h"

enum { NONE = INT32_MAX };

typedef struct distance_pass {
    const tess_bitmap *voids;
    int64_t block, blocks;
    int32_t *saved; /* [blocks]: distances downwards in the first row below each block */
    int32_t *below; /* [block]: of the rows of the current block */
    int32_t *above; /* of the current row */
    int64_t *squares;
    int64_t *heights; /* of a run: squared distances along columns */
    int64_t *centres; /* of the envelope: columns of the parabolas */
    int64_t *starts;  /* first pixel at which each parabola is the lowest */
} distance_pass;

static size_t place(distance_pass *pass, int64_t h, int64_t w, void *scratch)
{
    const int64_t block = tess_max_i64((int64_t)sqrt((double)h), 1),
                  blocks = tess_ceil_div(tess_max_i64(h, 1), block);
    const size_t row = tess_align_size((size_t)w * sizeof(int32_t), 64);
    const size_t run = tess_align_size((size_t)(w + 2) * sizeof(int64_t), 64);
    if (pass) {
        char *at = scratch;
        pass->block = block, pass->blocks = blocks;
        pass->saved = (int32_t *)at, at += row * (size_t)blocks;
        pass->below = (int32_t *)at, at += row * (size_t)block;
        pass->above = (int32_t *)at, at += row;
        pass->squares = (int64_t *)at, at += run;
        pass->heights = (int64_t *)at, at += run;
        pass->centres = (int64_t *)at, at += run;
        pass->starts = (int64_t *)at;
    }
    return row * (size_t)(blocks + block + 1) + 4 * run;
}

size_t tess_voids_distance_bytes(int64_t h, int64_t w)
{
    return place(NULL, h, w, NULL);
}

/* Distances along columns: of row y from those of the row beside it. */
static void step(const tess_bitmap *voids, int64_t y, const int32_t *before, int32_t *now)
{
    const uint64_t *row = tess_bitmap_row(voids, y);
    for (int64_t k = 0; k < voids->words; k++) {
        const int64_t first = k * 64, end = tess_min_i64(first + 64, voids->w);
        if (row[k] == 0) {
            memset(now + first, 0, (size_t)(end - first) * sizeof *now);
            continue;
        }
        for (int64_t x = first; x < end; x++)
            now[x] = row[k] >> (x - first) & 1 ? before[x] + (before[x] != NONE) : 0;
    }
}

static void no_pixel(int32_t *row, int64_t w)
{
    for (int64_t x = 0; x < w; x++)
        row[x] = NONE;
}

/* The first pixel from which a parabola at `c` with height hc is below the one at `a` < c: (x-c)^2 + hc < (x-a)^2 + ha. */
static int64_t crossing(int64_t a, int64_t ha, int64_t c, int64_t hc)
{
    const int64_t above = hc + c * c - ha - a * a, twice = 2 * (c - a);
    int64_t x = above / twice; /* rounded towards 0; the first x with twice * x > above is wanted */
    if (x * twice > above)
        x--;
    return x + 1;
}

/* Squared distances of the pixels [from, to) from `heights` of [low, high), which contains them. */
static void envelope(distance_pass *pass, int64_t low, int64_t high, int64_t from, int64_t to)
{
    int64_t count = 0;
    const int64_t *heights = pass->heights;
    for (int64_t c = low; c < high; c++) {
        const int64_t height = heights[c - low];
        if (height == TESS_VOID_FAR)
            continue;
        int64_t start = from;
        while (count > 0) {
            const int64_t a = pass->centres[count - 1];
            start = tess_max_i64(crossing(a, heights[a - low], c, height), from);
            if (start > pass->starts[count - 1])
                break;
            count--;
            start = from;
        }
        if (start < to)
            pass->centres[count] = c, pass->starts[count++] = start;
    }
    for (int64_t x = from, k = 0; x < to; x++) {
        while (k + 1 < count && pass->starts[k + 1] <= x)
            k++;
        const int64_t c = count ? pass->centres[k] : 0;
        pass->squares[x] = count ? (x - c) * (x - c) + heights[c - low] : TESS_VOID_FAR;
    }
}

/* All runs of a row. */
static void finish_row(distance_pass *pass, int64_t y, const int32_t *below)
{
    const tess_bitmap *voids = pass->voids;
    int64_t done = 0;
    for (int64_t from = tess_bitmap_find(voids, y, 0, true); from < voids->w;) {
        const int64_t to = tess_bitmap_find(voids, y, from, false);
        const int64_t low = tess_max_i64(from - 1, 0), high = tess_min_i64(to + 1, voids->w);
        for (int64_t x = low; x < high; x++) {
            const int64_t d = pass->above[x] < below[x] ? pass->above[x] : below[x];
            pass->heights[x - low] = d == NONE ? TESS_VOID_FAR : d * d;
        }
        memset(pass->squares + done, 0, (size_t)(from - done) * sizeof *pass->squares);
        envelope(pass, low, high, from, to);
        done = to;
        from = tess_bitmap_find(voids, y, to, true);
    }
    memset(pass->squares + done, 0, (size_t)(voids->w - done) * sizeof *pass->squares);
}

void tess_voids_distances(const tess_bitmap *voids, void *scratch, tess_voids_row_fn row, void *arg)
{
    distance_pass pass = {.voids = voids};
    const int64_t h = voids->h, w = voids->w;
    const int64_t stride = (int64_t)(tess_align_size((size_t)w * sizeof(int32_t), 64) / sizeof(int32_t));
    place(&pass, h, w, scratch);
    no_pixel(pass.above, w);
    for (int64_t y = h; y-- > 0;) { /* `above` holds the distances downwards of row y + 1 here */
        if ((y + 1) % pass.block == 0 || y + 1 == h)
            memcpy(pass.saved + y / pass.block * stride, pass.above, (size_t)w * sizeof *pass.above);
        step(voids, y, pass.above, pass.above);
    }
    no_pixel(pass.above, w);
    for (int64_t b = 0; b < pass.blocks; b++) {
        const int64_t first = b * pass.block, end = tess_min_i64(first + pass.block, h);
        for (int64_t y = end; y-- > first;)
            step(voids, y, y + 1 == end ? pass.saved + b * stride : pass.below + (y + 1 - first) * stride,
                 pass.below + (y - first) * stride);
        for (int64_t y = first; y < end; y++) {
            step(voids, y, pass.above, pass.above);
            finish_row(&pass, y, pass.below + (y - first) * stride);
            row(arg, y, pass.squares);
        }
    }
}

typedef struct limit {
    tess_bitmap *near;
    double square;
} limit;

static void limit_row(void *arg, int64_t y, const int64_t *squares)
{
    const limit *task = arg;
    uint64_t *row = tess_bitmap_row(task->near, y);
    for (int64_t x = tess_bitmap_find(task->near, y, 0, true); x < task->near->w;
         x = tess_bitmap_find(task->near, y, x + 1, true))
        if (squares[x] == TESS_VOID_FAR || (double)squares[x] > task->square)
            row[x / 64] &= ~((uint64_t)1 << (x % 64));
}

void tess_voids_limit(const tess_bitmap *voids, double most, tess_bitmap *near, void *scratch)
{
    limit task = {near, most * most};
    tess_voids_distances(voids, scratch, limit_row, &task);
}
