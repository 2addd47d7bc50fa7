/* BATCH_NORM_TRAIN and BATCH_NORM_GRAD at the speed of memory: one pass for two sums of each channel
 * (norm/channels.cuh), a small kernel that turns them into the numbers of a channel (the table), and one pass that
 * reads again and writes. A batch counts as one image whose slices are the images, so that its size alone fixes the
 * order of the sums.
 *
 * With x^ = (x - mean) * inverse and M values a channel, the gradient of the input is
 * weight * inverse * (g - sum(g) / M - x^ * sum(g x^) / M). */
#include "cuda/core/activation.cuh"
#include "cuda/norm/channels.cuh"

namespace
{

enum { THREADS = TESS_CHANNEL_THREADS, MOST_PARTS = 1024, BATCH = 4, ROWS = 64, COLUMNS = 4, TABLE = 4 };

struct batch_job {
    tess_tensor in, gradient, out; /* gradient: BATCH_NORM_GRAD alone */
    bool flat_in, flat_gradient, flat_out;
    channel_grid grid;
    tess_op_batch_norm norm;
    tess_activation activation;
    const void *from, *gradient_from;
    void *to;
    const float *weights;    /* c weights, then c biases */
    const float *statistics; /* c means, then c inverse deviations */
    float *new_statistics, *running, *weight_gradient;
    float *table; /* [TABLE][c] */
};

/* The sum over the parts of both sums of the channel of this thread, in all threads of its column. */
__device__ __forceinline__ void merge_parts(const batch_job &job, int64_t c, double *first, double *second)
{
    __shared__ double shared[2][ROWS][COLUMNS];
    const int row = (int)threadIdx.x / COLUMNS, column = (int)threadIdx.x % COLUMNS;
    const int64_t channels = job.grid.channels;
    double a = 0, b = 0;
    if (c < channels)
        for (unsigned part = (unsigned)row; part < job.grid.parts; part += ROWS) {
            a += job.grid.sums[part * 2 * channels + c];
            b += job.grid.sums[(part * 2 + 1) * channels + c];
        }
    shared[0][row][column] = a;
    shared[1][row][column] = b;
    __syncthreads();
    for (int half = ROWS / 2; half > 0; half /= 2) {
        if (row < half)
            for (int k = 0; k < 2; k++)
                shared[k][row][column] += shared[k][row + half][column];
        __syncthreads();
    }
    *first = shared[0][0][column];
    *second = shared[1][0][column];
}

__device__ __forceinline__ float moved(float running, double momentum, double batch)
{
    return (float)(running + momentum * (batch - running));
}

/* Grid of both table kernels: x over COLUMNS channels. The table of the forward pass: centre, factor, offset. */
__global__ void __launch_bounds__(ROWS *COLUMNS) forward_table_kernel(const __grid_constant__ batch_job job)
{
    const int64_t channels = job.grid.channels, c = (int64_t)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    double value, square;
    merge_parts(job, c, &value, &square);
    if (threadIdx.x >= COLUMNS || c >= channels)
        return;
    const double count = (double)job.grid.pixels, mean = value / count, raw = square / count - mean * mean,
                 variance = raw < 0 ? 0 : raw, inverse = 1 / sqrt(variance + job.norm.epsilon),
                 factor = job.weights[c] * inverse;
    job.new_statistics[c] = (float)mean;
    job.new_statistics[channels + c] = (float)inverse;
    if (job.running && job.norm.momentum != 0) {
        job.running[c] = moved(job.running[c], job.norm.momentum, mean);
        job.running[channels + c] = moved(job.running[channels + c], job.norm.momentum,
                                          count > 1 ? variance * (count / (count - 1)) : variance);
    }
    job.table[c] = (float)mean;
    job.table[channels + c] = (float)factor;
    job.table[2 * channels + c] = (float)(job.weights[channels + c] + ((double)(float)mean - mean) * factor);
}

/* The table of the backward pass: mean, weight * inverse, sum(g) / M, inverse * sum(g x^) / M. */
__global__ void __launch_bounds__(ROWS *COLUMNS) backward_table_kernel(const __grid_constant__ batch_job job)
{
    const int64_t channels = job.grid.channels, c = (int64_t)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    double plain, times;
    merge_parts(job, c, &plain, &times);
    if (threadIdx.x >= COLUMNS || c >= channels)
        return;
    const double count = (double)job.grid.pixels, inverse = job.statistics[channels + c];
    float *to = job.weight_gradient;
    to[c] = (float)(job.norm.accumulate ? to[c] + times : times);
    to[channels + c] = (float)(job.norm.accumulate ? to[channels + c] + plain : plain);
    job.table[c] = job.statistics[c];
    job.table[channels + c] = (float)(job.weights[c] * inverse);
    job.table[2 * channels + c] = (float)(plain / count);
    job.table[3 * channels + c] = (float)(inverse * times / count);
}

/* Sums of g and of g x^. */
template <typename T, int N> struct add_products {
    enum { BATCH = 4 };
    int64_t c;
    float mean[N], inverse[N];
    __device__ __forceinline__ add_products(const batch_job &job, int64_t, int64_t channel) : c(channel)
    {
#pragma unroll
        for (int i = 0; i < N; i++) {
            mean[i] = job.statistics[c + i];
            inverse[i] = job.statistics[job.grid.channels + c + i];
        }
    }
    __device__ __forceinline__ void batch(const batch_job &job, int64_t pixel, int count, double *plain,
                                          double *times) const
    {
        float g[BATCH][N], x[BATCH][N];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (b < count) {
                const int64_t p = pixel + (int64_t)b * job.grid.lanes;
                tess_load<N>((const T *)job.gradient_from + c +
                                 tess_place(job.gradient, job.flat_gradient, 0, p),
                             g[b]);
                tess_load<N>((const T *)job.from + c + tess_place(job.in, job.flat_in, 0, p), x[b]);
            }
#pragma unroll
        for (int i = 0; i < N; i++) {
            float p = 0, t = 0;
#pragma unroll
            for (int b = 0; b < BATCH; b++)
                if (b < count) {
                    p += g[b][i];
                    t += g[b][i] * ((x[b][i] - mean[i]) * inverse[i]);
                }
            plain[i] += p;
            times[i] += t;
        }
    }
};

/* The last pass of both. GRAD: of the backward op. */
template <typename T, int N, bool GRAD>
__global__ void __launch_bounds__(THREADS) apply_kernel(const __grid_constant__ batch_job job)
{
    const channel_thread t = channel_thread_of(job.grid);
    if (!t.mine)
        return;
    const int64_t channels = job.grid.channels, c = (int64_t)t.piece * N,
                  first = (int64_t)blockIdx.x * BATCH * job.grid.lanes + t.lane;
    float k[TABLE][N], x[BATCH][N], g[BATCH][N];
#pragma unroll
    for (int i = 0; i < (GRAD ? TABLE : TABLE - 1); i++)
        tess_load<N>(job.table + i * channels + c, k[i]);
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
        const int64_t p = first + (int64_t)b * job.grid.lanes;
        if (p >= job.grid.pixels)
            break;
        tess_load<N>((const T *)job.from + c + tess_place(job.in, job.flat_in, 0, p), x[b]);
        if (GRAD)
            tess_load<N>((const T *)job.gradient_from + c + tess_place(job.gradient, job.flat_gradient, 0, p),
                         g[b]);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
        const int64_t p = first + (int64_t)b * job.grid.lanes;
        if (p >= job.grid.pixels)
            break;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float d = x[b][i] - k[0][i];
            x[b][i] = GRAD ? k[1][i] * (g[b][i] - k[2][i] - d * k[3][i])
                           : tess_activated(job.activation, d * k[1][i] + k[2][i]);
        }
        tess_store<N>((T *)job.to + c + tess_place(job.out, job.flat_out, 0, p), x[b]);
    }
}

template <typename T, int N> cudaError_t launch(bool grad, batch_job &job, cudaStream_t stream)
{
    channel_grid_share(&job.grid, N);
    const dim3 sums = channel_blocks(job.grid, job.grid.parts), apply = channel_apply_blocks(job.grid, BATCH);
    const unsigned tables = (unsigned)((job.grid.channels + COLUMNS - 1) / COLUMNS);
    if (grad) {
        sum_kernel<add_products<T, N>, batch_job, N><<<sums, THREADS, 0, stream>>>(job);
        backward_table_kernel<<<tables, ROWS * COLUMNS, 0, stream>>>(job);
        apply_kernel<T, N, true><<<apply, THREADS, 0, stream>>>(job);
    } else {
        sum_kernel<add_squares<batch_job, T, N>, batch_job, N><<<sums, THREADS, 0, stream>>>(job);
        forward_table_kernel<<<tables, ROWS * COLUMNS, 0, stream>>>(job);
        apply_kernel<T, N, false><<<apply, THREADS, 0, stream>>>(job);
    }
    return cudaGetLastError();
}

template <typename T> cudaError_t launch_type(bool grad, batch_job &job, cudaStream_t stream)
{
    constexpr int N = 16 / (int)sizeof(T);
    const bool vectors = tess_whole(&job.in, job.from, N) && tess_whole(&job.out, job.to, N) &&
                         (!grad || tess_whole(&job.gradient, job.gradient_from, N));
    return vectors ? launch<T, N>(grad, job, stream) : launch<T, 1>(grad, job, stream);
}

/* The images as slices of one. */
tess_tensor as_one(tess_tensor t)
{
    if (t.d == 1)
        t.stride_d = t.stride_n;
    t.d *= t.n;
    t.n = 1;
    return t;
}

const tess_tensor *input_of(const tess_op *op)
{
    return &op->in[op->kind == TESS_OP_BATCH_NORM_GRAD ? 1 : 0];
}

unsigned parts_of(const tess_op *op)
{
    const tess_tensor *in = input_of(op);
    return channel_parts(in, in->n * tess_pixels(in), MOST_PARTS);
}

bool joins(const tess_tensor *t)
{
    return t->n == 1 || t->d == 1 || t->stride_n == t->d * t->stride_d;
}

const char *refuses(const tess_op *op, int)
{
    const bool grad = op->kind == TESS_OP_BATCH_NORM_GRAD;
    const tess_tensor *in = input_of(op), *out = &op->out[0], *gradient = &op->in[0];
    if (!tess_is_value(in->dtype) || out->dtype != in->dtype || gradient->dtype != in->dtype)
        return "values are fp32, fp16 or bf16, all of one type";
    if (!tess_same_sizes(in, out) || !tess_same_sizes(in, gradient) || !joins(in) || !joins(out) ||
        !joins(gradient))
        return "the tensors differ in shape, or the slices of different images are at irregular distances";
    for (int i = grad ? 2 : 1; i < op->inputs; i++)
        if (!tess_is_vector(&op->in[i], 2 * in->c))
            return "parameters and statistics are two fp32 values for each channel";
    for (int i = 1; i < op->outputs; i++)
        if (!tess_is_vector(&op->out[i], 2 * in->c))
            return "parameters and statistics are two fp32 values for each channel";
    if (op->outputs < 2)
        return "it has nowhere to write the statistics or the gradient of the parameters";
    if (tess_values(in) < 1 || in->c > 1 << 20 || in->n * tess_pixels(in) > INT32_MAX)
        return "takes up to 1048576 channels and 2147483647 pixels";
    return NULL;
}

size_t workspace(const tess_op *op)
{
    return (size_t)input_of(op)->c * (parts_of(op) * 2 * sizeof(double) + TABLE * sizeof(float));
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const bool grad = op->kind == TESS_OP_BATCH_NORM_GRAD;
    batch_job job = {};
    job.in = as_one(*input_of(op));
    job.out = as_one(op->out[0]);
    job.flat_in = tess_flat(&job.in);
    job.flat_out = tess_flat(&job.out);
    job.grid.images = 1;
    job.grid.pixels = tess_pixels(&job.in);
    job.grid.channels = job.in.c;
    job.grid.parts = parts_of(op);
    /* The table first: it is read in pieces of 16 bytes. */
    job.table = (float *)b->workspace;
    job.grid.sums = (double *)(job.table + TABLE * job.in.c);
    job.norm = op->batch_norm;
    job.activation = op->activation;
    job.from = b->in[grad ? 1 : 0];
    job.to = b->out[0];
    job.weights = (const float *)b->in[grad ? 3 : 1];
    if (grad) {
        job.gradient = as_one(op->in[0]);
        job.flat_gradient = tess_flat(&job.gradient);
        job.gradient_from = b->in[0];
        job.statistics = (const float *)b->in[2];
        job.weight_gradient = (float *)b->out[1];
    } else {
        job.new_statistics = (float *)b->out[1];
        job.running = op->outputs > 2 ? (float *)b->out[2] : NULL;
    }
    switch (job.in.dtype) {
    case TESS_F16:
        return launch_type<__half>(grad, job, stream);
    case TESS_BF16:
        return launch_type<__nv_bfloat16>(grad, job, stream);
    default:
        return launch_type<float>(grad, job, stream);
    }
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_batch_norm = {refuses, run, NULL, workspace};
