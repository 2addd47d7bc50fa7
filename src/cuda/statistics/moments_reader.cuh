/* moments_reader.cuh: how a CTA brings pixels into shared memory as fp64 values around the shift. */
#ifndef TESS_CUDA_MOMENTS_READER_CUH
#define TESS_CUDA_MOMENTS_READER_CUH

#include <cuda/std/limits>

#include "cuda/statistics/moments.cuh"

namespace
{

enum { PIXELS = 16 }; /* of a stage */

constexpr int width_of(int strips)
{
    return strips * TESS_STRIP;
}

/* A warp's part in reading one tile's channels of PIXELS pixels. */
template <int STRIPS, int WARPS> struct reader {
    static constexpr int WIDTH = width_of(STRIPS), STRIDE = WIDTH + 4, COUNT = (WIDTH + 31) / 32,
                         ROWS = (PIXELS + WARPS - 1) / WARPS;
    const tess_moments_job &job;
    int first, warp, lane; /* first: channel of the tile */
    float value[ROWS][COUNT], shift[COUNT];
    float least = cuda::std::numeric_limits<float>::infinity(),
          largest = -cuda::std::numeric_limits<float>::infinity();
    unsigned there; /* bit r: row r is a pixel of the range */

    __device__ __forceinline__ reader(const tess_moments_job &j, int tile)
        : job(j), first(tile * WIDTH), warp((int)threadIdx.x / 32), lane((int)threadIdx.x % 32)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            shift[i] = is_channel(i) ? job.shift[first + lane + 32 * i] : 0;
    }

    __device__ __forceinline__ bool is_channel(int i) const
    {
        return lane + 32 * i < WIDTH && first + lane + 32 * i < job.plan.channels;
    }

    /* To registers. */
    __device__ __forceinline__ void read(int64_t pixel, int64_t end)
    {
        there = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int row = warp + r * WARPS;
            const int64_t p = pixel + row;
            if (row >= PIXELS || p >= end || (job.counts && !job.counts[p]))
                continue;
            there |= 1u << r;
            const float *from = job.from + tess_moments_place(job.in, job.flat, p) + first + lane;
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                value[r][i] = is_channel(i) ? __ldg(from + 32 * i) : 0;
        }
    }

    /* From registers to shared memory; rows that do not count are zero. */
    __device__ __forceinline__ void write(double *to)
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int row = warp + r * WARPS;
            if (row >= PIXELS)
                break;
            bool good = there >> r & 1;
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                good = good && (!is_channel(i) || isfinite(value[r][i]));
            good = __all_sync(0xffffffffu, good);
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                const int channel = lane + 32 * i;
                if (channel >= WIDTH)
                    break;
                double x = 0;
                if (good && is_channel(i)) {
                    x = (double)value[r][i] - (double)shift[i];
                    least = fminf(least, value[r][i]);
                    largest = fmaxf(largest, value[r][i]);
                } else if (good && first + channel == job.plan.channels) {
                    x = 1;
                }
                to[row * STRIDE + channel] = x;
            }
        }
    }
};

} // namespace

#endif
