/* Converts CUDA errors to statuses; computes the sizes of packed weights. */
#include "base/checked.h"
#include "cuda/core/cuda.h"

enum { PACKED_ALIGNMENT = 64 };

static bool is_lost(cudaError_t result)
{
    switch (result) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDeviceUninitialized:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

tess_status tess_cuda_check(cudaError_t result, const char *what, tess_error *error)
{
    if (result == cudaSuccess)
        return TESS_OK;
    (void)cudaGetLastError(); /* clears the error, or a later launch would report it */
    if (result == cudaErrorMemoryAllocation)
        return tess_fail(error, TESS_NO_MEMORY,
                         "%s: the card has no memory left; set a smaller `memory_limit`", what);
    if (is_lost(result))
        return tess_fail(error, TESS_DEVICE_LOST,
                         "the card failed: %s (seen by %s); outputs already written are kept",
                         cudaGetErrorString(result), what);
    return tess_fail(error, TESS_INTERNAL, "%s: %s", what, cudaGetErrorString(result));
}

size_t tess_cuda_bias_at(const tess_op *op)
{
    if (op->kind != TESS_OP_CONV && op->kind != TESS_OP_CONV_TRANSPOSE && op->kind != TESS_OP_UP_CONV)
        return 0;
    size_t taps = op->kind == TESS_OP_UP_CONV
                      ? 4 * 4 /* four phases of 2x2 */
                      : (size_t)op->kernel[TESS_HEIGHT] * (size_t)op->kernel[TESS_WIDTH];
    size_t bytes = taps * (size_t)op->in[0].c * (size_t)op->out[0].c * tess_dtype_size(tess_op_precision(op));
    return tess_align_size(bytes, PACKED_ALIGNMENT);
}

size_t tess_cuda_tap_bytes(const tess_op *op)
{
    return tess_align_size(tess_cuda_bias_at(op) + (op->bias ? (size_t)op->out[0].c * sizeof(float) : 0),
                           PACKED_ALIGNMENT);
}
