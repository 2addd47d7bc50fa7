/* attention_grad.cuh: what both kernels of ATTENTION_GRAD do with rows in registers and tiles in shared memory. */
#ifndef TESS_CUDA_ATTENTION_GRAD_CUH
#define TESS_CUDA_ATTENTION_GRAD_CUH

#include "cuda/core/tensors.cuh"

namespace
{

/* SHARED: floats of each of the two parts of a tile. */
enum { THREADS = 128, SHARED = 2048 };

/* The parts of a pixel. Queries, keys and values follow each other in the input and in its gradient. */
enum part { QUERY, KEY, VALUE, OUTPUT, GRADIENT };

struct grad_job {
    tess_tensor gradient, in, output, out;
    bool flat_gradient, flat_in, flat_output, flat_out; /* pixels are stride_w apart throughout an image */
    int heads, pixels, channels;                        /* pixels per image; channels per head */
    int64_t first_step, part_step; /* channels from one head to the next, and from its query to its key */
    float factor, scale;           /* of the scores; the same for powers of two */
    const void *gradient_from, *from, *output_from;
    void *to;
    float *numbers; /* [n][head][pixel][L, D] */
};

/* The tiles of a template: COUNT rows of PADDED channels, ROW floats apart, which avoids bank conflicts. */
template <int CHANNELS, int G, int S> struct tile {
    enum {
        PADDED = CHANNELS * G,
        COUNT = SHARED / PADDED,
        ROW = PADDED + 4 * G,
        FLOATS = COUNT * ROW,
        STEP = COUNT / S < 4 ? COUNT / S : 4
    };
};

/* The place of a thread: of its channels, of its columns, and its first row. */
struct lane {
    int g, s, first;
};

template <int ROWS, int G, int S> __device__ __forceinline__ lane lane_of()
{
    const int t = (int)threadIdx.x, teams = THREADS / (G * S);
    return lane{t % G, t / G % S, (int)blockIdx.x * teams * ROWS + t / (G * S)};
}

__device__ __forceinline__ float *row_numbers(const grad_job &job, int64_t n, int pixel)
{
    return job.numbers + 2 * ((n * job.heads + blockIdx.y) * job.pixels + pixel);
}

/* Value c of a part of a pixel, of the head of this block. */
__device__ __forceinline__ float part_value(const grad_job &job, int64_t n, int pixel, part which, int c)
{
    if (which == GRADIENT)
        return tess_value_at(job.gradient.dtype, job.gradient_from,
                             tess_place(job.gradient, job.flat_gradient, n, pixel) +
                                 (int64_t)blockIdx.y * job.channels + c);
    if (which == OUTPUT)
        return tess_value_at(job.output.dtype, job.output_from,
                             tess_place(job.output, job.flat_output, n, pixel) +
                                 (int64_t)blockIdx.y * job.channels + c);
    return tess_value_at(job.in.dtype, job.from,
                         tess_place(job.in, job.flat_in, n, pixel) + blockIdx.y * job.first_step +
                             which * job.part_step + c);
}

/* Loads two parts of the pixels from `first` on; channels beyond the head and pixels beyond the last are zeros. */
template <class SHAPE>
__device__ __forceinline__ void load_tile(const grad_job &job, int64_t n, int first, part one, part other,
                                          float *a, float *b)
{
    for (int i = (int)threadIdx.x; i < SHAPE::COUNT * SHAPE::PADDED; i += THREADS) {
        const int row = i / SHAPE::PADDED, c = i % SHAPE::PADDED;
        const bool there = c < job.channels && first + row < job.pixels;
        a[row * SHAPE::ROW + c] = there ? part_value(job, n, first + row, one, c) : 0;
        b[row * SHAPE::ROW + c] = there ? part_value(job, n, first + row, other, c) : 0;
    }
}

/* The channel of value i of a thread. */
template <int G> __device__ __forceinline__ int channel_of(int i, int g)
{
    return (i / 4 * G + g) * 4 + i % 4;
}

template <int CHANNELS, int G>
__device__ __forceinline__ void load_row(const grad_job &job, int64_t n, int pixel, int g, part which,
                                         float factor, float *values)
{
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        const int c = channel_of<G>(i, g);
        values[i] = c < job.channels && pixel < job.pixels ? factor * part_value(job, n, pixel, which, c) : 0;
    }
}

template <int CHANNELS, int G>
__device__ __forceinline__ void store_row(const grad_job &job, int64_t n, int pixel, int g, part which,
                                          float factor, const float *values)
{
    const int64_t at =
        tess_place(job.out, job.flat_out, n, pixel) + blockIdx.y * job.first_step + which * job.part_step;
#pragma unroll
    for (int i = 0; i < CHANNELS; i++) {
        const int c = channel_of<G>(i, g);
        if (c < job.channels)
            tess_put_at(job.out.dtype, job.to, at + c, factor * values[i]);
    }
}

/* results[r][k] = rows[r] . column, for all threads that share a row. */
template <int CHANNELS, int ROWS, int G, int STEP>
__device__ __forceinline__ void dot_rows(const float (&rows)[ROWS][CHANNELS], const float *column,
                                         float (&results)[ROWS][STEP], int k)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        results[r][k] = 0;
#pragma unroll
    for (int c = 0; c < CHANNELS; c += 4) {
        const float4 v = *(const float4 *)(column + c * G);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            results[r][k] +=
                rows[r][c] * v.x + rows[r][c + 1] * v.y + rows[r][c + 2] * v.z + rows[r][c + 3] * v.w;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int other = 1; other < G; other *= 2)
            results[r][k] += __shfl_xor_sync(~0u, results[r][k], other);
}

/* rows[r] += factors[r][k] * column. */
template <int CHANNELS, int ROWS, int G, int STEP>
__device__ __forceinline__ void add_rows(float (&rows)[ROWS][CHANNELS], const float *column,
                                         const float (&factors)[ROWS][STEP], int k)
{
#pragma unroll
    for (int c = 0; c < CHANNELS; c += 4) {
        const float4 v = *(const float4 *)(column + c * G);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            rows[r][c] += factors[r][k] * v.x;
            rows[r][c + 1] += factors[r][k] * v.y;
            rows[r][c + 2] += factors[r][k] * v.z;
            rows[r][c + 3] += factors[r][k] * v.w;
        }
    }
}

/* The sum over the threads that share the columns of a row. */
template <int G, int S> __device__ __forceinline__ float sum_shared(float value)
{
#pragma unroll
    for (int other = G; other < G * S; other *= 2)
        value += __shfl_xor_sync(~0u, value, other);
    return value;
}

} // namespace

#endif
