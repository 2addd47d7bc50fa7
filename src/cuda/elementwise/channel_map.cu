/* CHANNEL_MAP and CHANNEL_MAP_GRAD. One block makes a table of a factor and a centre for each channel, in fp64. Values then
 * take one product each. Of values without gaps and few channels, each block makes the table for itself, in shared memory, if
 * no softmax is to be summed: one launch instead of two, and no division for each value (dense_kernel). The gradient sums, for each channel, g u and g over parts of the pixels, whose number the size alone
 * sets: a block has `across` channels side by side and THREADS / across pixels; its threads' sums are added as a tree, and
 * one block at the end adds the parts in their order and makes the gradients of the parameters. */
#include "cuda/core/early.cuh"
#include "cuda/elementwise/channels.cuh"

namespace
{

enum { THREADS = 256, MOST_ACROSS = 32, PIXELS_EACH = 16, MOST_PARTS = 1024 };
enum { MOST_TABLE = 1024, DENSE_BLOCKS = 8 * 132 }; /* of dense_kernel: channels; blocks */

struct map_job {
    tess_tensor g, x, out; /* g: of the gradient alone */
    bool flat_g, flat_x, flat_out;
    bool boundary, biased;
    bool slope; /* the gradient of a map whose parameters are fixed: a product with its factor */
    int64_t images, pixels, all; /* pixels of an image; of all */
    int channels, across, parts;
    tess_op_channel_map map;
    const void *from_g, *from_x;
    const float *params;
    const double *control;
    void *to;
    float *gradients;               /* NULL: not wanted */
    double *factor, *centre, *sums; /* [channels], [channels], [part][2][channels] */
};

__device__ __forceinline__ double radius_of(double p)
{
    return (fmax(10 * p, 0.0) + log1p(exp(-fabs(10 * p)))) / 10;
}

/* The factor and the centre of a channel; `share`: its softmax, if the map has one. */
__device__ __forceinline__ void entry_of(const map_job &job, int i, double share, double *factor,
                                         double *centre)
{
    const double p = (double)job.params[i], m = job.biased ? (double)job.params[job.channels + i] : 0;
    *factor = 1;
    *centre = m;
    switch (job.map.form) {
    case TESS_CHANNEL_SHIFT:
        *centre = p;
        break;
    case TESS_CHANNEL_SCALE:
        *factor = p;
        break;
    case TESS_CHANNEL_DIVIDE:
        *factor = 1 / (p + job.map.epsilon);
        break;
    case TESS_CHANNEL_SOFTMAX:
        *factor = share * job.map.softmax.count;
        break;
    case TESS_CHANNEL_BOUNDARY:
        *factor = 1 / job.map.epsilon;
        *centre = radius_of(p) * radius_of(p);
        break;
    }
}

__global__ void __launch_bounds__(THREADS) table_kernel(const __grid_constant__ map_job job)
{
    begin_early();
    const bool softmax = job.map.form == TESS_CHANNEL_SOFTMAX;
    if (softmax)
        tess_block_softmax<THREADS>(job.params, job.channels, tess_temperature(job.map.softmax, job.control),
                                    job.factor);
    for (int i = (int)threadIdx.x; i < job.channels; i += THREADS) {
        double factor, centre;
        entry_of(job, i, softmax ? job.factor[i] : 0, &factor, &centre);
        job.factor[i] = factor;
        job.centre[i] = centre;
    }
}

__device__ __forceinline__ float mapped(const map_job &job, float x, float factor, float centre)
{
    const float y = factor * (x - centre);
    return job.boundary ? centre + (x <= centre ? 0 : y) : y;
}

/* N neighbouring values at a time, whose number is a multiple of N and below 2^31. */
template <typename X, typename Y, int N>
__global__ void __launch_bounds__(THREADS) dense_kernel(const __grid_constant__ map_job job)
{
    begin_early();
    __shared__ float factors[MOST_TABLE], centres[MOST_TABLE];
    for (int i = (int)threadIdx.x; i < job.channels; i += THREADS) {
        double factor, centre;
        entry_of(job, i, 0, &factor, &centre);
        factors[i] = (float)factor;
        centres[i] = job.slope ? 0 : (float)centre;
    }
    __syncthreads();
    const int64_t values = job.all * job.channels, step = (int64_t)gridDim.x * THREADS * N,
                  first = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    const int more = (int)((unsigned)step % (unsigned)job.channels);
    int channel = (int)((unsigned)first % (unsigned)job.channels);
    for (int64_t i = first; i < values; i += step) {
        float v[N];
        tess_load<N>((const X *)job.from_x + i, v);
        int c = channel;
#pragma unroll
        for (int k = 0; k < N; k++) {
            v[k] = mapped(job, v[k], factors[c], centres[c]);
            c = c + 1 < job.channels ? c + 1 : 0;
        }
        tess_store<N>((Y *)job.to + i, v);
        channel += more;
        channel -= channel < job.channels ? 0 : job.channels;
    }
}

__device__ __forceinline__ int64_t place(const map_job &job, const tess_tensor &t, bool flat, int64_t pixel)
{
    const int64_t n = pixel / job.pixels;
    return tess_place(t, flat, n, pixel - n * job.pixels);
}

__global__ void __launch_bounds__(THREADS) map_kernel(const __grid_constant__ map_job job)
{
    begin_early();
    const int64_t values = job.all * job.channels, step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < values; i += step) {
        const int64_t pixel = i / job.channels;
        const int c = (int)(i - pixel * job.channels);
        const float x = tess_value_at(job.x.dtype, job.from_x, place(job, job.x, job.flat_x, pixel) + c),
                    factor = (float)job.factor[c], centre = job.slope ? 0 : (float)job.centre[c];
        tess_put_at(job.out.dtype, job.to, place(job, job.out, job.flat_out, pixel) + c,
                    mapped(job, x, factor, centre));
    }
}

/* Grid: x parts, y blocks of `across` channels. */
__global__ void __launch_bounds__(THREADS) grad_kernel(const __grid_constant__ map_job job)
{
    begin_early();
    __shared__ double with[THREADS], alone[THREADS];
    const int lanes = THREADS / job.across, lane = (int)threadIdx.x / job.across,
              c = (int)blockIdx.y * job.across + (int)threadIdx.x % job.across;
    const int64_t begin = blockIdx.x * job.all / job.parts, end = (blockIdx.x + 1) * job.all / job.parts;
    const bool mine = c < job.channels;
    const double factor = mine ? job.factor[c] : 0, centre = mine ? job.centre[c] : 0;
    double sum_with = 0, sum_alone = 0;
    for (int64_t pixel = begin + lane; pixel < end && mine; pixel += lanes) {
        const float g = tess_value_at(job.g.dtype, job.from_g, place(job, job.g, job.flat_g, pixel) + c),
                    x = tess_value_at(job.x.dtype, job.from_x, place(job, job.x, job.flat_x, pixel) + c);
        const bool inside = job.boundary && !((double)x > centre);
        const double u = job.boundary ? (inside ? 0.0 : 1.0) : (double)x - centre;
        sum_with += (double)g * u;
        sum_alone += (double)g;
        tess_put_at(job.out.dtype, job.to, place(job, job.out, job.flat_out, pixel) + c,
                    inside ? 0 : g * (float)factor);
    }
    with[threadIdx.x] = sum_with;
    alone[threadIdx.x] = sum_alone;
    __syncthreads();
    for (int half = lanes / 2; half > 0; half /= 2) {
        if (lane < half) {
            with[threadIdx.x] += with[threadIdx.x + half * job.across];
            alone[threadIdx.x] += alone[threadIdx.x + half * job.across];
        }
        __syncthreads();
    }
    if (lane == 0 && mine) {
        double *to = job.sums + (int64_t)blockIdx.x * 2 * job.channels + c;
        to[0] = with[threadIdx.x];
        to[job.channels] = alone[threadIdx.x];
    }
}

/* One block. The sums of all parts go to those of the first. */
__global__ void __launch_bounds__(THREADS) end_kernel(const __grid_constant__ map_job job)
{
    begin_early();
    const bool softmax = job.map.form == TESS_CHANNEL_SOFTMAX;
    double mean = 0;
    for (int c = (int)threadIdx.x; c < job.channels; c += THREADS) {
        double with = 0, alone = 0;
        for (int part = 0; part < job.parts; part++) {
            with += job.sums[(int64_t)part * 2 * job.channels + c];
            alone += job.sums[(int64_t)part * 2 * job.channels + job.channels + c];
        }
        job.sums[c] = with;
        job.sums[job.channels + c] = alone;
        mean += softmax ? job.factor[c] / job.map.softmax.count * with : 0;
    }
    mean = tess_block_sum<THREADS>(mean);
    const double temperature = softmax ? tess_temperature(job.map.softmax, job.control) : 1;
    for (int c = (int)threadIdx.x; c < job.channels; c += THREADS) {
        const double p = (double)job.params[c], f = job.factor[c], with = job.sums[c],
                     alone = job.sums[job.channels + c];
        double weight = 0;
        switch (job.map.form) {
        case TESS_CHANNEL_SHIFT:
            weight = -alone;
            break;
        case TESS_CHANNEL_SCALE:
            weight = with;
            break;
        case TESS_CHANNEL_DIVIDE:
            weight = -with * f * f;
            break;
        case TESS_CHANNEL_SOFTMAX:
            weight = f / temperature * (with - mean);
            break;
        case TESS_CHANNEL_BOUNDARY:
            weight = 2 * radius_of(p) / (1 + exp(-10 * p)) * (alone - f * with);
            break;
        }
        float *to = job.gradients + c;
        to[0] = (float)(weight + (job.map.accumulate ? (double)to[0] : 0));
        if (job.biased)
            to[job.channels] = (float)(-f * alone + (job.map.accumulate ? (double)to[job.channels] : 0));
    }
}

bool is_grad(const tess_op *op)
{
    return op->kind == TESS_OP_CHANNEL_MAP_GRAD;
}

int across_of(const tess_op *op)
{
    int across = 1;
    while (across < MOST_ACROSS && across < op->out[0].c)
        across *= 2;
    return across;
}

int64_t parts_of(const tess_op *op)
{
    const int64_t pixels = op->out[0].n * tess_pixels(&op->out[0]),
                  each = (int64_t)(THREADS / across_of(op)) * PIXELS_EACH, parts = (pixels + each - 1) / each;
    return parts < 1 ? 1 : parts < MOST_PARTS ? parts : (int64_t)MOST_PARTS;
}

size_t workspace(const tess_op *op)
{
    return (size_t)(2 * op->out[0].c * (1 + (is_grad(op) ? parts_of(op) : 0))) * sizeof(double);
}

const char *refuses(const tess_op *op, int)
{
    const bool grad = is_grad(op), softmax = op->channel_map.form == TESS_CHANNEL_SOFTMAX;
    const tess_tensor *x = &op->in[grad ? 1 : 0];
    const int64_t params = op->out[0].c * (tess_channel_has_bias(op->channel_map.form) ? 2 : 1);
    const int inputs = (grad ? 3 : 1) + softmax;
    if (!tess_is_value(op->in[0].dtype) || !tess_is_value(x->dtype) || !tess_is_value(op->out[0].dtype))
        return "values are fp32, fp16 or bf16";
    if (op->inputs != inputs || !tess_same_sizes(&op->in[0], &op->out[0]) || !tess_same_sizes(x, &op->out[0]))
        return "the tensors differ in shape, or the softmax has no control";
    if (softmax && op->in[inputs - 1].dtype != TESS_F64)
        return "the control is F64";
    if (grad &&
        (!tess_is_vector(&op->in[2], params) || (op->outputs > 1 && !tess_is_vector(&op->out[1], params))))
        return "parameters and their gradients are fp32 vectors";
    return tess_values(x) < 1 || x->c > 1 << 20 ? "it has no values, or too many channels" : NULL;
}

/* True if dense_kernel takes the values. */
bool is_dense(const map_job &job)
{
    return job.map.form != TESS_CHANNEL_SOFTMAX && job.channels <= MOST_TABLE && tess_dense(&job.x) &&
           tess_dense(&job.out) && job.all * job.channels <= INT32_MAX;
}

template <typename X, typename Y> cudaError_t launch_dense(const map_job &job, cudaStream_t stream)
{
    const int64_t values = job.all * job.channels;
    const bool fours = values % 4 == 0 && (uintptr_t)job.from_x % (4 * sizeof(X)) == 0 &&
                       (uintptr_t)job.to % (4 * sizeof(Y)) == 0;
    const int64_t block = (fours ? 4 : 1) * THREADS, blocks = (values + block - 1) / block;
    const unsigned grid = (unsigned)(blocks < DENSE_BLOCKS ? blocks : (int64_t)DENSE_BLOCKS);
    return tess_launch_early(fours ? dense_kernel<X, Y, 4> : dense_kernel<X, Y, 1>, grid, THREADS, 0, stream,
                             job);
}

template <typename X> cudaError_t launch_dense_to(const map_job &job, cudaStream_t stream)
{
    return job.out.dtype == TESS_F16    ? launch_dense<X, __half>(job, stream)
           : job.out.dtype == TESS_BF16 ? launch_dense<X, __nv_bfloat16>(job, stream)
                                        : launch_dense<X, float>(job, stream);
}

cudaError_t run_dense(const map_job &job, cudaStream_t stream)
{
    return job.x.dtype == TESS_F16    ? launch_dense_to<__half>(job, stream)
           : job.x.dtype == TESS_BF16 ? launch_dense_to<__nv_bfloat16>(job, stream)
                                      : launch_dense_to<float>(job, stream);
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const bool grad = is_grad(op);
    const int64_t most_blocks = 1 << 16;
    map_job job = {};
    job.g = op->in[0];
    job.x = op->in[grad ? 1 : 0];
    job.out = op->out[0];
    job.flat_g = tess_flat(&job.g);
    job.flat_x = tess_flat(&job.x);
    job.flat_out = tess_flat(&job.out);
    job.boundary = op->channel_map.form == TESS_CHANNEL_BOUNDARY;
    job.biased = tess_channel_has_bias(op->channel_map.form);
    job.images = op->out[0].n;
    job.pixels = tess_pixels(&op->out[0]);
    job.all = job.images * job.pixels;
    job.channels = (int)op->out[0].c;
    job.across = across_of(op);
    job.parts = (int)parts_of(op);
    job.map = op->channel_map;
    job.from_g = b->in[0];
    job.from_x = b->in[grad ? 1 : 0];
    job.params = (const float *)(grad ? b->in[2] : b->weights);
    job.control = (const double *)b->in[grad ? 3 : 1];
    job.to = b->out[0];
    job.gradients = grad && op->outputs > 1 ? (float *)b->out[1] : NULL;
    job.factor = (double *)b->workspace;
    job.centre = job.factor + job.channels;
    job.sums = job.centre + job.channels;
    job.slope = grad && !job.gradients && !job.boundary;
    if (job.slope) {
        job.x = job.g;
        job.flat_x = job.flat_g;
        job.from_x = job.from_g;
    }
    if ((!grad || job.slope) && is_dense(job))
        return run_dense(job, stream);
    cudaError_t result = tess_launch_early(table_kernel, 1, THREADS, 0, stream, job);
    if (result == cudaSuccess && (!grad || job.slope)) {
        const int64_t blocks = (job.all * job.channels + THREADS - 1) / THREADS;
        return tess_launch_early(map_kernel, (unsigned)(blocks < most_blocks ? blocks : most_blocks), THREADS,
                                 0, stream, job);
    }
    const dim3 grid((unsigned)job.parts, (unsigned)((job.channels + job.across - 1) / job.across));
    if (result == cudaSuccess)
        result = tess_launch_early(grad_kernel, grid, THREADS, 0, stream, job);
    if (result == cudaSuccess && job.gradients)
        result = tess_launch_early(end_kernel, 1, THREADS, 0, stream, job);
    return result;
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_channel_map = {refuses, run, NULL, workspace};
