/* Sums of products of all pairs of channels of dense pixels (statistics/moments.cuh): two teams of 4 warps that sum products
 * (statistics/moments_team.cuh) and 4 that convert pixels (hopper_moments.cuh).
 *
 * Why this shape, for 100 channels: 13 blocks are 46 pieces of 128 multiply-adds a pixel, and a multiprocessor does 128 a
 * clock: 46 clocks a pixel, of which the warps that sum need 47.3. Converting each value once takes 0.8 additions in fp64
 * a pixel and quarter of a multiprocessor; they pass through the same units as the matrix instructions, and changing from one
 * to the other costs: 4.9 clocks a pixel. Shared memory is busy for 3.1 clocks (copies) + 3.3 (values read) + 6.5 (fp64 values
 * written) + 17.5 (35 blocks read by 4 roles, 64 bytes each). In all a pixel takes 58.9 clocks: 1.16 ms for 5e6 of them at 1.96
 * GHz on 132 multiprocessors; reading 400 bytes a pixel takes 0.47 ms. (Shapes that were slower: one pair of
 * converting warps a team; roles that convert for themselves, which takes three times the additions in fp64.)
 *
 * 16 warps start with 128 registers. The roles need 168: 96 are sums, 36 operands of two steps. */
#include "cuda/hopper/hopper_moments.cuh"

namespace
{

/* Blocks. With fewer than 4, statistics/moments_products.cu is as fast: two of its CTAs share a multiprocessor. */
enum { FEWEST = 4, MOST = 13 };
enum { CONVERTERS = TESS_EXTREMES, DENSE_THREADS = 32 * TEAMS * (ROLES + CONVERTERS) };
enum { ROLE_REGISTERS = 168, CONVERTER_REGISTERS = 88 };

template <int BLOCKS> size_t shared_bytes(int channels)
{
    using shape = ring_shape<BLOCKS>;
    return TEAMS * (shape::SLOTS * shape::VALUES * sizeof(double) +
                    CONVERTERS * shape::RING * shape::PIXELS * (size_t)channels * sizeof(float));
}

template <int BLOCKS>
__global__ void __launch_bounds__(DENSE_THREADS, 1) dense_kernel(const __grid_constant__ tess_moments_job job)
{
    using shape = ring_shape<BLOCKS>;
    static_assert(CONVERTERS == shape::PAIRS * TESS_READERS, "each has a place for its extremes");
    extern __shared__ double stages[];
    __shared__ uint64_t barriers[TEAMS * CONVERTERS][shape::RING];
    /* The value is the same in a warp; the shuffle tells the compiler so. */
    const int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), team = warp / ROLES % TEAMS;
    const unsigned number = blockIdx.x * TEAMS + (unsigned)team;
    if (threadIdx.x == 0) {
        for (int i = 0; i < TEAMS * CONVERTERS * shape::RING; i++)
            barrier_init(shared_address(&barriers[0][0] + i), 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads(); /* barrier 0, which is the first team's afterwards */
    double *mine = stages + team * shape::SLOTS * shape::VALUES;
    const signals s = {team * 2 * shape::SLOTS, shape::SLOTS, 32 * (ROLES + TESS_READERS)};
    if (warp < TEAMS * ROLES) {
        more_registers<ROLE_REGISTERS>();
        if (number < job.plan.ranges)
            sum_products<BLOCKS, shape::STRIDE, shape::STAGE, true>(job, mine, s, number, warp, team);
    } else {
        fewer_registers<CONVERTER_REGISTERS>();
        const int who = warp - TEAMS * ROLES;
        float *ring = (float *)(stages + TEAMS * shape::SLOTS * shape::VALUES) +
                      who * shape::RING * shape::PIXELS * job.plan.channels;
        if (number < job.plan.ranges) {
            converter<BLOCKS> from(job, number, who % TESS_READERS);
            from.run(mine, s, range_of(job.plan, number), who % CONVERTERS / TESS_READERS, ring,
                     shared_address(barriers[who]));
            tess_moments_widen(from.least, from.largest);
            float *to = job.extremes + ((int64_t)number * CONVERTERS + who % CONVERTERS) * 2;
            if (from.lane == 0) {
                to[0] = from.least;
                to[1] = from.largest;
            }
        }
    }
}

template <int BLOCKS> cudaError_t launch(const tess_moments_job &job, cudaStream_t stream)
{
    const size_t bytes = shared_bytes<BLOCKS>(job.plan.channels);
    const cudaError_t result =
        cudaFuncSetAttribute(dense_kernel<BLOCKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (result != cudaSuccess)
        return result;
    dense_kernel<BLOCKS><<<(job.plan.ranges + TEAMS - 1) / TEAMS, DENSE_THREADS, bytes, stream>>>(job);
    return cudaGetLastError();
}

/* The file is compiled for this architecture alone. */
bool on_hopper(void)
{
    int device = 0, major = 0, minor = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
           major == 9 && minor == 0;
}

} // namespace

bool tess_moments_takes_dense(const tess_moments_job &job)
{
    return job.plan.tiles == 1 && job.plan.blocks >= FEWEST && job.plan.blocks <= MOST && job.flat &&
           (job.in.stride_w == job.plan.channels || job.plan.pixels == 1) && (uintptr_t)job.from % 16 == 0 &&
           (job.plan.images == 1 || job.plan.each * job.plan.channels % 4 == 0) && on_hopper();
}

cudaError_t tess_moments_dense(const tess_moments_job &job, cudaStream_t stream)
{
    typedef cudaError_t (*launcher)(const tess_moments_job &job, cudaStream_t stream);
    static const launcher launchers[] = {launch<4>, launch<5>,  launch<6>,  launch<7>,  launch<8>,
                                         launch<9>, launch<10>, launch<11>, launch<12>, launch<13>};
    return launchers[job.plan.blocks - FEWEST](job, stream);
}
