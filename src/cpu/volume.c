/* Ops on volumes, as passes of the 2-D families: the slices of a volume are a batch of images, and each depth tap
 * of a kernel is a 2-D kernel of its own. A convolution sums its taps in the output: the first pass adds bias,
 * map and residuals (one of which may be the output's own memory), later ones take the output as their residual,
 * the last one ends with the ReLU. The order, the middle tap first, is the same for every slice of every volume,
 * so that windows of a volume repeat the whole bit for bit.
 *
 * In bf16 the sum is rounded between the passes. */
#include <string.h>

#include "base/checked.h"
#include "cpu/cpu.h"

bool tess_cpu_is_volume(const tess_op *op)
{
    return op->kind <= TESS_OP_ADD && (op->in.d != 1 || op->out.d != 1 || op->kernel[TESS_DEPTH] != 1);
}

/* Slices of a volume, `step` apart, as a batch. */
static tess_tensor slices_of(tess_tensor volume, int64_t count, int64_t step)
{
    volume.n = count;
    volume.stride_n = step * volume.stride_d;
    volume.d = 1;
    return volume;
}

/* The op on `count` slices, reading every in_step-th and writing every out_step-th. */
static tess_op slice_op(const tess_op *op, int64_t count, int64_t in_step, int64_t out_step)
{
    tess_op flat = *op;
    flat.in = slices_of(op->in, count, in_step);
    flat.out = slices_of(op->out, count, out_step);
    for (int r = 0; r < op->residuals; r++)
        flat.residual[r] = slices_of(op->residual[r], count, out_step);
    if (op->mapped)
        flat.map = slices_of(op->map, count, out_step);
    flat.kernel[TESS_DEPTH] = flat.stride[TESS_DEPTH] = 1;
    flat.pad_before[TESS_DEPTH] = flat.pad_after[TESS_DEPTH] = 0;
    return flat;
}

/* What one depth tap needs; a pass over all slices needs the most. */
static tess_op_needs tap_needs(const tess_cpu *cpu, const tess_op *op)
{
    tess_op_needs needs = {.block = 1};
    tess_op flat = slice_op(op, op->out.d, 1, 1);
    tess_cpu_family_of(cpu, &flat)->needs(cpu, &flat, &needs);
    needs.weights = tess_align_size(needs.weights, 64);
    return needs;
}

static bool has_weights(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE;
}

/* Values of one row of one depth tap. */
static int64_t tap_row(const tess_op *op)
{
    const int64_t second = op->kind == TESS_OP_CONV_TRANSPOSE ? op->out.c : op->in.c;
    return second * op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH];
}

/* Weights: one block a depth tap, then a row as scratch for packing, which must not fail. */
static void volume_needs(const tess_cpu *cpu, const tess_op *op, tess_op_needs *needs)
{
    *needs = tap_needs(cpu, op);
    const size_t taps = (size_t)op->kernel[TESS_DEPTH];
    if (has_weights(op) && taps > 1)
        needs->weights = needs->weights * taps + (size_t)tap_row(op) * sizeof(float);
}

static void volume_pack(const tess_cpu *cpu, const tess_op *op, tess_weight_part part, int64_t first,
                        int64_t count, const float *values, void *packed)
{
    const int taps = op->kernel[TESS_DEPTH];
    const size_t tap_bytes = tap_needs(cpu, op).weights;
    const tess_op flat = slice_op(op, op->out.d, 1, 1);
    const tess_cpu_family *family = tess_cpu_family_of(cpu, &flat);
    if (taps == 1 || part == TESS_PART_BIAS) { /* any tap may be the first pass of some slice */
        for (int tap = 0; tap < taps; tap++)
            family->pack(cpu, &flat, part, first, count, values, (char *)packed + (size_t)tap * tap_bytes);
        return;
    }
    const int64_t area = (int64_t)op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH], row = tap_row(op);
    float *scratch = (float *)((char *)packed + (size_t)taps * tap_bytes);
    for (int64_t i = 0; i < count; i++)
        for (int tap = 0; tap < taps; tap++) {
            for (int64_t kernel = 0; kernel < row / area; kernel++)
                memcpy(scratch + kernel * area, values + (i * row + kernel * area) * taps + tap * area,
                       (size_t)area * sizeof *scratch);
            family->pack(cpu, &flat, part, first + i, 1, scratch, (char *)packed + (size_t)tap * tap_bytes);
        }
}

/* One volume of a batch, and where it is. */
typedef struct volume_job {
    const tess_cpu *cpu;
    const tess_op *op;
    tess_op_buffers at;
    size_t tap_bytes;
} volume_job;

static const void *moved(const tess_tensor *t, const void *data, int64_t slices)
{
    return data ? (const char *)data + slices * t->stride_d * (int64_t)tess_dtype_size(t->dtype) : NULL;
}

/* Where slice `in` of the input and slice `out` of the output are, and the weights of `tap`. */
static tess_op_buffers buffers_at(const volume_job *job, int64_t in, int64_t out, int tap)
{
    const tess_op *op = job->op;
    tess_op_buffers at = job->at;
    at.in = moved(&op->in, at.in, in);
    at.out = (void *)moved(&op->out, at.out, out);
    for (int r = 0; r < op->residuals; r++)
        at.residual[r] = moved(&op->residual[r], at.residual[r], out);
    if (op->mapped)
        at.map = moved(&op->map, at.map, out);
    at.weights = at.weights ? (const char *)at.weights + (size_t)tap * job->tap_bytes : NULL;
    return at;
}

static void run_flat(const volume_job *job, const tess_op *flat, const tess_op_buffers *at)
{
    tess_cpu_family_of(job->cpu, flat)->run(job->cpu, flat, at);
}

/* The taps in the order of their passes: the middle one, then the others. */
static int tap_at(int pass, int taps)
{
    const int middle = taps / 2;
    return pass == 0 ? middle : pass <= middle ? pass - 1 : pass;
}

static bool inside(const tess_op *op, int tap, int64_t z)
{
    const int64_t from = z * op->stride[TESS_DEPTH] + tap - op->pad_before[TESS_DEPTH];
    return from >= 0 && from < op->in.d;
}

/* Is `pass` the first that reaches slice z? The last? */
static bool begins(const tess_op *op, int pass, int64_t z)
{
    for (int other = 0; other < pass; other++)
        if (inside(op, tap_at(other, op->kernel[TESS_DEPTH]), z))
            return false;
    return true;
}

static bool ends(const tess_op *op, int pass, int64_t z)
{
    for (int other = pass + 1; other < op->kernel[TESS_DEPTH]; other++)
        if (inside(op, tap_at(other, op->kernel[TESS_DEPTH]), z))
            return false;
    return true;
}

/* One pass over slices [z, z + count), which are alike. */
static void accumulate(const volume_job *job, int pass, int64_t z, int64_t count)
{
    const tess_op *op = job->op;
    const int tap = tap_at(pass, op->kernel[TESS_DEPTH]), stride = op->stride[TESS_DEPTH];
    tess_op flat = slice_op(op, count, stride, 1);
    tess_op_buffers at = buffers_at(job, z * stride + tap - op->pad_before[TESS_DEPTH], z, tap);
    flat.relu = op->relu && ends(op, pass, z);
    if (!begins(op, pass, z)) {
        flat.bias = flat.mapped = false;
        flat.residuals = 1;
        flat.residual[0] = flat.out;
        at.residual[0] = at.out;
    }
    run_flat(job, &flat, &at);
}

static void run_conv(const volume_job *job)
{
    const tess_op *op = job->op;
    for (int pass = 0; pass < op->kernel[TESS_DEPTH]; pass++) {
        const int tap = tap_at(pass, op->kernel[TESS_DEPTH]);
        for (int64_t z = 0, end; z < op->out.d; z = end) {
            const bool reached = inside(op, tap, z), first = begins(op, pass, z),
                       last = op->relu && ends(op, pass, z);
            for (end = z + 1; end < op->out.d; end++)
                if (inside(op, tap, end) != reached || begins(op, pass, end) != first ||
                    (op->relu && ends(op, pass, end)) != last)
                    break;
            if (reached)
                accumulate(job, pass, z, end - z);
        }
    }
}

/* Kernel = stride: every output slice sees one tap of one input slice. */
static void run_transpose(const volume_job *job)
{
    const tess_op *op = job->op;
    const int taps = op->kernel[TESS_DEPTH];
    for (int tap = 0; tap < taps; tap++) {
        const tess_op flat = slice_op(op, op->in.d, 1, taps);
        const tess_op_buffers at = buffers_at(job, 0, tap, tap);
        run_flat(job, &flat, &at);
    }
}

static const void *next(const tess_tensor *t, const void *data, int64_t n)
{
    return data ? (const char *)data + n * t->stride_n * (int64_t)tess_dtype_size(t->dtype) : NULL;
}

static void volume_run(const tess_cpu *cpu, const tess_op *op, const tess_op_buffers *buffers)
{
    for (int64_t n = 0; n < op->out.n; n++) {
        volume_job job = {cpu, op, *buffers, tap_needs(cpu, op).weights};
        job.at.in = next(&op->in, buffers->in, n);
        job.at.out = (void *)next(&op->out, buffers->out, n);
        for (int r = 0; r < op->residuals; r++)
            job.at.residual[r] = next(&op->residual[r], buffers->residual[r], n);
        if (op->mapped)
            job.at.map = next(&op->map, buffers->map, n);
        if (op->kind == TESS_OP_CONV_TRANSPOSE) {
            run_transpose(&job);
        } else if (op->kind == TESS_OP_CONV) {
            run_conv(&job);
        } else {
            const tess_op flat = slice_op(op, op->out.d, 1, 1);
            run_flat(&job, &flat, &job.at);
        }
    }
}

const tess_cpu_family tess_cpu_volume = {"volume", volume_needs, volume_pack, volume_run};
