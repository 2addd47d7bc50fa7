/* conv_float.cu: fp32 convolutions whose input channels are a multiple of 16. It computes the same sums as
 * conv.cu in the same order, but moves all other work out of the loop of multiply-adds.
 *
 * A block of 128 threads computes 128 pixels x 64 channels. Pixels and weights are copied from global to
 * shared memory without registers, three steps ahead, and keep their layout there, channels innermost: a
 * thread reads four channels of a row at a time. Thread (tx, ty) of 8 x 16 holds pixels ty + 16 i and columns
 * tx + 8 j; rows of 80 bytes put the eight columns that are read at once into different banks. The order of
 * columns gives each thread two groups of four neighbouring output channels, so that it writes 16 bytes at a
 * time. */
#include "cuda/conv/conv.cuh"

namespace
{

enum {
    ROWS = 128,
    COLUMNS = 64,
    DEPTH = 16,
    PITCH = DEPTH + 4,
    STAGES = 3,
    THREADS = 128,
    GROUP = 32,
    MOST_TAPS = 32
};

/* Copies 16 bytes to shared memory; zeros if `use` is false. */
__device__ __forceinline__ void bring(float *to, const float *from, bool use)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(use ? 16 : 0)
                 : "memory");
}

/* The column of a channel of the block's 64: tx + 8 j for thread tx, which has channels 4 tx.. and 32 + 4 tx.. */
__device__ __forceinline__ int row_of_channel(int channel)
{
    const int tx = channel % GROUP / 4, j = channel / GROUP * 4 + channel % 4;
    return tx + 8 * j;
}

/* The copies of a thread: channels quad().. of pixels lane + 32 i and of columns lane + 32 i. */
struct fetcher {
    const tess_conv_job &job;
    const float *pixel[4], *weights;
    uint32_t inside[4]; /* one bit per tap: taps outside the image read zeros */
    int64_t offset;     /* of this tap and channel from the first of a pixel */
    int tap, kx, channel;
    bool real[2];

    static __device__ __forceinline__ int quad()
    {
        return 4 * (threadIdx.x % 4);
    }

    static __device__ __forceinline__ int lane()
    {
        return threadIdx.x / 4;
    }

    __device__ __forceinline__ fetcher(const tess_conv_job &j, unsigned first_row, int first_column,
                                       int tap_z)
        : job(j), offset(0), tap(0), kx(0), channel(0)
    {
        const unsigned w = (unsigned)job.w, h = (unsigned)job.h;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const unsigned row = first_row + lane() + 32 * i, line = row / w, n = line / h;
            const int x = (int)(row - line * w) * job.stride_x - job.left,
                      y = (int)(line - n * h) * job.stride_y - job.top;
            pixel[i] = (const float *)job.in + n * job.in_n + y * job.in_y + x * job.in_x + quad();
            inside[i] = 0;
            uint32_t bit = row < job.pixels ? 1 : 0;
#pragma unroll 1
            for (int dy = 0; dy < job.kh; dy++)
#pragma unroll 1
                for (int dx = 0; dx < job.kw; dx++, bit <<= 1)
                    if ((unsigned)(y + dy) < (unsigned)job.in_h && (unsigned)(x + dx) < (unsigned)job.in_w)
                        inside[i] |= bit;
        }
        real[0] = first_column + lane() < job.cout;
        real[1] = first_column + lane() + 32 < job.cout;
        weights = (const float *)job.weights +
                  ((int64_t)tap_z * job.cout + first_column + lane()) * job.kh * job.kw * job.cin + quad();
    }

    __device__ __forceinline__ void next(float (*rows)[PITCH], float (*columns)[PITCH])
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool use = inside[i] >> tap & 1;
            bring(&rows[lane() + 32 * i][quad()], use ? pixel[i] + offset : (const float *)job.in, use);
        }
#pragma unroll
        for (int i = 0; i < 2; i++)
            bring(&columns[row_of_channel(lane() + 32 * i)][quad()],
                  real[i] ? weights + 32 * i * (job.kh * job.kw * job.cin) : (const float *)job.weights,
                  real[i]);
        weights += DEPTH;
        offset += DEPTH;
        channel += DEPTH;
        if (channel < job.cin)
            return;
        channel = 0;
        tap++;
        offset += job.in_x - job.cin;
        if (++kx == job.kw) {
            kx = 0;
            offset += job.in_y - job.kw * job.in_x;
        }
    }
};

__device__ __forceinline__ void multiply(const float (*rows)[PITCH], const float (*columns)[PITCH], int tx,
                                         int ty, float sums[8][8])
{
#pragma unroll 1 /* full unrolling needs more registers than three blocks have */
    for (int k = 0; k < DEPTH; k += 4) {
        float a[8][4], b[4];
#pragma unroll
        for (int i = 0; i < 8; i++)
            tess_load<4>(&rows[ty + 16 * i][k], a[i]);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            tess_load<4>(&columns[tx + 8 * j][k], b);
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    sums[i][j] = fmaf(a[i][e], b[e], sums[i][j]);
        }
    }
}

__global__ void __launch_bounds__(THREADS, 3) conv_float_kernel(const __grid_constant__ tess_conv_job job)
{
    __shared__ __align__(16) float rows[STAGES][ROWS][PITCH], columns[STAGES][COLUMNS][PITCH];
    const unsigned first_row = blockIdx.x * ROWS;
    const int first_column = blockIdx.y * COLUMNS, tap_z = blockIdx.z;
    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    const int steps = job.kh * job.kw * (int)(job.cin / DEPTH);
    fetcher fetch(job, first_row, first_column, tap_z);
    float sums[8][8] = {};
    int fetched = 0;
#pragma unroll
    for (; fetched < STAGES - 1; fetched++) {
        if (fetched < steps)
            fetch.next(rows[fetched], columns[fetched]);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = 0, at = 0, to = STAGES - 1; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); /* this step has arrived, and all threads have read the one before */
        if (step + STAGES - 1 < steps)
            fetch.next(rows[to], columns[to]);
        /* Also if empty: wait_group counts the groups. */
        asm volatile("cp.async.commit_group;" ::: "memory");
        multiply(rows[at], columns[at], tx, ty, sums);
        at = at == STAGES - 1 ? 0 : at + 1;
        to = to == STAGES - 1 ? 0 : to + 1;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const unsigned row = first_row + ty + 16 * i, w = (unsigned)job.w, h = (unsigned)job.h;
        if (row >= job.pixels)
            break;
        const unsigned line = row / w, n = line / h;
        const int64_t x = (int64_t)(row - line * w) * job.spread_x + tap_z % job.spread_x,
                      y = (int64_t)(line - n * h) * job.spread_y + tap_z / job.spread_x;
        tess_conv_finish<float>(job, n, y, x, first_column + 4 * tx, sums[i]);
        tess_conv_finish<float>(job, n, y, x, first_column + GROUP + 4 * tx, sums[i] + 4);
    }
}

} // namespace

extern "C" bool tess_cuda_conv_float_fits(const tess_conv_job *job)
{
    return job->kh * job->kw <= MOST_TAPS && job->cin % DEPTH == 0 && job->wide_in &&
           (uintptr_t)job->weights % 16 == 0 && job->pixels < UINT32_MAX - ROWS && job->in_h < 1 << 29 &&
           job->in_w < 1 << 29;
}

extern "C" cudaError_t tess_cuda_conv_float(const tess_conv_job *job, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((job->pixels + ROWS - 1) / ROWS),
                      (unsigned)((job->cout + COLUMNS - 1) / COLUMNS),
                      (unsigned)(job->spread_y * job->spread_x));
    conv_float_kernel<<<blocks, THREADS, 0, stream>>>(*job);
    return cudaGetLastError();
}
