/* conv_grad.h: the gradient of a convolution's parameters, CONV_GRAD, as a matrix product: rows are output channels,
 * columns are taps and, within a tap, input channels; the sum runs over pixels. It is divided over pixels into parts. */
#ifndef TESS_CUDA_CONVGRAD_CONV_GRAD_H
#define TESS_CUDA_CONVGRAD_CONV_GRAD_H

#include "cuda/convgrad/sums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel without copies by tensor maps needs to know. */
typedef struct tess_grad_job {
    int64_t pixels, per_part; /* of the output's gradient; per_part: a multiple of the kernel's step */
    unsigned w, h;
    int in_h, in_w, cin, cout, taps, kw, columns;
    int64_t in_n, in_y, in_x, dy_n, dy_y, dy_x; /* strides */
    int stride_y, stride_x, top, left;
    int parts;
    bool wide_in, wide_dy; /* 16 bytes of neighbouring channels can be read at once */
    const void *in, *dy;
    float *partials; /* [part][cout][taps][cin] */
} tess_grad_job;

/* The checks that all rows share; NULL if the op is well formed. */
const char *tess_cuda_conv_grad_refuses(const tess_op *op);
/* The type of its products: that of the 16-bit input, else fp32. */
tess_dtype tess_cuda_conv_grad_type(const tess_op *op);

/* grad_matrix.cu: fp16 and bf16, by matrix instructions; an fp32 input is split into two 16-bit numbers. */
cudaError_t tess_cuda_grad_matrix(const tess_op *op, const tess_grad_job *job, cudaStream_t stream);
/* grad_float.cu: fp32. */
cudaError_t tess_cuda_grad_float(const tess_grad_job *job, cudaStream_t stream);
/* pixels_grad.cu: fp32, one tap, few channels that are no multiples of 8: sums and all; bytes of workspace. */
bool tess_cuda_pixels_grad_fits(const tess_op *op);
size_t tess_cuda_pixels_grad_bytes(const tess_op *op);
cudaError_t tess_cuda_pixels_grad(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
