/* The sum that constant side slices of a 3-D kernel add to every output channel. The first kernel sums the
 * channels of each pixel; the second sums windows of these sums in the neighbouring slices. Sums are in fp64
 * registers, because hundreds of values may cancel; their order depends only on the channels and the window.
 *
 * The first kernel reads the whole input and is memory-bound: eight lanes share a pixel, each reads 16 bytes
 * at a time, and a warp processes four neighbouring pixels. The second kernel uses one thread per pixel. */
#include "cuda/core/cuda.h"
#include "cuda/core/values.cuh"

namespace
{

enum { THREADS = 256, LANES = 8, GROUPS = THREADS / LANES, ROWS = 8 };
const int64_t MOST = 65535; /* limit of the grid in y and z */

/* Grid: x over the pixels of a row, y over groups of ROWS rows, z over the slices of all volumes. 64-bit
 * divisions to find a position, or blocks of one row, would cost more time than the reads. */
struct side_job {
    tess_tensor in, out;
    int64_t slices;
    int reach[TESS_SPATIAL];
    double value;
    const void *from;
    float *sums; /* sums of channels, [n][d][h][w] */
    float *to;
};

template <typename T, bool WIDE>
__device__ __forceinline__ double sum_of_lane(const T *pixel, int lane, int64_t channels)
{
    constexpr int PIECE = 16 / (int)sizeof(T);
    double sum = 0;
    for (int64_t c = (int64_t)lane * PIECE; c < channels; c += LANES * PIECE) {
        float values[PIECE], few = 0;
        if (WIDE)
            tess_load<PIECE>(pixel + c, values);
        else
#pragma unroll
            for (int i = 0; i < PIECE; i++)
                values[i] = c + i < channels ? tess_value(pixel[c + i]) : 0.0f;
#pragma unroll
        for (int i = 0; i < PIECE; i++)
            few += values[i];
        sum += few;
    }
    return sum;
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(THREADS) channels_kernel(const __grid_constant__ side_job job)
{
    const tess_tensor &in = job.in;
    const int lane = threadIdx.x % LANES;
    const int64_t x = (int64_t)blockIdx.x * GROUPS + threadIdx.x / LANES;
    for (int64_t slice = blockIdx.z; slice < job.slices; slice += gridDim.z) {
        const int64_t n = (unsigned)slice / (unsigned)in.d, z = slice - n * in.d;
        const T *from = (const T *)job.from + n * in.stride_n + z * in.stride_d + x * in.stride_w;
        for (int64_t top = (int64_t)blockIdx.y * ROWS; top < in.h; top += (int64_t)gridDim.y * ROWS) {
            double sums[ROWS]; /* all rows are read before the exchange, to have many reads in progress */
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int64_t y = top + i;
                sums[i] = x < in.w && y < in.h ? sum_of_lane<T, WIDE>(from + y * in.stride_h, lane, in.c) : 0;
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
#pragma unroll
                for (int other = LANES / 2; other > 0; other /= 2)
                    sums[i] += __shfl_xor_sync(~0u, sums[i], other);
                if (x < in.w && top + i < in.h && lane == 0)
                    job.sums[(slice * in.h + top + i) * in.w + x] = (float)sums[i];
            }
        }
    }
}

/* Sums one row of the window over all slices but its own. REACH: in every direction, or -1: from the job. */
template <int REACH>
__device__ __forceinline__ double row_sum(const side_job &job, int64_t slice, int64_t z, int64_t y, int64_t x)
{
    const tess_tensor &in = job.in;
    const int deep = REACH >= 0 ? REACH : job.reach[TESS_DEPTH],
              wide = REACH >= 0 ? REACH : job.reach[TESS_WIDTH];
    double sum = 0;
    if (y < 0 || y >= in.h)
        return 0;
#pragma unroll
    for (int dz = -deep; dz <= deep; dz++) {
        if (dz == 0 || z + dz < 0 || z + dz >= in.d)
            continue;
        const float *row = job.sums + ((slice + dz) * in.h + y) * in.w + x;
#pragma unroll
        for (int dx = -wide; dx <= wide; dx++)
            if (x + dx >= 0 && x + dx < in.w)
                sum += row[dx];
    }
    return sum;
}

/* A window is the sum of its rows, from top to bottom. For 3 x 3 x 3, each row is summed once for the three
 * windows that contain it. */
template <int REACH>
__global__ void __launch_bounds__(THREADS) window_kernel(const __grid_constant__ side_job job)
{
    const tess_tensor &in = job.in, &out = job.out;
    const int64_t x = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (x >= in.w)
        return;
    for (int64_t slice = blockIdx.z; slice < job.slices; slice += gridDim.z) {
        const int64_t n = (unsigned)slice / (unsigned)in.d, z = slice - n * in.d;
        float *to = job.to + n * out.stride_n + z * out.stride_d + x * out.stride_w;
        for (int64_t top = (int64_t)blockIdx.y * ROWS; top < in.h; top += (int64_t)gridDim.y * ROWS) {
            double above = 0, here = 0;
            if (REACH == 1) {
                above = row_sum<REACH>(job, slice, z, top - 1, x);
                here = row_sum<REACH>(job, slice, z, top, x);
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const int64_t y = top + i;
                double sum = 0;
                if (REACH == 1) {
                    const double below = row_sum<REACH>(job, slice, z, y + 1, x);
                    sum = above + here + below;
                    above = here;
                    here = below;
                } else {
                    for (int dy = -job.reach[TESS_HEIGHT]; dy <= job.reach[TESS_HEIGHT]; dy++)
                        sum += row_sum<REACH>(job, slice, z, y + dy, x);
                }
                if (y < in.h)
                    to[y * out.stride_h] = (float)(job.value * sum);
            }
        }
    }
}

template <typename T> cudaError_t launch(const side_job &job, cudaStream_t stream)
{
    constexpr int PIECE = 16 / (int)sizeof(T);
    const tess_tensor *t = &job.in;
    const bool wide = t->c % PIECE == 0 && t->stride_n % PIECE == 0 && t->stride_d % PIECE == 0 &&
                      t->stride_h % PIECE == 0 && t->stride_w % PIECE == 0 && (uintptr_t)job.from % 16 == 0;
    const int64_t strips = (t->h + ROWS - 1) / ROWS;
    const unsigned rows = (unsigned)(strips < MOST ? strips : MOST),
                   slices = (unsigned)(job.slices < MOST ? job.slices : MOST);
    const dim3 first((unsigned)((t->w + GROUPS - 1) / GROUPS), rows, slices),
        second((unsigned)((t->w + THREADS - 1) / THREADS), rows, slices);
    if (wide)
        channels_kernel<T, true><<<first, THREADS, 0, stream>>>(job);
    else
        channels_kernel<T, false><<<first, THREADS, 0, stream>>>(job);
    if (job.reach[TESS_DEPTH] == 1 && job.reach[TESS_HEIGHT] == 1 && job.reach[TESS_WIDTH] == 1)
        window_kernel<1><<<second, THREADS, 0, stream>>>(job);
    else
        window_kernel<-1><<<second, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

size_t workspace(const tess_op *op)
{
    return (size_t)(op->in[0].n * op->in[0].d * op->in[0].h * op->in[0].w) * sizeof(float);
}

const char *refuses(const tess_op *op, int)
{
    if (op->kind != TESS_OP_SIDE_SUM)
        return "not a sum of side slices";
    if (op->in[0].dtype != TESS_F32 && op->in[0].dtype != TESS_F16 && op->in[0].dtype != TESS_BF16)
        return "values are fp32, fp16 or bf16";
    if (op->out[0].dtype != TESS_F32 || op->out[0].c != 1 || tess_op_residuals(op))
        return "a sum of side slices is one fp32 channel";
    if (op->in[0].n * op->in[0].d > INT32_MAX)
        return "takes fewer slices at once";
    if (op->in[0].n != op->out[0].n || op->in[0].d != op->out[0].d || op->in[0].h != op->out[0].h ||
        op->in[0].w != op->out[0].w)
        return "a sum of side slices has the size of what it sums";
    if (op->side.sums)
        return "has no sums of channels alone";
    for (int s = 0; s < TESS_SPATIAL; s++)
        if (op->kernel[s] % 2 == 0 || op->stride[s] > 1)
            return "a sum of side slices has odd kernels and no strides";
    return NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    side_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.slices = op->in[0].n * op->in[0].d;
    for (int s = 0; s < TESS_SPATIAL; s++)
        job.reach[s] = op->kernel[s] / 2;
    job.value = op->side.value;
    job.from = buffers->in[0];
    job.sums = (float *)buffers->workspace;
    job.to = (float *)buffers->out[0];
    switch (op->in[0].dtype) {
    case TESS_F16:
        return launch<__half>(job, stream);
    case TESS_BF16:
        return launch<__nv_bfloat16>(job, stream);
    default:
        return launch<float>(job, stream);
    }
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_side_sum = {refuses, run, NULL, workspace};
