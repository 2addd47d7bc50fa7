/* Convolutions of one tap between few channels, as of pipelines over spectra: a small matrix times each pixel. Their tensors
 * have few channels and many pixels, so that reading and writing binds; conv.cu, whose tiles have 64 channels in steps of 16,
 * would mostly multiply zeros. Sums are those of conv.cu in the same order: the choice affects only the time.
 *
 * A block of 128 threads holds the weights in shared memory, [in][out], and takes PIXELS pixels at a time, which lie one after
 * another: they are copied to shared memory as they are, and so are results back. A thread has 4 pixels x 4 outputs. */
#include "cuda/conv/generic.h"
#include "cuda/core/early.cuh"
#include "cuda/core/load.h"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 128, PIXELS = 32, SIDE = 4, MOST_BLOCKS = 9 * 132, TOGETHER = 8 };
const int MOST_BYTES = 96 << 10, USUAL_BYTES = 48 << 10; /* of shared memory, on any card */

struct pixels_job {
    int64_t pixels;
    int cin, cout, pitch, groups; /* pitch: of a pixel in shared memory; groups: of SIDE outputs */
    bool relu;
    const float *bias; /* NULL: none */
    const void *in, *weights;
    void *out;
};

/* Values [from, from + count), rows of `row` values, to shared memory: value x of row y to y * row_at + x * value_at. TOGETHER
 * of a thread are on their way at a time. */
template <typename T>
__device__ __forceinline__ void bring(const T *from, int count, int row, int row_at, int value_at, float *to)
{
    const int down = THREADS / row, right = THREADS - down * row;
    int y = (int)threadIdx.x / row, x = (int)threadIdx.x - y * row;
    for (int i = (int)threadIdx.x; i < count; i += TOGETHER * THREADS) {
        T values[TOGETHER];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++)
            if (i + k * THREADS < count)
                values[k] = from[i + k * THREADS];
#pragma unroll
        for (int k = 0; k < TOGETHER; k++) {
            if (i + k * THREADS < count)
                to[y * row_at + x * value_at] = tess_value(values[k]);
            y += down;
            x += right;
            if (x >= row) {
                x -= row;
                y++;
            }
        }
    }
}

__device__ __forceinline__ void add(const float *x, const float *w, int pitch, float (&sums)[SIDE][SIDE])
{
    const float4 b = *(const float4 *)w;
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
        const float a = x[i * pitch];
        sums[i][0] = fmaf(a, b.x, sums[i][0]);
        sums[i][1] = fmaf(a, b.y, sums[i][1]);
        sums[i][2] = fmaf(a, b.z, sums[i][2]);
        sums[i][3] = fmaf(a, b.w, sums[i][3]);
    }
}

/* Four steps of `add`, whose values of a pixel are read at once. */
__device__ __forceinline__ void add_four(const float *x, const float *w, int pitch, int columns,
                                         float (&sums)[SIDE][SIDE])
{
    float4 a[SIDE];
#pragma unroll
    for (int i = 0; i < SIDE; i++)
        a[i] = *(const float4 *)(x + i * pitch);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float4 b = *(const float4 *)(w + k * columns);
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            const float v = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
            sums[i][0] = fmaf(v, b.x, sums[i][0]);
            sums[i][1] = fmaf(v, b.y, sums[i][1]);
            sums[i][2] = fmaf(v, b.z, sums[i][2]);
            sums[i][3] = fmaf(v, b.w, sums[i][3]);
        }
    }
}

/* Rows of the tile that hold no pixel give sums that nobody reads. */
__device__ __forceinline__ void multiply(const pixels_job &job, const float *weights, const float *bias,
                                         const float *tile, float *results)
{
    const int columns = SIDE * job.groups;
    for (int item = (int)threadIdx.x; item < PIXELS / SIDE * job.groups; item += THREADS) {
        const int rows = item / job.groups * SIDE, first = (item - item / job.groups * job.groups) * SIDE;
        const float *x = tile + rows * job.pitch, *w = weights + first;
        float sums[SIDE][SIDE] = {};
        int c = 0;
        for (; c + 4 <= job.cin; c += 4)
            add_four(x + c, w + c * columns, job.pitch, columns, sums);
        for (; c < job.cin; c++)
            add(x + c, w + c * columns, job.pitch, sums);
#pragma unroll
        for (int i = 0; i < SIDE; i++)
#pragma unroll
            for (int j = 0; j < SIDE; j++)
                if (first + j < job.cout) {
                    const float sum = job.bias ? sums[i][j] + bias[first + j] : sums[i][j];
                    results[(rows + i) * job.cout + first + j] = job.relu && sum < 0 ? 0 : sum;
                }
    }
}

template <typename In, typename Weight, typename Out>
__global__ void __launch_bounds__(THREADS) pixels_kernel(const __grid_constant__ pixels_job job)
{
    begin_early();
    extern __shared__ __align__(16) float memory[];
    const int columns = SIDE * job.groups;
    float *weights = memory, *bias = weights + job.cin * columns, *tile = bias + columns,
          *results = tile + PIXELS * job.pitch;
    bring((const Weight *)job.weights, job.cout * job.cin, job.cin, 1, columns, weights);
    for (int i = (int)threadIdx.x; i < job.cin * (columns - job.cout); i += THREADS)
        weights[i % job.cin * columns + job.cout + i / job.cin] = 0;
    for (int i = (int)threadIdx.x; i < columns; i += THREADS)
        bias[i] = job.bias && i < job.cout ? job.bias[i] : 0.0f;
    for (int64_t first = (int64_t)blockIdx.x * PIXELS; first < job.pixels;
         first += (int64_t)gridDim.x * PIXELS) {
        const int count = (int)(job.pixels - first < PIXELS ? job.pixels - first : PIXELS);
        bring((const In *)job.in + first * job.cin, count * job.cin, job.cin, job.pitch, 1, tile);
        __syncthreads(); /* also: the results before are written */
        multiply(job, weights, bias, tile, results);
        __syncthreads();
        Out *to = (Out *)job.out + first * job.cout;
#pragma unroll 4
        for (int i = (int)threadIdx.x; i < count * job.cout; i += THREADS)
            to[i] = tess_rounded<Out>(results[i]);
    }
}

pixels_job job_of(const tess_op *op)
{
    pixels_job job = {};
    job.pixels = op->in[0].n * tess_pixels(&op->in[0]);
    job.cin = (int)op->in[0].c;
    job.cout = (int)op->out[0].c;
    job.pitch = (job.cin + 3) / 4 * 4;
    job.groups = (job.cout + SIDE - 1) / SIDE;
    job.relu = tess_op_relu(op);
    return job;
}

int bytes_of(const pixels_job &job)
{
    return ((job.cin + 1) * SIDE * job.groups + PIXELS * (job.pitch + job.cout)) * (int)sizeof(float);
}

template <typename In, typename Weight, typename Out>
cudaError_t launch(const pixels_job &job, cudaStream_t stream)
{
    const int64_t tiles = (job.pixels + PIXELS - 1) / PIXELS;
    const int bytes = bytes_of(job);
    const cudaError_t result =
        bytes > USUAL_BYTES ? cudaFuncSetAttribute(pixels_kernel<In, Weight, Out>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, MOST_BYTES)
                            : cudaSuccess;
    if (result != cudaSuccess)
        return result;
    const unsigned blocks = (unsigned)(tiles < MOST_BLOCKS ? tiles : (int64_t)MOST_BLOCKS);
    return tess_launch_early(pixels_kernel<In, Weight, Out>, blocks, THREADS, (size_t)bytes, stream, job);
}

template <typename T> cudaError_t launch_ends(const tess_op *op, const pixels_job &job, cudaStream_t stream)
{
    if (op->in[0].dtype == TESS_F32)
        return launch<float, T, T>(job, stream);
    if (op->out[0].dtype == TESS_F32)
        return launch<T, T, float>(job, stream);
    return launch<T, T, T>(job, stream);
}

} // namespace

/* Channels that are multiples of 16 have kernels of their own in fp32, and of 8 elsewhere. */
extern "C" bool tess_cuda_pixels_fits(const tess_op *op)
{
    const tess_tensor *in = &op->in[0], *out = &op->out[0];
    const int64_t most = 256;
    tess_tensor same = *out;
    same.c = in->c;
    if (op->kind != TESS_OP_CONV || tess_op_taps(op) != 1 || tess_op_residuals(op) || op->masked ||
        op->mapped || (in->c % 8 == 0 && out->c % 8 == 0) || in->c > most || out->c > most ||
        !tess_same_sizes(in, &same) || !tess_dense(in) || !tess_dense(out))
        return false;
    for (int s = 0; s < TESS_SPATIAL; s++)
        if (op->stride[s] != 1 || op->pad_before[s] || op->pad_after[s])
            return false;
    return bytes_of(job_of(op)) <= MOST_BYTES;
}

extern "C" cudaError_t tess_cuda_pixels_load(void)
{
    return tess_cuda_load((const void *)pixels_kernel<float, float, float>, MOST_BYTES);
}

extern "C" cudaError_t tess_cuda_pixels(const tess_op *op, const tess_op_buffers *buffers,
                                        cudaStream_t stream)
{
    pixels_job job = job_of(op);
    job.bias = tess_cuda_bias(op, buffers);
    job.in = buffers->in[0];
    job.weights = buffers->weights;
    job.out = buffers->out[0];
    switch (tess_op_precision(op)) {
    case TESS_F16:
        return launch_ends<__half>(op, job, stream);
    case TESS_BF16:
        return launch_ends<__nv_bfloat16>(op, job, stream);
    default:
        return launch<float, float, float>(job, stream);
    }
}
