/* Local scores: the distance of each pixel from the ring of pixels around it, (x - m)' inv(S + epsilon I) (x - m).
 *
 * The sums of products of a ring move along a row: what enters is added, what leaves is subtracted, in one pass over the
 * matrix. Pixels are taken relative to the first pixel of the row's part, as a sample of the same kind: samples of a
 * file that are integers have exact sums, and nothing is lost by moving; others lose a rounding a step, far below
 * the rounding of the solution. One more channel, the constant 1, holds the sums and the count.
 *
 * Then the same channel holds x - m, and the triangular factor of the matrix with this column leaves -(x - m)' inv(S) (x - m)
 * in its last place: no separate solve. All products are the blocks of tess_f64_kernels. */
#include <string.h>

#include "base/checked.h"
#include "cpu/statistics/statistics.h"

enum {
    PART = 128,
    GROUP = 64
}; /* columns of a row that one item scores; pixels whose products are summed at once */

typedef struct local_job {
    const tess_f64_kernels *kernels;
    const tess_op *op;
    const tess_op_buffers *buffers;
    int64_t channels, size; /* size: channels and the constant, rounded up to blocks */
    int64_t parts;          /* of a row */
    uint8_t *counts;        /* for each pixel: it counts */
    double *scratch;
    size_t thread_doubles;
} local_job;

/* A thread's ring. */
typedef struct ring {
    const local_job *job;
    double *sums, *work;       /* matrices in panels */
    double *added, *signed_by; /* panels of pixels; the same times +-1 */
    double *shift, *row, *mean, *inverse;
    int64_t depth; /* pixels in the panels */
    int64_t image; /* the first pixel of the image */
} ring;

static local_job job_of(const tess_cpu *cpu, const tess_op *op)
{
    local_job job = {.kernels = cpu->f32->f64, .op = op, .channels = op->in[0].c};
    job.size = tess_round_up(job.channels + 1, job.kernels->block);
    job.parts = tess_ceil_div(op->in[0].w, PART);
    job.thread_doubles = (size_t)(2 * job.size * job.size + 2 * GROUP * job.size + 4 * job.size);
    return job;
}

static size_t counts_bytes(const local_job *job)
{
    return tess_align_size((size_t)tess_cpu_pixels(&job->op->in[0]), sizeof(double));
}

static void local_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    const local_job job = job_of(cpu, op);
    *needs = (tess_op_needs){.workspace = counts_bytes(&job) + (size_t)tess_pool_threads(cpu->pool) *
                                                                   job.thread_doubles * sizeof(double),
                             .block = 1};
}

static ring ring_of(const local_job *job, int thread, int64_t image)
{
    const int64_t size = job->size;
    ring r = {.job = job, .image = image, .sums = job->scratch + (size_t)thread * job->thread_doubles};
    r.work = r.sums + size * size;
    r.added = r.work + size * size;
    r.signed_by = r.added + GROUP * size;
    r.shift = r.signed_by + GROUP * size;
    r.row = r.shift + size;
    r.mean = r.row + size;
    r.inverse = r.mean + size;
    return r;
}

static const float *pixel_of(const local_job *job, int64_t pixel)
{
    return (const float *)job->buffers->in[0] + tess_cpu_pixel(&job->op->in[0], pixel);
}

/* Adds the products of the collected pixels to the sums. */
static void flush(ring *r)
{
    const tess_f64_kernels *k = r->job->kernels;
    const int64_t size = r->job->size, block = k->block, step = GROUP * block;
    for (int64_t j = 0; r->depth > 0 && j < size / block; j++)
        for (int64_t i = 0; i <= j; i++)
            k->outer(r->signed_by + i * step, r->added + j * step, r->depth, 1,
                     r->sums + (j * size + i * block) * block);
    r->depth = 0;
}

static void collect(ring *r, int64_t y, int64_t x, double sign)
{
    const local_job *job = r->job;
    const int64_t block = job->kernels->block, step = GROUP * block, c = job->channels,
                  pixel = r->image + y * job->op->in[0].w + x;
    if (!job->counts[pixel])
        return;
    if (r->depth == GROUP)
        flush(r);
    double *to = r->added + r->depth * block, *by = r->signed_by + r->depth * block;
    job->kernels->centre(pixel_of(job, pixel), r->shift, c, to, step);
    to[c / block * step + c % block] = 1;
    for (int64_t j = 0; j < job->size / block; j++)
        for (int64_t i = 0; i < block; i++)
            by[j * step + i] = sign * to[j * step + i];
    r->depth++;
}

/* Rows y - half to y + half of one column; nothing outside of the image. */
static void collect_column(ring *r, int64_t y, int64_t half, int64_t x, double sign)
{
    const tess_tensor *in = &r->job->op->in[0];
    if (x < 0 || x >= in->w)
        return;
    for (int64_t v = tess_max_i64(0, y - half); v <= tess_min_i64(in->h - 1, y + half); v++)
        collect(r, v, x, sign);
}

static void begin_ring(ring *r, int64_t y, int64_t x, int64_t outer, int64_t inner)
{
    const local_job *job = r->job;
    const float *first = pixel_of(job, r->image + y * job->op->in[0].w + x);
    for (int64_t c = 0; c < job->size; c++)
        r->shift[c] = c < job->channels && isfinite(first[c]) ? (double)first[c] : 0;
    memset(r->sums, 0, (size_t)(job->size * job->size) * sizeof(double));
    memset(r->added, 0, (size_t)(GROUP * job->size) * sizeof(double));
    r->depth = 0;
    for (int64_t u = x - outer; u <= x + outer; u++)
        collect_column(r, y, outer, u, 1);
    for (int64_t u = x - inner; u <= x + inner; u++)
        collect_column(r, y, inner, u, -1);
    flush(r);
}

/* From the ring around (y, x - 1) to that around (y, x). */
static void move_ring(ring *r, int64_t y, int64_t x, int64_t outer, int64_t inner)
{
    collect_column(r, y, outer, x + outer, 1);
    collect_column(r, y, outer, x - 1 - outer, -1);
    collect_column(r, y, inner, x - 1 - inner, 1);
    collect_column(r, y, inner, x + inner, -1);
    flush(r);
}

/* work = the sums around the mean, plus (n - 1) epsilon on the diagonal, with x - m as one more column. */
static void fill_work(ring *r, const float *pixel, double count)
{
    const local_job *job = r->job;
    const int64_t size = job->size, block = job->kernels->block, c = job->channels, last = c / block;
    for (int64_t i = 0; i < size; i++) {
        r->mean[i] = i < c ? r->sums[(last * size + i) * block + c % block] / count : 0;
        r->row[i] = count * r->mean[i];
    }
    for (int64_t j = 0; j < size / block; j++)
        job->kernels->subtract(r->sums + j * size * block, r->row, r->mean + j * block, (j + 1) * block,
                               r->work + j * size * block);
    for (int64_t i = 0; i < c; i++) {
        r->work[(i / block * size + i) * block + i % block] += (count - 1) * job->op->local_rx.epsilon;
        r->work[(last * size + i) * block + c % block] = (double)pixel[i] - r->shift[i] - r->mean[i];
    }
    r->work[(last * size + c) * block + c % block] = 0;
}

/* The triangular factor, column block after column block; false if there is none. */
static bool eliminate(ring *r)
{
    const local_job *job = r->job;
    const tess_f64_kernels *k = job->kernels;
    const int64_t size = job->size, block = k->block;
    for (int64_t j = 0; j < size / block; j++) {
        double *panel = r->work + j * size * block;
        for (int64_t i = 0; i <= j; i++) {
            double *other = r->work + i * size * block, *m = panel + i * block * block;
            if (i > 0)
                k->outer(other, panel, i * block, -1, m);
            if (i < j)
                k->solve(other + i * block * block, r->inverse + i * block, m);
            else if (!k->factor(m, (int)tess_min_i64(block, job->channels - j * block),
                                r->inverse + i * block))
                return false;
        }
    }
    return true;
}

static double score_of(ring *r, int64_t y, int64_t x)
{
    const local_job *job = r->job;
    const int64_t c = job->channels, block = job->kernels->block,
                  corner = (c / block * job->size + c) * block + c % block;
    const double count = r->sums[corner];
    if (count < 2)
        return NAN;
    fill_work(r, pixel_of(job, r->image + y * job->op->in[0].w + x), count);
    const double score = eliminate(r) ? -(count - 1) * r->work[corner] : NAN;
    return isfinite(score) ? score : NAN;
}

/* An item is a part of a row. */
static void part_item(void *arg, int64_t item, int thread)
{
    const local_job *job = arg;
    const tess_tensor *in = &job->op->in[0], *out = &job->op->out[0];
    const int64_t line = item / job->parts, y = line % in->h, first = item % job->parts * PART,
                  end = tess_min_i64(in->w, first + PART), outer = job->op->kernel[TESS_WIDTH] / 2,
                  inner = job->op->local_rx.inner / 2;
    ring r = ring_of(job, thread, (line - y) * in->w);
    for (int64_t x = first; x < end; x++) {
        if (x == first)
            begin_ring(&r, y, x, outer, inner);
        else
            move_ring(&r, y, x, outer, inner);
        const double score = score_of(&r, y, x);
        const int64_t at = tess_cpu_pixel(out, line * in->w + x);
        if (out->dtype == TESS_F64)
            ((double *)job->buffers->out[0])[at] = score;
        else
            ((float *)job->buffers->out[0])[at] = (float)score;
    }
}

/* An item is a line. */
static void counts_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const local_job *job = arg;
    const int64_t w = job->op->in[0].w;
    for (int64_t p = line * w; p < (line + 1) * w; p++)
        job->counts[p] = tess_cpu_pixel_counts(job->op, job->buffers, p);
}

static void local_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                      tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const int64_t lines = tess_cpu_pixels(&op->in[0]) / op->in[0].w;
    local_job job = job_of(cpu, op);
    job.buffers = buffers;
    job.counts = buffers->workspace;
    job.scratch = (double *)((char *)buffers->workspace + counts_bytes(&job));
    tess_pool_run(cpu->pool, lines, counts_item, &job);
    tess_pool_run(cpu->pool, lines * job.parts, part_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_statistics_refuses_fast(device, op, TESS_OP_LOCAL_RX, why);
}

const tess_kernel tess_cpu_local_rx = {
    .name = "local rx", .refuses = refuses, .needs = local_needs, .run = local_run};
