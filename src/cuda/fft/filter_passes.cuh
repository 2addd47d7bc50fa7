/* filter_passes.cuh: transforms of images, and filters between two transforms, in passes that each read and
 * write the image once (private to filter.cu):
 *
 *   rows      transforms every row (or pair of rows) and writes its half spectrum to the work area;
 *   columns   transforms every column of the work area, filters it and transforms it back in place;
 *   rows      transforms back to the image.
 *
 * The work area is divided into strips of STRIP columns of one channel, one row after another: a block of the
 * column pass reads a strip without gaps, and a row writes whole sectors. For 2048 x 1366 x 3 fp32 values that
 * is 34 MB, seven times in total (including S and the spectrum of the data), 60 us at 4 TB/s. The rows, whose
 * length is 2 * 683, need 4 transforms of 2048 per row and channel: 1.9 GB through shared memory, about the
 * same time.
 *
 * Rows: LINE / 16 threads per line, one line for each channel of a row if a block has room; results are then
 * written through shared memory in the order of the image. Columns: COLUMNS neighbours per block, in
 * neighbouring threads. */
#ifndef TESS_CUDA_FILTER_PASSES_CUH
#define TESS_CUDA_FILTER_PASSES_CUH

#include "cuda/fft/filter.h"
#include "cuda/fft/lines.cuh"

namespace
{

/* Registers allow two blocks of 384 threads; every card since Ampere has this much shared memory. */
enum { STRIP = 4, MOST_THREADS = 768, MOST_SHARED = 96 << 10 };

struct row_job {
    line_tables table;
    const float2 *row_roots;
    const float *in;
    float *out;
    float2 *work;
    int64_t row, pixel; /* steps in the image */
    int height, width, channels, bins, lines;
    bool even, whole; /* whole: a block has all channels of its rows, without gaps */
};

struct column_job {
    line_tables table;
    float2 *work;
    const float *power, *data;
    float *waves;
    int64_t power_row, power_column, data_row, data_column, waves_row, waves_column;
    int height, bins, channels;
    float a, b, c, d, e;
    int mode;
};

__device__ __forceinline__ int64_t strip_at(int height, int bins, int channel, int bin)
{
    return ((int64_t)(channel * ((bins + STRIP - 1) / STRIP) + bin / STRIP) * height) * STRIP + bin % STRIP;
}

template <int LINE> __host__ __device__ constexpr int shared_line()
{
    return LINE + LINE / HELD;
}

/* The position of one line: `unit` is a row, or a pair of rows if the width is odd. */
struct row_place {
    int j, slot, channel, unit;
    bool there;
    int64_t image; /* offset of the first value */
    bool second;   /* there is a second row */
};

template <int LINE> __device__ __forceinline__ row_place place_of(const row_job &job)
{
    constexpr int THREADS = LINE / HELD;
    row_place p;
    p.j = threadIdx.x % THREADS;
    p.slot = threadIdx.x / THREADS;
    const int line = blockIdx.x * (blockDim.x / THREADS) + p.slot;
    p.there = line < job.lines;
    p.channel = line % job.channels;
    p.unit = line / job.channels;
    const int row = job.even ? p.unit : 2 * p.unit;
    p.image = row * job.row + p.channel;
    p.second = row + 1 < job.height;
    return p;
}

template <int LINE, bool CHIRP>
__global__ void __launch_bounds__(MOST_THREADS) rows_kernel(const __grid_constant__ row_job job)
{
    extern __shared__ float2 all[];
    constexpr int THREADS = LINE / HELD;
    const row_place p = place_of<LINE>(job);
    float2 *shared = all + p.slot * shared_line<LINE>();
    const int n = job.table.n;
    float2 v[HELD];
#pragma unroll
    for (int q = 0; q < HELD; q++) {
        const int k = p.j + q * THREADS;
        v[q] = make_float2(0, 0);
        if (k >= n || !p.there)
            continue;
        if (job.even)
            v[q] =
                make_float2(job.in[p.image + 2 * k * job.pixel], job.in[p.image + (2 * k + 1) * job.pixel]);
        else
            v[q] = make_float2(job.in[p.image + k * job.pixel],
                               p.second ? job.in[p.image + job.row + k * job.pixel] : 0);
    }
    transform<LINE, CHIRP>(v, shared, p.j, job.table);
    __syncthreads();
#pragma unroll
    for (int q = 0; q < HELD; q++)
        if (p.j + q * THREADS < n)
            shared[p.j + q * THREADS] = v[q];
    __syncthreads();
    if (!p.there)
        return;
    for (int k = p.j; k < job.bins; k += THREADS) {
        const float2 x = shared[k == n ? 0 : k], y = conjugate(shared[k == 0 ? 0 : n - k]);
        const float2 sum = x + y, difference = x - y;
        const float2 one = make_float2(0.5f * sum.x, 0.5f * sum.y),
                     two = make_float2(0.5f * difference.y, -0.5f * difference.x); /* divided by i */
        float2 *to = job.work + strip_at(job.height, job.bins, p.channel, k);
        if (job.even) {
            to[(int64_t)p.unit * STRIP] = one + job.row_roots[k] * two;
        } else {
            to[(int64_t)(2 * p.unit) * STRIP] = one;
            if (p.second)
                to[(int64_t)(2 * p.unit + 1) * STRIP] = two;
        }
    }
}

/* Value k joined from the two halves of a spectrum, times 2 if the width is even. The first and the middle
 * value of a real row's spectrum are real: their imaginary parts are rounding errors and are ignored. */
__device__ __forceinline__ float2 joined(const row_job &job, const row_place &p, int k)
{
    const int n = job.table.n, other = n - k;
    const int64_t rows = (int64_t)STRIP * (job.even ? p.unit : 2 * p.unit);
    if (job.even) {
        float2 x = job.work[strip_at(job.height, job.bins, p.channel, k) + rows],
               y = conjugate(job.work[strip_at(job.height, job.bins, p.channel, other) + rows]);
        if (k == 0)
            x.y = y.y = 0;
        return (x + y) + turned((x - y) * conjugate(job.row_roots[k]));
    }
    const bool low = k < job.bins;
    const float2 *from = job.work + strip_at(job.height, job.bins, p.channel, low ? k : other) + rows;
    float2 x = from[0], y = p.second ? from[STRIP] : make_float2(0, 0);
    if (k == 0)
        x.y = y.y = 0;
    if (!low)
        x = conjugate(x), y = conjugate(y);
    return x + turned(y);
}

template <int LINE, bool CHIRP>
__global__ void __launch_bounds__(MOST_THREADS) rows_back_kernel(const __grid_constant__ row_job job)
{
    extern __shared__ float2 all[];
    constexpr int THREADS = LINE / HELD;
    const row_place p = place_of<LINE>(job);
    const int n = job.table.n;
    float2 v[HELD];
#pragma unroll
    for (int q = 0; q < HELD; q++) {
        const int k = p.j + q * THREADS;
        v[q] = k < n && p.there ? joined(job, p, k) : make_float2(0, 0);
    }
    exchange_parts(v);
    transform<LINE, CHIRP>(v, all + p.slot * shared_line<LINE>(), p.j, job.table);
    exchange_parts(v);
    const int step = job.even ? 2 : 1;
    if (job.whole) { /* first row, then second row */
        float *rows = (float *)all;
        const int row = job.width * job.channels;
        __syncthreads();
#pragma unroll
        for (int q = 0; q < HELD; q++) {
            const int k = p.j + q * THREADS;
            if (k < n) {
                rows[step * k * job.channels + p.channel] = v[q].x;
                rows[job.even ? (2 * k + 1) * job.channels + p.channel : row + k * job.channels + p.channel] =
                    v[q].y;
            }
        }
        __syncthreads();
        float *to = job.out + (job.even ? p.unit : 2 * p.unit) * job.row;
        for (int i = threadIdx.x; i < row; i += blockDim.x)
            to[i] = rows[i];
        for (int i = threadIdx.x; !job.even && p.second && i < row; i += blockDim.x)
            to[job.row + i] = rows[row + i];
        return;
    }
#pragma unroll
    for (int q = 0; q < HELD; q++) {
        const int k = p.j + q * THREADS;
        if (k >= n || !p.there)
            continue;
        job.out[p.image + step * k * job.pixel] = v[q].x;
        if (job.even)
            job.out[p.image + (2 * k + 1) * job.pixel] = v[q].y;
        else if (p.second)
            job.out[p.image + job.row + k * job.pixel] = v[q].y;
    }
}

__device__ __forceinline__ float2 filtered(float2 x, float s, float2 data, float a, float b, float c, float d,
                                           float e)
{
    const float share = 1 / (d + e * s), gain = (a + b * s) * share, more = c * share;
    return make_float2(gain * x.x + more * data.x, gain * x.y + more * data.y);
}

template <int LINE, bool CHIRP, int COLUMNS>
__global__ void __launch_bounds__(LINE / HELD * COLUMNS)
    columns_kernel(const __grid_constant__ column_job job)
{
    extern __shared__ float2 all[];
    constexpr int THREADS = LINE / HELD;
    /* Each line starts 4 values further in its bank: neighbouring columns have no bank conflicts. */
    constexpr int PITCH = shared_line<LINE>() + 4;
    const int column = threadIdx.x % COLUMNS, j = threadIdx.x / COLUMNS;
    const int channel = blockIdx.x % job.channels, bin = blockIdx.x / job.channels * COLUMNS + column;
    const bool there = bin < job.bins;
    float2 *shared = all + column * PITCH;
    float2 *work = job.work + (there ? strip_at(job.height, job.bins, channel, bin) : 0);
    float2 *waves = (float2 *)(job.waves + bin * job.waves_column + 2 * channel);
    const int64_t waves_row = job.waves_row / 2;
    float2 v[HELD];
#pragma unroll
    for (int q = 0; q < HELD; q++) {
        const int64_t y = j + q * THREADS;
        v[q] = make_float2(0, 0);
        if (there && y < job.height)
            v[q] = job.mode == TESS_FILTER_INVERSE ? waves[y * waves_row] : work[y * STRIP];
    }
    if (job.mode != TESS_FILTER_INVERSE)
        transform<LINE, CHIRP>(v, shared, j, job.table);
#pragma unroll
    for (int q = 0; q < HELD; q++) {
        const int64_t y = j + q * THREADS;
        if (!there || y >= job.height)
            continue;
        if (job.mode == TESS_FILTER_FORWARD) {
            waves[y * waves_row] = v[q];
        } else if (job.mode == TESS_FILTER_BOTH) {
            const float s = job.power[y * job.power_row + bin * job.power_column];
            float2 data = make_float2(0, 0);
            if (job.data)
                data = *(const float2 *)(job.data + y * job.data_row + bin * job.data_column + 2 * channel);
            v[q] = filtered(v[q], s, data, job.a, job.b, job.c, job.d, job.e);
        } else {
            v[q] = make_float2(job.a * v[q].x, job.a * v[q].y);
        }
    }
    if (job.mode == TESS_FILTER_FORWARD)
        return;
    exchange_parts(v);
    transform<LINE, CHIRP>(v, shared, j, job.table);
    exchange_parts(v);
#pragma unroll
    for (int q = 0; q < HELD; q++) {
        const int64_t y = j + q * THREADS;
        if (there && y < job.height)
            work[y * STRIP] = v[q];
    }
}

/* One thread per value of the spectrum; y of the grid: rows. */
__global__ void product_kernel(const __grid_constant__ column_job job)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, bin = i / job.channels, channel = i % job.channels;
    if (bin >= job.bins)
        return;
    for (int64_t y = blockIdx.y; y < job.height; y += gridDim.y) {
        float2 *x = (float2 *)(job.waves + y * job.waves_row + bin * job.waves_column + 2 * channel);
        float2 data = make_float2(0, 0);
        if (job.data)
            data = *(const float2 *)(job.data + y * job.data_row + bin * job.data_column + 2 * channel);
        *x = filtered(*x, job.power[y * job.power_row + bin * job.power_column], data, job.a, job.b, job.c,
                      job.d, job.e);
    }
}

} // namespace

#endif
