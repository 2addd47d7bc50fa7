/* cuda.h: the parts of the NVIDIA device. Host code is C. Each .cu file exports launchers with C linkage,
 * which only enqueue: they do not allocate or synchronise.
 *
 * Packed weights are [out][kh][kw][in] in the op's precision (KRSC), [kh][kw][out][in] for a transposed
 * convolution, [phase][out][2][2][in] for one with fused upsampling; the fp32 bias follows at
 * tess_cuda_bias_at. A kernel with a depth stores one such block, with bias, for each depth tap. All rows read
 * this layout, so a different row can be used for another image size with the same weights. */
#ifndef TESS_CUDA_CUDA_H
#define TESS_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/device.h"

/* Converts the result of a CUDA call; every call goes through it. TESS_NO_MEMORY for a failed allocation,
 * TESS_DEVICE_LOST for an asynchronous error, else TESS_INTERNAL; `what` names the call. */
tess_status tess_cuda_check(cudaError_t result, const char *what, tess_error *error);

/* Bytes of the packed kernel (of one depth tap), rounded up; offset of the bias. */
size_t tess_cuda_bias_at(const tess_op *op);
/* Bytes of kernel and bias of one depth tap; of all weights if the kernel has no depth. */
size_t tess_cuda_tap_bytes(const tess_op *op);

/* NULL: the op has no bias. */
static inline const float *tess_cuda_bias(const tess_op *op, const tess_op_buffers *buffers)
{
    return op->bias ? (const float *)((const char *)buffers->weights + tess_cuda_bias_at(op)) : NULL;
}

static inline cudaStream_t tess_cuda_stream(tess_stream *stream)
{
    return (cudaStream_t)stream;
}

/* The launchers that a file of kernels exports to its row (core/rows.c). Results do not depend on where a
 * window starts, but kernels differ in the order of their sums. */
typedef struct tess_cuda_launch {
    /* NULL if these kernels can do the op on this card, else the reason. */
    const char *(*refuses)(const tess_op *op, int capability);
    cudaError_t (*run)(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
    /* Loads all kernels when the card is opened, so that no later call waits for it; may be NULL. */
    cudaError_t (*load)(int capability);
    /* Bytes of workspace that `run` needs; SIZE_MAX: `prepare` will fail and give the reason. NULL: none. */
    size_t (*workspace)(const tess_op *op);
    /* For kernels that keep a handle for each op: `run_prepared` is called with it instead of `run`. NULL:
     * none. */
    tess_status (*prepare)(const tess_op *op, void **handle, tess_error *error);
    void (*release)(void *handle);
    tess_status (*run_prepared)(void *handle, const tess_op *op, const tess_op_buffers *buffers,
                                cudaStream_t stream, tess_error *error);
} tess_cuda_launch;

extern const tess_cuda_launch tess_cuda_generic; /* generic.cu: every layer, on any card, not tuned */
extern const tess_cuda_launch tess_cuda_samples; /* samples.cu: IMPORT and EXPORT */
extern const tess_cuda_launch tess_cuda_vector;  /* vector.cu: COMBINE, DOT and SPECTRUM */
extern const tess_cuda_launch tess_cuda_diffuse; /* diffuse.cu: SELECT and DIFFUSE */
extern const tess_cuda_launch tess_cuda_fft;     /* fft.c: FFT, by cuFFT */
/* filter.c: FFT and FILTER of images, by our own kernels. */
extern const tess_cuda_launch tess_cuda_filter;
extern const tess_cuda_launch tess_cuda_filter_whole; /* filter_whole.c: FILTER, by cuFFT */
extern const tess_cuda_launch tess_cuda_rays;     /* rays_launch.c: PROJECT, BACKPROJECT and FDK's steps */
extern const tess_cuda_launch tess_cuda_side_sum; /* side_sum.cu: SIDE_SUM */
/* attention_matrix.cu: ATTENTION of small heads in fp16 and bf16; attention.cu: every ATTENTION. */
extern const tess_cuda_launch tess_cuda_attention_matrix, tess_cuda_attention;
extern const tess_cuda_launch tess_cuda_conv_grad;   /* conv_grad.c: CONV_GRAD, on any card */
extern const tess_cuda_launch tess_cuda_flip;        /* flip.cu: FLIP */
extern const tess_cuda_launch tess_cuda_channel_sum; /* channel_sum.cu: CHANNEL_SUM */
/* train/: pointwise_grad.cu: ACTIVATE_GRAD, POOL_GRAD, UPSAMPLE_GRAD, AVERAGE_POOL and its gradient, DROPOUT; noise.cu: NOISE; loss.cu: LOSS;
 * optimize.cu: OPTIMIZE, AVERAGE. */
extern const tess_cuda_launch tess_cuda_pointwise_grad, tess_cuda_noise, tess_cuda_loss, tess_cuda_loss_rms,
    tess_cuda_optimize;
/* norm/, attention/: BATCH_NORM_TRAIN and BATCH_NORM_GRAD, GROUP_NORM_GRAD, ATTENTION_GRAD. */
extern const tess_cuda_launch tess_cuda_batch_norm, tess_cuda_group_norm_grad, tess_cuda_attention_grad;
/* Pipelines: channel_map.cu: CHANNEL_MAP and its gradient; channel_dot.cu: CHANNEL_DOT and its gradient; penalty.cu: PENALTY;
 * loss_iou.cu: LOSS of kind IOU. */
extern const tess_cuda_launch tess_cuda_channel_map, tess_cuda_channel_dot, tess_cuda_penalty,
    tess_cuda_loss_iou;
/* statistics/: moments.cu: MOMENTS; score.cu: SCORE; local_rx.cu: LOCAL_RX. */
extern const tess_cuda_launch tess_cuda_moments, tess_cuda_score, tess_cuda_local_rx;
/* hopper*.cu: wgmma and bulk copies, sm_90a. A weak symbol, NULL in a build without it. */
extern const tess_cuda_launch tess_cuda_hopper;

/* pack.cu: packs rows [first, first+count) of a weight tensor, given as fp32 in the card's memory; the second packs a
 * list of whole parameters, in as few launches as possible. */
cudaError_t tess_cuda_pack(const tess_op *op, int param, int64_t first, int64_t count, const float *values,
                           void *packed, cudaStream_t stream);
cudaError_t tess_cuda_repack(const tess_repack *list, int count, cudaStream_t stream);
/* fill.cu: writes small values of both signs, the same at every call. */
cudaError_t tess_cuda_fill(void *data, size_t bytes, tess_dtype dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
