/* Ops on volumes, as passes of the engines for images: the slices of a volume are a batch, and each depth tap of a
 * kernel is a 2-D kernel of its own, whose packed weights stand behind those of the tap before. A convolution sums
 * its taps in the output: the first pass adds bias and residuals (one of which may be the output's own memory),
 * later ones take the output as their residual, the last one ends with the ReLU. A map is added at the very end, by
 * a kernel of its own, which then does the ReLU too.
 *
 * The order, the middle tap first, is the same for every slice of every volume, and the engine of a pass follows
 * from the op's class, not from measurements, which belong to sizes: slices at the rim of a volume go in smaller
 * batches than the others, and must not differ for it.
 *
 * In fp16 and bf16 the sum is rounded after each pass, and once more with the map. An engine that took the map as
 * it takes the bias would save that rounding, and the reading and writing of the output. */
#include "cuda/volume.h"

#include "cuda/engines_impl.h"

/* A build may lack the file. */
extern const tess_cuda_engine tess_cuda_hopper __attribute__((weak));

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
    flat.kernel[TESS_DEPTH] = flat.stride[TESS_DEPTH] = 1;
    flat.pad_before[TESS_DEPTH] = flat.pad_after[TESS_DEPTH] = 0;
    flat.relu = op->relu && !op->mapped;
    flat.mapped = false;
    return flat;
}

/* One volume of a batch, and where it is. */
typedef struct volume_job {
    const tess_cuda_engines *engines;
    const tess_op *op;
    tess_op_buffers at;
    cudaStream_t stream;
} volume_job;

static const void *moved(const tess_tensor *t, const void *data, int64_t elements)
{
    return data ? (const char *)data + elements * (int64_t)tess_dtype_size(t->dtype) : NULL;
}

/* Where slice `in` of the input and slice `out` of the output are, and the weights of `tap`. */
static tess_op_buffers buffers_at(const volume_job *job, int64_t in, int64_t out, int tap)
{
    const tess_op *op = job->op;
    tess_op_buffers at = job->at;
    at.in = moved(&op->in, at.in, in * op->in.stride_d);
    at.out = (void *)moved(&op->out, at.out, out * op->out.stride_d);
    for (int r = 0; r < op->residuals; r++)
        at.residual[r] = moved(&op->residual[r], at.residual[r], out * op->residual[r].stride_d);
    at.weights = at.weights ? (const char *)at.weights + (size_t)tap * tess_cuda_tap_bytes(op) : NULL;
    return at;
}

static tess_status run_flat(const volume_job *job, const tess_op *flat, const tess_op_buffers *at,
                            tess_error *error)
{
    const char *forced = job->engines->forced;
    const tess_cuda_engine *engine = forced[0] ? tess_cuda_own_engine(job->engines, flat, forced) : NULL;
    if (!engine && forced[0])
        engine = tess_cuda_own_engine(job->engines, flat, "generic");
    if (!engine)
        engine = tess_cuda_own_engine(job->engines, flat, NULL);
    if (!engine)
        return tess_fail(error, TESS_INTERNAL, "no engine for a slice of a volume");
    return tess_cuda_check(engine->run(flat, at, job->stream), engine->name, error);
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

/* Does none of the passes [first, end) reach slice z? */
static bool untouched(const tess_op *op, int first, int end, int64_t z)
{
    const int taps = op->kernel[TESS_DEPTH];
    for (int pass = first; pass < end; pass++)
        if (inside(op, tap_at(pass, taps), z))
            return false;
    return true;
}

/* What a pass does with a slice. */
typedef struct role {
    bool reached, begins, relu;
} role;

static role role_of(const tess_op *op, int pass, int64_t z)
{
    const int taps = op->kernel[TESS_DEPTH];
    return (role){.reached = inside(op, tap_at(pass, taps), z),
                  .begins = untouched(op, 0, pass, z),
                  .relu = op->relu && !op->mapped && untouched(op, pass + 1, taps, z)};
}

/* One pass over slices [z, z + count), which are alike. */
static tess_status accumulate(const volume_job *job, int pass, int64_t z, int64_t count, tess_error *error)
{
    const tess_op *op = job->op;
    const role mine = role_of(op, pass, z);
    const int tap = tap_at(pass, op->kernel[TESS_DEPTH]), stride = op->stride[TESS_DEPTH];
    tess_op flat = slice_op(op, count, stride, 1);
    tess_op_buffers at = buffers_at(job, z * stride + tap - op->pad_before[TESS_DEPTH], z, tap);
    flat.relu = mine.relu;
    if (!mine.begins) {
        flat.bias = false;
        flat.residuals = 1;
        flat.residual[0] = flat.out;
        at.residual[0] = at.out;
    }
    return run_flat(job, &flat, &at, error);
}

static tess_status run_conv(const volume_job *job, tess_error *error)
{
    const tess_op *op = job->op;
    for (int pass = 0; pass < op->kernel[TESS_DEPTH]; pass++)
        for (int64_t z = 0, end; z < op->out.d; z = end) {
            const role first = role_of(op, pass, z);
            for (end = z + 1; end < op->out.d; end++) {
                const role next = role_of(op, pass, end);
                if (next.reached != first.reached || next.begins != first.begins || next.relu != first.relu)
                    break;
            }
            if (first.reached)
                TESS_TRY(accumulate(job, pass, z, end - z, error));
        }
    return TESS_OK;
}

/* Kernel = stride: every output slice sees one tap of one input slice. */
static tess_status run_transpose(const volume_job *job, tess_error *error)
{
    const tess_op *op = job->op;
    const int taps = op->kernel[TESS_DEPTH];
    const tess_op flat = slice_op(op, op->in.d, 1, taps);
    for (int tap = 0; tap < taps; tap++) {
        const tess_op_buffers at = buffers_at(job, 0, tap, tap);
        TESS_TRY(run_flat(job, &flat, &at, error));
    }
    return TESS_OK;
}

static tess_status run_one(const volume_job *job, tess_error *error)
{
    if (job->op->kind == TESS_OP_CONV)
        return run_conv(job, error);
    if (job->op->kind == TESS_OP_CONV_TRANSPOSE)
        return run_transpose(job, error);
    const tess_op flat = slice_op(job->op, job->op->out.d, 1, 1);
    return run_flat(job, &flat, &job->at, error);
}

tess_status tess_cuda_volume_run(const tess_cuda_engines *engines, const tess_op *op,
                                 const tess_op_buffers *buffers, cudaStream_t stream, tess_error *error)
{
    for (int64_t n = 0; n < op->out.n; n++) {
        volume_job job = {engines, op, *buffers, stream};
        job.at.in = moved(&op->in, buffers->in, n * op->in.stride_n);
        job.at.out = (void *)moved(&op->out, buffers->out, n * op->out.stride_n);
        for (int r = 0; r < op->residuals; r++)
            job.at.residual[r] = moved(&op->residual[r], buffers->residual[r], n * op->residual[r].stride_n);
        TESS_TRY(run_one(&job, error));
    }
    return op->mapped ? tess_cuda_check(tess_cuda_add_map(op, buffers, stream), "add_map", error) : TESS_OK;
}

/* Kernels that want rows to begin at multiples of 16 bytes want it of slices as well; where a pass takes every
 * second slice they could not see it. */
static bool badly_placed(const tess_tensor *t)
{
    const int64_t size = (int64_t)tess_dtype_size(t->dtype);
    return t->stride_h * size % 16 == 0 &&
           ((t->d > 1 && t->stride_d * size % 16 != 0) || (t->n > 1 && t->stride_n * size % 16 != 0));
}

static const char *refuses_depth(const tess_op *op)
{
    const int kernel = op->kernel[TESS_DEPTH], stride = op->stride[TESS_DEPTH];
    if (op->kind == TESS_OP_CONV && kernel > 1) {
        if (stride < 1 || op->pad_before[TESS_DEPTH] < 0 || op->pad_before[TESS_DEPTH] >= kernel ||
            op->pad_after[TESS_DEPTH] >= kernel)
            return "the padding of a depth must be smaller than the kernel";
    } else if (op->kind == TESS_OP_CONV_TRANSPOSE && kernel > 1) {
        if (stride != kernel || op->out.d != op->in.d * stride)
            return "transposed convolutions need a kernel equal to the stride";
    } else if (kernel != 1 || stride > 1 || op->in.d != op->out.d) {
        return "only convolutions have kernels with a depth";
    }
    return NULL;
}

static const char *refuses(const tess_op *op, int capability)
{
    if (!tess_cuda_is_volume(op))
        return "neither has a depth nor adds a map";
    if (op->mapped && (op->kind != TESS_OP_CONV || op->map.dtype != TESS_F32))
        return "only a convolution adds a map, and only one of fp32";
    bool placed = !badly_placed(&op->in) && !badly_placed(&op->out);
    for (int r = 0; r < op->residuals; r++)
        placed = placed && !badly_placed(&op->residual[r]);
    if (!placed)
        return "slices must begin at multiples of 16 bytes where their rows do";
    const char *why = refuses_depth(op);
    if (why)
        return why;
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    const tess_op flat = slice_op(op, transposed ? op->in.d : op->out.d, 1, 1);
    const tess_cuda_engine *hopper = &tess_cuda_hopper; /* enlarges, which the generic engine does not */
    why = tess_cuda_generic.refuses(&flat, capability);
    return why && hopper && !hopper->refuses(&flat, capability) ? NULL : why;
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    (void)op, (void)buffers, (void)stream;
    return cudaErrorNotSupported;
}

const tess_cuda_engine tess_cuda_volume = {.name = "volume", .refuses = refuses, .run = run};
