/* CONV_GRAD in fp32 of a convolution of one tap between few channels: the sums over pixels of products of each output's
 * gradient and each input, and of the gradient itself, which is the bias's: as if the input had one more channel of ones.
 *
 * A block of THREADS threads sums a part of the pixels, STEP at a time in shared memory. A thread has 4 outputs x 4 inputs; if
 * all of those are fewer than threads, slices of threads take pixels in turn, and are added at the end of the part. The
 * sizes alone set the parts. end_kernel: 32 results, 8 threads each, which take parts in turn.
 *
 * Grid: x parts, y pieces of THREADS tiles. */
#include "cuda/convgrad/conv_grad.h"
#include "cuda/core/early.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256, STEP = 32, SIDE = 4, MOST_PARTS = 528, LEAST_PIXELS = 64, TOGETHER = 8 };
enum { ACROSS = 32, SLICES = THREADS / ACROSS }; /* of end_kernel */

struct pixels_job {
    int64_t pixels, per_part;
    int cin, cout, columns;           /* columns: inputs and, with a bias, the ones */
    int row_pitch, column_pitch;      /* of a pixel in shared memory */
    int across, tiles, slices, parts; /* across: tiles of a row of tiles */
    bool accumulate;
    const float *in, *dy;
    float *partials; /* [part][cout][columns] */
    float *weights, *bias;
};

/* Values [from, from + count) to rows of `row` values, `pitch` apart. */
__device__ __forceinline__ void bring(const float *from, int count, int row, int pitch, float *to)
{
    const int down = THREADS / row, right = THREADS - down * row;
    int y = (int)threadIdx.x / row, x = (int)threadIdx.x - y * row;
    for (int i = (int)threadIdx.x; i < count; i += TOGETHER * THREADS) {
        float values[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++)
            if (i + k * THREADS < count)
                values[k] = from[i + k * THREADS];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            if (i + k * THREADS < count)
                to[y * pitch + x] = values[k];
            y += down;
            x += right;
            if (x >= row) {
                x -= row;
                y++;
            }
        }
    }
}

/* The pixels of a step that belong to a slice. What lies behind the last channel is in sums that nobody stores. */
__device__ __forceinline__ void add_pixels(const float *row, const float *column, const pixels_job &job,
                                           int slice, int count, float (&sums)[SIDE][SIDE])
{
#pragma unroll 4
    for (int p = slice; p < count; p += job.slices) {
        const float4 a = *(const float4 *)(row + p * job.row_pitch),
                     b = *(const float4 *)(column + p * job.column_pitch);
        const float left[SIDE] = {a.x, a.y, a.z, a.w}, right[SIDE] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < SIDE; i++)
#pragma unroll
            for (int j = 0; j < SIDE; j++)
                sums[i][j] = fmaf(left[i], right[j], sums[i][j]);
    }
}

__global__ void __launch_bounds__(THREADS, 3) grad_kernel(const __grid_constant__ pixels_job job)
{
    begin_early();
    extern __shared__ __align__(16) float memory[];
    float *rows = memory, *columns = rows + STEP * job.row_pitch;
    const int slice = job.slices > 1 ? (int)threadIdx.x / job.tiles : 0,
              tile = job.slices > 1 ? (int)threadIdx.x - slice * job.tiles
                                    : (int)(blockIdx.y * THREADS + threadIdx.x);
    const bool mine = tile < job.tiles && slice < job.slices;
    const int row = mine ? tile / job.across * SIDE : 0, column = mine ? tile % job.across * SIDE : 0;
    const int64_t first = blockIdx.x * job.per_part,
                  end = first + job.per_part < job.pixels ? first + job.per_part : job.pixels;
    float sums[SIDE][SIDE] = {};
    for (int p = (int)threadIdx.x; p < STEP && job.columns > job.cin; p += THREADS)
        columns[p * job.column_pitch + job.cin] = 1;
    for (int64_t at = first; at < end; at += STEP) {
        const int count = (int)(end - at < STEP ? end - at : STEP);
        __syncthreads(); /* the step before was read */
        bring(job.dy + at * job.cout, count * job.cout, job.cout, job.row_pitch, rows);
        bring(job.in + at * job.cin, count * job.cin, job.cin, job.column_pitch, columns);
        __syncthreads();
        if (mine)
            add_pixels(rows + row, columns + column, job, slice, count, sums);
    }
    float *to = job.partials + (int64_t)blockIdx.x * job.cout * job.columns;
    if (job.slices > 1) { /* sums of a slice and tile: SIDE * SIDE values, together as many as threads' */
        __syncthreads();
        for (int k = 0; mine && k < SIDE * SIDE; k++)
            memory[k * THREADS + threadIdx.x] = sums[k / SIDE][k % SIDE];
        __syncthreads();
        for (int k = 0; mine && slice == 0 && k < SIDE * SIDE; k++) {
            float sum = memory[k * THREADS + tile];
            for (int s = 1; s < job.slices; s++)
                sum += memory[k * THREADS + s * job.tiles + tile];
            if (row + k / SIDE < job.cout && column + k % SIDE < job.columns)
                to[(row + k / SIDE) * job.columns + column + k % SIDE] = sum;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++)
            if (mine && row + i < job.cout && column + j < job.columns)
                to[(row + i) * job.columns + column + j] = sums[i][j];
}

__global__ void __launch_bounds__(THREADS) end_kernel(const __grid_constant__ pixels_job job)
{
    begin_early();
    __shared__ float sums[SLICES][ACROSS];
    const int lane = (int)threadIdx.x % ACROSS, slice = (int)threadIdx.x / ACROSS,
              all = job.cout * job.columns, at = (int)blockIdx.x * ACROSS + lane;
    float sum = 0;
#pragma unroll 8
    for (int part = slice; part < job.parts && at < all; part += SLICES)
        sum += job.partials[(int64_t)part * all + at];
    sums[slice][lane] = sum;
    __syncthreads();
    if (slice > 0 || at >= all)
        return;
    for (int s = 1; s < SLICES; s++)
        sum += sums[s][lane];
    const int row = at / job.columns, column = at - row * job.columns;
    float *to = column < job.cin ? job.weights + row * job.cin + column : job.bias + row;
    *to = job.accumulate ? *to + sum : sum;
}

int padded(int values)
{
    return (values + SIDE - 1) / SIDE * SIDE;
}

pixels_job job_of(const tess_op *op)
{
    pixels_job job = {};
    job.pixels = op->in[1].n * tess_pixels(&op->in[1]);
    job.cin = (int)op->in[0].c;
    job.cout = (int)op->in[1].c;
    job.columns = job.cin + (op->outputs > 1);
    job.row_pitch = padded(job.cout);
    job.column_pitch = padded(job.columns);
    job.across = job.column_pitch / SIDE;
    job.tiles = job.row_pitch / SIDE * job.across;
    job.slices = THREADS / job.tiles < 1 ? 1 : THREADS / job.tiles < STEP ? THREADS / job.tiles : (int)STEP;
    int64_t parts = (job.pixels + LEAST_PIXELS - 1) / LEAST_PIXELS;
    parts = parts < MOST_PARTS ? parts : (int64_t)MOST_PARTS;
    job.per_part = ((job.pixels + parts - 1) / parts + STEP - 1) / STEP * STEP;
    job.parts = (int)((job.pixels + job.per_part - 1) / job.per_part);
    job.accumulate = op->grad.accumulate;
    return job;
}

} // namespace

/* What has neither multiples of 8 channels, which cuDNN takes, nor many. */
extern "C" bool tess_cuda_pixels_grad_fits(const tess_op *op)
{
    const tess_tensor *x = &op->in[0], *dy = &op->in[1];
    const int64_t most = 160;
    tess_tensor same = *dy;
    same.c = x->c;
    if (tess_op_is_pair(op) || x->dtype != TESS_F32 || dy->dtype != TESS_F32 || tess_op_taps(op) != 1 ||
        (x->c % 8 == 0 && dy->c % 8 == 0) || x->c > most || dy->c > most || !tess_same_sizes(x, &same) ||
        !tess_dense(x) || !tess_dense(dy))
        return false;
    for (int s = 0; s < TESS_SPATIAL; s++)
        if (op->stride[s] != 1 || op->pad_before[s] || op->pad_after[s])
            return false;
    return true;
}

extern "C" size_t tess_cuda_pixels_grad_bytes(const tess_op *op)
{
    const pixels_job job = job_of(op);
    return (size_t)job.parts * (size_t)job.cout * (size_t)job.columns * sizeof(float);
}

extern "C" cudaError_t tess_cuda_pixels_grad(const tess_op *op, const tess_op_buffers *buffers,
                                             cudaStream_t stream)
{
    pixels_job job = job_of(op);
    job.in = (const float *)buffers->in[0];
    job.dy = (const float *)buffers->in[1];
    job.partials = (float *)buffers->workspace;
    job.weights = (float *)buffers->out[0];
    job.bias = op->outputs > 1 ? (float *)buffers->out[1] : NULL;
    const int step = STEP * (job.row_pitch + job.column_pitch), slices = SIDE * SIDE * THREADS,
              values = job.slices > 1 && slices > step ? slices : step;
    const unsigned pieces = (unsigned)(job.slices > 1 ? 1 : (job.tiles + THREADS - 1) / THREADS),
                   results = (unsigned)((job.cout * job.columns + ACROSS - 1) / ACROSS);
    const cudaError_t result = tess_launch_early(grad_kernel, dim3((unsigned)job.parts, pieces), THREADS,
                                                 (size_t)values * sizeof(float), stream, job);
    return result != cudaSuccess ? result : tess_launch_early(end_kernel, results, THREADS, 0, stream, job);
}
