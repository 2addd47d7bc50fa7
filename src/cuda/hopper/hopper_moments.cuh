/* hopper_moments.cuh: how warps bring dense pixels into shared memory as fp64 values around the shift.
 *
 * A warp has PIXELS of a stage's pixels. They come by bulk copies into a ring of its own, some stages ahead, so that
 * nothing waits for memory and no registers hold pixels on their way. All blocks but the last have only channels: lanes take
 * COLUMNS times 32 of them, and then the last blocks of as many pixels as fit into a warp, so that few lanes convert for
 * nothing. What is usual, that all pixels count, takes one vote for all of them. */
#ifndef TESS_CUDA_HOPPER_MOMENTS_CUH
#define TESS_CUDA_HOPPER_MOMENTS_CUH

#include <cuda/std/limits>

#include "cuda/hopper/hopper.cuh"
#include "cuda/statistics/moments_team.cuh"

namespace
{

template <int BLOCKS> struct ring_shape {
    static constexpr int PAIRS = 2, SLOTS = 4; /* pairs of warps of a team, which take stages in turn */
    static constexpr int RING = BLOCKS <= 13 ? 4 : 3;
    static constexpr int PIXELS = 8, STAGE = TESS_READERS * PIXELS;
    static constexpr int STRIDE = BLOCKS * TESS_BLOCK + 4, VALUES = STAGE * STRIDE; /* as in stage_shape */
    static constexpr int COLUMNS = (BLOCKS - 1) / 4, LANES = TESS_BLOCK * (BLOCKS - 4 * COLUMNS);
    static constexpr int TOGETHER = 32 / LANES, LAST = PIXELS / TOGETHER;
    static constexpr unsigned ALL = (1u << PIXELS) - 1;
    static_assert(STAGE == TESS_STEP, "ranges begin at whole stages, at multiples of 16 bytes");
};

template <int BLOCKS> struct converter : ring_shape<BLOCKS> {
    using shape = ring_shape<BLOCKS>;
    const tess_moments_job &job;
    const int half, lane, channels;
    const int group; /* the lane's pixel of those whose last blocks are converted together */
    int last_at;     /* where its value of these is, from the first pixel's */
    float value[shape::PIXELS][shape::COLUMNS ? shape::COLUMNS : 1], last[shape::LAST];
    double offset[shape::COLUMNS ? shape::COLUMNS : 1], last_scale, last_offset;
    float least = cuda::std::numeric_limits<float>::infinity(),
          largest = -cuda::std::numeric_limits<float>::infinity();

    __device__ __forceinline__ converter(const tess_moments_job &j, unsigned number, int h)
        : job(j), half(h), lane((int)threadIdx.x % 32), channels(j.plan.channels),
          group(shape::TOGETHER > 1 ? lane / shape::LANES : 0)
    {
        const int channel = 32 * shape::COLUMNS + lane % shape::LANES, known = channels - 1;
        const float *shift = tess_moments_shift(job, number);
#pragma unroll
        for (int i = 0; i < shape::COLUMNS; i++)
            offset[i] = -(double)shift[lane + 32 * i];
        last_at = group * channels + (channel < known ? channel : known);
        last_scale = channel <= known;
        last_offset = channel <= known ? -(double)shift[channel] : channel == channels;
    }

    static __device__ __forceinline__ bool finite(float x)
    {
        return fabsf(x) < cuda::std::numeric_limits<float>::infinity();
    }

    /* All pixels, or the first `have`; the others are zero and do not count. */
    template <bool WHOLE> __device__ __forceinline__ void load(const float *from, int have)
    {
#pragma unroll
        for (int p = 0; p < shape::PIXELS; p++)
#pragma unroll
            for (int i = 0; i < shape::COLUMNS; i++)
                value[p][i] = WHOLE || p < have ? from[p * channels + lane + 32 * i] : 0;
#pragma unroll
        for (int r = 0; r < shape::LAST; r++)
            last[r] = WHOLE || r * shape::TOGETHER + group < have
                          ? from[r * shape::TOGETHER * channels + last_at]
                          : 0;
    }

    /* The extremes of pixel p, and whether all its values are finite. */
    __device__ __forceinline__ bool look(int p, float &low, float &high) const
    {
        const bool mine = group == p % shape::TOGETHER;
        bool good = !mine || finite(last[p / shape::TOGETHER]);
        low = mine ? last[p / shape::TOGETHER] : least;
        high = mine ? last[p / shape::TOGETHER] : largest;
#pragma unroll
        for (int i = 0; i < shape::COLUMNS; i++) {
            good = good && finite(value[p][i]);
            low = fminf(low, value[p][i]);
            high = fmaxf(high, value[p][i]);
        }
        return __all_sync(0xffffffffu, good);
    }

    /* A bit for each pixel that counts; widens the extremes by them. */
    __device__ __forceinline__ unsigned check(unsigned counts)
    {
        float low = last[0], high = last[0]; /* NaN stays in them */
#pragma unroll
        for (int r = 1; r < shape::LAST; r++)
            low = least_of(low, last[r]), high = largest_of(high, last[r]);
#pragma unroll
        for (int p = 0; p < shape::PIXELS; p++)
#pragma unroll
            for (int i = 0; i < shape::COLUMNS; i++)
                low = least_of(low, value[p][i]), high = largest_of(high, value[p][i]);
        unsigned good = shape::ALL;
        if (__all_sync(0xffffffffu, finite(low) && finite(high)) && (counts & shape::ALL) == shape::ALL) {
            least = fminf(least, low);
            largest = fmaxf(largest, high);
            return good;
        }
#pragma unroll
        for (int p = 0; p < shape::PIXELS; p++)
            if (look(p, low, high) && (counts >> p & 1)) {
                least = fminf(least, low);
                largest = fmaxf(largest, high);
            } else
                good &= ~(1u << p);
        return good;
    }

    static __device__ __forceinline__ float least_of(float a, float b)
    {
        asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
        return a;
    }

    static __device__ __forceinline__ float largest_of(float a, float b)
    {
        asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
        return a;
    }

    /* All pixels, as if they were good; then, rarely, zeros over those that are not. */
    __device__ __forceinline__ void write(double *stage, unsigned good)
    {
        double *to = stage + half * shape::PIXELS * shape::STRIDE,
               *to_last = to + group * shape::STRIDE + 32 * shape::COLUMNS + lane % shape::LANES;
#pragma unroll
        for (int p = 0; p < shape::PIXELS; p++) {
#pragma unroll
            for (int i = 0; i < shape::COLUMNS; i++)
                to[p * shape::STRIDE + lane + 32 * i] = (double)value[p][i] + offset[i];
            if (p % shape::TOGETHER == 0 && lane < shape::TOGETHER * shape::LANES)
                to_last[p * shape::STRIDE] = fma((double)last[p / shape::TOGETHER], last_scale, last_offset);
        }
        if (good == shape::ALL)
            return;
        __syncwarp();
        for (unsigned bad = ~good & shape::ALL; bad; bad &= bad - 1)
#pragma unroll 1
            for (int c = lane; c < BLOCKS * TESS_BLOCK; c += 32)
                to[(__ffs((int)bad) - 1) * shape::STRIDE + c] = 0;
    }

    /* Starts the copy of this warp's pixels of a stage; one lane calls it. */
    __device__ __forceinline__ void fetch(float *ring, uint32_t barriers, int at, const float *from) const
    {
        const uint32_t bytes = (uint32_t)(shape::PIXELS * channels) * (uint32_t)sizeof(float);
        barrier_expect(barriers + 8 * (uint32_t)at, bytes);
        load_bytes(shared_address(ring + at * shape::PIXELS * channels), from, bytes,
                   barriers + 8 * (uint32_t)at);
    }

    /* Every PAIRS-th stage of a range, from number `stage` on. What remains behind the last whole stage is read without a
     * copy: its bytes may be no multiple of 16. */
    __device__ __forceinline__ void run(double *stages, const signals &s, const range &r, int stage,
                                        float *ring, uint32_t barriers)
    {
        const int all = (int)((r.end - r.first + shape::STAGE - 1) / shape::STAGE),
                  whole = (int)((r.end - r.first) / shape::STAGE);
        const int64_t step = (int64_t)shape::STAGE * channels;
        const float *from = job.from + (r.first + half * shape::PIXELS) * channels;
        for (int i = 0; lane == 0 && i < shape::RING && stage + i * shape::PAIRS < whole; i++)
            fetch(ring, barriers, i, from + (stage + i * shape::PAIRS) * step);
        int slot = stage, at = 0;
        uint32_t parity = 0;
        for (int k = stage; k < all; k += shape::PAIRS) {
            const int64_t pixel = r.first + (int64_t)k * shape::STAGE + half * shape::PIXELS,
                          left = r.end - pixel;
            const bool counted =
                lane < left && (!job.counts || lane >= shape::PIXELS || job.counts[pixel + lane]);
            const unsigned counts = __ballot_sync(0xffffffffu, counted);
            if (k < whole) {
                barrier_wait(barriers + 8 * (uint32_t)at, parity);
                load<true>(ring + at * shape::PIXELS * channels, shape::PIXELS);
            } else
                load<false>(from + k * step, left > 0 ? (int)left : 0);
            const unsigned good = check(counts); /* all lanes have read the ring */
            if (lane == 0 && k + shape::RING * shape::PAIRS < whole)
                fetch(ring, barriers, at, from + (k + shape::RING * shape::PAIRS) * step);
            if (k >= s.slots)
                s.wait(slot, false);
            write(stages + slot * shape::VALUES, good);
            s.tell(slot, true);
            slot = s.next(s.next(slot));
            at = at + 1 < shape::RING ? at + 1 : 0;
            parity ^= at == 0;
        }
    }
};

} // namespace

#endif
