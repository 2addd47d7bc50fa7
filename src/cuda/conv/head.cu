/* The first layer of a network: up to four channels of an image to 32, 64, ... It is bound by writing its
 * output. The sum over taps and channels (four per tap, missing ones zero) is done by matrix products. An fp32
 * image is split into a high and a low part, so that it is not rounded to the network's type.
 *
 * A block of 8 warps computes 64 x 16 pixels from a tile of the image in shared memory; a warp computes 16
 * pixels at a time with the weights in registers. The order of columns gives each lane eight neighbouring
 * output channels of 32, so that it writes 16 bytes at once. */
#include "cuda/conv/generic.h"
#include "cuda/conv/matrix.cuh"
#include "cuda/core/load.h"

namespace
{

enum { WIDE = 64, HIGH = 16, THREADS = 256, TAPS = 9, STEPS = 3, REACH = 2, GROUP = 32 };

struct head_job {
    tess_tensor in, out, residual[2], mask;
    int kh, kw, top, left, residuals;
    bool relu;
    const float *bias;
    const void *from, *weights, *more[2], *keep; /* keep NULL: no mask */
    void *to;
};

/* The output channel (of 32) in column `column` of product `product`. */
__device__ __forceinline__ int channel_of(int product, int column)
{
    return column / 2 * 8 + product * 2 + column % 2;
}

template <typename In, int W, int H>
__device__ __forceinline__ void bring(const head_job &job, int64_t n, int64_t y0, int64_t x0, float4 *tile)
{
    for (int i = threadIdx.x; i < W * H; i += THREADS) {
        const int64_t y = y0 + i / W, x = x0 + i % W;
        float v[4] = {0, 0, 0, 0};
        if (y >= 0 && y < job.in.h && x >= 0 && x < job.in.w) {
            const In *from =
                (const In *)job.from + n * job.in.stride_n + y * job.in.stride_h + x * job.in.stride_w;
#pragma unroll
            for (int c = 0; c < 4; c++)
                v[c] = c < job.in.c ? tess_value(from[c]) : 0.0f;
        }
        tile[i] = make_float4(v[0], v[1], v[2], v[3]);
    }
}

/* Weights [out][tap][in] of products 4 group..; rows are 4 tap + channel. */
template <typename T>
__device__ __forceinline__ void take_weights(const head_job &job, int64_t first, uint32_t b[STEPS][4][2])
{
    const int lane = threadIdx.x % 32, taps = job.kh * job.kw;
    const T zero = tess_rounded<T>(0);
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int p = 0; p < 4; p++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int64_t o = first + channel_of(p, lane / 4);
                T v[2];
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int k = 16 * s + 8 * half + 2 * (lane % 4) + e, tap = k / 4, c = k % 4;
                    v[e] = tap < taps && c < job.in.c
                               ? ((const T *)job.weights)[(o * taps + tap) * job.in.c + c]
                               : zero;
                }
                b[s][p][half] = tess_pair(v[0], v[1]);
            }
}

template <typename T> __device__ __forceinline__ void parts(float2 v, uint32_t &high, uint32_t &low)
{
    const T x = tess_rounded<T>(v.x), y = tess_rounded<T>(v.y);
    high = tess_pair(x, y);
    low = tess_pair(tess_rounded<T>(v.x - tess_value(x)), tess_rounded<T>(v.y - tess_value(y)));
}

/* Writes eight neighbouring channels of one pixel. */
template <typename T>
__device__ __forceinline__ void finish(const head_job &job, int64_t n, int64_t y, int64_t x, int64_t o,
                                       float *sums)
{
    if (y >= job.out.h || x >= job.out.w)
        return;
    if (job.bias)
#pragma unroll
        for (int i = 0; i < 8; i++)
            sums[i] += job.bias[o + i];
    for (int r = 0; r < job.residuals; r++) {
        const tess_tensor &t = job.residual[r];
        float more[8];
        tess_load<8>((const T *)job.more[r] + n * t.stride_n + y * t.stride_h + x * t.stride_w + o, more);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sums[i] += more[i];
    }
    if (job.relu)
#pragma unroll
        for (int i = 0; i < 8; i++)
            sums[i] = sums[i] < 0 ? 0 : sums[i];
    if (job.keep) {
        const tess_tensor &t = job.mask;
        float keep[8];
        tess_load<8>((const T *)job.keep + n * t.stride_n + y * t.stride_h + x * t.stride_w + o, keep);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sums[i] = keep[i] > 0 ? sums[i] : 0;
    }
    tess_store<8>((T *)job.to + n * job.out.stride_n + y * job.out.stride_h + x * job.out.stride_w + o, sums);
}

template <typename In, typename T, int GROUPS>
__global__ void __launch_bounds__(THREADS) head_kernel(head_job job)
{
    constexpr int W = WIDE + REACH, H = HIGH + REACH;
    __shared__ float4 tile[W * H];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32,
              blocks_of = (int)(job.out.c / (GROUP * GROUPS));
    const int64_t n = blockIdx.z / blocks_of, first = (int64_t)(blockIdx.z % blocks_of) * GROUP * GROUPS;
    const int64_t y0 = (int64_t)blockIdx.y * HIGH, x0 = (int64_t)blockIdx.x * WIDE;
    bring<In, W, H>(job, n, y0 - job.top, x0 - job.left, tile);
    uint32_t b[GROUPS][STEPS][4][2];
#pragma unroll
    for (int q = 0; q < GROUPS; q++)
        take_weights<T>(job, first + q * GROUP, b[q]);
    /* Positions of this lane's taps in the tile; taps that do not exist have zero weights. */
    int offset[STEPS][2];
#pragma unroll
    for (int s = 0; s < STEPS; s++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int tap = 4 * s + 2 * half + lane % 4 / 2;
            offset[s][half] = tap < job.kh * job.kw ? tap / job.kw * W + tap % job.kw : 0;
        }
    __syncthreads();
    for (int strip = warp; strip < HIGH * WIDE / 16; strip += THREADS / 32) {
        const int row = strip / (WIDE / 16), column = strip % (WIDE / 16) * 16;
        if (y0 + row >= job.out.h || x0 + column >= job.out.w)
            continue;
        const float2 *pixel = (const float2 *)(tile + row * W + column + lane / 4) + lane % 2;
        float sums[GROUPS][4][4] = {};
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            uint32_t high[4], low[4];
#pragma unroll
            for (int i = 0; i < 4; i++) /* rows g, g + 8 of the first eight columns, then of the next eight */
                parts<T>(pixel[2 * (offset[s][i / 2] + i % 2 * 8)], high[i], low[i]);
#pragma unroll
            for (int q = 0; q < GROUPS; q++)
#pragma unroll
                for (int p = 0; p < 4; p++) {
                    tess_matrix_add<T>(sums[q][p], high, b[q][s][p]);
                    if (sizeof(In) == 4)
                        tess_matrix_add<T>(sums[q][p], low, b[q][s][p]);
                }
        }
#pragma unroll
        for (int q = 0; q < GROUPS; q++)
#pragma unroll
            for (int g = 0; g < 2; g++) {
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; i++)
                    v[i] = sums[q][i / 2][2 * g + i % 2];
                finish<T>(job, n, y0 + row, x0 + column + lane / 4 + 8 * g, first + q * GROUP + lane % 4 * 8,
                          v);
            }
    }
}

template <typename In, typename T, int GROUPS> void launch(const head_job &job, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((job.out.w + WIDE - 1) / WIDE), (unsigned)((job.out.h + HIGH - 1) / HIGH),
                      (unsigned)(job.out.n * (job.out.c / (GROUP * GROUPS))));
    head_kernel<In, T, GROUPS><<<blocks, THREADS, 0, stream>>>(job);
}

template <typename T> void launch_ends(const tess_op *op, const head_job &job, cudaStream_t stream)
{
    const bool image = op->in[0].dtype == TESS_F32;
    if (op->out[0].c % (2 * GROUP) == 0)
        image ? launch<float, T, 2>(job, stream) : launch<T, T, 2>(job, stream);
    else
        image ? launch<float, T, 1>(job, stream) : launch<T, T, 1>(job, stream);
}

template <typename T, int GROUPS> cudaError_t load(void)
{
    return tess_cuda_load((const void *)head_kernel<float, T, GROUPS>, 0);
}

bool by_eight(const tess_tensor *t)
{
    return t->stride_n % 8 == 0 && t->stride_h % 8 == 0 && t->stride_w % 8 == 0;
}

} // namespace

extern "C" bool tess_cuda_head_fits(const tess_op *op)
{
    bool fits = op->kind == TESS_OP_CONV && op->out[0].dtype != TESS_F32 && op->in[0].c <= 4 &&
                op->out[0].c % GROUP == 0 && op->kernel[TESS_HEIGHT] <= REACH + 1 &&
                op->kernel[TESS_WIDTH] <= REACH + 1 && op->stride[TESS_HEIGHT] == 1 &&
                op->stride[TESS_WIDTH] == 1 && by_eight(&op->out[0]) &&
                op->out[0].n * (op->out[0].c / GROUP) <= 65535 && op->out[0].h <= 65535 * (int64_t)HIGH;
    for (int r = 0; r < tess_op_residuals(op); r++)
        fits = fits && by_eight(&op->in[1 + r]);
    return fits && (!op->masked || by_eight(tess_op_mask(op)));
}

extern "C" cudaError_t tess_cuda_head_load(void)
{
    cudaError_t (*const kernels[])(void) = {load<__half, 1>, load<__half, 2>, load<__nv_bfloat16, 1>,
                                            load<__nv_bfloat16, 2>};
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < 4 && result == cudaSuccess; i++)
        result = kernels[i]();
    return result;
}

extern "C" cudaError_t tess_cuda_head(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    head_job job = {};
    bool aligned = (uintptr_t)b->out[0] % 16 == 0;
    job.in = op->in[0];
    job.out = op->out[0];
    job.kh = op->kernel[TESS_HEIGHT];
    job.kw = op->kernel[TESS_WIDTH];
    job.top = op->pad_before[TESS_HEIGHT];
    job.left = op->pad_before[TESS_WIDTH];
    job.relu = tess_op_relu(op);
    job.bias = tess_cuda_bias(op, b);
    job.from = b->in[0];
    job.to = b->out[0];
    job.weights = b->weights;
    job.residuals = tess_op_residuals(op);
    for (int r = 0; r < tess_op_residuals(op); r++) {
        job.residual[r] = op->in[1 + r];
        job.more[r] = b->in[1 + r];
        aligned = aligned && (uintptr_t)b->in[1 + r] % 16 == 0;
    }
    if (op->masked) {
        job.mask = *tess_op_mask(op);
        job.keep = b->in[op->inputs - 1];
        aligned = aligned && (uintptr_t)job.keep % 16 == 0;
    }
    if (!aligned)
        return cudaErrorInvalidValue;
    if (tess_op_precision(op) == TESS_F16)
        launch_ends<__half>(op, job, stream);
    else
        launch_ends<__nv_bfloat16>(op, job, stream);
    return cudaGetLastError();
}
