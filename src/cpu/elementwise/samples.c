/* Import and export of a file's samples with the functions that readers and writers use. An item is a part of a row: the
 * pixels of a cube are one row. The reference and every instruction set share this code. */
#include "tensor/samples.h"
#include "base/checked.h"
#include "cpu/core/cpu.h"

enum { PART_VALUES = 1 << 15 };

typedef struct samples_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    int64_t part, parts; /* pixels of a part, parts of a row */
} samples_job;

static void samples_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    (void)op;
    *needs = (tess_op_needs){.block = 1};
}

static int64_t row_of(const tess_tensor *t, int64_t n, int64_t y)
{
    return n * t->stride_n + y * t->stride_h;
}

static void import_part(const samples_job *job, int64_t n, int64_t y, int64_t first, int64_t end)
{
    const tess_op *op = job->op;
    const tess_op_samples *s = &op->samples;
    const int64_t size = (int64_t)tess_dtype_size(op->in[0].dtype),
                  channels = op->out[0].c - s->level_channel;
    const char *in =
        (const char *)job->buffers->in[0] + row_of(&op->in[0], n, tess_min_i64(y, op->in[0].h - 1)) * size;
    float *out = (float *)job->buffers->out[0] + row_of(&op->out[0], n, y) + first * op->out[0].stride_w;
    for (int64_t x = first; x < end; x++, out += op->out[0].stride_w) {
        const int64_t from = tess_min_i64(x, op->in[0].w - 1) * op->in[0].stride_w;
        tess_samples_to_float(op->in[0].dtype, s->full_scale, in + (from + s->first) * size, channels, out);
        if (s->level_from)
            tess_samples_to_float(op->in[0].dtype, s->full_scale, in + (from + s->level_from) * size, 1,
                                  out + channels);
        else if (s->level_channel)
            out[channels] = s->level;
    }
}

static void export_part(const samples_job *job, int64_t n, int64_t y, int64_t first, int64_t end)
{
    const tess_op *op = job->op;
    const int64_t size = (int64_t)tess_dtype_size(op->out[0].dtype);
    const float *in = (const float *)job->buffers->in[0] +
                      row_of(&op->in[0], n, y + op->pad_before[TESS_HEIGHT]) +
                      (first + op->pad_before[TESS_WIDTH]) * op->in[0].stride_w;
    char *out = (char *)job->buffers->out[0] +
                (row_of(&op->out[0], n, y) + first * op->out[0].stride_w + op->samples.first) * size;
    for (int64_t x = first; x < end; x++, in += op->in[0].stride_w, out += op->out[0].stride_w * size)
        tess_samples_from_float(op->out[0].dtype, op->samples.full_scale, in, op->in[0].c, out);
}

static void samples_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const samples_job *job = arg;
    const tess_tensor *out = &job->op->out[0];
    const int64_t row = item / job->parts, n = row / out->h, y = row % out->h,
                  first = item % job->parts * job->part, end = tess_min_i64(first + job->part, out->w);
    if (job->op->kind == TESS_OP_IMPORT)
        import_part(job, n, y, first, end);
    else
        export_part(job, n, y, first, end);
}

static void samples_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                        tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const tess_tensor *out = &op->out[0];
    samples_job job = {op, buffers, tess_max_i64(PART_VALUES / tess_max_i64(out->c, 1), 1), 1};
    job.parts = (out->w + job.part - 1) / job.part;
    tess_pool_run(cpu->pool, out->n * out->h * job.parts, samples_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *error)
{
    (void)device;
    const bool import = op->kind == TESS_OP_IMPORT;
    if (!import && op->kind != TESS_OP_EXPORT)
        return tess_kernel_refuse(error, NULL);
    const tess_dtype values = import ? op->out[0].dtype : op->in[0].dtype,
                     samples = import ? op->in[0].dtype : op->out[0].dtype;
    const bool known = samples == TESS_U8 || samples == TESS_U16 || samples == TESS_I16 ||
                       samples == TESS_U32 || samples == TESS_I32 || samples == TESS_F16 ||
                       samples == TESS_F32 || samples == TESS_F64;
    if (values != TESS_F32 || !known)
        return tess_fail(error, TESS_UNSUPPORTED, "samples of type %s are not exchanged with %s values",
                         tess_dtype_name(samples), tess_dtype_name(values));
    return TESS_OK;
}

const tess_kernel tess_cpu_samples = {
    .name = "samples", .refuses = refuses, .needs = samples_needs, .run = samples_run};
