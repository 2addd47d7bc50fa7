/* conv.cuh: shared by the kernels without matrix instructions (conv.cu, conv_float.cu): a convolution as rows
 * of pixels times columns of output channels, and the end of each sum. Both kernels add in the same order
 * (taps, then channels), so the choice between them affects only the time. */
#ifndef TESS_CUDA_CONV_CUH
#define TESS_CUDA_CONV_CUH

#include "cuda/conv/generic.h"
#include "cuda/core/values.cuh"

typedef struct tess_conv_job {
    int64_t pixels, h, w; /* the grid of rows: output pixels, or input pixels if transposed */
    int64_t in_h, in_w, cin, cout;
    int64_t in_n, in_y, in_x; /* strides of the input */
    int64_t out_n, out_y, out_x;
    int64_t res_n[2], res_y[2], res_x[2];
    int64_t mask_n, mask_y, mask_x;
    int kh, kw, stride_y, stride_x, top, left; /* transposed: one tap, no padding */
    int spread_y, spread_x;                    /* output pixels per grid pixel: 1, or the stride */
    int residuals;
    bool relu, wide_in, wide_out, wide_weights; /* wide: four neighbours in one instruction */
    const float *bias;
    const void *in, *weights, *residual[2], *mask; /* mask NULL: none */
    void *out;
} tess_conv_job;

/* conv_float.cu */
extern "C" bool tess_cuda_conv_float_fits(const tess_conv_job *job);
extern "C" cudaError_t tess_cuda_conv_float(const tess_conv_job *job, cudaStream_t stream);

/* Reads four channels from c on; zero beyond the last. */
template <typename T>
__device__ __forceinline__ void tess_four(const T *from, int64_t c, int64_t channels, bool wide,
                                          float *values)
{
    if (wide) {
        if (c < channels) {
            tess_load<4>(from + c, values);
            return;
        }
        values[0] = values[1] = values[2] = values[3] = 0;
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        values[i] = c + i < channels ? tess_value(from[c + i]) : 0.0f;
}

/* Finishes four neighbouring sums: bias, residuals, ReLU, mask, rounding. */
template <typename Out>
__device__ __forceinline__ void tess_conv_finish(const tess_conv_job &job, int64_t n, int64_t y, int64_t x,
                                                 int64_t o, float *sums)
{
    if (o >= job.cout)
        return;
    const int many = job.cout - o < 4 ? (int)(job.cout - o) : 4;
    if (job.bias)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[i] += i < many ? job.bias[o + i] : 0.0f;
    for (int r = 0; r < job.residuals; r++) {
        float more[4];
        tess_four((const Out *)job.residual[r] + n * job.res_n[r] + y * job.res_y[r] + x * job.res_x[r], o,
                  job.cout, job.wide_out, more);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[i] += more[i];
    }
    if (job.relu)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[i] = sums[i] < 0 ? 0 : sums[i];
    if (job.mask) {
        float keep[4];
        tess_four((const Out *)job.mask + n * job.mask_n + y * job.mask_y + x * job.mask_x, o, job.cout,
                  job.wide_out, keep);
#pragma unroll
        for (int i = 0; i < 4; i++)
            sums[i] = keep[i] > 0 ? sums[i] : 0;
    }
    Out *to = (Out *)job.out + n * job.out_n + y * job.out_y + x * job.out_x + o;
    if (job.wide_out)
        tess_store<4>(to, sums);
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < many)
                to[i] = tess_rounded<Out>(sums[i]);
}

#endif
