/* Sums of each channel over all pixels: in fp32 along a row, in fp64 over the rows of a chunk and over the chunks, whose
 * number the size alone sets. */
#include "base/checked.h"
#include "cpu/conv/grad.h"
#include "cpu/core/activation.h"

enum { MOST_CHUNKS = 64 };

typedef struct sum_job {
    const tess_tensor *in;
    const void *data;
    double *partial; /* [chunk][channel] */
    int64_t rows, chunks;
} sum_job;

static int64_t rows_of(const tess_tensor *in)
{
    return in->n * in->d * in->h;
}

static int64_t chunks_of(const tess_tensor *in)
{
    return tess_min_i64(rows_of(in), MOST_CHUNKS);
}

size_t tess_cpu_channel_sum_bytes(const tess_tensor *in)
{
    return (size_t)(chunks_of(in) * in->c) * sizeof(double);
}

/* Adds `count` channels from c on, of one row. */
static void add_row(const sum_job *job, int64_t row, int64_t c, int64_t count, double *sums)
{
    const tess_tensor *in = job->in;
    const int64_t y = row % in->h, d = row / in->h % in->d, n = row / in->h / in->d;
    int64_t at = n * in->stride_n + d * in->stride_d + y * in->stride_h + c;
    float line[TESS_CPU_FEW] = {0}, values[TESS_CPU_FEW];
    for (int64_t x = 0; x < in->w; x++, at += in->stride_w) {
        tess_cpu_load(in->dtype, job->data, at, count, values);
        for (int64_t i = 0; i < count; i++)
            line[i] += values[i];
    }
    for (int64_t i = 0; i < count; i++)
        sums[i] += (double)line[i];
}

static void chunk_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const sum_job *job = arg;
    double *sums = job->partial + item * job->in->c;
    for (int64_t c = 0; c < job->in->c; c++)
        sums[c] = 0;
    for (int64_t row = item * job->rows / job->chunks; row < (item + 1) * job->rows / job->chunks; row++)
        for (int64_t c = 0; c < job->in->c; c += TESS_CPU_FEW)
            add_row(job, row, c, tess_min_i64(TESS_CPU_FEW, job->in->c - c), sums + c);
}

void tess_cpu_channel_sums(const tess_cpu *cpu, const tess_tensor *in, const void *data, bool accumulate,
                           float *out, void *workspace)
{
    sum_job job = {in, data, workspace, rows_of(in), chunks_of(in)};
    tess_pool_run(cpu->pool, job.chunks, chunk_item, &job);
    for (int64_t c = 0; c < in->c; c++) {
        double sum = 0;
        for (int64_t chunk = 0; chunk < job.chunks; chunk++)
            sum += job.partial[chunk * in->c + c];
        out[c] = (float)(accumulate ? (double)out[c] + sum : sum);
    }
}

static void sum_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.block = 1, .workspace = tess_cpu_channel_sum_bytes(&op->in[0])};
}

static void sum_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                    tess_stream *stream)
{
    (void)state, (void)stream;
    tess_cpu_channel_sums(tess_cpu_of(device), &op->in[0], buffers->in[0], op->grad.accumulate,
                          buffers->out[0], buffers->workspace);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (!tess_cpu_of(device)->f32)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_channel_sum_refuses(device, op, why);
}

const tess_kernel tess_cpu_channel_sum = {
    .name = "channel sum", .refuses = refuses, .needs = sum_needs, .run = sum_run};
