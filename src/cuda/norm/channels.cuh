/* channels.cuh: two sums for every channel over the pixels of parts of an image, at the speed of memory.
 *
 * A thread has a piece of N channels, 16 bytes if the tensors allow it (else one value), the same for all its pixels:
 * thread t of a block has piece t % across and every lanes-th pixel. Grid: x over parts, y over blocks of pieces if one
 * is not enough, z over images. What is summed is up to the class ADD, which adds a batch of pixels at once, in fp32
 * within the batch and in fp64 beyond. The parts of an image depend only on its size, and so does the order of every
 * sum. */
#ifndef TESS_CUDA_CHANNELS_CUH
#define TESS_CUDA_CHANNELS_CUH

#include "cuda/core/tensors.cuh"

namespace
{

enum { TESS_CHANNEL_THREADS = 256, TESS_CHANNEL_BATCH = 8 };
const unsigned TESS_CHANNEL_IMAGES = 65535; /* limit of the grid in z */

struct channel_grid {
    int64_t images, pixels, channels; /* pixels per image */
    unsigned parts;
    unsigned pieces, across, lanes; /* pieces per pixel, pieces per block, pixels side by side in a block */
    double *sums;                   /* [image][part][first, second][channel] */
};

/* The piece of a thread; mine: it has one. */
struct channel_thread {
    unsigned lane, piece;
    bool mine;
};

__device__ __forceinline__ channel_thread channel_thread_of(const channel_grid &grid)
{
    const unsigned lane = threadIdx.x / grid.across,
                   piece = blockIdx.y * grid.across + threadIdx.x % grid.across;
    return channel_thread{lane, piece, lane < grid.lanes && piece < grid.pieces};
}

/* Sums all pixels of a thread. ADD(job, n, c).batch(pixel, count, first, second) adds `count` pixels, `lanes` apart. */
template <class ADD, class JOB, int N>
__device__ __forceinline__ void add_part(const JOB &job, int64_t n, int64_t c, int64_t pixel, int64_t end,
                                         double *first, double *second)
{
    const ADD add(job, n, c);
    const unsigned lanes = job.grid.lanes;
    const int64_t step = (int64_t)ADD::BATCH * lanes;
    for (; pixel + step - lanes < end; pixel += step)
        add.batch(job, pixel, ADD::BATCH, first, second);
    if (pixel < end)
        add.batch(job, pixel, (int)((end - pixel + lanes - 1) / lanes), first, second);
}

template <class ADD, class JOB, int N>
__global__ void __launch_bounds__(TESS_CHANNEL_THREADS) sum_kernel(const __grid_constant__ JOB job)
{
    __shared__ double shared[2 * N][TESS_CHANNEL_THREADS];
    const channel_grid &grid = job.grid;
    const channel_thread t = channel_thread_of(grid);
    const int64_t begin = blockIdx.x * grid.pixels / grid.parts,
                  end = (blockIdx.x + 1) * grid.pixels / grid.parts, c = (int64_t)t.piece * N;
    for (int64_t n = blockIdx.z; n < grid.images; n += gridDim.z) {
        double first[N] = {}, second[N] = {};
        if (t.mine)
            add_part<ADD, JOB, N>(job, n, c, begin + t.lane, end, first, second);
#pragma unroll
        for (int i = 0; i < N; i++) {
            shared[i][threadIdx.x] = first[i];
            shared[N + i][threadIdx.x] = second[i];
        }
        __syncthreads();
        for (unsigned step = 1; step < grid.lanes; step *= 2) {
            if (t.mine && t.lane % (2 * step) == 0 && t.lane + step < grid.lanes)
#pragma unroll
                for (int i = 0; i < 2 * N; i++)
                    shared[i][threadIdx.x] += shared[i][threadIdx.x + step * grid.across];
            __syncthreads();
        }
        double *to = grid.sums + (n * grid.parts + blockIdx.x) * 2 * grid.channels + c;
        if (t.mine && t.lane == 0)
#pragma unroll
            for (int i = 0; i < N; i++) {
                to[i] = shared[i][threadIdx.x];
                to[grid.channels + i] = shared[N + i][threadIdx.x];
            }
        __syncthreads();
    }
}

/* Sums of values and of squares. A batch is summed relative to its first pixel, so that neither a large mean nor an
 * outlier costs precision. */
template <class JOB, typename T, int N> struct add_squares {
    enum { BATCH = TESS_CHANNEL_BATCH };
    const int64_t n, c;
    __device__ __forceinline__ add_squares(const JOB &, int64_t image, int64_t channel) : n(image), c(channel)
    {
    }
    __device__ __forceinline__ void batch(const JOB &job, int64_t pixel, int count, double *value,
                                          double *square) const
    {
        float values[BATCH][N], v[N], q[N];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (b < count)
                tess_load<N>((const T *)job.from + c +
                                 tess_place(job.in, job.flat_in, n, pixel + (int64_t)b * job.grid.lanes),
                             values[b]);
#pragma unroll
        for (int i = 0; i < N; i++) {
            v[i] = q[i] = 0;
#pragma unroll
            for (int b = 1; b < BATCH; b++) {
                const float d = b < count ? values[b][i] - values[0][i] : 0;
                v[i] += d;
                q[i] += d * d;
            }
            const double f = values[0][i], all = count * f, d = v[i];
            value[i] += d + all;
            square[i] += (double)q[i] + f * (2 * d + all);
        }
    }
};

/* Shares the threads of a block among the pieces of a pixel. */
inline void channel_grid_share(channel_grid *grid, int piece)
{
    grid->pieces = (unsigned)(grid->channels / piece);
    grid->across = grid->pieces < TESS_CHANNEL_THREADS ? grid->pieces : (unsigned)TESS_CHANNEL_THREADS;
    grid->lanes = TESS_CHANNEL_THREADS / grid->across;
}

/* `along` blocks in x. */
inline dim3 channel_blocks(const channel_grid &grid, int64_t along)
{
    return dim3((unsigned)along, (grid.pieces + grid.across - 1) / grid.across,
                (unsigned)(grid.images < TESS_CHANNEL_IMAGES ? grid.images : TESS_CHANNEL_IMAGES));
}

/* Blocks whose threads have `batch` pixels each. */
inline dim3 channel_apply_blocks(const channel_grid &grid, int batch)
{
    const int64_t block = (int64_t)batch * grid.lanes;
    return channel_blocks(grid, (grid.pixels + block - 1) / block);
}

/* The parts of an image of so many pixels, at most `most`: a block has a batch for every thread, or more. */
inline unsigned channel_parts(const tess_tensor *t, int64_t pixels, int64_t most)
{
    const int64_t bytes = pixels * t->c * (int64_t)tess_dtype_size(t->dtype),
                  parts = bytes / (TESS_CHANNEL_THREADS * 16 * TESS_CHANNEL_BATCH);
    return (unsigned)(parts < 1 ? 1 : parts < most ? parts : most);
}

} // namespace

#endif
