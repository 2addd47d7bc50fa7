/* SCORE: |F (x - mu)|^2 in fp32, as a matrix product whose result is never stored.
 *
 * A CTA takes PIXELS pixels and all rows of F, 16 ROWS of them at a time. Both operands pass through shared memory
 * DEPTH channels at a time, [channel][pixel] and [channel][row]; the next ones are read into registers meanwhile.
 * Thread t has pixels 4 (t % 16) + 0..3 and the same + 64, and rows t / 16 + 16 i: its loads are without bank conflicts
 * or the same for half a warp. At the end of a pass it squares its 8 x ROWS products; 16 threads then have parts of a
 * pixel's sum, which are added in their order.
 *
 * TF32 is not used: a covariance of condition 1e8 makes 1e4 cancel in F (x - mu), and a TF32 product, even of three
 * parts, leaves too few digits of the smallest directions. */
#include <cuda/std/limits>

#include "cuda/statistics/moments.cuh"

namespace
{

enum { THREADS = 256, PIXELS = 128, DEPTH = 16, SIDE = 16, MOST = 8, LINE = PIXELS + 4 };
enum { PER = PIXELS * DEPTH / THREADS };

struct score_job {
    tess_tensor in, out;
    bool flat, flat_out;
    int channels, rows, passes;
    int64_t pixels;
    const float *from, *mu, *factor;
    float *to;
};

/* What a thread reads of DEPTH channels: 8 of them of one pixel, and ROWS values of F. */
template <int ROWS> struct operands {
    float x[PER], f[ROWS];

    __device__ __forceinline__ void read(const score_job &job, const float *pixel, int pass, int channel)
    {
        const int half = (int)threadIdx.x / PIXELS * PER;
#pragma unroll
        for (int i = 0; i < PER; i++) {
            const int c = channel + half + i;
            x[i] = pixel && c < job.channels ? __ldg(pixel + c) - __ldg(job.mu + c) : 0;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int c = channel + (int)threadIdx.x % DEPTH,
                      row = pass * SIDE * ROWS + (int)threadIdx.x / DEPTH + SIDE * i;
            f[i] =
                c < job.channels && row < job.rows ? __ldg(job.factor + (int64_t)row * job.channels + c) : 0;
        }
    }

    __device__ __forceinline__ void write(float (*xs)[LINE], float (*fs)[SIDE * ROWS + 1]) const
    {
        const int half = (int)threadIdx.x / PIXELS * PER;
#pragma unroll
        for (int i = 0; i < PER; i++)
            xs[half + i][threadIdx.x % PIXELS] = x[i];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            fs[threadIdx.x % DEPTH][threadIdx.x / DEPTH + SIDE * i] = f[i];
    }
};

template <int ROWS>
__device__ __forceinline__ void multiply(float (&sum)[8][ROWS], const float (*xs)[LINE],
                                         const float (*fs)[SIDE * ROWS + 1])
{
#pragma unroll
    for (int c = 0; c < DEPTH; c++) {
        const float4 low = *(const float4 *)&xs[c][threadIdx.x % SIDE * 4],
                     high = *(const float4 *)&xs[c][threadIdx.x % SIDE * 4 + PIXELS / 2];
        const float x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const float f = fs[c][threadIdx.x / SIDE + SIDE * i];
#pragma unroll
            for (int p = 0; p < 8; p++)
                sum[p][i] = __fmaf_rn(x[p], f, sum[p][i]);
        }
    }
}

template <int ROWS>
__global__ void __launch_bounds__(THREADS, 2) score_kernel(const __grid_constant__ score_job job)
{
    __shared__ __align__(16) float xs[DEPTH][LINE];
    __shared__ float fs[DEPTH][SIDE * ROWS + 1], squares[SIDE][LINE];
    const int64_t first = (int64_t)blockIdx.x * PIXELS, mine = first + threadIdx.x % PIXELS;
    const float *pixel = mine < job.pixels ? job.from + tess_moments_place(job.in, job.flat, mine) : NULL;
    float score = 0;
    for (int pass = 0; pass < job.passes; pass++) {
        float sum[8][ROWS] = {};
        operands<ROWS> next;
        next.read(job, pixel, pass, 0);
        for (int c = 0; c < job.channels; c += DEPTH) {
            __syncthreads(); /* the channels before are used up */
            next.write(xs, fs);
            __syncthreads();
            if (c + DEPTH < job.channels)
                next.read(job, pixel, pass, c + DEPTH);
            multiply<ROWS>(sum, xs, fs);
        }
#pragma unroll
        for (int p = 0; p < 8; p++) {
            float total = 0;
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                total = __fmaf_rn(sum[p][i], sum[p][i], total);
            squares[threadIdx.x / SIDE][threadIdx.x % SIDE * 4 + p % 4 + p / 4 * (PIXELS / 2)] = total;
        }
        __syncthreads();
        for (int i = 0; threadIdx.x < PIXELS && i < SIDE; i++)
            score += squares[i][threadIdx.x];
    }
    if (threadIdx.x < PIXELS && mine < job.pixels)
        job.to[tess_moments_place(job.out, job.flat_out, mine)] =
            isfinite(score) ? score : cuda::std::numeric_limits<float>::quiet_NaN();
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *in = &op->in[0], *factor = &op->in[2];
    if (in->dtype != TESS_F32 || op->out[0].dtype != TESS_F32)
        return "scores take pixels of fp32 values";
    if (in->c < 1 || in->c > 1 << 14 || in->n * tess_pixels(in) < 1)
        return "statistics take pixels of 1 to 16384 channels";
    if (!tess_is_vector(&op->in[1], in->c) || factor->c != in->c ||
        !tess_is_vector(factor, tess_values(factor)) || tess_values(factor) < 1 ||
        tess_values(factor) > INT32_MAX)
        return "a score takes a mean of c fp32 values and a factor of rows of c fp32 values";
    return in->n * tess_pixels(in) > (int64_t)INT32_MAX * PIXELS ? "it has too many pixels" : NULL;
}

template <int ROWS> cudaError_t launch(const score_job &job, cudaStream_t stream)
{
    score_kernel<ROWS><<<(unsigned)((job.pixels + PIXELS - 1) / PIXELS), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    score_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.flat = tess_moments_even(&job.in);
    job.flat_out = tess_moments_even(&job.out);
    job.channels = (int)op->in[0].c;
    job.rows = (int)(tess_values(&op->in[2]) / op->in[2].c);
    job.passes = (job.rows + SIDE * MOST - 1) / (SIDE * MOST);
    job.pixels = op->in[0].n * tess_pixels(&op->in[0]);
    job.from = (const float *)b->in[0];
    job.mu = (const float *)b->in[1];
    job.factor = (const float *)b->in[2];
    job.to = (float *)b->out[0];
    const int each = (job.rows + job.passes - 1) / job.passes;
    switch ((each + SIDE - 1) / SIDE) { /* rows of a thread: few are computed for nothing */
    case 1:
        return launch<1>(job, stream);
    case 2:
        return launch<2>(job, stream);
    case 3:
        return launch<3>(job, stream);
    case 4:
        return launch<4>(job, stream);
    case 5:
        return launch<5>(job, stream);
    case 6:
        return launch<6>(job, stream);
    case 7:
        return launch<7>(job, stream);
    default:
        return launch<8>(job, stream);
    }
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_score = {refuses, run};
