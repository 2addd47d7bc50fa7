/* The transpose of the 2-D Radon transform, by gathering: each pixel finds the at most 3 x 3 samples in which
 * it has a weight, so no thread adds to memory that another writes. LANES neighbouring pixels of a row are
 * processed together. Views are summed in order, and a pixel gets the same bits in a group or alone, so the
 * result does not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "cpu/rays/radon.h"

enum { LANES = TESS_RADON_LANES, ROWS = 8 }; /* ROWS: rows per work item */

static int64_t nearest(int64_t position)
{
    return (position + TESS_RAY2_ONE / 2) >> TESS_RAY2_BITS;
}

/* The contribution of a view to one pixel, with a test of each sample. */
static float gather(const tess_radon_job *job, const tess_ray2 *view, const float *row, int64_t x, int64_t y)
{
    const int64_t s = nearest(tess_ray2_s(view, x, y)), h = nearest(tess_ray2_h(view, x, y));
    float sum = 0;
    for (int64_t i = s - 1; i <= s + 1; i++) {
        float weight = 0;
        if (i < 0 || i >= job->columns)
            continue;
        for (int64_t j = h - 1; j <= h + 1; j++)
            if (j >= 0 && j < job->along)
                weight += tess_ray2_weight(tess_radon_distance(tess_ray2_x(view, i, j) - x * TESS_RAY2_ONE)) *
                          tess_ray2_weight(tess_radon_distance(tess_ray2_y(view, i, j) - y * TESS_RAY2_ONE));
        sum += weight * row[i];
    }
    return sum;
}

/* tess_ray2_weight with an integer maximum, which every instruction set has: the bits of a negative float are
 * a negative integer. */
static inline float weight_of(float at)
{
    union {
        float f;
        int32_t i;
    } rest = {.f = 1.0f - fabsf(at)};
    rest.i = rest.i > 0 ? rest.i : 0;
    return rest.f;
}

/* The same for LANES pixels from x on, all of whose samples exist. Differences are taken modulo 2^32, which is
 * exact because they are small. */
static inline void gather_lanes(const tess_ray2 *view, const float *row, int64_t x, int64_t y, float *out)
{
    const int64_t half = TESS_RAY2_ONE / 2;
    const int64_t at_s = tess_ray2_s(view, x, y) + half, at_h = tess_ray2_h(view, x, y) + half;
    const int64_t s = at_s >> TESS_RAY2_BITS, h = at_h >> TESS_RAY2_BITS;
    const uint32_t cosine = (uint32_t)view->cosine, sine = (uint32_t)view->sine;
    const int32_t rest_s = (int32_t)(at_s & TESS_RAY2_MASK), rest_h = (int32_t)(at_h & TESS_RAY2_MASK);
    const uint32_t first_x = (uint32_t)(tess_ray2_x(view, s, h) - x * TESS_RAY2_ONE),
                   first_y = (uint32_t)(tess_ray2_y(view, s, h) - y * TESS_RAY2_ONE);
    const float c = tess_radon_distance(view->cosine), n = tess_radon_distance(view->sine);
    int32_t at[LANES];
    float weight[3][LANES];
    for (int l = 0; l < LANES; l++) {
        const int32_t more_s = (rest_s + l * view->cosine) >> TESS_RAY2_BITS,
                      more_h = (rest_h + l * view->sine) >> TESS_RAY2_BITS;
        const uint32_t to_x = first_x + (uint32_t)more_s * cosine + (uint32_t)more_h * sine -
                              (uint32_t)l * (uint32_t)TESS_RAY2_ONE,
                       to_y = first_y - (uint32_t)more_s * sine + (uint32_t)more_h * cosine;
        const float dx = (float)(int32_t)to_x * TESS_RAY2_UNIT, dy = (float)(int32_t)to_y * TESS_RAY2_UNIT;
        at[l] = more_s;
        weight[0][l] = weight_of(dx - (c + n)) * weight_of(dy - (c - n)) +
                       weight_of(dx - c) * weight_of(dy - (-n)) +
                       weight_of(dx - (c - n)) * weight_of(dy - (-c - n));
        weight[1][l] = weight_of(dx - n) * weight_of(dy - c) + weight_of(dx) * weight_of(dy) +
                       weight_of(dx - (-n)) * weight_of(dy - (-c));
        weight[2][l] = weight_of(dx - (n - c)) * weight_of(dy - (c + n)) +
                       weight_of(dx - (-c)) * weight_of(dy - n) +
                       weight_of(dx - (-c - n)) * weight_of(dy - (n - c));
    }
    for (int l = 0; l < LANES; l++) {
        const float *value = row + s + at[l];
        out[l] += weight[0][l] * value[-1] + weight[1][l] * value[0] + weight[2][l] * value[1];
    }
}

static bool amid(const tess_radon_job *job, const tess_ray2 *view, int64_t x, int64_t y)
{
    const int64_t s = nearest(tess_ray2_s(view, x, y)), h = nearest(tess_ray2_h(view, x, y));
    return s >= 1 && s <= job->columns - 2 && h >= 1 && h <= job->along - 2;
}

/* Adds a view to pixels [from, to) of row y. Pixels with all their samples are contiguous; the others are at
 * the ends. */
static void backproject_row(const tess_radon_job *job, const tess_ray2 *view, const float *row, int64_t y,
                            int64_t from, int64_t to, float *out)
{
    for (; from < to && !amid(job, view, from, y); from++)
        out[from] += gather(job, view, row, from, y);
    for (; from < to && !amid(job, view, to - 1, y); to--)
        out[to - 1] += gather(job, view, row, to - 1, y);
    for (; from + LANES <= to; from += LANES)
        gather_lanes(view, row, from, y, out + from);
    for (; from < to; from++)
        out[from] += gather(job, view, row, from, y);
}

/* The first pixel of row y that is in the image; the last is at the same distance from the other end. */
static int64_t row_start(const tess_radon_job *job, int64_t y)
{
    int64_t x = 0;
    while (x < job->size && !tess_ray2_inside(x, y, job->size, job->circle))
        x++;
    return x;
}

static void backproject_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const tess_radon_job *job = arg;
    const int64_t first = job->first + item * ROWS, last = tess_min_i64(first + ROWS, job->first + job->rows);
    int64_t start[ROWS];
    for (int64_t y = first; y < last; y++) {
        start[y - first] = row_start(job, y);
        memset(job->out + (y - job->first) * job->image_row, 0, (size_t)job->size * sizeof *job->out);
    }
    for (int64_t k = 0; k < job->views; k++) {
        const tess_ray2 view = tess_radon_view(job, k);
        for (int64_t y = first; y < last; y++)
            backproject_row(job, &view, job->in + k * job->view_row, y, start[y - first],
                            job->size - start[y - first], job->out + (y - job->first) * job->image_row);
    }
}

void tess_cpu_radon_backproject(const tess_cpu *cpu, tess_radon_job *job)
{
    tess_pool_run(cpu->pool, tess_ceil_div(job->rows, ROWS), backproject_item, job);
}
