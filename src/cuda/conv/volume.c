/* Ops on volumes, as passes of the engines for images (device/passes.h). A map is added by Hopper's convolutions before
 * they round; elsewhere at the very end, by a kernel of its own, which then does the ReLU too. The engine of a pass follows from the op's class, not from measurements,
 * which belong to sizes: slices at the rim of a volume go in smaller batches than the others, and must not differ for
 * it.
 *
 * In fp16 and bf16 the sum is rounded after each pass, and once more with a map that comes at the end. */
#include "cuda/conv/volume.h"

#include <string.h>

#include "cuda/core/engines_impl.h"
#include "op/passes.h"

/* A build may lack the file. */
extern const tess_cuda_engine tess_cuda_hopper __attribute__((weak));

typedef struct volume_job {
    const tess_cuda_engines *engines;
    cudaStream_t stream;
} volume_job;

/* Do the passes add the map? A pass of either kind of slices decides for all. */
static bool passes_add_map(const tess_cuda_engines *engines, const tess_op *op)
{
    const tess_op flat = tess_op_slices(op, op->out[0].d, op->stride[TESS_DEPTH], 1);
    return op->kind == TESS_OP_CONV && tess_cuda_own_engine(engines, &flat, "hopper") &&
           (!engines->forced[0] || strcmp(engines->forced, "hopper") == 0);
}

/* The op but for its map, which is added at the end. */
static tess_op without_map(const tess_op *op)
{
    tess_op plain = *op;
    plain.activation = tess_op_relu(op) && !op->mapped ? TESS_RELU : TESS_LINEAR;
    plain.mapped = false;
    return plain;
}

static tess_status run_flat(void *user, const tess_op *flat, const tess_op_buffers *at, tess_error *error)
{
    const volume_job *job = user;
    const char *forced = flat->mapped ? "hopper" : job->engines->forced;
    const tess_cuda_engine *engine = forced[0] ? tess_cuda_own_engine(job->engines, flat, forced) : NULL;
    if (!engine && forced[0])
        engine = tess_cuda_own_engine(job->engines, flat, "generic");
    if (!engine)
        engine = tess_cuda_own_engine(job->engines, flat, NULL);
    if (!engine)
        return tess_fail(error, TESS_INTERNAL, "no engine for a slice of a volume");
    return tess_cuda_check(engine->run(flat, at, job->stream), engine->name, error);
}

tess_status tess_cuda_volume_run(const tess_cuda_engines *engines, const tess_op *op,
                                 const tess_op_buffers *buffers, cudaStream_t stream, tess_error *error)
{
    volume_job job = {engines, stream};
    const bool apart = op->mapped && !passes_add_map(engines, op);
    const tess_op passed = apart ? without_map(op) : *op;
    TESS_TRY(tess_op_passes(&passed, buffers, tess_cuda_tap_bytes(op), run_flat, &job, error));
    return apart ? tess_cuda_check(tess_cuda_add_map(op, buffers, stream), "add_map", error) : TESS_OK;
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
        if (stride != kernel || op->out[0].d != op->in[0].d * stride)
            return "transposed convolutions need a kernel equal to the stride";
    } else if (kernel != 1 || stride > 1 || op->in[0].d != op->out[0].d) {
        return "only convolutions have kernels with a depth";
    }
    return NULL;
}

static const char *refuses(const tess_op *op, int capability)
{
    if (!tess_cuda_is_volume(op))
        return "neither has a depth nor adds a map";
    if (op->mapped && (op->kind != TESS_OP_CONV || tess_op_map(op)->dtype != TESS_F32))
        return "only a convolution adds a map, and only one of fp32";
    bool placed = !badly_placed(&op->in[0]) && !badly_placed(&op->out[0]);
    for (int r = 0; r < tess_op_residuals(op); r++)
        placed = placed && !badly_placed(&op->in[1 + r]);
    if (!placed)
        return "slices must begin at multiples of 16 bytes where their rows do";
    const char *why = refuses_depth(op);
    if (why)
        return why;
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    const tess_op plain = without_map(op),
                  flat = tess_op_slices(&plain, transposed ? op->in[0].d : op->out[0].d, 1, 1);
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
