/* The sum that constant side slices of a 3-D kernel add to every output channel: first every pixel's channels, then
 * windows of those sums in the neighbour slices. In fp64 registers, because hundreds of values that may cancel come
 * together; the order of a sum follows from the channels and the window alone.
 *
 * The first kernel reads all there is, and waits for memory: eight lanes share a pixel, each takes 16 bytes of it at
 * a time, and a warp takes four neighbours. The second has one thread a pixel. */
#include "cuda/cuda.h"
#include "cuda/values.cuh"

namespace
{

enum { THREADS = 256, LANES = 8 };
const int64_t MOST = (int64_t)1 << 20; /* blocks; more pixels go round */

struct side_job {
    tess_tensor in, out;
    int64_t pixels;
    int reach[TESS_SPATIAL];
    double value;
    const void *from;
    float *sums; /* of the channels, [n][d][h][w] */
    float *to;
};

/* The place of a pixel, counted over all images; row by row, as the sums lie. */
struct place {
    int64_t n, z, y, x;

    __device__ __forceinline__ place(const tess_tensor &t, int64_t pixel)
    {
        const int64_t line = pixel / t.w, slice = line / t.h;
        x = pixel - line * t.w;
        y = line - slice * t.h;
        n = slice / t.d;
        z = slice - n * t.d;
    }

    __device__ __forceinline__ int64_t in(const tess_tensor &t) const
    {
        return n * t.stride_n + z * t.stride_d + y * t.stride_h + x * t.stride_w;
    }
};

template <typename T, bool WIDE>
__device__ __forceinline__ double sum_of_lane(const T *pixel, int lane, int64_t channels)
{
    constexpr int PIECE = 16 / (int)sizeof(T);
    double sum = 0;
    for (int64_t c = (int64_t)lane * PIECE; c < channels; c += LANES * PIECE) {
        float values[PIECE];
        if (WIDE)
            tess_load<PIECE>(pixel + c, values);
        else
#pragma unroll
            for (int i = 0; i < PIECE; i++)
                values[i] = c + i < channels ? tess_value(pixel[c + i]) : 0.0f;
#pragma unroll
        for (int i = 0; i < PIECE; i++)
            sum += values[i];
    }
    return sum;
}

template <typename T, bool WIDE>
__global__ void __launch_bounds__(THREADS) channels_kernel(const __grid_constant__ side_job job)
{
    const int lane = threadIdx.x % LANES;
    const int64_t group = threadIdx.x / LANES, groups = THREADS / LANES;
    /* All threads of a block go round alike: lanes whose pixel is behind the last one help to exchange sums. */
    for (int64_t first = blockIdx.x * groups; first < job.pixels; first += gridDim.x * groups) {
        const int64_t pixel = first + group;
        double sum = 0;
        if (pixel < job.pixels)
            sum = sum_of_lane<T, WIDE>((const T *)job.from + place(job.in, pixel).in(job.in), lane, job.in.c);
#pragma unroll
        for (int other = LANES / 2; other > 0; other /= 2)
            sum += __shfl_xor_sync(~0u, sum, other);
        if (pixel < job.pixels && lane == 0)
            job.sums[pixel] = (float)sum;
    }
}

__global__ void __launch_bounds__(THREADS) window_kernel(const __grid_constant__ side_job job)
{
    const tess_tensor &in = job.in;
    for (int64_t pixel = (int64_t)blockIdx.x * THREADS + threadIdx.x; pixel < job.pixels;
         pixel += (int64_t)gridDim.x * THREADS) {
        const place p(in, pixel);
        double sum = 0;
        for (int dz = -job.reach[TESS_DEPTH]; dz <= job.reach[TESS_DEPTH]; dz++) {
            if (dz == 0 || p.z + dz < 0 || p.z + dz >= in.d)
                continue;
            for (int dy = -job.reach[TESS_HEIGHT]; dy <= job.reach[TESS_HEIGHT]; dy++) {
                if (p.y + dy < 0 || p.y + dy >= in.h)
                    continue;
                const float *row = job.sums + pixel + (dz * in.h + dy) * in.w;
                for (int dx = -job.reach[TESS_WIDTH]; dx <= job.reach[TESS_WIDTH]; dx++)
                    if (p.x + dx >= 0 && p.x + dx < in.w)
                        sum += row[dx];
            }
        }
        job.to[p.in(job.out)] = (float)(job.value * sum);
    }
}

template <typename T> cudaError_t launch(const side_job &job, cudaStream_t stream)
{
    constexpr int PIECE = 16 / (int)sizeof(T);
    const tess_tensor *t = &job.in;
    const bool wide = t->c % PIECE == 0 && t->stride_n % PIECE == 0 && t->stride_d % PIECE == 0 &&
                      t->stride_h % PIECE == 0 && t->stride_w % PIECE == 0 && (uintptr_t)job.from % 16 == 0;
    const int64_t groups = THREADS / LANES, channel_blocks = (job.pixels + groups - 1) / groups,
                  window_blocks = (job.pixels + THREADS - 1) / THREADS;
    const unsigned first = (unsigned)(channel_blocks < MOST ? channel_blocks : MOST),
                   second = (unsigned)(window_blocks < MOST ? window_blocks : MOST);
    if (wide)
        channels_kernel<T, true><<<first, THREADS, 0, stream>>>(job);
    else
        channels_kernel<T, false><<<first, THREADS, 0, stream>>>(job);
    window_kernel<<<second, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

int64_t pixels_of(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w;
}

size_t workspace(const tess_op *op)
{
    return (size_t)pixels_of(&op->in) * sizeof(float);
}

const char *refuses(const tess_op *op, int)
{
    if (op->kind != TESS_OP_SIDE_SUM)
        return "not a sum of side slices";
    if (op->in.dtype != TESS_F32 && op->in.dtype != TESS_F16 && op->in.dtype != TESS_BF16)
        return "values are fp32, fp16 or bf16";
    if (op->out.dtype != TESS_F32 || op->out.c != 1 || op->residuals)
        return "a sum of side slices is one fp32 channel";
    if (op->in.n != op->out.n || op->in.d != op->out.d || op->in.h != op->out.h || op->in.w != op->out.w)
        return "a sum of side slices has the size of what it sums";
    for (int s = 0; s < TESS_SPATIAL; s++)
        if (op->kernel[s] % 2 == 0 || op->stride[s] > 1)
            return "a sum of side slices has odd kernels and no strides";
    return NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    side_job job = {};
    job.in = op->in;
    job.out = op->out;
    job.pixels = pixels_of(&op->in);
    for (int s = 0; s < TESS_SPATIAL; s++)
        job.reach[s] = op->kernel[s] / 2;
    job.value = op->side.value;
    job.from = buffers->in;
    job.sums = (float *)buffers->workspace;
    job.to = (float *)buffers->out;
    switch (op->in.dtype) {
    case TESS_F16:
        return launch<__half>(job, stream);
    case TESS_BF16:
        return launch<__nv_bfloat16>(job, stream);
    default:
        return launch<float>(job, stream);
    }
}

} // namespace

extern "C" const tess_cuda_engine tess_cuda_side_sum = {"side sum", refuses, run,  NULL,
                                                        workspace,  NULL,    NULL, NULL};
