/* The kernels of the CPU, and its conditions for every layer. The kernel of a layer depends only on channels,
 * kernel size, instruction set and precision, never on the image size: a tile and the whole image use the same
 * kernel and agree bit for bit. */
#include "base/checked.h"
#include "cpu/core/cpu.h"

const tess_kernel *const tess_cpu_kernels[] = {
    &tess_cpu_radon,
    &tess_cpu_rays,
    &tess_cpu_fdk,
    &tess_cpu_vector,
    &tess_cpu_fft,
    &tess_cpu_filter,
    &tess_cpu_samples,
    &tess_cpu_volume,
    &tess_cpu_side_sum,
    &tess_cpu_winograd,
    &tess_cpu_bf16,
    &tess_cpu_direct,
    &tess_cpu_grad_winograd,
    &tess_cpu_grad_patches,
    &tess_cpu_channel_sum,
    &tess_cpu_conv_grad_reference,
    &tess_cpu_channel_sum_reference,
    &tess_cpu_flip,
    &tess_cpu_pointwise,
    &tess_cpu_group_norm,
    &tess_cpu_group_norm_reference,
    &tess_cpu_attention,
    &tess_cpu_attention_reference,
    &tess_cpu_gradients,
    &tess_cpu_batch_norm,
    &tess_cpu_group_norm_grad,
    &tess_cpu_attention_grad,
    &tess_cpu_gradients_reference,
    &tess_cpu_loss,
    &tess_cpu_loss_rms,
    &tess_cpu_optimize,
    &tess_cpu_random,
    &tess_cpu_diffuse,
    &tess_cpu_channel_map,
    &tess_cpu_channel_dot,
    &tess_cpu_penalty,
    &tess_cpu_moments,
    &tess_cpu_score,
    &tess_cpu_local_rx,
    &tess_cpu_statistics_reference,
    &tess_cpu_reference, /* last: takes all other ops, and every op with TESSERA_ISA=reference */
    NULL};

/* Convolutions may have depth taps; other ops work slice by slice. */
static tess_status check_depth(const tess_op *op, tess_error *error)
{
    const int kernel = op->kernel[TESS_DEPTH], stride = op->stride[TESS_DEPTH];
    bool known = kernel == 1 && stride <= 1;
    if (op->kind == TESS_OP_CONV && kernel > 1)
        known = stride >= 1 && op->pad_before[TESS_DEPTH] < kernel && op->pad_after[TESS_DEPTH] < kernel;
    else if (op->kind == TESS_OP_CONV_TRANSPOSE && kernel > 1)
        known = kernel == stride;
    else if (op->kind == TESS_OP_SIDE_SUM)
        known = op->out[0].dtype == TESS_F32 && op->out[0].c == 1 && !tess_op_residuals(op);
    if (!known || kernel > TESS_MAX_TAPS || op->kernel[TESS_HEIGHT] > TESS_MAX_TAPS ||
        op->kernel[TESS_WIDTH] > TESS_MAX_TAPS || op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH] > 64)
        return tess_fail(error, TESS_UNSUPPORTED, "the CPU has no kernel for a %s of %dx%dx%d",
                         tess_op_kind_name(op->kind), op->kernel[0], op->kernel[1], op->kernel[2]);
    if (op->masked && kernel > 1) /* the first pass over the slices may overwrite the mask */
        return tess_fail(error, TESS_UNSUPPORTED, "a convolution over several slices takes no mask");
    if (op->masked && tess_op_mask(op)->dtype != op->out[0].dtype)
        return tess_fail(error, TESS_UNSUPPORTED, "a mask must have the type of what it masks");
    if (op->mapped && (op->kind != TESS_OP_CONV || tess_op_map(op)->dtype != TESS_F32))
        return tess_fail(error, TESS_UNSUPPORTED, "only a convolution adds a map, and only one of fp32");
    return TESS_OK;
}

tess_status tess_cpu_refuses_layer(const tess_device *device, const tess_op *op, tess_error *error)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    const tess_dtype ends[2] = {op->in[0].dtype, op->out[0].dtype};
    for (int i = 0; i < 2; i++)
        if (ends[i] != TESS_F32 && ends[i] != TESS_BF16)
            return tess_fail(error, TESS_UNSUPPORTED,
                             "the CPU computes in fp32 or bf16; use `precision` fp32");
    for (int r = 0; r < tess_op_residuals(op); r++)
        if (op->in[1 + r].dtype != op->out[0].dtype)
            return tess_fail(error, TESS_UNSUPPORTED, "a residual must have the type of what it is added to");
    if (tess_op_precision(op) == TESS_BF16 && cpu->f32 && !cpu->bf16)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "this CPU has no bf16 matrix instructions (BFMMLA, AMX); use `precision` fp32");
    if (!tess_cpu_is_conv(op) && op->kind != TESS_OP_SIDE_SUM && ends[0] != ends[1])
        return tess_fail(error, TESS_UNSUPPORTED, "only a convolution changes the type of its values");
    if (op->activation == TESS_SILU && op->kind != TESS_OP_ACTIVATE)
        return tess_fail(error, TESS_UNSUPPORTED, "layers end with a ReLU or none; SiLU is an op of its own");
    TESS_TRY(check_depth(op, error));
    if (op->kind == TESS_OP_UP_CONV)
        return tess_fail(error, TESS_UNSUPPORTED, "the CPU enlarges an image before it convolves it");
    if (op->kind == TESS_OP_CONV_TRANSPOSE && (op->kernel[TESS_HEIGHT] != op->stride[TESS_HEIGHT] ||
                                               op->kernel[TESS_WIDTH] != op->stride[TESS_WIDTH]))
        return tess_fail(error, TESS_UNSUPPORTED,
                         "transposed convolutions need a kernel equal to the stride");
    return TESS_OK;
}
