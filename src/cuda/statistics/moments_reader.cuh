/* moments_reader.cuh: how warps bring pixels into shared memory as fp64 values around the shift.
 *
 * A stage is PIXELS pixels of one tile's channels, by rows. Two warps fill it, a half each; a lane has one channel of
 * every LANES, so that a pixel of few channels takes a part of a warp. The next stage's pixels are on their way to
 * registers while this one's are converted. Each value is converted once; lanes without a channel read the last one, so that
 * nothing but the product with `scale` tells them from the others. */
#ifndef TESS_CUDA_MOMENTS_READER_CUH
#define TESS_CUDA_MOMENTS_READER_CUH

#include <cuda/std/limits>

#include "cuda/statistics/moments_team.cuh"

namespace
{

template <int BLOCKS> struct stage_shape {
    static constexpr int WIDTH = BLOCKS * TESS_BLOCK;
    static constexpr int STRIDE = WIDTH + 4; /* 4 or 12 (mod 16): lanes of a load use different banks */
    static constexpr int LANES = BLOCKS == 1 ? 8 : BLOCKS == 2 ? 16 : 32; /* of a pixel */
    static constexpr int TOGETHER = 32 / LANES;                           /* pixels of a row of registers */
    static constexpr int COUNT = (WIDTH + LANES - 1) / LANES;
    static constexpr int ROWS = BLOCKS > 1 && BLOCKS <= 4 ? 16 : 8;
    static constexpr int HALF = ROWS * TOGETHER, PIXELS = TESS_READERS * HALF;
    static constexpr int SLOTS = BLOCKS <= 4 ? 2 : 3; /* stages at a time */
    static constexpr int VALUES = PIXELS * STRIDE;
    static_assert(HALF <= 32, "a lane knows the place of one pixel");
};

template <int BLOCKS> struct reader : stage_shape<BLOCKS> {
    using shape = stage_shape<BLOCKS>;
    const tess_moments_job &job;
    const int half, lane;
    int64_t place = 0;  /* of this lane's pixel */
    bool there = false; /* it is one of the range and counts */
    int at[shape::COUNT];
    double scale[shape::COUNT], offset[shape::COUNT];
    float value[shape::ROWS][shape::COUNT];
    float least = cuda::std::numeric_limits<float>::infinity(),
          largest = -cuda::std::numeric_limits<float>::infinity();

    __device__ __forceinline__ reader(const tess_moments_job &j, unsigned number, int tile, int h)
        : job(j), half(h), lane((int)threadIdx.x % 32)
    {
        const int last = job.plan.channels - 1;
        const float *shift = tess_moments_shift(job, number);
#pragma unroll
        for (int i = 0; i < shape::COUNT; i++) {
            const int channel = tile * shape::WIDTH + lane % shape::LANES + shape::LANES * i;
            at[i] = channel < last ? channel : last;
            scale[i] = channel <= last;
            offset[i] = channel <= last ? -(double)shift[channel] : channel == last + 1;
        }
    }

    /* Lanes without a column share the 4 places behind the row, which nobody reads. */
    __device__ __forceinline__ int column(int i) const
    {
        const int c = lane % shape::LANES + shape::LANES * i;
        return c < shape::WIDTH ? c : shape::WIDTH + c % 4;
    }

    /* The pixels of the stage that begins at `pixel`; those behind the range are its last one. */
    __device__ __forceinline__ void look(int64_t pixel, int64_t end)
    {
        const int64_t mine = pixel + half * shape::HALF + lane, known = mine < end ? mine : end - 1;
        place = tess_moments_place(job.in, job.flat, known);
        there = mine < end && (!job.counts || job.counts[known]);
    }

    __device__ __forceinline__ void load(int row)
    {
        const float *from =
            job.from + __shfl_sync(0xffffffffu, place, row * shape::TOGETHER + lane / shape::LANES);
#pragma unroll
        for (int i = 0; i < shape::COUNT; i++)
            value[row][i] = __ldg(from + at[i]);
    }

    /* A bit for each pixel whose values are all finite. */
    __device__ __forceinline__ unsigned finite() const
    {
        constexpr unsigned LANES_MASK = 0xffffffffu >> (32 - shape::LANES);
        unsigned result = 0;
#pragma unroll
        for (int row = 0; row < shape::ROWS; row++) {
            bool good = true;
#pragma unroll
            for (int i = 0; i < shape::COUNT; i++)
                good = good && fabsf(value[row][i]) < cuda::std::numeric_limits<float>::infinity();
            const unsigned lanes = __ballot_sync(0xffffffffu, good);
#pragma unroll
            for (int t = 0; t < shape::TOGETHER; t++)
                result |= (unsigned)((lanes >> (t * shape::LANES) & LANES_MASK) == LANES_MASK)
                          << (row * shape::TOGETHER + t);
        }
        return result;
    }

    __device__ __forceinline__ void widen(int row)
    {
#pragma unroll
        for (int i = 0; i < shape::COUNT; i++) {
            least = fminf(least, value[row][i]);
            largest = fmaxf(largest, value[row][i]);
        }
    }

    /* The extremes of pixels that are good, a bit each. */
    __device__ __forceinline__ void widen_all(unsigned good, bool all)
    {
#pragma unroll
        for (int row = 0; row < shape::ROWS; row++)
            if (all || (good >> (row * shape::TOGETHER + lane / shape::LANES) & 1))
                widen(row);
    }

    /* Brings pixels of a later stage into the second-level cache: those on their way to registers are too few for the
     * time that memory takes. */
    __device__ __forceinline__ void ahead(int64_t pixel, int64_t end) const
    {
#if __CUDA_ARCH__ >= 900
        const int64_t mine = pixel + half * shape::HALF, stride = job.in.stride_w;
        if (lane == 0 && job.flat && stride <= job.plan.channels + 32 && mine + shape::HALF <= end)
            asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                             __cvta_generic_to_global(job.from + mine * stride) / 16 * 16),
                         "r"((unsigned)(shape::HALF * stride * sizeof(float)))
                         : "memory");
#else
        (void)pixel, (void)end;
#endif
    }

    /* All pixels, as if they were good; then, rarely, zeros over those that are not: what the usual case does has no
     * branches, so that conversions follow one another closely. */
    __device__ __forceinline__ void write(double *stage, unsigned counts)
    {
        constexpr unsigned ALL = 0xffffffffu >> (32 - shape::HALF);
        const unsigned good = finite() & counts;
        double *to = stage + (half * shape::HALF + lane / shape::LANES) * shape::STRIDE;
        if (good == ALL)
            widen_all(good, true);
        else
            widen_all(good, false);
#pragma unroll
        for (int row = 0; row < shape::ROWS; row++) {
#pragma unroll
            for (int i = 0; i < shape::COUNT; i++)
                to[row * shape::TOGETHER * shape::STRIDE + column(i)] =
                    fma((double)value[row][i], scale[i], offset[i]);
            load(row); /* of the next stage */
        }
        if (good == ALL)
            return;
        __syncwarp();
        for (unsigned bad = ~good & ALL; bad; bad &= bad - 1)
#pragma unroll 1
            for (int c = lane; c < shape::WIDTH; c += 32)
                stage[(half * shape::HALF + __ffs((int)bad) - 1) * shape::STRIDE + c] = 0;
    }

    /* All stages of a range, `apart` values from one another. */
    __device__ __forceinline__ void run(double *stages, int apart, const signals &s, int64_t first,
                                        int64_t end)
    {
        int slot = 0;
        bool again = false;
        look(first, end);
#pragma unroll
        for (int row = 0; row < shape::ROWS; row++)
            load(row);
        for (int64_t p = first; p < end; p += shape::PIXELS) {
            const unsigned counts = __ballot_sync(0xffffffffu, there);
            look(p + shape::PIXELS, end);
            ahead(p + 3 * shape::PIXELS, end);
            if (again)
                s.wait(slot, false);
            write(stages + slot * apart, counts);
            s.tell(slot, true);
            again = again || slot + 1 == s.slots;
            slot = s.next(slot);
        }
    }
};

} // namespace

#endif
