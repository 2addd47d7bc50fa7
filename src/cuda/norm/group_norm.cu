/* Group norm at the speed of memory: reads the input once for the sums, then reads and writes it once. There
 * are three kernels: sums of values and squares for parts of an image; mean, variance, parameters, scale and
 * shift of a channel combined into three numbers (the table); and out = activation((in - centre) * factor +
 * offset).
 *
 * In the first and the last kernel a thread has 16 bytes of the channels if the tensors allow it (else one
 * value), the same for all its pixels: thread t of a block has piece t % across and every lanes-th pixel.
 * Grid: x over parts, y over blocks of pieces if one is not enough, z over images. BATCH pixels are read at
 * once and summed in fp32 relative to the first of them, so that neither a large mean nor an outlier costs
 * precision; batches are summed in fp64. The parts of an image depend only on its size, and so does the order
 * of every sum. */
#include "cuda/core/activation.cuh"
#include "cuda/core/values.cuh"
#include "cuda/norm/group_norm.h"

namespace
{

enum { THREADS = 256, BATCH = 8, MOST_PARTS = 512, MERGERS = 128 };
const unsigned MOST_IMAGES = 65535;

struct norm_job {
    tess_tensor in, out, more; /* more: scales and shifts */
    bool flat_in, flat_out;    /* pixels are stride_w apart throughout an image */
    bool scale_shift;
    tess_activation activation;
    int64_t pixels; /* pixels per image */
    unsigned parts;
    unsigned pieces, across, lanes; /* pieces per pixel, pieces per block, pixels side by side in a block */
    int groups;
    double epsilon;
    const void *from, *modulation;
    void *to;
    const float *weights; /* c weights, then c biases */
    double *sums;         /* [n][part][value, square][c] */
    float *table;         /* [n][centre, factor, offset][c] */
};

__device__ __forceinline__ int64_t place(const tess_tensor &t, bool flat, int64_t n, int64_t pixel)
{
    if (flat)
        return n * t.stride_n + pixel * t.stride_w;
    const int64_t row = pixel / t.w;
    return n * t.stride_n + row / t.h * t.stride_d + row % t.h * t.stride_h +
           (pixel - row * t.w) * t.stride_w;
}

/* Adds `count` pixels of a thread, `lanes` apart, to its sums. */
template <typename T, int N>
__device__ __forceinline__ void add_batch(const norm_job &job, int64_t n, int64_t c, int64_t pixel, int count,
                                          double *value, double *square)
{
    float values[BATCH][N], v[N], q[N];
#pragma unroll
    for (int b = 0; b < BATCH; b++)
        if (b < count)
            tess_load<N>((const T *)job.from + c +
                             place(job.in, job.flat_in, n, pixel + (int64_t)b * job.lanes),
                         values[b]);
#pragma unroll
    for (int i = 0; i < N; i++) {
        v[i] = q[i] = 0;
#pragma unroll
        for (int b = 1; b < BATCH; b++) {
            const float d = b < count ? values[b][i] - values[0][i] : 0;
            v[i] += d;
            q[i] += d * d;
        }
        const double f = values[0][i], all = count * f, d = v[i];
        value[i] += d + all;
        square[i] += (double)q[i] + f * (2 * d + all);
    }
}

/* Sums all pixels of a thread. */
template <typename T, int N>
__device__ __forceinline__ void add_part(const norm_job &job, int64_t n, int64_t c, int64_t pixel,
                                         int64_t end, double *value, double *square)
{
    const int64_t step = (int64_t)BATCH * job.lanes;
    for (; pixel + step - job.lanes < end; pixel += step)
        add_batch<T, N>(job, n, c, pixel, BATCH, value, square);
    if (pixel < end)
        add_batch<T, N>(job, n, c, pixel, (int)((end - pixel + job.lanes - 1) / job.lanes), value, square);
}

template <typename T, int N>
__global__ void __launch_bounds__(THREADS) sum_kernel(const __grid_constant__ norm_job job)
{
    __shared__ double shared[2 * N][THREADS];
    const unsigned lane = threadIdx.x / job.across,
                   piece = blockIdx.y * job.across + threadIdx.x % job.across;
    const bool mine = lane < job.lanes && piece < job.pieces;
    const int64_t begin = blockIdx.x * job.pixels / job.parts,
                  end = (blockIdx.x + 1) * job.pixels / job.parts, c = (int64_t)piece * N;
    for (int64_t n = blockIdx.z; n < job.in.n; n += gridDim.z) {
        double value[N] = {}, square[N] = {};
        if (mine)
            add_part<T, N>(job, n, c, begin + lane, end, value, square);
#pragma unroll
        for (int i = 0; i < N; i++) {
            shared[i][threadIdx.x] = value[i];
            shared[N + i][threadIdx.x] = square[i];
        }
        __syncthreads();
        for (unsigned step = 1; step < job.lanes; step *= 2) {
            if (mine && lane % (2 * step) == 0 && lane + step < job.lanes)
#pragma unroll
                for (int i = 0; i < 2 * N; i++)
                    shared[i][threadIdx.x] += shared[i][threadIdx.x + step * job.across];
            __syncthreads();
        }
        double *to = job.sums + (n * job.parts + blockIdx.x) * 2 * job.in.c + c;
        if (mine && lane == 0)
#pragma unroll
            for (int i = 0; i < N; i++) {
                to[i] = shared[i][threadIdx.x];
                to[job.in.c + i] = shared[N + i][threadIdx.x];
            }
        __syncthreads();
    }
}

__device__ float value_of(const tess_tensor &t, const void *data, int64_t at)
{
    return t.dtype == TESS_F16    ? tess_value(((const __half *)data)[at])
           : t.dtype == TESS_BF16 ? tess_value(((const __nv_bfloat16 *)data)[at])
                                  : ((const float *)data)[at];
}

__device__ void set_channel(const norm_job &job, int64_t n, int64_t c, double mean, double deviation)
{
    const int64_t channels = job.in.c;
    float *table = job.table + n * 3 * channels;
    double factor = job.weights[c] / deviation, offset = job.weights[channels + c];
    if (job.scale_shift) {
        const int64_t at = n * job.more.stride_n + c;
        const double scale = 1 + (double)value_of(job.more, job.modulation, at);
        factor *= scale;
        offset = offset * scale + (double)value_of(job.more, job.modulation, at + channels);
    }
    table[c] = (float)mean;
    table[channels + c] = (float)factor;
    table[2 * channels + c] = (float)(offset + ((double)(float)mean - mean) * factor);
}

/* One block per group: x of the grid; z is the image. The threads of a block share its parts and channels. */
__global__ void __launch_bounds__(MERGERS) table_kernel(const __grid_constant__ norm_job job)
{
    __shared__ double value[MERGERS], square[MERGERS];
    const int t = (int)threadIdx.x;
    const int64_t width = job.in.c / job.groups, first = blockIdx.x * width;
    for (int64_t n = blockIdx.z; n < job.in.n; n += gridDim.z) {
        double v = 0, q = 0;
        for (int64_t i = t; i < job.parts * width; i += MERGERS) {
            const double *sums = job.sums + (n * job.parts + i / width) * 2 * job.in.c + first + i % width;
            v += sums[0];
            q += sums[job.in.c];
        }
        value[t] = v;
        square[t] = q;
        __syncthreads();
        for (int step = MERGERS / 2; step > 0; step /= 2) {
            if (t < step) {
                value[t] += value[t + step];
                square[t] += square[t + step];
            }
            __syncthreads();
        }
        const double count = (double)job.pixels * (double)width, mean = value[0] / count,
                     variance = square[0] / count - mean * mean;
        const double deviation = sqrt((variance < 0 ? 0 : variance) + job.epsilon);
        for (int64_t c = first + t; c < first + width; c += MERGERS)
            set_channel(job, n, c, mean, deviation);
        __syncthreads();
    }
}

template <typename T, typename U, int N>
__global__ void __launch_bounds__(THREADS) apply_kernel(const __grid_constant__ norm_job job)
{
    const unsigned lane = threadIdx.x / job.across,
                   piece = blockIdx.y * job.across + threadIdx.x % job.across;
    if (lane >= job.lanes || piece >= job.pieces)
        return;
    const int64_t c = (int64_t)piece * N, first = (int64_t)blockIdx.x * BATCH * job.lanes + lane;
    for (int64_t n = blockIdx.z; n < job.in.n; n += gridDim.z) {
        const float *table = job.table + n * 3 * job.in.c + c;
        float centre[N], factor[N], offset[N], values[BATCH][N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            centre[i] = table[i];
            factor[i] = table[job.in.c + i];
            offset[i] = table[2 * job.in.c + i];
        }
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (first + (int64_t)b * job.lanes < job.pixels)
                tess_load<N>((const T *)job.from + c +
                                 place(job.in, job.flat_in, n, first + (int64_t)b * job.lanes),
                             values[b]);
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (first + (int64_t)b * job.lanes >= job.pixels)
                break;
#pragma unroll
            for (int i = 0; i < N; i++)
                values[b][i] =
                    tess_activated(job.activation, (values[b][i] - centre[i]) * factor[i] + offset[i]);
            tess_store<N>((U *)job.to + c + place(job.out, job.flat_out, n, first + (int64_t)b * job.lanes),
                          values[b]);
        }
    }
}

bool flat(const tess_tensor *t)
{
    return (t->h == 1 || t->stride_h == t->w * t->stride_w) &&
           (t->d == 1 || t->stride_d == t->h * t->stride_h);
}

/* True if pieces of `size` values can be read and written in one instruction. */
bool whole(const tess_tensor *t, const void *data, int64_t size)
{
    return t->c % size == 0 && t->stride_n % size == 0 && t->stride_d % size == 0 &&
           t->stride_h % size == 0 && t->stride_w % size == 0 &&
           (uintptr_t)data % ((size_t)size * tess_dtype_size(t->dtype)) == 0;
}

unsigned parts_of(const tess_op *op)
{
    const tess_tensor *in = &op->in[0];
    const int64_t bytes = in->d * in->h * in->w * in->c * (int64_t)tess_dtype_size(in->dtype),
                  parts = bytes / (THREADS * 16 * BATCH);
    return (unsigned)(parts < 1 ? 1 : parts < MOST_PARTS ? parts : (int64_t)MOST_PARTS);
}

template <typename T, typename U, int N> cudaError_t launch(norm_job &job, cudaStream_t stream)
{
    job.pieces = (unsigned)(job.in.c / N);
    job.across = job.pieces < THREADS ? job.pieces : (unsigned)THREADS;
    job.lanes = THREADS / job.across;
    const unsigned images = (unsigned)(job.in.n < MOST_IMAGES ? job.in.n : MOST_IMAGES),
                   beside = (job.pieces + job.across - 1) / job.across;
    const int64_t block = (int64_t)BATCH * job.lanes, blocks = (job.pixels + block - 1) / block;
    sum_kernel<T, N><<<dim3(job.parts, beside, images), THREADS, 0, stream>>>(job);
    table_kernel<<<dim3((unsigned)job.groups, 1, images), MERGERS, 0, stream>>>(job);
    apply_kernel<T, U, N><<<dim3((unsigned)blocks, beside, images), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

template <typename T, typename U> cudaError_t launch_types(norm_job &job, cudaStream_t stream)
{
    constexpr int N = 16 / (int)(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));
    return whole(&job.in, job.from, N) && whole(&job.out, job.to, N) ? launch<T, U, N>(job, stream)
                                                                     : launch<T, U, 1>(job, stream);
}

} // namespace

extern "C" size_t tess_cuda_group_norm_workspace(const tess_op *op)
{
    const size_t channels = (size_t)(op->in[0].n * op->in[0].c);
    return channels * ((size_t)parts_of(op) * 2 * sizeof(double) + 3 * sizeof(float));
}

extern "C" cudaError_t tess_cuda_group_norm_run(const tess_op *op, const tess_op_buffers *b,
                                                cudaStream_t stream)
{
    norm_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.more = op->in[1];
    job.flat_in = flat(&op->in[0]);
    job.flat_out = flat(&op->out[0]);
    job.scale_shift = op->inputs > 1;
    job.activation = op->activation;
    job.pixels = op->in[0].d * op->in[0].h * op->in[0].w;
    job.parts = parts_of(op);
    job.groups = op->group_norm.groups;
    job.epsilon = op->group_norm.epsilon;
    job.from = b->in[0];
    job.modulation = b->in[1];
    job.to = b->out[0];
    job.weights = (const float *)b->weights;
    job.sums = (double *)b->workspace;
    job.table = (float *)(job.sums + op->in[0].n * job.parts * 2 * op->in[0].c);
    const tess_dtype in = op->in[0].dtype, out = op->out[0].dtype;
    if (in == TESS_F16)
        return out == TESS_F16 ? launch_types<__half, __half>(job, stream)
                               : launch_types<__half, float>(job, stream);
    if (in == TESS_BF16)
        return out == TESS_BF16 ? launch_types<__nv_bfloat16, __nv_bfloat16>(job, stream)
                                : launch_types<__nv_bfloat16, float>(job, stream);
    return out == TESS_F16    ? launch_types<float, __half>(job, stream)
           : out == TESS_BF16 ? launch_types<float, __nv_bfloat16>(job, stream)
                              : launch_types<float, float>(job, stream);
}
