/* Sums of products of all pairs of channels over a range of pixels, in fp64, by the matrix instructions for fp64.
 *
 * A team takes a range a stage at a time: two warps read pixels, leave out those with a value that is not finite,
 * and write fp64 values around the shift to shared memory (moments_reader.cuh); the others sum products
 * (moments_pieces.cuh). A team's warps wait for one another at the barriers of a slot only.
 *
 * half_kernel: the triangle of one tile; two teams of 4 + 2 warps. The second team's roles are exchanged in pairs, so that
 * each quarter of a multiprocessor (warps w mod 4) has as many pieces. whole_kernel: a pair of different tiles; a team of a
 * warp for every two blocks of the first tile, and two pairs of reading warps.
 *
 * Why this shape, for 100 channels: 13 blocks are 46 pieces of 128 multiply-adds a pixel, and a multiprocessor does 128 a
 * clock: 46 clocks a pixel. So 5e6 pixels on 132 of them take 0.99 ms at 1.755 GHz; reading 400 bytes a pixel takes 0.47
 * ms. In the 46 clocks of a pixel, shared memory is busy for 6.5 (fp64 values written) + 21.5 (43 blocks read by 4 roles,
 * 64 bytes each), and conversions, 16 a clock, for 8; shifting takes 2 clocks of the fp64 units. The reading warps have 8
 * pixels on their way to registers each, 12.8 kB a multiprocessor, and more to the second-level cache. What is between
 * the barriers is small: instructions stay in their cache. 12 warps leave 168 registers: 96 are sums, 48 the blocks of
 * 8 pixels.
 *
 * Grid: x ranges (two a CTA in half_kernel), y tiles or pairs. */
#include <stdlib.h>
#include <string.h>

#include "cuda/statistics/moments_pieces.cuh"
#include "cuda/statistics/moments_reader.cuh"

namespace
{

enum { TEAMS = 2, TEAM_THREADS = 32 * (ROLES + TESS_READERS), HALF_THREADS = TEAMS * TEAM_THREADS };
enum { WHOLE_SLOTS = 2 };

/* CTAs of half_kernel on a multiprocessor. */
constexpr int resident_of(int blocks)
{
    return blocks <= 8 ? 2 : 1;
}

/* Pixels of a matrix instruction, in fours, as registers allow. */
constexpr int depth_of(int blocks)
{
    return blocks < 14 ? 2 : 1;
}

struct range {
    int64_t first, end;
};

__device__ __forceinline__ range range_of(const tess_moments_plan &plan, unsigned number)
{
    return {number * plan.pixels / plan.ranges, (number + (int64_t)1) * plan.pixels / plan.ranges};
}

template <int BLOCKS>
__device__ __forceinline__ void read_half(const tess_moments_job &job, double *stages, const signals &s,
                                          unsigned number)
{
    using shape = stage_shape<BLOCKS>;
    const range r = range_of(job.plan, number);
    const int half = (int)threadIdx.x / 32 % TESS_READERS;
    reader<BLOCKS> from(job, (int)blockIdx.y, half);
    from.run(stages, shape::VALUES, s, r.first, r.end);
    tess_moments_widen(from.least, from.largest);
    float *to = job.extremes + (((int64_t)number * job.plan.tiles + blockIdx.y) * TESS_READERS + half) * 2;
    if (from.lane == 0) {
        to[0] = from.least;
        to[1] = from.largest;
    }
}

template <int BLOCKS, int DEPTH, int ROLE>
__device__ __forceinline__ void sum_half(const tess_moments_job &job, const double *stages, const signals &s,
                                         unsigned number)
{
    using shape = stage_shape<BLOCKS>;
    const range r = range_of(job.plan, number);
    role<BLOCKS, DEPTH, ROLE> mine;
    int slot = 0;
    for (int64_t p = r.first; p < r.end; p += shape::PIXELS) {
        s.wait(slot, true);
        mine.template add<shape::STRIDE, shape::PIXELS>(stages + slot * shape::VALUES);
        if (p + shape::SLOTS * shape::PIXELS < r.end) /* a reader waits for it */
            s.tell(slot, false);
        slot = slot + 1 < shape::SLOTS ? slot + 1 : 0;
    }
    mine.store(job.partial + number * job.plan.values, job.plan.tiles * BLOCKS, (int)blockIdx.y * BLOCKS,
               typename role<BLOCKS, DEPTH, ROLE>::numbers());
}

template <int BLOCKS, int DEPTH>
__global__ void __launch_bounds__(HALF_THREADS, resident_of(BLOCKS))
    half_kernel(const __grid_constant__ tess_moments_job job)
{
    using shape = stage_shape<BLOCKS>;
    extern __shared__ double stages[];
    const int warp = (int)threadIdx.x / 32;
    const bool sums = warp < TEAMS * ROLES;
    const int team = sums ? warp / ROLES : (warp - TEAMS * ROLES) / TESS_READERS;
    const unsigned number = blockIdx.x * TEAMS + (unsigned)team;
    if (number >= job.plan.ranges)
        return;
    double *mine = stages + team * shape::SLOTS * shape::VALUES;
    const signals s = {1 + team * 2 * shape::SLOTS, shape::SLOTS, TEAM_THREADS};
    switch (sums ? warp % ROLES ^ team : ROLES) {
    case 0:
        return sum_half<BLOCKS, DEPTH, 0>(job, mine, s, number);
    case 1:
        return sum_half<BLOCKS, DEPTH, 1>(job, mine, s, number);
    case 2:
        return sum_half<BLOCKS, DEPTH, 2>(job, mine, s, number);
    case 3:
        return sum_half<BLOCKS, DEPTH, 3>(job, mine, s, number);
    default:
        return read_half<BLOCKS>(job, mine, s, number);
    }
}

/* A warp's two blocks of the first tile by all of the second. */
template <int BLOCKS>
__device__ __forceinline__ void sum_whole(const tess_moments_job &job, const double *stages, const signals &s,
                                          int i, int j)
{
    using shape = stage_shape<BLOCKS>;
    constexpr int DEPTH = 2;
    const range r = range_of(job.plan, blockIdx.x);
    const int strip = (int)threadIdx.x / 32;
    double sums[BLOCKS][4] = {};
    int slot = 0;
    for (int64_t p = r.first; p < r.end; p += shape::PIXELS) {
        s.wait(slot, true);
        const double *at = stages + slot * 2 * shape::VALUES;
#pragma unroll 1
        for (int k = 0; k < shape::PIXELS; k += 4 * DEPTH, at += 4 * DEPTH * shape::STRIDE) {
            double top[DEPTH], bottom[DEPTH], column[DEPTH];
            load_block<DEPTH, shape::STRIDE>(top, at, 2 * strip);
            load_block<DEPTH, shape::STRIDE>(bottom, at, 2 * strip + 1);
#pragma unroll
            for (int block = 0; block < BLOCKS; block++) {
                load_block<DEPTH, shape::STRIDE>(column, at + shape::VALUES, block);
                multiply<DEPTH>(sums[block], top, bottom, column);
            }
        }
        if (p + WHOLE_SLOTS * shape::PIXELS < r.end)
            s.tell(slot, false);
        slot ^= 1;
    }
    double *to = job.partial + blockIdx.x * job.plan.values;
    const int all = job.plan.tiles * BLOCKS, row = i * BLOCKS + 2 * strip;
#pragma unroll
    for (int block = 0; block < BLOCKS; block++) {
        store_block(to, all, row, j * BLOCKS + block, sums[block][0], sums[block][1]);
        store_block(to, all, row + 1, j * BLOCKS + block, sums[block][2], sums[block][3]);
    }
}

template <int BLOCKS>
__global__ void __launch_bounds__(16 * BLOCKS + 64 * TESS_READERS, 1)
    whole_kernel(const __grid_constant__ tess_moments_job job)
{
    using shape = stage_shape<BLOCKS>;
    extern __shared__ double stages[];
    const signals s = {1, WHOLE_SLOTS, 16 * BLOCKS + 64 * TESS_READERS};
    int i = 0, pair = (int)blockIdx.y;
    for (; pair >= job.plan.tiles - 1 - i; i++)
        pair -= job.plan.tiles - 1 - i;
    const int j = i + 1 + pair, warp = (int)threadIdx.x / 32 - BLOCKS / 2;
    if (warp < 0)
        return sum_whole<BLOCKS>(job, stages, s, i, j);
    const range r = range_of(job.plan, blockIdx.x);
    const int right = warp / TESS_READERS;
    reader<BLOCKS> from(job, right ? j : i, warp % TESS_READERS);
    from.run(stages + right * shape::VALUES, 2 * shape::VALUES, s, r.first, r.end);
}

template <class Kernel> cudaError_t allow(Kernel *kernel, size_t bytes)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

template <int BLOCKS, int DEPTH> cudaError_t launch_half(const tess_moments_job &job, cudaStream_t stream)
{
    using shape = stage_shape<BLOCKS>;
    const size_t half = (size_t)TEAMS * shape::SLOTS * shape::VALUES * sizeof(double);
    const cudaError_t result = allow(half_kernel<BLOCKS, DEPTH>, half);
    if (result != cudaSuccess)
        return result;
    const dim3 grid((job.plan.ranges + TEAMS - 1) / TEAMS, (unsigned)job.plan.tiles);
    half_kernel<BLOCKS, DEPTH><<<grid, HALF_THREADS, half, stream>>>(job);
    return cudaGetLastError();
}

/* To compare both depths by the rate program: TESSERA_MOMENTS_DEPTH=1 chooses the other one. */
bool other_depth(void)
{
    const char *text = getenv("TESSERA_MOMENTS_DEPTH");
    return text && strcmp(text, "1") == 0;
}

template <int BLOCKS> cudaError_t launch(const tess_moments_job &job, cudaStream_t stream)
{
    using shape = stage_shape<BLOCKS>;
    const unsigned tiles = (unsigned)job.plan.tiles;
    constexpr int DEPTH = depth_of(BLOCKS), OTHER = BLOCKS == 13 ? 1 : DEPTH;
    cudaError_t result =
        other_depth() ? launch_half<BLOCKS, OTHER>(job, stream) : launch_half<BLOCKS, DEPTH>(job, stream);
    if (result != cudaSuccess)
        return result;
    if constexpr (BLOCKS % 2 == 0 && 2 * BLOCKS > TESS_BLOCKS)
        if (tiles > 1) {
            const size_t whole = (size_t)2 * WHOLE_SLOTS * shape::VALUES * sizeof(double);
            result = allow(whole_kernel<BLOCKS>, whole);
            if (result != cudaSuccess)
                return result;
            whole_kernel<BLOCKS><<<dim3(job.plan.ranges, tiles * (tiles - 1) / 2),
                                   16 * BLOCKS + 64 * TESS_READERS, whole, stream>>>(job);
        }
    return cudaGetLastError();
}

typedef cudaError_t (*launcher)(const tess_moments_job &job, cudaStream_t stream);

} // namespace

unsigned tess_moments_resident(int blocks)
{
    return (unsigned)(TEAMS * resident_of(blocks));
}

cudaError_t tess_moments_products(const tess_moments_job &job, cudaStream_t stream)
{
    static const launcher launchers[TESS_BLOCKS] = {
        launch<1>, launch<2>,  launch<3>,  launch<4>,  launch<5>,  launch<6>,  launch<7>,  launch<8>,
        launch<9>, launch<10>, launch<11>, launch<12>, launch<13>, launch<14>, launch<15>, launch<16>};
    return launchers[job.plan.blocks - 1](job, stream);
}
