/* MOMENTS. moments_products.cu sums the products of all pairs of channels, around a shift near the means, for ranges of
 * pixels that the sizes alone decide; here, the ranges are summed in their order, and the sums become means and second
 * moments that are merged into the output by Chan's formulas (tensor/moments.h).
 *
 * shift_kernel: the mean of at most SAMPLES pixels, for the sums to lose no digits; a warp takes every WARPS-th of them, a
 * lane a channel. counts_kernel: a warp a pixel; only if there is a mask, or more channels than one tile, so that no warp
 * sees whole pixels. sum_kernel: up to GROUPS threads a sum. second_kernel: a thread a pair of channels; first_kernel, a block an image,
 * afterwards: it overwrites what second_kernel reads. In all but counts_kernel, y is the image. */
#include <cuda/std/limits>

#include "cuda/statistics/moments.cuh"

#include "tensor/moments.h"

namespace
{

enum { THREADS = 256, WARPS = THREADS / 32, SAMPLES = 256, CARD = 132, LEAST = 64 };
enum { MOST_CHANNELS = 4096, MOST_IMAGES = 65535, EACH = 2, GROUPS = 16 };

__global__ void __launch_bounds__(THREADS)
    shift_kernel(const __grid_constant__ tess_moments_job job, float *shift)
{
    __shared__ double sums[WARPS][32];
    __shared__ int counts[WARPS][32];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, c = (int)blockIdx.x * 32 + lane;
    const int64_t pixels = job.plan.each, samples = pixels < SAMPLES ? pixels : SAMPLES,
                  start = blockIdx.y * pixels;
    float values[SAMPLES / WARPS]; /* all are on their way before one is used */
#pragma unroll
    for (int i = 0; i < SAMPLES / WARPS; i++) {
        const int64_t sample = warp + i * WARPS,
                      pixel = pixels < SAMPLES ? sample : sample * pixels / SAMPLES;
        values[i] = sample < samples && c < job.plan.channels
                        ? job.from[tess_moments_place(job.in, job.flat, start + pixel) + c]
                        : cuda::std::numeric_limits<float>::infinity();
    }
    double sum = 0;
    int count = 0;
#pragma unroll
    for (int i = 0; i < SAMPLES / WARPS; i++)
        if (isfinite(values[i])) {
            sum += (double)values[i];
            count++;
        }
    sums[warp][lane] = sum;
    counts[warp][lane] = count;
    __syncthreads();
    if (warp > 0 || c >= job.plan.channels)
        return;
    for (int w = 1; w < WARPS; w++) {
        sum += sums[w][lane];
        count += counts[w][lane];
    }
    shift[(int64_t)blockIdx.y * job.plan.channels + c] = count > 0 ? (float)(sum / count) : 0;
}

__global__ void __launch_bounds__(THREADS)
    counts_kernel(const __grid_constant__ tess_moments_job job, uint8_t *counts)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t warps = (int64_t)gridDim.x * (THREADS / 32);
    for (int64_t p = (int64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32; p < job.plan.pixels;
         p += warps) {
        bool good = true;
        if (job.mask_from) {
            const int64_t at = tess_moments_place(job.mask, job.flat_mask, p);
            const float value = job.mask.dtype == TESS_U8 ? (float)((const uint8_t *)job.mask_from)[at]
                                                          : ((const float *)job.mask_from)[at];
            good = value < 0 || value > 0;
        }
        const float *from = job.from + tess_moments_place(job.in, job.flat, p);
        for (int c = lane; good && c < job.plan.channels; c += 32)
            good = isfinite(from[c]);
        good = __all_sync(0xffffffffu, good);
        if (lane == 0)
            counts[p] = good;
    }
}

/* x: sums, y: groups, each of every blockDim.y-th range. With few ranges, one group. */
__global__ void __launch_bounds__(32 * GROUPS) sum_kernel(const __grid_constant__ tess_moments_job job)
{
    __shared__ double sums[GROUPS][32];
    const int64_t i = (int64_t)blockIdx.x * 32 + threadIdx.x;
    const double *at = job.partial + (int64_t)blockIdx.y * job.plan.per * job.plan.values + i;
    double sum = 0;
    if (i < job.plan.values) {
#pragma unroll 8
        for (unsigned r = threadIdx.y; r < job.plan.per; r += blockDim.y)
            sum += at[(int64_t)r * job.plan.values];
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || i >= job.plan.values)
        return;
    for (unsigned group = 1; group < blockDim.y; group++)
        sum += sums[group][threadIdx.x];
    job.sums[blockIdx.y * job.plan.values + i] = sum;
}

/* What one image has: its sums, shifts and moments. */
struct image {
    const tess_moments_plan &plan;
    const double *sums;
    const float *shift;
    double *out;

    __device__ __forceinline__ image(const tess_moments_job &job, unsigned number)
        : plan(job.plan), sums(job.sums + number * job.plan.values),
          shift(job.shift + (int64_t)number * job.plan.channels), out(job.out + number * job.out_values)
    {
    }

    __device__ __forceinline__ double sum(int i, int j) const
    {
        return tess_moments_sum(plan, sums, i, j);
    }

    /* The difference between the mean of these pixels and that of the pixels before. */
    __device__ __forceinline__ double mean_step(int c, double count) const
    {
        return ((double)shift[c] - out[TESS_MOMENTS_MEAN + c]) + sum(c, plan.channels) / count;
    }
};

__global__ void __launch_bounds__(THREADS) second_kernel(const __grid_constant__ tess_moments_job job)
{
    const int c = job.plan.channels;
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int i = (int)(at / c), j = (int)(at - (int64_t)i * c);
    const image of(job, blockIdx.y);
    const double count = of.sum(c, c), before = of.out[TESS_MOMENTS_COUNT];
    if (i >= c || i > j || !(count > 0))
        return;
    const double si = of.sum(i, c), sj = of.sum(j, c);
    double *second = of.out + TESS_MOMENTS_MEAN + c, value = of.sum(i, j) - si * (sj / count);
    if (before > 0)
        value = second[(int64_t)i * c + j] +
                (value + before / (before + count) * count * of.mean_step(i, count) * of.mean_step(j, count));
    second[(int64_t)i * c + j] = value;
    second[(int64_t)j * c + i] = value;
}

__global__ void __launch_bounds__(THREADS) first_kernel(const __grid_constant__ tess_moments_job job)
{
    __shared__ float extremes[2][WARPS];
    const int c = job.plan.channels;
    const image of(job, blockIdx.y);
    const double count = of.sum(c, c), before = of.out[TESS_MOMENTS_COUNT];
    const int64_t found = (int64_t)job.plan.per * job.plan.tiles * TESS_EXTREMES;
    const float *from = job.extremes + 2 * blockIdx.y * found;
    float least = cuda::std::numeric_limits<float>::infinity(), largest = -least;
    for (int64_t i = threadIdx.x; i < found; i += THREADS) {
        least = fminf(least, from[2 * i]);
        largest = fmaxf(largest, from[2 * i + 1]);
    }
    tess_moments_widen(least, largest);
    extremes[0][threadIdx.x / 32] = least;
    extremes[1][threadIdx.x / 32] = largest;
    if (count > 0)
        for (int i = (int)threadIdx.x; i < c; i += THREADS) {
            double *mean = of.out + TESS_MOMENTS_MEAN + i;
            const double step = of.mean_step(i, count);
            *mean = before > 0 ? *mean + step * (count / (before + count)) : *mean + step;
        }
    __syncthreads(); /* all have read the count */
    if (threadIdx.x > 0 || !(count > 0))
        return;
    for (int i = 1; i < WARPS; i++) {
        least = fminf(least, extremes[0][i]);
        largest = fmaxf(largest, extremes[1][i]);
    }
    of.out[TESS_MOMENTS_COUNT] = before + count;
    of.out[TESS_MOMENTS_LEAST] = fmin(of.out[TESS_MOMENTS_LEAST], (double)least);
    of.out[TESS_MOMENTS_LARGEST] = fmax(of.out[TESS_MOMENTS_LARGEST], (double)largest);
}

int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* As many ranges as are worked on at a time, of images of their own twice as many, since these do not divide evenly; but none of
 * few pixels. Only sizes count, not the card: the bits stay the same. */
tess_moments_plan plan_of(const tess_op *op)
{
    tess_moments_plan p = {};
    p.channels = (int)op->in[0].c;
    const int blocks = ceil_div(p.channels + 1, TESS_BLOCK);
    p.tiles = ceil_div(blocks, TESS_BLOCKS);
    p.blocks = p.tiles > 1 ? 2 * ceil_div(blocks, 2 * p.tiles) : blocks;
    p.tiles = ceil_div(blocks, p.blocks);
    p.pixels = op->in[0].n * tess_pixels(&op->in[0]);
    p.images = op->moments.each ? (unsigned)op->in[0].n : 1;
    p.each = p.pixels / p.images;
    const int64_t most = CARD * (p.tiles > 1 ? 1 : (int64_t)tess_moments_resident(p.blocks)),
                  wanted = (p.each + LEAST - 1) / LEAST,
                  most_each = p.images > 1 ? (EACH * most + p.images - 1) / p.images : most;
    p.per = (unsigned)(wanted < most_each ? wanted : most_each);
    p.ranges = p.images * p.per;
    const int64_t all = (int64_t)p.tiles * p.blocks;
    p.values = tess_moments_pair(all, all, all) * TESS_BLOCK_VALUES;
    return p;
}

/* Not below the ranges of fewer images alike. */
int64_t most_ranges(const tess_moments_plan &p)
{
    const int64_t wanted = (p.each + LEAST - 1) / LEAST * p.images,
                  most =
                      EACH * CARD * (p.tiles > 1 ? 1 : (int64_t)tess_moments_resident(p.blocks)) + p.images;
    return p.images == 1 ? (int64_t)p.ranges : wanted < most ? wanted : most;
}

bool needs_counts(const tess_op *op)
{
    return op->inputs > 1 || plan_of(op).tiles > 1;
}

/* Sums of ranges, sums, shifts, extremes, counts, in this order; doubles first. */
size_t workspace(const tess_op *op)
{
    const tess_moments_plan p = plan_of(op);
    const size_t ranges = (size_t)most_ranges(p);
    return (ranges + p.images) * (size_t)p.values * sizeof(double) +
           ((size_t)p.channels * p.images + ranges * (size_t)p.tiles * TESS_EXTREMES * 2) * sizeof(float) +
           (needs_counts(op) ? (size_t)p.pixels : 0) + 16;
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *in = &op->in[0], *mask = &op->in[1];
    if (in->dtype != TESS_F32)
        return "statistics take pixels of fp32 values";
    if (in->c < 1 || in->c > MOST_CHANNELS || in->n * tess_pixels(in) < 1)
        return "moments take pixels of 1 to 4096 channels";
    tess_tensor one = *in;
    one.c = 1;
    if (op->inputs > 1 &&
        ((mask->dtype != TESS_U8 && mask->dtype != TESS_F32) || !tess_same_sizes(mask, &one)))
        return "a mask has one channel of uint8 or fp32 and the size of the image";
    const int64_t vectors = op->moments.each ? in->n : 1;
    if (vectors > MOST_IMAGES)
        return "at most 65535 images have moments each";
    if (op->out[0].dtype != TESS_F64 || !tess_dense(&op->out[0]) ||
        tess_values(&op->out[0]) !=
            vectors * (int64_t)tess_moments_values((int)in->c, op->moments.covariance))
        return "the output of moments is an fp64 vector of tess_moments_values values, or one for each image";
    return NULL;
}

/* The pixels and the mask of an op. */
tess_moments_job job_of(const tess_op *op, const tess_op_buffers *b)
{
    tess_moments_job job = {};
    job.plan = plan_of(op);
    job.in = op->in[0];
    job.flat = tess_moments_even(&job.in);
    job.from = (const float *)b->in[0];
    if (op->inputs > 1) {
        job.mask = op->in[1];
        job.flat_mask = tess_moments_even(&job.mask);
        job.mask_from = b->in[1];
    }
    return job;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    tess_moments_job job = job_of(op, b);
    job.covariance = op->moments.covariance;
    job.partial = (double *)(((uintptr_t)b->workspace + 15) / 16 * 16);
    job.sums = job.partial + job.plan.ranges * job.plan.values;
    float *shift = (float *)(job.sums + job.plan.images * job.plan.values);
    job.shift = shift;
    job.extremes = shift + (int64_t)job.plan.images * job.plan.channels;
    job.out = (double *)b->out[0];
    job.out_values = (int64_t)tess_moments_values(job.plan.channels, job.covariance);
    uint8_t *counts =
        (uint8_t *)(job.extremes + 2 * TESS_EXTREMES * (int64_t)job.plan.ranges * job.plan.tiles);
    const int c = job.plan.channels;
    const unsigned images = job.plan.images;
    shift_kernel<<<dim3((unsigned)ceil_div(c, 32), images), THREADS, 0, stream>>>(job, shift);
    if (needs_counts(op)) {
        counts_kernel<<<8 * CARD, THREADS, 0, stream>>>(job, counts);
        job.counts = counts;
    }
    const cudaError_t result = tess_moments_products(job, stream);
    if (result != cudaSuccess)
        return result;
    const dim3 sums((unsigned)((job.plan.values + 31) / 32), images),
        teams(32, job.plan.per < 4 * GROUPS ? 1 : GROUPS),
        pairs((unsigned)(((int64_t)c * c + THREADS - 1) / THREADS), images);
    sum_kernel<<<sums, teams, 0, stream>>>(job);
    if (job.covariance)
        second_kernel<<<pairs, THREADS, 0, stream>>>(job);
    first_kernel<<<dim3(1, images), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

} // namespace

cudaError_t tess_moments_counts(const tess_op *op, const tess_op_buffers *b, uint8_t *counts,
                                cudaStream_t stream)
{
    counts_kernel<<<8 * CARD, THREADS, 0, stream>>>(job_of(op, b), counts);
    return cudaGetLastError();
}

extern "C" const tess_cuda_launch tess_cuda_moments = {refuses, run, NULL, workspace};
