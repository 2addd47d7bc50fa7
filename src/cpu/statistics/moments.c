/* Moments of pixels. The pixels are divided into chunks by the sizes alone; threads take chunks, and the chunks' moments
 * are merged in their order.
 *
 * A chunk takes its pixels in groups. The mean of a group is known before its products are summed, so that the sums are
 * around it; what the merge with the groups before adds to the second moments, d d' n m / (n + m), is the product of
 * one more row, d sqrt(n m / (n + m)), below the pixels. */
#include <string.h>

#include "base/checked.h"
#include "cpu/statistics/statistics.h"
#include "tensor/moments.h"

enum { GROUP = 256, CHUNK = 1024, MOST_CHUNKS = 64, LEAST_CHUNKS = 4 }; /* pixels; chunks */
enum { PARTIAL_BYTES = 32 << 20 };                                      /* of all chunks, about */

typedef struct moments_job {
    const tess_f64_kernels *kernels;
    const tess_op *op;
    const tess_op_buffers *buffers;
    int64_t size; /* channels, rounded up to blocks */
    int64_t pixels, chunks;
    size_t values; /* of a chunk's moments */
    double *partial, *scratch;
    size_t thread_doubles;
} moments_job;

/* The scratch of a thread: sizes in doubles. */
typedef struct moments_scratch {
    double *panels, *second, *mean, *group_mean, *step;
    float *least, *largest, *group_least, *group_largest;
    int64_t *places;
} moments_scratch;

static size_t panel_doubles(const moments_job *job)
{
    return job->op->moments.covariance ? (size_t)(job->size * (GROUP + 1)) : 0;
}

static size_t second_doubles(const moments_job *job)
{
    return job->op->moments.covariance ? (size_t)(job->size * job->size) : 0;
}

static moments_job job_of(const tess_cpu *cpu, const tess_op *op)
{
    moments_job job = {.kernels = cpu->f32->f64, .op = op, .pixels = tess_cpu_pixels(&op->in[0])};
    job.size = tess_round_up(op->in[0].c, job.kernels->block);
    job.values = tess_moments_values((int)op->in[0].c, op->moments.covariance);
    const int64_t most = tess_max_i64(
        LEAST_CHUNKS, tess_min_i64(MOST_CHUNKS, PARTIAL_BYTES / (int64_t)(job.values * sizeof(double))));
    job.chunks = tess_max_i64(1, tess_min_i64(most, job.pixels / CHUNK));
    job.thread_doubles = panel_doubles(&job) + second_doubles(&job) + 5 * (size_t)job.size + GROUP;
    return job;
}

static moments_scratch scratch_of(const moments_job *job, int thread)
{
    moments_scratch s = {.panels = job->scratch + (size_t)thread * job->thread_doubles};
    s.second = s.panels + panel_doubles(job);
    s.mean = s.second + second_doubles(job);
    s.group_mean = s.mean + job->size;
    s.step = s.group_mean + job->size;
    s.least = (float *)(s.step + job->size);
    s.largest = s.least + job->size;
    s.group_least = s.largest + job->size;
    s.group_largest = s.group_least + job->size;
    s.places = (int64_t *)(s.step + 3 * job->size);
    return s;
}

static void moments_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    const tess_op one = tess_cpu_moments_one(op);
    const moments_job job = job_of(cpu, &one);
    *needs = (tess_op_needs){.workspace = ((size_t)job.chunks * job.values +
                                           (size_t)tess_pool_threads(cpu->pool) * job.thread_doubles) *
                                          sizeof(double),
                             .block = 1};
}

static void add_pixel(const float *restrict pixel, int64_t channels, double *restrict sum,
                      float *restrict least, float *restrict largest)
{
    for (int64_t c = 0; c < channels; c++) {
        sum[c] += (double)pixel[c];
        least[c] = pixel[c] < least[c] ? pixel[c] : least[c];
        largest[c] = pixel[c] > largest[c] ? pixel[c] : largest[c];
    }
}

/* Collects the pixels of a group, those that count or simply all, with their sums and extremes. Returns their number. */
static int64_t collect(const moments_job *job, const moments_scratch *s, int64_t first, int64_t end, bool all)
{
    const tess_tensor *in = &job->op->in[0];
    int64_t count = 0;
    memset(s->group_mean, 0, (size_t)job->size * sizeof(double));
    for (int64_t c = 0; c < job->size; c++) {
        s->group_least[c] = INFINITY;
        s->group_largest[c] = -INFINITY;
    }
    for (int64_t p = first; p < end; p++) {
        if (!all && !tess_cpu_pixel_counts(job->op, job->buffers, p))
            continue;
        s->places[count] = tess_cpu_pixel(in, p);
        add_pixel((const float *)job->buffers->in[0] + s->places[count++], in->c, s->group_mean,
                  s->group_least, s->group_largest);
    }
    return count;
}

/* Finds the pixels of a group that count, and their mean. Returns their number. Sums of fp32 values are finite in fp64 if
 * and only if the values are: pixels are looked at one by one only if there is a mask or a sum is not finite. */
static int64_t gather(const moments_job *job, const moments_scratch *s, int64_t first, int64_t end)
{
    const int64_t channels = job->op->in[0].c;
    int64_t count = 0;
    bool finite = job->op->inputs == 1;
    if (finite)
        count = collect(job, s, first, end, true);
    for (int64_t c = 0; finite && c < channels; c++)
        finite = isfinite(s->group_mean[c]);
    if (!finite)
        count = collect(job, s, first, end, false);
    for (int64_t c = 0; count > 0 && c < channels; c++) {
        s->group_mean[c] /= (double)count;
        s->least[c] = s->group_least[c] < s->least[c] ? s->group_least[c] : s->least[c];
        s->largest[c] = s->group_largest[c] > s->largest[c] ? s->group_largest[c] : s->largest[c];
    }
    return count;
}

/* Adds a group of `count` pixels to the `before` pixels of the chunk. */
static void add_group(const moments_job *job, const moments_scratch *s, int64_t count, int64_t before)
{
    const tess_f64_kernels *k = job->kernels;
    const int64_t block = k->block, step = (GROUP + 1) * block, rows = count + (before > 0);
    const double n = (double)before, m = (double)count, root = sqrt(n / (n + m) * m);
    for (int64_t c = 0; c < job->size; c++) {
        const double d = s->group_mean[c] - s->mean[c];
        s->step[c] = root * d;
        s->mean[c] += d * (m / (n + m));
    }
    if (!job->op->moments.covariance)
        return;
    for (int64_t i = 0; i < count; i++)
        k->centre((const float *)job->buffers->in[0] + s->places[i], s->group_mean, job->op->in[0].c,
                  s->panels + i * block, step);
    for (int64_t j = 0; rows > count && j < job->size / block; j++)
        memcpy(s->panels + j * step + count * block, s->step + j * block, (size_t)block * sizeof(double));
    for (int64_t j = 0; j < job->size / block; j++)
        for (int64_t i = 0; i <= j; i++)
            k->outer(s->panels + i * step, s->panels + j * step, rows, 1,
                     s->second + (j * job->size + i * block) * block);
}

/* A chunk's moments in the layout of tensor/moments.h. */
static void store_chunk(const moments_job *job, const moments_scratch *s, int64_t count, double *to)
{
    const int64_t channels = job->op->in[0].c, block = job->kernels->block;
    tess_moments_clear(to, (int)channels, job->op->moments.covariance);
    to[TESS_MOMENTS_COUNT] = (double)count;
    memcpy(to + TESS_MOMENTS_MEAN, s->mean, (size_t)channels * sizeof(double));
    float least = s->least[0], largest = s->largest[0];
    for (int64_t c = 1; c < channels; c++) {
        least = s->least[c] < least ? s->least[c] : least;
        largest = s->largest[c] > largest ? s->largest[c] : largest;
    }
    to[TESS_MOMENTS_LEAST] = (double)least;
    to[TESS_MOMENTS_LARGEST] = (double)largest;
    if (!job->op->moments.covariance)
        return;
    double *second = to + tess_moments_second((int)channels);
    for (int64_t i = 0; i < channels; i++)
        for (int64_t j = i; j < channels; j++)
            second[i * channels + j] = second[j * channels + i] =
                s->second[(j / block * job->size + i) * block + j % block];
}

static void chunk_item(void *arg, int64_t item, int thread)
{
    const moments_job *job = arg;
    const moments_scratch s = scratch_of(job, thread);
    const int64_t end = (item + 1) * job->pixels / job->chunks;
    int64_t count = 0;
    memset(s.second, 0, second_doubles(job) * sizeof(double));
    memset(s.mean, 0, (size_t)job->size * sizeof(double));
    for (int64_t c = 0; c < job->size; c++) {
        s.least[c] = INFINITY;
        s.largest[c] = -INFINITY;
    }
    for (int64_t first = item * job->pixels / job->chunks; first < end; first += GROUP) {
        const int64_t more = gather(job, &s, first, tess_min_i64(end, first + GROUP));
        if (more > 0)
            add_group(job, &s, more, count);
        count += more;
    }
    store_chunk(job, &s, count, job->partial + (size_t)item * job->values);
}

static void run_one(tess_device *device, const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    moments_job job = job_of(cpu, op);
    job.buffers = buffers;
    job.partial = buffers->workspace;
    job.scratch = job.partial + (size_t)job.chunks * job.values;
    tess_pool_run(cpu->pool, job.chunks, chunk_item, &job);
    for (int64_t i = 1; i < job.chunks; i++)
        tess_moments_merge(job.partial, job.partial + (size_t)i * job.values, (int)op->in[0].c,
                           op->moments.covariance);
    tess_moments_merge(buffers->out[0], job.partial, (int)op->in[0].c, op->moments.covariance);
}

static void moments_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                        tess_stream *stream)
{
    const tess_op one = tess_cpu_moments_one(op);
    (void)state, (void)stream;
    for (int64_t n = 0; n < (op->moments.each ? op->in[0].n : 1); n++) {
        const tess_op_buffers at = tess_cpu_moments_at(op, buffers, n);
        run_one(device, &one, &at);
    }
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_statistics_refuses_fast(device, op, TESS_OP_MOMENTS, why);
}

const tess_kernel tess_cpu_moments = {
    .name = "moments", .refuses = refuses, .needs = moments_needs, .run = moments_run};
