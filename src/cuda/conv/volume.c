/* Ops on volumes, as passes of the kernels for images (op/passes.h). Hopper's convolutions add a map before
 * they round; otherwise a separate kernel adds it after the last pass and applies the ReLU. The op's class
 * selects the kernel of a pass. Measurements do not, because they depend on the size: slices at the border of
 * a volume run in smaller batches than the others and must give the same results.
 *
 * In fp16 and bf16 the sum is rounded after each pass, and once more if a map is added at the end. */
#include "cuda/conv/volume.h"

#include <string.h>

#include "cuda/core/device_impl.h"
#include "op/passes.h"

typedef struct volume_job {
    tess_device *device;
    tess_stream *stream;
} volume_job;

static const char *forced_row(const tess_device *device)
{
    return tess_cuda_of((tess_device *)device)->measured->forced;
}

/* Also for ops with a map, which the rows for images refuse. */
static bool hopper_takes(const tess_device *device, const tess_op *flat)
{
    return &tess_cuda_hopper &&
           !tess_cuda_hopper.refuses(flat, tess_cuda_of((tess_device *)device)->capability);
}

/* True if the passes add the map. The answer is the same for all slices. */
static bool passes_add_map(const tess_device *device, const tess_op *op)
{
    const tess_op flat = tess_op_slices(op, op->out[0].d, op->stride[TESS_DEPTH], 1);
    const char *forced = forced_row(device);
    return op->kind == TESS_OP_CONV && hopper_takes(device, &flat) &&
           (!forced[0] || strcmp(forced, "hopper") == 0);
}

/* The op without its map, which is added at the end. */
static tess_op without_map(const tess_op *op)
{
    tess_op plain = *op;
    if (op->mapped) {
        plain.activation = TESS_LINEAR;
        plain.inputs--;
    }
    plain.mapped = false;
    return plain;
}

/* The launchers of a pass. cuDNN is not used here, because its plans depend on the size. */
static const tess_cuda_launch *launch_of(const tess_device *device, const tess_op *flat)
{
    const char *forced = flat->mapped ? "hopper" : forced_row(device);
    if ((!forced[0] || strcmp(forced, "hopper") == 0) && hopper_takes(device, flat))
        return &tess_cuda_hopper;
    const int capability = tess_cuda_of((tess_device *)device)->capability;
    if (!tess_cuda_generic.refuses(flat, capability))
        return &tess_cuda_generic;
    return hopper_takes(device, flat) ? &tess_cuda_hopper : NULL;
}

static tess_status run_flat(void *user, const tess_op *flat, const tess_op_buffers *at, tess_error *error)
{
    const volume_job *job = user;
    const tess_cuda_launch *launch = launch_of(job->device, flat);
    if (!launch)
        return tess_fail(error, TESS_INTERNAL, "no kernel for a slice of a volume");
    return tess_cuda_check(launch->run(flat, at, tess_cuda_stream_of(job->device, job->stream)),
                           "a slice of a volume", error);
}

static tess_status run_passes(tess_device *device, const tess_op *op, const tess_op_buffers *buffers,
                              tess_stream *stream, tess_error *error)
{
    volume_job job = {device, stream};
    const bool map_last = op->mapped && !passes_add_map(device, op);
    const tess_op passed = map_last ? without_map(op) : *op;
    TESS_TRY(tess_op_passes(&passed, buffers, tess_cuda_tap_bytes(op), run_flat, &job, error));
    return map_last ? tess_cuda_check(tess_cuda_add_map(op, buffers, tess_cuda_stream_of(device, stream)),
                                      "add_map", error)
                    : TESS_OK;
}

/* Kernels that need rows aligned to 16 bytes need aligned slices too. They cannot check it themselves if a
 * pass takes every second slice. */
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

static const char *reason_of(const tess_device *device, const tess_op *op)
{
    if (op->masked)
        return "it takes no mask";
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
    why = tess_cuda_generic.refuses(&flat, tess_cuda_of((tess_device *)device)->capability);
    return why && hopper_takes(device, &flat)
               ? NULL
               : why; /* Hopper's kernels fuse the upsampling, the generic ones do not */
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (!tess_cuda_is_volume(op))
        return tess_kernel_refuse(why, NULL);
    const char *reason = reason_of(device, op);
    return reason ? tess_kernel_refuse(why, reason) : TESS_OK;
}

static void needs_of(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    needs->weights = tess_cuda_weight_bytes(op);
}

static void run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                tess_stream *stream)
{
    (void)state;
    tess_error error;
    tess_cuda_enter(device);
    const tess_status status = run_passes(device, op, buffers, stream, &error);
    if (status != TESS_OK)
        tess_cuda_keep_text(device, status, error.text);
}

const tess_kernel tess_cuda_volume = {
    .name = "volume", .refuses = refuses, .needs = needs_of, .pack = tess_cuda_pack_op, .run = run};
