/* SCORE: |F (x - mu)|^2 in fp32, as a matrix product whose result is never stored.
 *
 * A CTA takes PIXELS pixels and all rows of F, 16 ROWS of them at a time. Both operands pass through shared memory
 * DEPTH channels at a time, [channel][pixel] and [channel][row]; the next ones are read into registers meanwhile, 16 lanes
 * a pixel, so that a load touches few lines of memory. Thread t has pixels 4 (t % 16) + 0..3 and the same + 64, and rows
 * t / 16 + 16 i, which lie side by side: 8 x 7 multiply-adds take 4 loads of 16 bytes, without bank conflicts or the
 * same for half a warp, 6 clocks of shared memory for every 14 of the fp32 units. At the end of a pass a thread squares its 8 x ROWS products; 16
 * threads then have parts of a pixel's sum, which are added in their order.
 *
 * TF32 is not used: a covariance of condition 1e8 makes 1e4 cancel in F (x - mu), and a TF32 product, even of three
 * parts, leaves too few digits of the smallest directions. */
#include <cuda/std/limits>

#include "cuda/statistics/moments.cuh"

namespace
{

enum { THREADS = 256, PIXELS = 128, DEPTH = 16, SIDE = 16, MOST = 8, LINE = PIXELS + 4 };
enum { PER = PIXELS * DEPTH / THREADS, QUARTER = 4 };

struct score_job {
    tess_tensor in, out;
    bool flat, flat_out;
    int channels, rows, passes;
    int64_t pixels;
    const float *from, *mu, *factor;
    float *to;
};

/* Rows of a thread, of whole loads; 4 places more between channels, for writes to use different banks. */
constexpr int padded(int rows)
{
    return (rows + 3) / 4 * 4;
}

template <int ROWS> struct stage {
    float x[DEPTH][LINE], f[DEPTH][SIDE * padded(ROWS) + 4];
};

/* What a thread reads of DEPTH channels: one of them, of PER pixels and ROWS rows of F. */
template <int ROWS> struct operands {
    float x[PER], f[padded(ROWS)] = {};

    /* `places`: offsets of the CTA's pixels; below 0: there is none. */
    __device__ __forceinline__ void read(const score_job &job, const int64_t *places, int pass, int channel)
    {
        const int c = channel + (int)threadIdx.x % DEPTH, side = (int)threadIdx.x / DEPTH;
        const bool there = c < job.channels;
        const float mu = there ? __ldg(job.mu + c) : 0;
#pragma unroll
        for (int i = 0; i < PER; i++) {
            const int64_t place = places[side + SIDE * i];
            x[i] = there && place >= 0 ? __ldg(job.from + place + c) - mu : 0;
        }
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int row = pass * SIDE * ROWS + side + SIDE * i;
            f[i] = there && row < job.rows ? __ldg(job.factor + (int64_t)row * job.channels + c) : 0;
        }
    }

    __device__ __forceinline__ void write(stage<ROWS> &to) const
    {
        const int c = (int)threadIdx.x % DEPTH, side = (int)threadIdx.x / DEPTH;
#pragma unroll
        for (int i = 0; i < PER; i++)
            to.x[c][side + SIDE * i] = x[i];
#pragma unroll
        for (int i = 0; i < padded(ROWS); i += 4)
            *(float4 *)&to.f[c][side * padded(ROWS) + i] = make_float4(f[i], f[i + 1], f[i + 2], f[i + 3]);
    }
};

/* QUARTER channels from `first` on. */
template <int ROWS>
__device__ __forceinline__ void multiply(float (&sum)[8][ROWS], const stage<ROWS> &from, int first)
{
#pragma unroll
    for (int c = first; c < first + QUARTER; c++) {
        const float4 low = *(const float4 *)&from.x[c][threadIdx.x % SIDE * 4],
                     high = *(const float4 *)&from.x[c][threadIdx.x % SIDE * 4 + PIXELS / 2];
        const float x[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        __align__(16) float f[padded(ROWS)];
#pragma unroll
        for (int i = 0; i < padded(ROWS); i += 4)
            *(float4 *)&f[i] = *(const float4 *)&from.f[c][threadIdx.x / SIDE * padded(ROWS) + i];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int p = 0; p < 8; p++)
                sum[p][i] = __fmaf_rn(x[p], f[i], sum[p][i]);
    }
}

/* One pass over all channels; two stages: the next is written while others still read this one. */
template <int ROWS>
__device__ __forceinline__ void products(float (&sum)[8][ROWS], const score_job &job, stage<ROWS> *stages,
                                         const int64_t *places, int pass)
{
    operands<ROWS> next;
    next.read(job, places, pass, 0);
    for (int c = 0; c < job.channels; c += DEPTH) {
        stage<ROWS> &now = stages[c / DEPTH % 2];
        next.write(now);
        __syncthreads();
        if (c + DEPTH < job.channels) {
            next.read(job, places, pass, c + DEPTH);
#pragma unroll(ROWS < MOST ? DEPTH / QUARTER : 1) /* as registers allow */
            for (int first = 0; first < DEPTH; first += QUARTER)
                multiply<ROWS>(sum, now, first);
        } else {
            for (int first = 0; first < job.channels - c; first += QUARTER)
                multiply<ROWS>(sum, now, first);
        }
    }
    __syncthreads(); /* the stages are used up */
}

template <int ROWS>
__global__ void __launch_bounds__(THREADS, 2) score_kernel(const __grid_constant__ score_job job)
{
    __shared__ __align__(16) stage<ROWS> stages[2];
    __shared__ int64_t places[PIXELS];
    float(*squares)[LINE] = stages[0].x; /* SIDE = DEPTH lines */
    const int64_t mine = (int64_t)blockIdx.x * PIXELS + threadIdx.x % PIXELS;
    if (threadIdx.x < PIXELS)
        places[threadIdx.x] = mine < job.pixels ? tess_moments_place(job.in, job.flat, mine) : -1;
    __syncthreads();
    float score = 0;
    for (int pass = 0; pass < job.passes; pass++) {
        float sum[8][ROWS] = {};
        products<ROWS>(sum, job, stages, places, pass);
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
        __syncthreads();
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
