/* Ops on volumes, as passes of the 2-D families (device/passes.h). In bf16 the sum is rounded between the passes. */
#include <string.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "op/passes.h"

bool tess_cpu_is_volume(const tess_op *op)
{
    return tess_op_is_layer(op) && (op->in[0].d != 1 || op->out[0].d != 1 || op->kernel[TESS_DEPTH] != 1);
}

/* What one depth tap needs; a pass over all slices needs the most. */
static tess_op_needs tap_needs(const tess_cpu *cpu, const tess_op *op)
{
    tess_op_needs needs = {.block = 1};
    tess_op flat = tess_op_slices(op, op->out[0].d, 1, 1);
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
    const int64_t second = op->kind == TESS_OP_CONV_TRANSPOSE ? op->out[0].c : op->in[0].c;
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

static void volume_pack(const tess_cpu *cpu, const tess_op *op, int param, int64_t first, int64_t count,
                        const float *values, void *packed)
{
    const int taps = op->kernel[TESS_DEPTH];
    const size_t tap_bytes = tap_needs(cpu, op).weights;
    const tess_op flat = tess_op_slices(op, op->out[0].d, 1, 1);
    const tess_cpu_family *family = tess_cpu_family_of(cpu, &flat);
    if (taps == 1 || param == TESS_PARAM_BIAS) { /* any tap may be the first pass of some slice */
        for (int tap = 0; tap < taps; tap++)
            family->pack(cpu, &flat, param, first, count, values, (char *)packed + (size_t)tap * tap_bytes);
        return;
    }
    const int64_t area = (int64_t)op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH], row = tap_row(op);
    float *scratch = (float *)((char *)packed + (size_t)taps * tap_bytes);
    for (int64_t i = 0; i < count; i++)
        for (int tap = 0; tap < taps; tap++) {
            for (int64_t kernel = 0; kernel < row / area; kernel++)
                memcpy(scratch + kernel * area, values + (i * row + kernel * area) * taps + tap * area,
                       (size_t)area * sizeof *scratch);
            family->pack(cpu, &flat, param, first + i, 1, scratch, (char *)packed + (size_t)tap * tap_bytes);
        }
}

static tess_status run_flat(void *user, const tess_op *flat, const tess_op_buffers *at, tess_error *error)
{
    (void)error;
    const tess_cpu *cpu = user;
    tess_cpu_family_of(cpu, flat)->run(cpu, flat, at);
    return TESS_OK;
}

static void volume_run(const tess_cpu *cpu, const tess_op *op, const tess_op_buffers *buffers)
{
    tess_status never_fails =
        tess_op_passes(op, buffers, tap_needs(cpu, op).weights, run_flat, (void *)cpu, NULL);
    (void)never_fails;
}

const tess_cpu_family tess_cpu_volume = {"volume", volume_needs, volume_pack, volume_run};
