/* cuda.h: the parts of the NVIDIA device. Host code is C; each .cu file exports launchers with C linkage, which
 * only enqueue: no allocation, no synchronisation.
 *
 * Packed weights are [out][kh][kw][in] in the op's precision (KRSC), for a transposed convolution
 * [kh][kw][out][in], for an enlarging one [phase][out][2][2][in]; the bias follows at tess_cuda_bias_at, fp32.
 * Of a kernel with a depth, each depth tap is packed so, with the bias, one tap behind the other. Every engine reads
 * this one layout, so the engine of a class can change with the image's size while the weights stay. */
#ifndef TESS_CUDA_CUDA_H
#define TESS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/device.h"

/* The one door: every CUDA call goes through it. TESS_NO_MEMORY for an allocation that failed, TESS_DEVICE_LOST
 * for an asynchronous error, else TESS_INTERNAL; `what` names the call. */
tess_status tess_cuda_check(cudaError_t result, const char *what, tess_error *error);

/* Bytes of the packed kernel (of one depth tap), rounded up; the bias begins there. */
size_t tess_cuda_bias_at(const tess_op *op);
/* Bytes of a depth tap's kernel and bias; all of the weights where the kernel has no depth. */
size_t tess_cuda_tap_bytes(const tess_op *op);

/* NULL: the op has none. */
static inline const float *tess_cuda_bias(const tess_op *op, const tess_op_buffers *buffers)
{
    return op->bias ? (const float *)((const char *)buffers->weights + tess_cuda_bias_at(op)) : NULL;
}

static inline cudaStream_t tess_cuda_stream(tess_stream *stream)
{
    return (cudaStream_t)stream;
}

/* What a file of kernels gives to the row that runs them (core/rows.c). Results do not depend on where a window starts, but
 * kernels differ in the order of their sums. */
typedef struct tess_cuda_launch {
    /* NULL when these kernels can do the op on this card, else why not. */
    const char *(*refuses)(const tess_op *op, int capability);
    cudaError_t (*run)(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
    /* Brings all its kernels onto the card when that is opened, so that no shape pays for it; may be NULL. */
    cudaError_t (*load)(int capability);
    /* Bytes that `run` will find at the buffers' workspace; SIZE_MAX: `prepare` will say why it fails. NULL: none. */
    size_t (*workspace)(const tess_op *op);
    /* For kernels that keep something for each op: `run_prepared`, with the handle, stands for `run`. NULL: none. */
    tess_status (*prepare)(const tess_op *op, void **handle, tess_error *error);
    void (*release)(void *handle);
    tess_status (*run_prepared)(void *handle, const tess_op *op, const tess_op_buffers *buffers,
                                cudaStream_t stream, tess_error *error);
} tess_cuda_launch;

extern const tess_cuda_launch tess_cuda_generic; /* generic.cu: every layer, on any card, without hurry */
extern const tess_cuda_launch tess_cuda_samples; /* samples.cu: IMPORT and EXPORT */
extern const tess_cuda_launch tess_cuda_vector;  /* vector.cu: COMBINE, DOT and SPECTRUM */
extern const tess_cuda_launch tess_cuda_fft;     /* fft.c: FFT, by cuFFT */
extern const tess_cuda_launch tess_cuda_filter;  /* filter.c: FFT and FILTER of images, by our own passes */
extern const tess_cuda_launch tess_cuda_filter_whole; /* filter_whole.c: FILTER, by cuFFT */
extern const tess_cuda_launch tess_cuda_rays;      /* rays_launch.c: PROJECT, BACKPROJECT and FDK's steps */
extern const tess_cuda_launch tess_cuda_side_sum;  /* side_sum.cu: SIDE_SUM */
extern const tess_cuda_launch tess_cuda_attention; /* attention.cu: ATTENTION */
extern const tess_cuda_launch
    tess_cuda_hopper; /* hopper*.cu: wgmma and bulk copies, sm_90a; a build may lack it */

/* pack.cu: rows [first, first+count) of a weight tensor, fp32 on the card, into packed form. */
cudaError_t tess_cuda_pack(const tess_op *op, int param, int64_t first, int64_t count, const float *values,
                           void *packed, cudaStream_t stream);
/* fill.cu: small values of both signs, the same at every call. */
cudaError_t tess_cuda_fill(void *data, size_t bytes, tess_dtype dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
