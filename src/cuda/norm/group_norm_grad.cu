/* GROUP_NORM_GRAD. Nothing of the forward pass was kept, so its mean and deviation are computed again: one pass over x
 * for them, one over x and the gradient g for two sums of each channel, and one that reads both again and writes.
 *
 * With x^ = (x - mean) / deviation, a = weight * (1 + scale), z = a x^ + bias * (1 + scale) + shift, dz = g *
 * activation'(z), and for each image and channel S = sum(dz), P = sum(dz x^):
 *   dx = (a dz - sum(a S) / M - x^ sum(a P) / M) / deviation, sums over the channels of the group of M values;
 *   dweight = sum((1 + scale) P), dbias = sum((1 + scale) S), over the images;
 *   dscale = weight P + bias S, dshift = S.
 *
 * The sums are those of norm/channels.cuh; between them a small kernel fills the table of each image and channel
 * (norm/group_norm_tables.cuh). */
#include "cuda/core/activation.cuh"
#include "cuda/norm/group_norm_tables.cuh"

namespace
{

enum { THREADS = TESS_CHANNEL_THREADS, MOST_PARTS = 512, BATCH = 4 };

/* The gradient of the parameters: x over channels. */
__global__ void __launch_bounds__(MERGERS) weights_kernel(const __grid_constant__ grad_job job)
{
    const int64_t channels = job.grid.channels, c = (int64_t)blockIdx.x * MERGERS + threadIdx.x;
    if (c >= channels)
        return;
    double weight = 0, bias = 0;
    for (int64_t n = 0; n < job.grid.images; n++) {
        const double scale = scale_of(job, n, c);
        bias += scale * job.channel_sums[(2 * n) * channels + c];
        weight += scale * job.channel_sums[(2 * n + 1) * channels + c];
    }
    float *to = job.weight_gradient;
    to[c] = (float)(job.accumulate ? to[c] + weight : weight);
    to[channels + c] = (float)(job.accumulate ? to[channels + c] + bias : bias);
}

/* The numbers of the table that a thread needs for its channels. */
template <int N, int COUNT> struct numbers {
    float k[COUNT][N];
    __device__ __forceinline__ numbers(const grad_job &job, int64_t n, int64_t c)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            tess_load<N>(job.table + (n * TABLE + i) * job.grid.channels + c, k[i]);
    }
};

/* Sums of dz and of dz x^. */
template <typename T, int N> struct add_products {
    enum { BATCH = 4 };
    const int64_t n, c;
    const numbers<N, OFFSET + 1> of;
    __device__ __forceinline__ add_products(const grad_job &job, int64_t image, int64_t channel)
        : n(image), c(channel), of(job, image, channel)
    {
    }
    __device__ __forceinline__ void batch(const grad_job &job, int64_t pixel, int count, double *plain,
                                          double *times) const
    {
        float g[BATCH][N], x[BATCH][N];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
            if (b < count) {
                const int64_t p = pixel + (int64_t)b * job.grid.lanes;
                tess_load<N>((const T *)job.gradient_from + c +
                                 tess_place(job.gradient, job.flat_gradient, n, p),
                             g[b]);
                tess_load<N>((const T *)job.from + c + tess_place(job.in, job.flat_in, n, p), x[b]);
            }
#pragma unroll
        for (int i = 0; i < N; i++) {
            float p = 0, t = 0;
#pragma unroll
            for (int b = 0; b < BATCH; b++)
                if (b < count) {
                    const float d = x[b][i] - of.k[CENTRE][i],
                                dz = tess_activated_grad(job.activation,
                                                         d * of.k[FACTOR][i] + of.k[OFFSET][i], g[b][i]);
                    p += dz;
                    t += dz * (d * of.k[INVERSE][i]);
                }
            plain[i] += p;
            times[i] += t;
        }
    }
};

template <typename T, int N>
__global__ void __launch_bounds__(THREADS) apply_kernel(const __grid_constant__ grad_job job)
{
    const channel_thread t = channel_thread_of(job.grid);
    if (!t.mine)
        return;
    const int64_t c = (int64_t)t.piece * N, first = (int64_t)blockIdx.x * BATCH * job.grid.lanes + t.lane;
    for (int64_t n = blockIdx.z; n < job.grid.images; n += gridDim.z) {
        const numbers<N, TABLE> of(job, n, c);
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            const int64_t p = first + (int64_t)b * job.grid.lanes;
            if (p >= job.grid.pixels)
                break;
            float x[N], g[N];
            tess_load<N>((const T *)job.gradient_from + c + tess_place(job.gradient, job.flat_gradient, n, p),
                         g);
            tess_load<N>((const T *)job.from + c + tess_place(job.in, job.flat_in, n, p), x);
#pragma unroll
            for (int i = 0; i < N; i++) {
                const float d = x[i] - of.k[CENTRE][i],
                            dz = tess_activated_grad(job.activation, d * of.k[FACTOR][i] + of.k[OFFSET][i],
                                                     g[i]);
                x[i] = of.k[FACTOR][i] * dz - of.k[PLAIN][i] - d * of.k[TIMES][i];
            }
            tess_store<N>((T *)job.to + c + tess_place(job.out, job.flat_out, n, p), x);
        }
    }
}

template <typename T, int N> cudaError_t launch(grad_job &job, cudaStream_t stream)
{
    channel_grid_share(&job.grid, N);
    const dim3 sums = channel_blocks(job.grid, job.grid.parts), tables((unsigned)job.groups, 1, sums.z);
    const unsigned channels = (unsigned)((job.grid.channels + MERGERS - 1) / MERGERS);
    sum_kernel<add_squares<grad_job, T, N>, grad_job, N><<<sums, THREADS, 0, stream>>>(job);
    forward_table_kernel<<<tables, MERGERS, 0, stream>>>(job);
    sum_kernel<add_products<T, N>, grad_job, N><<<sums, THREADS, 0, stream>>>(job);
    backward_table_kernel<<<tables, MERGERS, 0, stream>>>(job);
    weights_kernel<<<channels, MERGERS, 0, stream>>>(job);
    apply_kernel<T, N><<<channel_apply_blocks(job.grid, BATCH), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

template <typename T> cudaError_t launch_type(grad_job &job, cudaStream_t stream)
{
    constexpr int N = 16 / (int)sizeof(T);
    return tess_whole(&job.in, job.from, N) && tess_whole(&job.gradient, job.gradient_from, N) &&
                   tess_whole(&job.out, job.to, N)
               ? launch<T, N>(job, stream)
               : launch<T, 1>(job, stream);
}

unsigned parts_of(const tess_op *op)
{
    return channel_parts(&op->in[1], tess_pixels(&op->in[1]), MOST_PARTS);
}

size_t workspace(const tess_op *op)
{
    const size_t channels = (size_t)(op->in[1].n * op->in[1].c);
    return channels * (((size_t)parts_of(op) + 1) * 2 * sizeof(double) + TABLE * sizeof(float));
}

bool is_modulation(const tess_tensor *t, const tess_tensor *in)
{
    return tess_is_value(t->dtype) && t->n == in->n && tess_pixels(t) == 1 && t->c == 2 * in->c;
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *gradient = &op->in[0], *in = &op->in[1], *out = &op->out[0];
    if (!tess_is_value(in->dtype) || out->dtype != in->dtype || gradient->dtype != in->dtype)
        return "values are fp32, fp16 or bf16, all of one type";
    if (!tess_same_sizes(in, out) || !tess_same_sizes(in, gradient))
        return "the tensors differ in shape";
    if (op->group_norm.groups < 1 || in->c % op->group_norm.groups)
        return "the channels are not a multiple of the groups";
    if (op->outputs < 2 || !tess_is_vector(&op->in[2], 2 * in->c) || !tess_is_vector(&op->out[1], 2 * in->c))
        return "parameters are two fp32 values for each channel";
    if ((op->inputs > 3 && !is_modulation(&op->in[3], in)) ||
        (op->outputs > 2 && (op->inputs < 4 || !is_modulation(&op->out[2], in))))
        return "scales and shifts are two values for each image and channel";
    if (tess_values(in) < 1 || in->c > 1 << 20 || tess_pixels(in) > INT32_MAX)
        return "takes up to 1048576 channels and 2147483647 pixels an image";
    return NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const int64_t channels = op->in[1].n * op->in[1].c;
    grad_job job = {};
    job.gradient = op->in[0];
    job.in = op->in[1];
    job.out = op->out[0];
    job.flat_gradient = tess_flat(&job.gradient);
    job.flat_in = tess_flat(&job.in);
    job.flat_out = tess_flat(&job.out);
    job.activation = op->activation;
    job.accumulate = op->group_norm.accumulate;
    job.groups = op->group_norm.groups;
    job.epsilon = op->group_norm.epsilon;
    job.gradient_from = b->in[0];
    job.from = b->in[1];
    job.weights = (const float *)b->in[2];
    job.to = b->out[0];
    job.weight_gradient = (float *)b->out[1];
    job.scale_shift = op->inputs > 3;
    job.more = op->in[3];
    job.modulation = b->in[3];
    job.more_gradient = op->out[2];
    job.modulation_to = op->outputs > 2 ? b->out[2] : NULL;
    job.grid.images = job.in.n;
    job.grid.pixels = tess_pixels(&job.in);
    job.grid.channels = job.in.c;
    job.grid.parts = parts_of(op);
    job.table = (float *)b->workspace; /* first: it is read in pieces of 16 bytes */
    job.channel_sums = (double *)(job.table + TABLE * channels);
    job.grid.sums = job.channel_sums + 2 * channels;
    switch (job.in.dtype) {
    case TESS_F16:
        return launch_type<__half>(job, stream);
    case TESS_BF16:
        return launch_type<__nv_bfloat16>(job, stream);
    default:
        return launch_type<float>(job, stream);
    }
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_group_norm_grad = {refuses, run, NULL, workspace};
