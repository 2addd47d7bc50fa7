#include "cuda/hopper.h"

#include <stddef.h>

static const tess_cuda_engine *const kernels[] = {&tess_hopper_conv, &tess_hopper_head, &tess_hopper_tail};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

static const tess_cuda_engine *kernel_of(const tess_op *op)
{
    for (int i = 0; i < KERNELS; i++)
        if (!kernels[i]->refuses(op, 90))
            return kernels[i];
    return NULL;
}

static const char *refuses(const tess_op *op, int capability)
{
    if (capability != 90)
        return "made for compute capability 9.0";
    return kernel_of(op) ? NULL : tess_hopper_conv.refuses(op, capability);
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const tess_cuda_engine *kernel = kernel_of(op);
    return kernel ? kernel->run(op, buffers, stream) : cudaErrorNotSupported;
}

static cudaError_t load(int capability)
{
    for (int i = 0; i < KERNELS && capability == 90; i++) {
        const cudaError_t result = kernels[i]->load(capability);
        if (result != cudaSuccess)
            return result;
    }
    return cudaSuccess;
}

const tess_cuda_engine tess_cuda_hopper = {"hopper", refuses, run, load};
