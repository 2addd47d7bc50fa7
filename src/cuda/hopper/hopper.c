#include "cuda/hopper/hopper.h"

#include <stddef.h>

static const tess_cuda_launch *const kernels[] = {&tess_hopper_conv, &tess_hopper_head, &tess_hopper_tail,
                                                  &tess_hopper_grad};
/* The kernels of training are loaded when an op is prepared, not when the card is opened. */
enum { KERNELS = sizeof kernels / sizeof kernels[0], INFERENCE_KERNELS = 3 };

static const tess_cuda_launch *kernel_of(const tess_op *op)
{
    for (int i = 0; i < (op->mapped ? 1 : KERNELS); i++) /* only the first kernel adds maps */
        if (!kernels[i]->refuses(op, 90))
            return kernels[i];
    return NULL;
}

/* The kernels use 32 bits to count tiles (of 8 x 16 pixels and 64 channels at least) and the pixels of a side. */
static bool too_many_tiles(const tess_op *op)
{
    static const int64_t MOST = (int64_t)1 << 30;
    const tess_tensor *out = &op->out[0];
    if (out->w > MOST || out->h > MOST || out->n > MOST)
        return true;
    const int64_t plane = ((out->w + 7) / 8) * ((out->h + 15) / 16), groups = (out->c + 63) / 64;
    return plane > MOST || plane * out->n > MOST / groups;
}

static const char *refuses(const tess_op *op, int capability)
{
    if (capability != 90)
        return "made for compute capability 9.0";
    if (op->kind == TESS_OP_CONV_GRAD)
        return tess_hopper_grad.refuses(op, capability);
    if (op->in[0].d != 1 || op->out[0].d != 1 || op->kernel[TESS_DEPTH] != 1)
        return "takes images";
    if (too_many_tiles(op))
        return "takes fewer pixels at once";
    return kernel_of(op) ? NULL : tess_hopper_conv.refuses(op, capability);
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const tess_cuda_launch *kernel = kernel_of(op);
    return kernel ? kernel->run(op, buffers, stream) : cudaErrorNotSupported;
}

static cudaError_t load(int capability)
{
    for (int i = 0; i < INFERENCE_KERNELS && capability == 90; i++) {
        const cudaError_t result = kernels[i]->load(capability);
        if (result != cudaSuccess)
            return result;
    }
    return cudaSuccess;
}

static size_t workspace(const tess_op *op)
{
    return op->kind == TESS_OP_CONV_GRAD ? tess_hopper_grad.workspace(op) : 0;
}

static tess_status prepare(const tess_op *op, void **handle, tess_error *error)
{
    *handle = NULL;
    cudaError_t result = cudaSuccess;
    if (op->kind == TESS_OP_CONV_GRAD)
        result = tess_hopper_grad.load(90);
    else if (op->masked)
        result = tess_hopper_head.refuses(op, 90) ? tess_hopper_conv_load_masked()
                                                  : tess_hopper_head_load_masked();
    return tess_cuda_check(result, "loading kernels", error);
}

const tess_cuda_launch tess_cuda_hopper = {
    .refuses = refuses, .run = run, .load = load, .workspace = workspace, .prepare = prepare};
