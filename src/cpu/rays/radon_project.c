/* The 2-D Radon transform of geometry/ray2.h. LANES neighbouring detectors are followed together, so that
 * their reads are close to each other at every angle. In the range where all their samples have all pixels
 * inside the image, no pixel is tested; samples outside that range are computed one by one. Sums are taken in
 * runs of RUN samples; runs are added in fp64. */
#include <math.h>

#include "base/checked.h"
#include "cpu/rays/radon.h"

enum { LANES = TESS_RADON_LANES, RUN = 64, DETECTORS = 64 }; /* DETECTORS: per work item */

typedef float pair __attribute__((vector_size(8)));
typedef float loose __attribute__((vector_size(8), aligned(4), may_alias)); /* any alignment */

typedef struct range {
    int64_t from, to; /* `to` is not included */
} range;

static range range_of(double from, double to, int64_t along)
{
    return (range){(int64_t)fmax(ceil(from), 0), (int64_t)fmin(floor(to) + 1, (double)along)};
}

/* Narrows [*from, *to] to where low <= start + slope h <= high. */
static void narrow(double start, double slope, double low, double high, double *from, double *to)
{
    if (fabs(slope) < 1e-9) {
        if (start < low || start > high)
            *to = *from - 2;
        return;
    }
    const double a = (low - start) / slope, b = (high - start) / slope;
    *from = fmax(*from, fmin(a, b));
    *to = fmin(*to, fmax(a, b));
}

/* A view, and the detector position of the image centre. */
typedef struct ray_view {
    tess_ray2 ray;
    double a;
} ray_view;

/* The samples h of detectors s[0] and s[1], and so of all between them, that lie at least `margin` inside the
 * image; a negative margin includes samples outside. The pixels of a sample are less than 1 away in x and y,
 * and less than 1.415 in the plane. */
static range clip(const tess_radon_job *job, const ray_view *view, const int64_t s[2], double margin)
{
    const double centre = 0.5 * (double)(job->size - 1), one = TESS_RAY2_ONE;
    const double middle = 0.5 * (double)(job->along - 1);
    double from = 0, to = (double)(job->along - 1);
    for (int i = 0; i < 2; i++) {
        if (job->circle) {
            const double radius = centre - 1.415 * margin, away = (double)s[i] - view->a;
            const double half = radius > fabs(away) ? sqrt(radius * radius - away * away) : -1;
            from = fmax(from, middle - half);
            to = fmin(to, middle + half);
        } else {
            const double x = (double)tess_ray2_x(&view->ray, s[i], 0) / one,
                         y = (double)tess_ray2_y(&view->ray, s[i], 0) / one;
            narrow(x, view->ray.sine / one, margin, 2 * centre - margin, &from, &to);
            narrow(y, view->ray.cosine / one, margin, 2 * centre - margin, &from, &to);
        }
    }
    return range_of(from, to, job->along);
}

/* One sample, with a test of each pixel. */
static float sample(const tess_radon_job *job, const tess_ray2 *view, int64_t s, int64_t h)
{
    const int64_t at_x = tess_ray2_x(view, s, h), at_y = tess_ray2_y(view, s, h);
    const int64_t x = at_x >> TESS_RAY2_BITS, y = at_y >> TESS_RAY2_BITS;
    float sum = 0;
    for (int64_t j = y; j <= y + 1; j++)
        for (int64_t i = x; i <= x + 1; i++)
            if (tess_ray2_inside(i, j, job->size, job->circle))
                sum += job->in[j * job->image_row + i] *
                       (tess_ray2_weight(tess_radon_distance(at_x - i * TESS_RAY2_ONE)) *
                        tess_ray2_weight(tess_radon_distance(at_y - j * TESS_RAY2_ONE)));
    return sum;
}

/* Adds samples [from, to) of detectors s .. s + LANES - 1, all with all pixels inside the image. A pair is two
 * neighbours in a row. */
static void samples(const tess_radon_job *job, const tess_ray2 *view, int64_t s, int64_t from, int64_t to,
                    pair sum[LANES])
{
    const int32_t cosine = view->cosine, sine = view->sine, stride = (int32_t)job->image_row;
    int64_t at_x = tess_ray2_x(view, s, from), at_y = tess_ray2_y(view, s, from);
    for (int64_t h = from; h < to; h++, at_x += sine, at_y += cosine) {
        const float *first = job->in + (at_y >> TESS_RAY2_BITS) * stride + (at_x >> TESS_RAY2_BITS);
        const int32_t first_x = (int32_t)(at_x & TESS_RAY2_MASK), first_y = (int32_t)(at_y & TESS_RAY2_MASK);
        int32_t at[LANES];
        float in_x[2 * LANES], in_y[2 * LANES];
        for (int i = 0; i < LANES; i++) {
            const int32_t x = first_x + i * cosine, y = first_y - i * sine;
            const float dx = (float)(x & TESS_RAY2_MASK) * TESS_RAY2_UNIT,
                        dy = (float)(y & TESS_RAY2_MASK) * TESS_RAY2_UNIT;
            at[i] = (y >> TESS_RAY2_BITS) * stride + (x >> TESS_RAY2_BITS);
            in_x[2 * i] = 1 - dx; /* tess_ray2_weight between two pixels */
            in_x[2 * i + 1] = dx;
            in_y[i] = 1 - dy;
            in_y[LANES + i] = dy;
        }
        for (int i = 0; i < LANES; i++) {
            const pair above = *(const loose *)(first + at[i]),
                       below = *(const loose *)(first + at[i] + stride);
            sum[i] += (above * in_y[i] + below * in_y[LANES + i]) * *(const loose *)(in_x + 2 * i);
        }
    }
}

/* Projects detectors s .. s + count - 1, at most LANES. */
static void project_block(const tess_radon_job *job, const ray_view *view, int64_t s, int64_t count,
                          float *out)
{
    const int64_t ends[2] = {s, s + count - 1};
    const int64_t middle = tess_min_i64(tess_max_i64((int64_t)floor(view->a), ends[0]), ends[1]);
    /* In a circle, the detector nearest to the image centre has the longest ray; in a square, the ranges of
     * two detectors of the group differ by less than LANES. */
    range most = clip(job, view, (int64_t[]){middle, middle}, job->circle ? -1.01 : -1.01 - LANES);
    range inner = clip(job, view, ends, 1.01);
    if (count < LANES || inner.to < inner.from)
        inner = (range){most.to, most.to};
    double total[LANES] = {0};
    for (int64_t h = most.from; h < most.to;) {
        const int64_t end = tess_min_i64((h / RUN + 1) * RUN, most.to);
        pair sum[LANES] = {{0}};
        while (h < end) {
            if (h >= inner.from && h < inner.to) {
                const int64_t to = tess_min_i64(end, inner.to);
                samples(job, &view->ray, s, h, to, sum);
                h = to;
            } else {
                for (int i = 0; i < count; i++)
                    sum[i][0] += sample(job, &view->ray, s + i, h);
                h++;
            }
        }
        for (int i = 0; i < LANES; i++)
            total[i] += (double)sum[i][0] + (double)sum[i][1];
    }
    for (int i = 0; i < count; i++)
        out[i] = (float)total[i];
}

static void project_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const tess_radon_job *job = arg;
    const int64_t groups = tess_ceil_div(job->columns, DETECTORS), k = item / groups;
    const ray_view view = {tess_radon_view(job, k), job->table[TESS_RAY2_NUMBERS * k + 2]};
    const int64_t first = item % groups * DETECTORS, last = tess_min_i64(first + DETECTORS, job->columns);
    for (int64_t s = first; s < last; s += LANES)
        project_block(job, &view, s, tess_min_i64(LANES, last - s), job->out + k * job->view_row + s);
}

void tess_cpu_radon_project(const tess_cpu *cpu, tess_radon_job *job)
{
    tess_pool_run(cpu->pool, job->views * tess_ceil_div(job->columns, DETECTORS), project_item, job);
}
