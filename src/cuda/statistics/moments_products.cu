/* Sums of products of all pairs of channels over a range of pixels, in fp64, by the matrix instructions for fp64.
 *
 * A CTA takes the pixels of a range PIXELS at a time. Each warp reads whole pixels (a lane a channel), leaves out those with
 * a value that is not finite, subtracts the shift, and writes fp64 values to shared memory; the next pixels are read
 * into registers while the products of these are summed. A lane's value of 4 pixels x 8 channels, X[lane % 4][lane / 4], is at
 * once the left and the right operand of mma: both want the pixel in lane % 4 and the channel in lane / 4.
 *
 * half_kernel: a pair of equal tiles. Strip s has blocks - 2 s pieces from the diagonal on; a warp takes two strips
 * whose pieces are as many, within one, in every warp. whole_kernel: a pair of different tiles; a warp takes one strip of the first.
 *
 * What it costs, for N pixels of 100 channels: 400 N bytes, read once; 13 blocks are 49 pieces of 256 operations a pixel,
 * 12544 N, of which 10200 N are the triangle's own. A warp has 12 or 13 pieces, 13 x 32 cycles of its part of a
 * multiprocessor for 8 pixels: N = 5e6 on 132 of them at 1.75 GHz take 1.13 ms (45 TFLOP/s of the triangle's), the
 * bytes 0.47 ms at 4.3 TB/s. So the matrix instructions bind; shared memory is in use for two thirds of their time.
 *
 * Grid: x ranges, y tiles or pairs. The rows of shared memory are 4 (mod 16) doubles apart, so that the lanes of a load
 * use different banks. */
#include "cuda/statistics/moments_reader.cuh"

namespace
{

enum { STEP = 8 }; /* pixels of one matrix instruction */

constexpr int strips_of(int blocks)
{
    return (blocks + 1) / 2;
}

constexpr int warps_of(int strips)
{
    return (strips + 1) / 2;
}

/* Registers are 255 a thread, or fewer if more CTAs fit; see the accumulators of half_kernel. */
constexpr int resident_of(int strips)
{
    constexpr int resident[TESS_STRIPS + 1] = {0, 16, 12, 6, 4, 2, 2, 2, 2};
    return resident[strips];
}

/* d += a b: 16 x 8 of 16 x 8 pixels times 8 pixels x 8. */
__device__ __forceinline__ void multiply(double (&d)[4], const double (&a)[4], const double (&b)[2])
{
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
        "%1, "
        "%2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    for (int k = 0; k < 2; k++)
        for (int row = 0; row < 2; row++)
            asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+d"(d[2 * row]), "+d"(d[2 * row + 1])
                : "d"(a[2 * k + row]), "d"(b[k]));
#endif
}

/* The 8 channels of a block, of 8 pixels: `at` is the lane's place in the first 4 pixels. */
template <int STRIDE> __device__ __forceinline__ void load_right(double (&b)[2], const double *at, int block)
{
    b[0] = at[block * TESS_PIECE];
    b[1] = at[block * TESS_PIECE + 4 * STRIDE];
}

template <int STRIDE> __device__ __forceinline__ void load_left(double (&a)[4], const double *at, int strip)
{
    double low[2], high[2];
    load_right<STRIDE>(low, at, 2 * strip);
    load_right<STRIDE>(high, at, 2 * strip + 1);
    a[0] = low[0];
    a[1] = high[0];
    a[2] = low[1];
    a[3] = high[1];
}

__device__ __forceinline__ void store_piece(double *to, int piece, const double (&d)[4])
{
    double2 *at = (double2 *)to + (piece * 32 + (int)threadIdx.x % 32) * 2;
    at[0] = make_double2(d[0], d[1]);
    at[1] = make_double2(d[2], d[3]);
}

/* The strips of warp ROLE: A, and B or none (B = STRIPS). */
template <int BLOCKS, int ROLE> struct role {
    static constexpr int STRIPS = strips_of(BLOCKS);
    static constexpr int A = ROLE, B = STRIPS % 2 ? (ROLE ? STRIPS - ROLE : STRIPS) : STRIPS - 1 - ROLE;
    static constexpr int PIECES_A = BLOCKS - 2 * A, PIECES_B = B < STRIPS ? BLOCKS - 2 * B : 0;
    static constexpr int STRIDE = width_of(STRIPS) + 4;

    double a[PIECES_A][4] = {}, b[PIECES_B ? PIECES_B : 1][4] = {};

    __device__ __forceinline__ void add(const double *stage)
    {
        const int lane = (int)threadIdx.x % 32;
        const double *at = stage + lane % 4 * STRIDE + lane / 4;
#pragma unroll
        for (int k = 0; k < PIXELS; k += STEP, at += STEP * STRIDE) {
            double left_a[4], left_b[4], right[2];
            load_left<STRIDE>(left_a, at, A);
            if (PIECES_B)
                load_left<STRIDE>(left_b, at, B < STRIPS ? B : 0);
#pragma unroll
            for (int block = 2 * A; block < BLOCKS; block++) {
                load_right<STRIDE>(right, at, block);
                multiply(a[block - 2 * A], left_a, right);
                if (block >= 2 * B)
                    multiply(b[block >= 2 * B ? block - 2 * B : 0], left_b, right);
            }
        }
    }

    __device__ __forceinline__ void store(double *to)
    {
#pragma unroll
        for (int i = 0; i < PIECES_A; i++)
            store_piece(to, tess_moments_first(BLOCKS, A) + i, a[i]);
#pragma unroll
        for (int i = 0; i < PIECES_B; i++)
            store_piece(to, tess_moments_first(BLOCKS, B) + i, b[i]);
    }
};

/* All warps of a CTA read; this one sums what its role says. Two stages: a warp may write the next one while others still
 * read this one. */
template <int BLOCKS, int ROLE>
__device__ __forceinline__ void half_role(const tess_moments_job &job, double *stage,
                                          float (*extremes)[TESS_STRIPS])
{
    constexpr int STRIPS = strips_of(BLOCKS);
    using source = reader<STRIPS, warps_of(STRIPS)>;
    const int64_t first = blockIdx.x * job.plan.pixels / job.plan.ranges,
                  end = (blockIdx.x + (int64_t)1) * job.plan.pixels / job.plan.ranges;
    const int tile = (int)blockIdx.y;
    source from(job, tile);
    role<BLOCKS, ROLE> sums;
    int which = 0;
    from.read(first, end);
    for (int64_t p = first; p < end; p += PIXELS, which ^= 1) {
        double *now = stage + which * PIXELS * source::STRIDE;
        from.write(now);
        __syncthreads();
        from.read(p + PIXELS, end);
        sums.add(now);
    }
    sums.store(job.partial + blockIdx.x * job.plan.values +
               (int64_t)tile * tess_moments_half(BLOCKS) * TESS_PIECE_VALUES);
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        from.least = fminf(from.least, __shfl_xor_sync(0xffffffffu, from.least, lanes));
        from.largest = fmaxf(from.largest, __shfl_xor_sync(0xffffffffu, from.largest, lanes));
    }
    if (from.lane == 0) {
        extremes[0][ROLE] = from.least;
        extremes[1][ROLE] = from.largest;
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < warps_of(STRIPS); w++) {
        extremes[0][0] = fminf(extremes[0][0], extremes[0][w]);
        extremes[1][0] = fmaxf(extremes[1][0], extremes[1][w]);
    }
    float *to = job.extremes + ((int64_t)blockIdx.x * job.plan.tiles + tile) * 2;
    to[0] = extremes[0][0];
    to[1] = extremes[1][0];
}

template <int BLOCKS>
__global__ void __launch_bounds__(32 * warps_of(strips_of(BLOCKS)), resident_of(strips_of(BLOCKS)))
    half_kernel(const __grid_constant__ tess_moments_job job)
{
    constexpr int STRIPS = strips_of(BLOCKS);
    __shared__ double stage[2 * PIXELS * (width_of(STRIPS) + 4)];
    __shared__ float extremes[2][TESS_STRIPS];
    constexpr int WARPS = warps_of(STRIPS);
    const int warp = (int)threadIdx.x / 32; /* a warp's strips are constants: its sums stay in registers */
    if (warp == 0)
        half_role<BLOCKS, 0>(job, stage, extremes);
    if constexpr (WARPS > 1)
        if (warp == 1)
            half_role<BLOCKS, 1>(job, stage, extremes);
    if constexpr (WARPS > 2)
        if (warp == 2)
            half_role<BLOCKS, 2>(job, stage, extremes);
    if constexpr (WARPS > 3)
        if (warp == 3)
            half_role<BLOCKS, 3>(job, stage, extremes);
}

template <int STRIPS>
__global__ void __launch_bounds__(32 * STRIPS, 1) whole_kernel(const __grid_constant__ tess_moments_job job)
{
    using source = reader<STRIPS, STRIPS>;
    extern __shared__ double stages[];
    constexpr int TILE = PIXELS * source::STRIDE;
    const int64_t first = blockIdx.x * job.plan.pixels / job.plan.ranges,
                  end = (blockIdx.x + (int64_t)1) * job.plan.pixels / job.plan.ranges;
    int i = 0, pair = (int)blockIdx.y;
    for (; pair >= job.plan.tiles - 1 - i; i++)
        pair -= job.plan.tiles - 1 - i;
    source from_i(job, i), from_j(job, i + 1 + pair);
    const int lane = from_i.lane, strip = from_i.warp;
    double sums[2 * STRIPS][4] = {};
    int which = 0;
    from_i.read(first, end);
    from_j.read(first, end);
    for (int64_t p = first; p < end; p += PIXELS, which ^= 1) {
        double *now = stages + which * 2 * TILE;
        from_i.write(now);
        from_j.write(now + TILE);
        __syncthreads();
        from_i.read(p + PIXELS, end);
        from_j.read(p + PIXELS, end);
        const double *at = now + lane % 4 * source::STRIDE + lane / 4;
#pragma unroll
        for (int k = 0; k < PIXELS; k += STEP, at += STEP * source::STRIDE) {
            double left[4], right[2];
            load_left<source::STRIDE>(left, at, strip);
#pragma unroll
            for (int block = 0; block < 2 * STRIPS; block++) {
                load_right<source::STRIDE>(right, at + TILE, block);
                multiply(sums[block], left, right);
            }
        }
    }
    double *to = job.partial + blockIdx.x * job.plan.values +
                 ((int64_t)job.plan.tiles * tess_moments_half(2 * STRIPS) +
                  (int64_t)blockIdx.y * tess_moments_whole(STRIPS)) *
                     TESS_PIECE_VALUES;
#pragma unroll
    for (int block = 0; block < 2 * STRIPS; block++)
        store_piece(to, strip * 2 * STRIPS + block, sums[block]);
}

template <int BLOCKS> cudaError_t launch(const tess_moments_job &job, cudaStream_t stream)
{
    constexpr int STRIPS = strips_of(BLOCKS);
    const int tiles = job.plan.tiles;
    half_kernel<BLOCKS><<<dim3(job.plan.ranges, (unsigned)tiles), 32 * warps_of(STRIPS), 0, stream>>>(job);
    if constexpr (BLOCKS % 2 == 0)
        if (tiles > 1) {
            const size_t bytes = 4 * PIXELS * (width_of(STRIPS) + 4) * sizeof(double);
            const cudaError_t result = cudaFuncSetAttribute(
                whole_kernel<STRIPS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
            if (result != cudaSuccess)
                return result;
            const dim3 grid(job.plan.ranges, (unsigned)(tiles * (tiles - 1) / 2));
            whole_kernel<STRIPS><<<grid, 32 * STRIPS, bytes, stream>>>(job);
        }
    return cudaGetLastError();
}

typedef cudaError_t (*launcher)(const tess_moments_job &job, cudaStream_t stream);

} // namespace

unsigned tess_moments_resident(int strips)
{
    return (unsigned)resident_of(strips);
}

cudaError_t tess_moments_products(const tess_moments_job &job, cudaStream_t stream)
{
    static const launcher launchers[2 * TESS_STRIPS] = {
        launch<1>, launch<2>,  launch<3>,  launch<4>,  launch<5>,  launch<6>,  launch<7>,  launch<8>,
        launch<9>, launch<10>, launch<11>, launch<12>, launch<13>, launch<14>, launch<15>, launch<16>};
    return launchers[job.plan.blocks - 1](job, stream);
}
