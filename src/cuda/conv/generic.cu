#include "cuda/conv/generic.h"

static bool is_value(tess_dtype dtype)
{
    return dtype == TESS_F32 || dtype == TESS_F16 || dtype == TESS_BF16;
}

static const char *generic_refuses(const tess_op *op, int)
{
    if (!tess_op_is_layer(op))
        return "takes convolutions, pooling, upsampling, additions and activations";
    if (op->activation == TESS_SILU && op->kind != TESS_OP_ACTIVATE)
        return "ends with a ReLU or none";
    if (op->kind == TESS_OP_UP_CONV)
        return "an image is enlarged before it is convolved";
    if (!is_value(op->in[0].dtype) || !is_value(op->out[0].dtype))
        return "values are fp32, fp16 or bf16";
    const bool conv = op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE;
    const bool same = op->in[0].dtype == op->out[0].dtype;
    if (!same && (!conv || (op->in[0].dtype != TESS_F32 && op->out[0].dtype != TESS_F32)))
        return "only a convolution changes the type of its values, from or to fp32";
    for (int r = 0; r < tess_op_residuals(op); r++)
        if (op->in[1 + r].dtype != op->out[0].dtype)
            return "a residual must have the type of what it is added to";
    if (op->masked && tess_op_mask(op)->dtype != op->out[0].dtype)
        return "a mask must have the type of the output";
    if (op->in[0].d != 1 || op->out[0].d != 1 || op->kernel[TESS_DEPTH] != 1)
        return "there are no 3-D kernels";
    if (op->mapped)
        return "no map is added";
    if (op->kind == TESS_OP_CONV_TRANSPOSE && (op->kernel[TESS_HEIGHT] != op->stride[TESS_HEIGHT] ||
                                               op->kernel[TESS_WIDTH] != op->stride[TESS_WIDTH]))
        return "transposed convolutions need a kernel equal to the stride";
    return NULL;
}

static cudaError_t generic_run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    if (op->kind != TESS_OP_CONV && op->kind != TESS_OP_CONV_TRANSPOSE)
        return tess_cuda_pointwise(op, buffers, stream);
    if (tess_cuda_head_fits(op))
        return tess_cuda_head(op, buffers, stream);
    if (tess_cuda_tail_fits(op))
        return tess_cuda_tail(op, buffers, stream);
    if (tess_cuda_pixels_fits(op))
        return tess_cuda_pixels(op, buffers, stream);
    return tess_cuda_conv(op, buffers, stream);
}

static cudaError_t generic_load(int)
{
    cudaError_t result = tess_cuda_head_load();
    if (result == cudaSuccess)
        result = tess_cuda_tail_load();
    return result == cudaSuccess ? tess_cuda_pixels_load() : result;
}

extern "C" const tess_cuda_launch tess_cuda_generic = {generic_refuses, generic_run, generic_load, NULL};
