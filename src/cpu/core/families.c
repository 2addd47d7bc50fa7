/* Which family does an op, and which ops none does. A layer's family depends on its channels, kernel, instruction set and
 * precision alone, never on the image's size: so a tile and the whole image take the same path and agree bit for bit. */
#include "base/checked.h"
#include "cpu/core/cpu.h"

enum { NARROWEST = 16 }; /* fewer channels do not pay for Winograd's transforms */

static bool is_conv(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE;
}

static bool is_samples(const tess_op *op)
{
    return op->kind == TESS_OP_IMPORT || op->kind == TESS_OP_EXPORT;
}

static bool is_rays3(const tess_op *op)
{
    return (op->kind == TESS_OP_PROJECT || op->kind == TESS_OP_BACKPROJECT) &&
           op->rays.geometry != TESS_PARALLEL_2D;
}

static bool is_fdk(const tess_op *op)
{
    return op->kind == TESS_OP_RAY_COSINE || op->kind == TESS_OP_RAY_SPREAD;
}

static bool is_radon(const tess_op *op)
{
    return (op->kind == TESS_OP_PROJECT || op->kind == TESS_OP_BACKPROJECT) &&
           op->rays.geometry == TESS_PARALLEL_2D;
}

static bool is_vector(const tess_op *op)
{
    return op->kind == TESS_OP_COMBINE || op->kind == TESS_OP_DOT || op->kind == TESS_OP_SPECTRUM;
}

const tess_cpu_family *tess_cpu_family_of(const tess_cpu *cpu, const tess_op *op)
{
    if (is_radon(op))
        return &tess_cpu_radon;
    if (is_rays3(op) || is_fdk(op))
        return is_fdk(op) ? &tess_cpu_fdk : &tess_cpu_rays;
    if (is_vector(op))
        return &tess_cpu_vector;
    if (op->kind == TESS_OP_FFT)
        return &tess_cpu_fft_family;
    if (op->kind == TESS_OP_FILTER)
        return &tess_cpu_filter_family;
    if (is_samples(op))
        return &tess_cpu_samples;
    if (!cpu->f32)
        return &tess_cpu_reference;
    if (op->kind == TESS_OP_SIDE_SUM)
        return &tess_cpu_side_sum;
    if (tess_cpu_is_volume(op))
        return &tess_cpu_volume;
    if (!is_conv(op))
        return &tess_cpu_pointwise;
    const bool bf16 = tess_op_precision(op) == TESS_BF16, same = op->in[0].dtype == op->out[0].dtype;
    const tess_winograd_kernels *winograd = bf16 ? cpu->bf16->winograd : &cpu->f32->winograd;
    bool square = op->kind == TESS_OP_CONV && op->kernel[TESS_HEIGHT] == 3 && op->kernel[TESS_WIDTH] == 3 &&
                  op->stride[TESS_HEIGHT] == 1 && op->stride[TESS_WIDTH] == 1;
    if (square && same && winograd && op->in[0].c % winograd->block == 0 &&
        op->out[0].c % winograd->block == 0 && tess_min_i64(op->in[0].c, op->out[0].c) >= NARROWEST)
        return &tess_cpu_winograd;
    return bf16 ? &tess_cpu_bf16 : &tess_cpu_direct;
}

static tess_status check_samples(const tess_op *op, tess_error *error)
{
    const bool import = op->kind == TESS_OP_IMPORT;
    const tess_dtype values = import ? op->out[0].dtype : op->in[0].dtype,
                     samples = import ? op->in[0].dtype : op->out[0].dtype;
    bool known = samples == TESS_U8 || samples == TESS_U16 || samples == TESS_I16 || samples == TESS_U32 ||
                 samples == TESS_I32 || samples == TESS_F16 || samples == TESS_F32 || samples == TESS_F64;
    if (values != TESS_F32 || !known)
        return tess_fail(error, TESS_UNSUPPORTED, "samples of type %s are not exchanged with %s values",
                         tess_dtype_name(samples), tess_dtype_name(values));
    return TESS_OK;
}

/* Depth: taps of convolutions, else slice by slice. */
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
    if (op->mapped && (op->kind != TESS_OP_CONV || tess_op_map(op)->dtype != TESS_F32))
        return tess_fail(error, TESS_UNSUPPORTED, "only a convolution adds a map, and only one of fp32");
    return TESS_OK;
}

tess_status tess_cpu_check(const tess_cpu *cpu, const tess_op *op, tess_error *error)
{
    if (is_radon(op))
        return tess_cpu_check_radon(op, error);
    if (is_rays3(op) || is_fdk(op))
        return tess_cpu_check_rays(op, error);
    if (is_vector(op))
        return tess_cpu_vector_check(op, error);
    if (op->kind == TESS_OP_FFT)
        return tess_cpu_fft_check(op, error);
    if (op->kind == TESS_OP_FILTER)
        return tess_cpu_filter_check(op, error);
    if (is_samples(op))
        return check_samples(op, error);
    const tess_dtype ends[2] = {op->in[0].dtype, op->out[0].dtype};
    for (int i = 0; i < 2; i++)
        if (ends[i] != TESS_F32 && ends[i] != TESS_BF16)
            return tess_fail(error, TESS_UNSUPPORTED,
                             "the CPU computes in fp32 or bf16; use --precision fp32");
    for (int r = 0; r < tess_op_residuals(op); r++)
        if (op->in[1 + r].dtype != op->out[0].dtype)
            return tess_fail(error, TESS_UNSUPPORTED, "a residual must have the type of what it is added to");
    if (tess_op_precision(op) == TESS_BF16 && cpu->f32 && !cpu->bf16)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "this CPU has no bf16 matrix instructions (BFMMLA, AMX); use --precision fp32");
    if (!is_conv(op) && op->kind != TESS_OP_SIDE_SUM && ends[0] != ends[1])
        return tess_fail(error, TESS_UNSUPPORTED, "only a convolution changes the type of its values");
    TESS_TRY(check_depth(op, error));
    if (op->kind == TESS_OP_UP_CONV)
        return tess_fail(error, TESS_UNSUPPORTED, "the CPU enlarges an image before it convolves it");
    if (op->kind == TESS_OP_CONV_TRANSPOSE && (op->kernel[TESS_HEIGHT] != op->stride[TESS_HEIGHT] ||
                                               op->kernel[TESS_WIDTH] != op->stride[TESS_WIDTH]))
        return tess_fail(error, TESS_UNSUPPORTED,
                         "transposed convolutions need a kernel equal to the stride");
    return TESS_OK;
}
