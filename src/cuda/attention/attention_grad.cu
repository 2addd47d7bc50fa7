/* ATTENTION_GRAD without storing the matrix of pixels by pixels (FlashAttention, Dao et al. 2022). With scores s = scale
 * q . k, weights p = exp(s - L), L = log(sum(exp(s))), g the gradient of the output o, and D = g . o:
 *   ds = p (g . v - D); dq = scale sum(ds k) over keys; dk = scale sum(ds q), dv = sum(p g) over queries.
 *
 * The first kernel has queries in registers and keys and values in shared memory. It needs L only at its end: as in the
 * forward pass, sums are kept relative to the largest score so far. It writes dq, L and D. The second kernel has keys
 * and values in registers and tiles of queries, gradients, L and D in shared memory. All arithmetic is fp32; L is
 * for powers of two.
 *
 * G * S threads of a warp share a row (a query, or a key with its value): G share its channels (each has CHANNELS, in
 * interleaved pieces of four), S share the columns of the matrix, and their sums are added at the end. A thread has
 * ROWS rows. Grid: x over rows, y over heads, z over images. The head size alone selects the template, so the order of
 * the sums is fixed. */
#include <math.h>

#include "cuda/attention/attention_grad.cuh"
#include "op/attention.h"

namespace
{

const unsigned MOST_IMAGES = 65535;

/* The rows of queries of a thread: query and gradient, what is summed, and D. */
template <int CHANNELS, int ROWS> struct query_rows {
    float query[ROWS][CHANNELS], gradient[ROWS][CHANNELS], sum[ROWS][CHANNELS];
    float most[ROWS], total[ROWS], dot[ROWS];
};

/* One step of the first kernel: STEP keys. `keys`, `values`: the thread's first piece of the first of them. */
template <int CHANNELS, int ROWS, int G, int S, int ROW, int STEP>
__device__ __forceinline__ void add_keys(query_rows<CHANNELS, ROWS> &st, const float *keys,
                                         const float *values, int left)
{
    float score[ROWS][STEP], slope[ROWS][STEP];
#pragma unroll
    for (int k = 0; k < STEP; k++) {
        dot_rows<CHANNELS, ROWS, G>(st.query, keys + k * S * ROW, score, k);
        dot_rows<CHANNELS, ROWS, G>(st.gradient, values + k * S * ROW, slope, k);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (k * S >= left)
                score[r][k] = -INFINITY;
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float most = st.most[r];
#pragma unroll
        for (int k = 0; k < STEP; k++)
            most = fmaxf(most, score[r][k]);
        const float rescale = exp2f(st.most[r] - most);
        st.most[r] = most;
        st.total[r] *= rescale;
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            const float weight = exp2f(score[r][k] - most);
            st.total[r] += weight;
            slope[r][k] = weight * (slope[r][k] - st.dot[r]);
        }
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            st.sum[r][c] *= rescale;
    }
#pragma unroll
    for (int k = 0; k < STEP; k++)
        add_rows<CHANNELS, ROWS, G>(st.sum, keys + k * S * ROW, slope, k);
}

/* Combines what the threads of a row have summed; all of them get the sums. */
template <int CHANNELS, int ROWS, int G, int S>
__device__ __forceinline__ void merge_queries(query_rows<CHANNELS, ROWS> &st)
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float most = st.most[r];
#pragma unroll
        for (int other = G; other < G * S; other *= 2)
            most = fmaxf(most, __shfl_xor_sync(~0u, most, other));
        const float rescale = exp2f(st.most[r] - most);
        st.most[r] = most;
        st.total[r] = sum_shared<G, S>(st.total[r] * rescale);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            st.sum[r][c] = sum_shared<G, S>(st.sum[r][c] * rescale);
    }
}

template <int CHANNELS, int ROWS, int G, int S>
__global__ void __launch_bounds__(THREADS) query_kernel(const __grid_constant__ grad_job job)
{
    typedef tile<CHANNELS, G, S> shape;
    __shared__ __align__(16) float keys[shape::FLOATS], values[shape::FLOATS];
    const lane l = lane_of<ROWS, G, S>();
    for (int64_t n = blockIdx.z; n < job.in.n; n += gridDim.z) {
        query_rows<CHANNELS, ROWS> st;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int pixel = l.first + r * (THREADS / (G * S));
            load_row<CHANNELS, G>(job, n, pixel, l.g, QUERY, job.scale, st.query[r]);
            load_row<CHANNELS, G>(job, n, pixel, l.g, OUTPUT, 1, st.sum[r]);
            load_row<CHANNELS, G>(job, n, pixel, l.g, GRADIENT, 1, st.gradient[r]);
            st.most[r] = -1e30f;
            st.total[r] = st.dot[r] = 0;
#pragma unroll
            for (int c = 0; c < CHANNELS; c++) {
                st.dot[r] += st.sum[r][c] * st.gradient[r][c];
                st.sum[r][c] = 0;
            }
#pragma unroll
            for (int other = 1; other < G; other *= 2)
                st.dot[r] += __shfl_xor_sync(~0u, st.dot[r], other);
        }
        for (int begin = 0; begin < job.pixels; begin += shape::COUNT) {
            __syncthreads();
            load_tile<shape>(job, n, begin, KEY, VALUE, keys, values);
            __syncthreads();
            const int there = job.pixels - begin < shape::COUNT ? job.pixels - begin : shape::COUNT;
            for (int k = 0; k < there; k += shape::STEP * S) {
                const int at = (k + l.s) * shape::ROW + 4 * l.g;
                add_keys<CHANNELS, ROWS, G, S, shape::ROW, shape::STEP>(st, keys + at, values + at,
                                                                        there - k - l.s);
            }
        }
        merge_queries<CHANNELS, ROWS, G, S>(st);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int pixel = l.first + r * (THREADS / (G * S));
            if (l.s != 0 || pixel >= job.pixels)
                continue;
            store_row<CHANNELS, G>(job, n, pixel, l.g, QUERY, job.factor / st.total[r], st.sum[r]);
            if (l.g == 0) {
                float *to = row_numbers(job, n, pixel);
                to[0] = st.most[r] + log2f(st.total[r]);
                to[1] = st.dot[r];
            }
        }
    }
}

/* The rows of keys of a thread: key and value, and their gradients. */
template <int CHANNELS, int ROWS> struct key_rows {
    float key[ROWS][CHANNELS], value[ROWS][CHANNELS], key_sum[ROWS][CHANNELS], value_sum[ROWS][CHANNELS];
};

/* One step of the second kernel: STEP queries, whose L and D are at `numbers`. */
template <int CHANNELS, int ROWS, int G, int S, int ROW, int STEP>
__device__ __forceinline__ void add_queries(key_rows<CHANNELS, ROWS> &st, const float *queries,
                                            const float *gradients, const float *numbers, int left)
{
    float weight[ROWS][STEP], slope[ROWS][STEP];
#pragma unroll
    for (int k = 0; k < STEP; k++) {
        dot_rows<CHANNELS, ROWS, G>(st.key, queries + k * S * ROW, weight, k);
        dot_rows<CHANNELS, ROWS, G>(st.value, gradients + k * S * ROW, slope, k);
        const float2 of = *(const float2 *)(numbers + k * S * 2);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            weight[r][k] = k * S >= left ? 0 : exp2f(weight[r][k] - of.x);
            slope[r][k] = weight[r][k] * (slope[r][k] - of.y);
        }
    }
#pragma unroll
    for (int k = 0; k < STEP; k++) {
        add_rows<CHANNELS, ROWS, G>(st.key_sum, queries + k * S * ROW, slope, k);
        add_rows<CHANNELS, ROWS, G>(st.value_sum, gradients + k * S * ROW, weight, k);
    }
}

template <int CHANNELS, int ROWS, int G, int S>
__global__ void __launch_bounds__(THREADS) key_kernel(const __grid_constant__ grad_job job)
{
    typedef tile<CHANNELS, G, S> shape;
    __shared__ __align__(16) float queries[shape::FLOATS], gradients[shape::FLOATS],
        numbers[2 * shape::COUNT];
    const lane l = lane_of<ROWS, G, S>();
    for (int64_t n = blockIdx.z; n < job.in.n; n += gridDim.z) {
        key_rows<CHANNELS, ROWS> st;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int pixel = l.first + r * (THREADS / (G * S));
            load_row<CHANNELS, G>(job, n, pixel, l.g, KEY, job.scale, st.key[r]);
            load_row<CHANNELS, G>(job, n, pixel, l.g, VALUE, 1, st.value[r]);
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                st.key_sum[r][c] = st.value_sum[r][c] = 0;
        }
        for (int begin = 0; begin < job.pixels; begin += shape::COUNT) {
            const int there = job.pixels - begin < shape::COUNT ? job.pixels - begin : shape::COUNT;
            __syncthreads();
            load_tile<shape>(job, n, begin, QUERY, GRADIENT, queries, gradients);
            for (int i = (int)threadIdx.x; i < 2 * shape::COUNT; i += THREADS)
                numbers[i] = i < 2 * there ? row_numbers(job, n, begin)[i] : 0;
            __syncthreads();
            for (int k = 0; k < there; k += shape::STEP * S) {
                const int at = (k + l.s) * shape::ROW + 4 * l.g;
                add_queries<CHANNELS, ROWS, G, S, shape::ROW, shape::STEP>(
                    st, queries + at, gradients + at, numbers + 2 * (k + l.s), there - k - l.s);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < CHANNELS; c++) {
                st.key_sum[r][c] = sum_shared<G, S>(st.key_sum[r][c]);
                st.value_sum[r][c] = sum_shared<G, S>(st.value_sum[r][c]);
            }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int pixel = l.first + r * (THREADS / (G * S));
            if (l.s != 0 || pixel >= job.pixels)
                continue;
            store_row<CHANNELS, G>(job, n, pixel, l.g, KEY, job.factor, st.key_sum[r]);
            store_row<CHANNELS, G>(job, n, pixel, l.g, VALUE, 1, st.value_sum[r]);
        }
    }
}

template <int CHANNELS, int QUERIES, int KEYS, int G, int S>
cudaError_t launch(const grad_job &job, cudaStream_t stream)
{
    const int team = THREADS / (G * S), queries = team * QUERIES, keys = team * KEYS;
    const unsigned heads = (unsigned)job.heads,
                   images = (unsigned)(job.in.n < MOST_IMAGES ? job.in.n : MOST_IMAGES);
    query_kernel<CHANNELS, QUERIES, G, S>
        <<<dim3((unsigned)((job.pixels + queries - 1) / queries), heads, images), THREADS, 0, stream>>>(job);
    key_kernel<CHANNELS, KEYS, G, S>
        <<<dim3((unsigned)((job.pixels + keys - 1) / keys), heads, images), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *gradient = &op->in[0], *in = &op->in[1], *output = &op->in[2], *out = &op->out[0];
    const int heads = op->attention.heads;
    if (!tess_is_value(gradient->dtype) || !tess_is_value(in->dtype) || !tess_is_value(output->dtype) ||
        !tess_is_value(out->dtype))
        return "values are fp32, fp16 or bf16";
    if (!tess_same_sizes(in, out) || !tess_same_sizes(gradient, output) || gradient->n != in->n ||
        tess_pixels(gradient) != tess_pixels(in) || in->c != 3 * gradient->c || heads < 1 ||
        gradient->c % heads)
        return "the tensors do not fit the heads";
    if (gradient->c / heads > 1024 || heads > 65535)
        return "takes heads of up to 1024 channels, up to 65535 of them";
    if (tess_values(in) < 1 || tess_pixels(in) > 1 << 30)
        return "takes up to 1073741824 pixels an image";
    return NULL;
}

size_t workspace(const tess_op *op)
{
    return (size_t)op->in[1].n * (size_t)op->attention.heads * (size_t)tess_pixels(&op->in[1]) * 2 *
           sizeof(float);
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    tess_op forward = *op;
    forward.out[0] = op->in[0]; /* of the attention whose heads these are */
    const tess_head first = tess_head_of(&forward, 0), second = tess_head_of(&forward, 1);
    grad_job job = {};
    job.gradient = op->in[0];
    job.in = op->in[1];
    job.output = op->in[2];
    job.out = op->out[0];
    job.flat_gradient = tess_flat(&job.gradient);
    job.flat_in = tess_flat(&job.in);
    job.flat_output = tess_flat(&job.output);
    job.flat_out = tess_flat(&job.out);
    job.heads = op->attention.heads;
    job.pixels = (int)tess_pixels(&job.in);
    job.channels = (int)first.channels;
    job.first_step = second.query - first.query;
    job.part_step = first.key - first.query;
    const double factor = 1 / sqrt((double)first.channels);
    job.factor = (float)factor;
    job.scale = (float)(1.4426950408889634 * factor);
    job.gradient_from = b->in[0];
    job.from = b->in[1];
    job.output_from = b->in[2];
    job.to = b->out[0];
    job.numbers = (float *)b->workspace;
    return first.channels <= 8     ? launch<8, 2, 2, 1, 4>(job, stream)
           : first.channels <= 16  ? launch<16, 2, 1, 1, 4>(job, stream)
           : first.channels <= 32  ? launch<32, 1, 1, 1, 4>(job, stream)
           : first.channels <= 64  ? launch<32, 1, 1, 2, 4>(job, stream)
           : first.channels <= 128 ? launch<32, 1, 1, 4, 4>(job, stream)
           : first.channels <= 256 ? launch<32, 1, 1, 8, 4>(job, stream)
           : first.channels <= 512 ? launch<32, 1, 1, 16, 2>(job, stream)
                                   : launch<32, 1, 1, 32, 1>(job, stream);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_attention_grad = {refuses, run, NULL, workspace};
