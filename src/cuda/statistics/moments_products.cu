/* Sums of products of all pairs of channels over a range of pixels, in fp64, by the matrix instructions for fp64.
 *
 * A team takes a range a stage at a time: two warps read pixels, leave out those with a value that is not finite,
 * and write fp64 values around the shift to shared memory (moments_reader.cuh); the others sum products
 * (moments_team.cuh).
 *
 * half_kernel: the triangle of one tile; two teams of 4 + 2 warps. whole_kernel: a pair of different tiles; a team of a
 * warp for every two blocks of the first tile, and two pairs of reading warps.
 *
 * These kernels take pixels at any places, on any card, and the reading warps bind: for 5e6 pixels of 100 channels the
 * products alone would take 0.93 ms on an H200, reading and converting alone takes 1.5 ms. Dense pixels of one tile go to
 * hopper/hopper_moments.cu where the card can.
 *
 * Grid: x ranges (two a CTA in half_kernel), y tiles or pairs. */
#include "cuda/statistics/moments_reader.cuh"

namespace
{

enum { TEAM_THREADS = 32 * (ROLES + TESS_READERS), HALF_THREADS = TEAMS * TEAM_THREADS };
enum { WHOLE_SLOTS = 2 };

/* CTAs of half_kernel on a multiprocessor. */
constexpr int resident_of(int blocks)
{
    return blocks <= 8 ? 2 : 1;
}

/* Operands are loaded a step ahead where 168 registers hold those of two steps. Two CTAs hide the loads of each other. */
constexpr bool loads_ahead(int blocks)
{
    return resident_of(blocks) == 1 && blocks <= 13;
}

template <int BLOCKS>
__device__ __forceinline__ void read_half(const tess_moments_job &job, double *stages, const signals &s,
                                          unsigned number)
{
    using shape = stage_shape<BLOCKS>;
    const range r = range_of(job.plan, number);
    const int half = (int)threadIdx.x / 32 % TESS_READERS;
    reader<BLOCKS> from(job, number, (int)blockIdx.y, half);
    from.run(stages, shape::VALUES, s, r.first, r.end);
    tess_moments_widen(from.least, from.largest);
    float *to = job.extremes + ((int64_t)number * job.plan.tiles + blockIdx.y) * TESS_EXTREMES * 2;
    if (from.lane == 0)
        for (int i = half; i < TESS_EXTREMES; i += TESS_READERS) {
            to[2 * i] = from.least;
            to[2 * i + 1] = from.largest;
        }
}

template <int BLOCKS>
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
    if (sums)
        sum_products<BLOCKS, shape::STRIDE, shape::PIXELS, loads_ahead(BLOCKS)>(job, mine, s, number, warp,
                                                                                team);
    else
        read_half<BLOCKS>(job, mine, s, number);
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
        slot = s.next(slot);
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
    reader<BLOCKS> from(job, blockIdx.x, right ? j : i, warp % TESS_READERS);
    from.run(stages + right * shape::VALUES, 2 * shape::VALUES, s, r.first, r.end);
}

template <class Kernel> cudaError_t allow(Kernel *kernel, size_t bytes)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

template <int BLOCKS> cudaError_t launch_half(const tess_moments_job &job, cudaStream_t stream)
{
    using shape = stage_shape<BLOCKS>;
    const size_t half = (size_t)TEAMS * shape::SLOTS * shape::VALUES * sizeof(double);
    const cudaError_t result = allow(half_kernel<BLOCKS>, half);
    if (result != cudaSuccess)
        return result;
    const dim3 grid((job.plan.ranges + TEAMS - 1) / TEAMS, (unsigned)job.plan.tiles);
    half_kernel<BLOCKS><<<grid, HALF_THREADS, half, stream>>>(job);
    return cudaGetLastError();
}

template <int BLOCKS> cudaError_t launch(const tess_moments_job &job, cudaStream_t stream)
{
    using shape = stage_shape<BLOCKS>;
    const unsigned tiles = (unsigned)job.plan.tiles;
    cudaError_t result = launch_half<BLOCKS>(job, stream);
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
    if (tess_moments_takes_dense(job))
        return tess_moments_dense(job, stream);
    static const launcher launchers[TESS_BLOCKS] = {
        launch<1>, launch<2>,  launch<3>,  launch<4>,  launch<5>,  launch<6>,  launch<7>,  launch<8>,
        launch<9>, launch<10>, launch<11>, launch<12>, launch<13>, launch<14>, launch<15>, launch<16>};
    return launchers[job.plan.blocks - 1](job, stream);
}
