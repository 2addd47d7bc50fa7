/* Ops on volumes, as passes of the 2-D kernels (op/passes.h). In bf16 the sum is rounded between the passes. */
#include <string.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "op/passes.h"

static bool is_volume(const tess_op *op)
{
    return tess_op_is_layer(op) && (op->in[0].d != 1 || op->out[0].d != 1 || op->kernel[TESS_DEPTH] != 1);
}

/* The kernel of a pass. There always is one, because a volume is accepted only if its passes are. */
static const tess_kernel *flat_kernel(tess_device *device, const tess_op *flat)
{
    const tess_kernel *kernel = NULL;
    return tess_kernel_choose(device, flat, &kernel, NULL) == TESS_OK ? kernel : NULL;
}

/* The needs of one depth tap; a pass over all slices needs the most. */
static tess_op_needs tap_needs(tess_device *device, const tess_op *op)
{
    tess_op_needs needs = {.block = 1};
    tess_op flat = tess_op_slices(op, op->out[0].d, 1, 1);
    const tess_kernel *kernel = flat_kernel(device, &flat);
    if (kernel && kernel->needs)
        kernel->needs(device, &flat, &needs);
    needs.weights = tess_align_size(needs.weights, 64);
    return needs;
}

static bool has_weights(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE;
}

/* Number of values in one row of one depth tap. */
static int64_t tap_row(const tess_op *op)
{
    const int64_t second = op->kind == TESS_OP_CONV_TRANSPOSE ? op->out[0].c : op->in[0].c;
    return second * op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH];
}

/* Weights: one block per depth tap, then one row of scratch for packing, which cannot allocate. */
static void volume_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    *needs = tap_needs(device, op);
    const size_t taps = (size_t)op->kernel[TESS_DEPTH];
    if (has_weights(op) && taps > 1)
        needs->weights = needs->weights * taps + (size_t)tap_row(op) * sizeof(float);
}

static void volume_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                        const float *values, void *packed)
{
    const int taps = op->kernel[TESS_DEPTH];
    const size_t tap_bytes = tap_needs(device, op).weights;
    const tess_op flat = tess_op_slices(op, op->out[0].d, 1, 1);
    const tess_kernel *kernel = flat_kernel(device, &flat);
    if (taps == 1 || param == TESS_PARAM_BIAS) { /* any tap may be the first pass of some slice */
        for (int tap = 0; tap < taps; tap++)
            kernel->pack(device, &flat, param, first, count, values,
                         (char *)packed + (size_t)tap * tap_bytes);
        return;
    }
    const int64_t area = (int64_t)op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH], row = tap_row(op);
    float *scratch = (float *)((char *)packed + (size_t)taps * tap_bytes);
    for (int64_t i = 0; i < count; i++)
        for (int tap = 0; tap < taps; tap++) {
            for (int64_t k = 0; k < row / area; k++)
                memcpy(scratch + k * area, values + (i * row + k * area) * taps + tap * area,
                       (size_t)area * sizeof *scratch);
            kernel->pack(device, &flat, param, first + i, 1, scratch,
                         (char *)packed + (size_t)tap * tap_bytes);
        }
}

static tess_status run_flat(void *user, const tess_op *flat, const tess_op_buffers *at, tess_error *error)
{
    (void)error;
    tess_device *device = user;
    flat_kernel(device, flat)->run(device, flat, NULL, at, NULL);
    return TESS_OK;
}

static void volume_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                       tess_stream *stream)
{
    (void)state, (void)stream;
    tess_status never_fails =
        tess_op_passes(op, buffers, tap_needs(device, op).weights, run_flat, device, NULL);
    (void)never_fails;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (!is_volume(op) || !tess_cpu_of(device)->f32)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_refuses_layer(device, op, why);
}

const tess_kernel tess_cpu_volume = {
    .name = "volume", .refuses = refuses, .needs = volume_needs, .pack = volume_pack, .run = volume_run};
