/* Group norm at the speed of memory: reads the input once for the sums, then reads and writes it once. There
 * are three kernels: sums of values and squares for parts of an image (norm/channels.cuh); mean, variance,
 * parameters, scale and shift of a channel combined into three numbers (the table); and out = activation((in -
 * centre) * factor + offset), with the same pixels and channels for a thread as in the sums. */
#include "cuda/core/activation.cuh"
#include "cuda/norm/channels.cuh"
#include "cuda/norm/group_norm.h"

namespace
{

enum {
    THREADS = TESS_CHANNEL_THREADS,
    BATCH = TESS_CHANNEL_BATCH,
    ENOUGH_PARTS = 64,
    MOST_PARTS = 512,
    MERGERS = 128
};

struct norm_job {
    tess_tensor in, out, more; /* more: scales and shifts */
    bool flat_in, flat_out;    /* pixels are stride_w apart throughout an image */
    bool scale_shift;
    tess_activation activation;
    channel_grid grid;
    int groups;
    double epsilon;
    const void *from, *modulation;
    void *to;
    const float *weights; /* c weights, then c biases */
    float *table;         /* [n][centre, factor, offset][c] */
};

__device__ void set_channel(const norm_job &job, int64_t n, int64_t c, double mean, double deviation)
{
    const int64_t channels = job.in.c;
    float *table = job.table + n * 3 * channels;
    double factor = job.weights[c] / deviation, offset = job.weights[channels + c];
    if (job.scale_shift) {
        const int64_t at = n * job.more.stride_n + c;
        const double scale = 1 + (double)tess_value_at(job.more.dtype, job.modulation, at);
        factor *= scale;
        offset = offset * scale + (double)tess_value_at(job.more.dtype, job.modulation, at + channels);
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
        for (int64_t i = t; i < job.grid.parts * width; i += MERGERS) {
            const double *sums =
                job.grid.sums + (n * job.grid.parts + i / width) * 2 * job.in.c + first + i % width;
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
        const double count = (double)job.grid.pixels * (double)width, mean = value[0] / count,
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
    const channel_thread t = channel_thread_of(job.grid);
    if (!t.mine)
        return;
    const int64_t c = (int64_t)t.piece * N, first = (int64_t)blockIdx.x * BATCH * job.grid.lanes + t.lane;
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
            if (first + (int64_t)b * job.grid.lanes < job.grid.pixels)
                tess_load<N>((const T *)job.from + c +
                                 tess_place(job.in, job.flat_in, n, first + (int64_t)b * job.grid.lanes),
                             values[b]);
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            if (first + (int64_t)b * job.grid.lanes >= job.grid.pixels)
                break;
#pragma unroll
            for (int i = 0; i < N; i++)
                values[b][i] =
                    tess_activated(job.activation, (values[b][i] - centre[i]) * factor[i] + offset[i]);
            tess_store<N>((U *)job.to + c +
                              tess_place(job.out, job.flat_out, n, first + (int64_t)b * job.grid.lanes),
                          values[b]);
        }
    }
}

/* Where an image has parts for about half of the card's multiprocessors, they become up to four times as large: merging
 * the sums of the threads of a block takes longer than adding one batch of pixels. */
unsigned parts_of(const tess_op *op)
{
    const unsigned parts = channel_parts(&op->in[0], tess_pixels(&op->in[0]), 4 * MOST_PARTS),
                   fewer = parts / 4 > ENOUGH_PARTS ? parts / 4 : (unsigned)ENOUGH_PARTS;
    return parts < fewer ? parts : fewer;
}

template <typename T, typename U, int N> cudaError_t launch(norm_job &job, cudaStream_t stream)
{
    channel_grid_share(&job.grid, N);
    const unsigned images = channel_blocks(job.grid, 1).z;
    sum_kernel<add_squares<norm_job, T, N>, norm_job, N>
        <<<channel_blocks(job.grid, job.grid.parts), THREADS, 0, stream>>>(job);
    table_kernel<<<dim3((unsigned)job.groups, 1, images), MERGERS, 0, stream>>>(job);
    apply_kernel<T, U, N><<<channel_apply_blocks(job.grid, BATCH), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

template <typename T, typename U> cudaError_t launch_types(norm_job &job, cudaStream_t stream)
{
    constexpr int N = 16 / (int)(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));
    return tess_whole(&job.in, job.from, N) && tess_whole(&job.out, job.to, N) ? launch<T, U, N>(job, stream)
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
    if (job.more.n == 1)
        job.more.stride_n = 0; /* one vector for all images */
    job.flat_in = tess_flat(&op->in[0]);
    job.flat_out = tess_flat(&op->out[0]);
    job.scale_shift = op->inputs > 1;
    job.activation = op->activation;
    job.grid.images = op->in[0].n;
    job.grid.pixels = tess_pixels(&op->in[0]);
    job.grid.channels = op->in[0].c;
    job.grid.parts = parts_of(op);
    job.groups = op->group_norm.groups;
    job.epsilon = op->group_norm.epsilon;
    job.from = b->in[0];
    job.modulation = b->in[1];
    job.to = b->out[0];
    job.weights = (const float *)b->weights;
    job.grid.sums = (double *)b->workspace;
    job.table = (float *)(job.grid.sums + op->in[0].n * job.grid.parts * 2 * op->in[0].c);
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
