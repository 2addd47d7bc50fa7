/* The 2-D Radon transform of device/ray2.h and its transpose. Neither keeps a sampling grid: positions cost less to
 * compute than to load.
 *
 * Projection: LANES neighbouring detectors go along their rays together, so that what they read lies together at
 * every angle. Where all of their samples are surrounded by pixels of the image no test is needed; what lies outside
 * that range is done one by one. Sums are taken in runs of RUN samples, runs in fp64.
 *
 * Backprojection gathers: a pixel looks for the at most 3 x 3 samples that it has a weight in. LANES neighbouring
 * pixels of a row go together; differences are taken modulo 2^32, which is exact because they are small. Views are
 * summed in order, so the bits do not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "cpu/cpu.h"
#include "device/ray2.h"

enum { LANES = 8, RUN = 64, DETECTORS = 64, ROWS = 8 }; /* DETECTORS, ROWS: what a thread takes at a time */

typedef float pair __attribute__((vector_size(8)));
typedef float loose __attribute__((vector_size(8), aligned(4), may_alias)); /* at any address */

typedef struct radon_job {
    const float *in;
    float *out;
    const double *table; /* cos, sin of each view */
    int64_t size, views, image_row, view_row;
    bool circle;
} radon_job;

typedef struct range {
    int64_t from, to; /* `to` is not included */
} range;

static range range_of(double from, double to, int64_t size)
{
    return (range){(int64_t)fmax(ceil(from), 0), (int64_t)fmin(floor(to) + 1, (double)size)};
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

/* The samples h of detectors s[0] and s[1], hence of all between, that lie at least `margin` inside the image; less
 * than nothing is outside. A sample's pixels are less than 1 away in x and y, and less than 1.415 in the plane. */
static range clip(const radon_job *job, const tess_ray2 *view, const int64_t s[2], double margin)
{
    const double centre = 0.5 * (double)(job->size - 1), one = TESS_RAY2_ONE;
    double from = 0, to = (double)(job->size - 1);
    for (int i = 0; i < 2; i++) {
        if (job->circle) {
            const double radius = centre - 1.415 * margin, away = (double)s[i] - centre;
            const double half = radius > fabs(away) ? sqrt(radius * radius - away * away) : -1;
            from = fmax(from, centre - half);
            to = fmin(to, centre + half);
        } else {
            const double x = (double)tess_ray2_x(view, s[i], 0) / one,
                         y = (double)tess_ray2_y(view, s[i], 0) / one;
            narrow(x, view->sine / one, margin, 2 * centre - margin, &from, &to);
            narrow(y, view->cosine / one, margin, 2 * centre - margin, &from, &to);
        }
    }
    return range_of(from, to, job->size);
}

static float distance(int64_t fixed)
{
    return (float)fixed * TESS_RAY2_UNIT;
}

/* One sample, pixel by pixel. */
static float sample(const radon_job *job, const tess_ray2 *view, int64_t s, int64_t h)
{
    const int64_t at_x = tess_ray2_x(view, s, h), at_y = tess_ray2_y(view, s, h);
    const int64_t x = at_x >> TESS_RAY2_BITS, y = at_y >> TESS_RAY2_BITS;
    float sum = 0;
    for (int64_t j = y; j <= y + 1; j++)
        for (int64_t i = x; i <= x + 1; i++)
            if (tess_ray2_inside(i, j, job->size, job->circle))
                sum +=
                    job->in[j * job->image_row + i] * (tess_ray2_weight(distance(at_x - i * TESS_RAY2_ONE)) *
                                                       tess_ray2_weight(distance(at_y - j * TESS_RAY2_ONE)));
    return sum;
}

/* Adds samples [from, to) of detectors s .. s + LANES - 1, all amid the image. A pair is two neighbours in a row. */
static void samples(const radon_job *job, const tess_ray2 *view, int64_t s, int64_t from, int64_t to,
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

/* Detectors s .. s + count - 1, at most LANES. */
static void project_block(const radon_job *job, const tess_ray2 *view, int64_t s, int64_t count, float *out)
{
    const int64_t ends[2] = {s, s + count - 1};
    const int64_t middle = tess_min_i64(tess_max_i64((job->size - 1) / 2, ends[0]), ends[1]);
    /* The detector nearest to the centre sees most of a circle; of a square, any sees within LANES of another. */
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
                samples(job, view, s, h, to, sum);
                h = to;
            } else {
                for (int i = 0; i < count; i++)
                    sum[i][0] += sample(job, view, s + i, h);
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
    const radon_job *job = arg;
    const int64_t groups = tess_ceil_div(job->size, DETECTORS), k = item / groups;
    const tess_ray2 view = tess_ray2_of(job->table[2 * k], job->table[2 * k + 1], job->size);
    const int64_t first = item % groups * DETECTORS, last = tess_min_i64(first + DETECTORS, job->size);
    for (int64_t s = first; s < last; s += LANES)
        project_block(job, &view, s, tess_min_i64(LANES, last - s), job->out + k * job->view_row + s);
}

static int64_t nearest(int64_t position)
{
    return (position + TESS_RAY2_ONE / 2) >> TESS_RAY2_BITS;
}

/* What a view gives to one pixel, sample by sample. */
static float gather(const radon_job *job, const tess_ray2 *view, const float *row, int64_t x, int64_t y)
{
    const int64_t s = nearest(tess_ray2_s(view, x, y)), h = nearest(tess_ray2_h(view, x, y));
    float sum = 0;
    for (int64_t i = s - 1; i <= s + 1; i++) {
        float weight = 0;
        if (i < 0 || i >= job->size)
            continue;
        for (int64_t j = h - 1; j <= h + 1; j++)
            if (j >= 0 && j < job->size)
                weight += tess_ray2_weight(distance(tess_ray2_x(view, i, j) - x * TESS_RAY2_ONE)) *
                          tess_ray2_weight(distance(tess_ray2_y(view, i, j) - y * TESS_RAY2_ONE));
        sum += weight * row[i];
    }
    return sum;
}

/* tess_ray2_weight as a maximum of integers, which every instruction set has: a negative float is a negative one. */
static inline float weight_of(float at)
{
    union {
        float f;
        int32_t i;
    } rest = {.f = 1.0f - fabsf(at)};
    rest.i = rest.i > 0 ? rest.i : 0;
    return rest.f;
}

/* The same, added to LANES pixels from x on, all of whose samples there are. */
static void gather_lanes(const tess_ray2 *view, const float *row, int64_t x, int64_t y, float *out)
{
    const int64_t half = TESS_RAY2_ONE / 2;
    const int64_t at_s = tess_ray2_s(view, x, y) + half, at_h = tess_ray2_h(view, x, y) + half;
    const int64_t s = at_s >> TESS_RAY2_BITS, h = at_h >> TESS_RAY2_BITS;
    const uint32_t cosine = (uint32_t)view->cosine, sine = (uint32_t)view->sine;
    const int32_t rest_s = (int32_t)(at_s & TESS_RAY2_MASK), rest_h = (int32_t)(at_h & TESS_RAY2_MASK);
    const uint32_t first_x = (uint32_t)(tess_ray2_x(view, s, h) - x * TESS_RAY2_ONE),
                   first_y = (uint32_t)(tess_ray2_y(view, s, h) - y * TESS_RAY2_ONE);
    const float c = distance(view->cosine), n = distance(view->sine);
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

static bool amid(int64_t position, int64_t size)
{
    return nearest(position) >= 1 && nearest(position) <= size - 2;
}

/* Adds view `k` to pixels [from, to) of row y. */
static void backproject_row(const radon_job *job, const tess_ray2 *view, const float *row, int64_t y, range x,
                            float *out)
{
    for (int64_t at = x.from; at < x.to; at += LANES) {
        const int64_t last = at + LANES - 1;
        if (last < x.to && amid(tess_ray2_s(view, at, y), job->size) &&
            amid(tess_ray2_s(view, last, y), job->size) && amid(tess_ray2_h(view, at, y), job->size) &&
            amid(tess_ray2_h(view, last, y), job->size)) {
            gather_lanes(view, row, at, y, out + at);
            continue;
        }
        for (int64_t i = at; i < tess_min_i64(at + LANES, x.to); i++)
            out[i] += gather(job, view, row, i, y);
    }
}

/* The pixels of row y that are in the image. */
static range row_range(const radon_job *job, int64_t y)
{
    range x = {0, job->size};
    while (x.from < x.to && !tess_ray2_inside(x.from, y, job->size, job->circle))
        x.from++, x.to--;
    return x;
}

static void backproject_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const radon_job *job = arg;
    const int64_t first = item * ROWS, last = tess_min_i64(first + ROWS, job->size);
    range inside[ROWS];
    for (int64_t y = first; y < last; y++) {
        inside[y - first] = row_range(job, y);
        memset(job->out + y * job->image_row, 0, (size_t)job->size * sizeof *job->out);
    }
    for (int64_t k = 0; k < job->views; k++) {
        const tess_ray2 view = tess_ray2_of(job->table[2 * k], job->table[2 * k + 1], job->size);
        for (int64_t y = first; y < last; y++)
            backproject_row(job, &view, job->in + k * job->view_row, y, inside[y - first],
                            job->out + y * job->image_row);
    }
}

static void radon_needs(const tess_cpu *cpu, const tess_op *op, tess_op_needs *needs)
{
    (void)cpu;
    const int64_t views = op->kind == TESS_OP_PROJECT ? op->out.h : op->in.h;
    *needs = (tess_op_needs){.weights = (size_t)views * 2 * sizeof(double), .block = 1};
}

static void radon_run(const tess_cpu *cpu, const tess_op *op, const tess_op_buffers *buffers)
{
    const bool forward = op->kind == TESS_OP_PROJECT;
    const tess_tensor *image = forward ? &op->in : &op->out, *views = forward ? &op->out : &op->in;
    radon_job job = {buffers->in, buffers->out,    buffers->weights, image->h,
                     views->h,    image->stride_h, views->stride_h,  op->rays.circle};
    if (forward)
        tess_pool_run(cpu->pool, job.views * tess_ceil_div(job.size, DETECTORS), project_item, &job);
    else
        tess_pool_run(cpu->pool, tess_ceil_div(job.size, ROWS), backproject_item, &job);
}

tess_status tess_cpu_check_radon(const tess_op *op, tess_error *error)
{
    const bool forward = op->kind == TESS_OP_PROJECT;
    const tess_tensor *image = forward ? &op->in : &op->out, *views = forward ? &op->out : &op->in;
    if (image->dtype != TESS_F32 || views->dtype != TESS_F32)
        return tess_fail(error, TESS_UNSUPPORTED, "the Radon transform takes fp32 values");
    const bool single = image->n == 1 && image->d == 1 && image->c == 1 && views->n == 1 && views->d == 1 &&
                        views->c == 1 && image->stride_w == 1 && views->stride_w == 1;
    if (!single || image->h != image->w || views->w != image->w || image->h < 2)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "the Radon transform takes one square image, at least 2 x 2, and views of its width");
    if (image->stride_h > INT32_MAX / (2 * LANES))
        return tess_fail(error, TESS_UNSUPPORTED, "the Radon transform takes rows of at most %d values",
                         INT32_MAX / (2 * LANES));
    return TESS_OK;
}

const tess_cpu_family tess_cpu_radon = {"radon", radon_needs, NULL, radon_run};
