/* Attention without storing the matrix of pixels by pixels. Tiles of keys and values pass through shared
 * memory as fp32. Each query keeps the largest score so far, the sum of the exponentials and the weighted sum
 * of the values in registers, and rescales them when the largest score grows (Milakov and Gimelshein 2018;
 * FlashAttention, Dao et al. 2022). All arithmetic is fp32.
 *
 * G * S threads of a warp share a query: G share its channels (each has CHANNELS, in interleaved pieces of
 * four), S share the keys, and their sums are added at the end. A thread has QUERIES queries, so that each key
 * read from shared memory is used that many times. Grid: x over queries, y over heads, z over images. The head
 * size alone selects the template, so the order of the sums does not depend on batch or card. */
#include <math.h>

#include "cuda/core/tensors.cuh"
#include "op/attention.h"

namespace
{

/* TILE: floats of keys, and of values, in shared memory. */
enum { THREADS = 128, QUERIES = 2, TILE = 2048 };
const unsigned MOST_IMAGES = 65535;

struct attention_job {
    tess_tensor in, out;
    bool flat_in, flat_out;        /* pixels are stride_w apart throughout an image */
    int pixels, channels;          /* pixels per image; channels per head */
    int64_t first_step, part_step; /* channels from one head to the next, and from its query to its key */
    float scale;                   /* factor of the scores, for powers of two */
    const void *from;
    void *to;
};

/* Loads keys and values of the pixels from `first` on; channels beyond the head and pixels beyond the last are
 * zeros. */
template <typename T, int PADDED, int KEYS, int ROW>
__device__ void load_tile(const attention_job &job, int64_t n, int64_t key_at, int first, float *keys,
                          float *values)
{
    for (int i = (int)threadIdx.x; i < KEYS * PADDED; i += THREADS) {
        const int key = i / PADDED, c = i % PADDED;
        float k = 0, v = 0;
        if (c < job.channels && first + key < job.pixels) {
            const T *from =
                (const T *)job.from + tess_place(job.in, job.flat_in, n, first + key) + key_at + c;
            k = tess_value(from[0]);
            v = tess_value(from[job.part_step]);
        }
        keys[key * ROW + c] = k;
        values[key * ROW + c] = v;
    }
}

/* The queries of a thread and its part of their results. */
template <int CHANNELS> struct state {
    float query[QUERIES][CHANNELS], sum[QUERIES][CHANNELS], most[QUERIES], total[QUERIES];
};

/* Processes STEP keys: their scores, then the sums. `keys` and `values` point to the thread's first piece of
 * the first key. */
template <int CHANNELS, int G, int S, int ROW, int STEP>
__device__ __forceinline__ void add_keys(state<CHANNELS> &st, const float *keys, const float *values,
                                         int left)
{
    float score[QUERIES][STEP];
#pragma unroll
    for (int k = 0; k < STEP; k++) {
#pragma unroll
        for (int q = 0; q < QUERIES; q++)
            score[q][k] = 0;
#pragma unroll
        for (int c = 0; c < CHANNELS; c += 4) {
            const float4 key = *(const float4 *)(keys + k * S * ROW + c * G);
#pragma unroll
            for (int q = 0; q < QUERIES; q++)
                score[q][k] += st.query[q][c] * key.x + st.query[q][c + 1] * key.y +
                               st.query[q][c + 2] * key.z + st.query[q][c + 3] * key.w;
        }
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
#pragma unroll
            for (int other = 1; other < G; other *= 2)
                score[q][k] += __shfl_xor_sync(~0u, score[q][k], other);
            if (k * S >= left)
                score[q][k] = -INFINITY;
        }
    }
#pragma unroll
    for (int q = 0; q < QUERIES; q++) {
        float most = st.most[q];
#pragma unroll
        for (int k = 0; k < STEP; k++)
            most = fmaxf(most, score[q][k]);
        const float rescale = exp2f(st.most[q] - most);
        st.most[q] = most;
        st.total[q] *= rescale;
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            score[q][k] = exp2f(score[q][k] - most);
            st.total[q] += score[q][k];
        }
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            st.sum[q][c] *= rescale;
    }
#pragma unroll
    for (int k = 0; k < STEP; k++)
#pragma unroll
        for (int c = 0; c < CHANNELS; c += 4) {
            const float4 value = *(const float4 *)(values + k * S * ROW + c * G);
#pragma unroll
            for (int q = 0; q < QUERIES; q++) {
                st.sum[q][c] += score[q][k] * value.x;
                st.sum[q][c + 1] += score[q][k] * value.y;
                st.sum[q][c + 2] += score[q][k] * value.z;
                st.sum[q][c + 3] += score[q][k] * value.w;
            }
        }
}

/* Combines the results of the threads that share the keys of a query; all of them get the sum. */
template <int CHANNELS, int G, int S> __device__ __forceinline__ void merge(state<CHANNELS> &st)
{
#pragma unroll
    for (int q = 0; q < QUERIES; q++) {
        float most = st.most[q];
#pragma unroll
        for (int other = G; other < G * S; other *= 2)
            most = fmaxf(most, __shfl_xor_sync(~0u, most, other));
        const float rescale = exp2f(st.most[q] - most);
        st.total[q] *= rescale;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            st.sum[q][c] *= rescale;
#pragma unroll
        for (int other = G; other < G * S; other *= 2) {
            st.total[q] += __shfl_xor_sync(~0u, st.total[q], other);
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                st.sum[q][c] += __shfl_xor_sync(~0u, st.sum[q][c], other);
        }
    }
}

template <int CHANNELS, int G, int S>
__global__ void __launch_bounds__(THREADS) attention_kernel(const __grid_constant__ attention_job job)
{
    /* Avoids bank conflicts. */
    constexpr int PADDED = CHANNELS * G, KEYS = TILE / PADDED, ROW = PADDED + 4 * G;
    constexpr int STEP = KEYS / S < 4 ? KEYS / S : 4, TEAMS = THREADS / (G * S);
    __shared__ __align__(16) float keys[KEYS * ROW], values[KEYS * ROW];
    const int g = (int)threadIdx.x % G, s = (int)threadIdx.x / G % S,
              first = ((int)blockIdx.x * TEAMS * QUERIES) + (int)threadIdx.x / (G * S);
    const int64_t query_at = blockIdx.y * job.first_step, out_at = (int64_t)blockIdx.y * job.channels,
                  key_at = query_at + job.part_step;
    for (int64_t n = blockIdx.z; n < job.in.n; n += gridDim.z) {
        state<CHANNELS> st;
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            const int pixel = first + q * TEAMS;
            st.most[q] = -1e30f;
            st.total[q] = 0;
#pragma unroll
            for (int i = 0; i < CHANNELS; i++) {
                const int c = (i / 4 * G + g) * 4 + i % 4;
                st.sum[q][i] = 0;
                st.query[q][i] =
                    c < job.channels && pixel < job.pixels
                        ? job.scale * tess_value_at(job.in.dtype, job.from,
                                                    tess_place(job.in, job.flat_in, n, pixel) + query_at + c)
                        : 0;
            }
        }
        for (int begin = 0; begin < job.pixels; begin += KEYS) {
            __syncthreads();
            if (job.in.dtype == TESS_F16)
                load_tile<__half, PADDED, KEYS, ROW>(job, n, key_at, begin, keys, values);
            else if (job.in.dtype == TESS_BF16)
                load_tile<__nv_bfloat16, PADDED, KEYS, ROW>(job, n, key_at, begin, keys, values);
            else
                load_tile<float, PADDED, KEYS, ROW>(job, n, key_at, begin, keys, values);
            __syncthreads();
            const int there = job.pixels - begin < KEYS ? job.pixels - begin : KEYS;
            for (int k = 0; k < there; k += STEP * S)
                add_keys<CHANNELS, G, S, ROW, STEP>(st, keys + (k + s) * ROW + 4 * g,
                                                    values + (k + s) * ROW + 4 * g, there - k - s);
        }
        merge<CHANNELS, G, S>(st);
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            const int pixel = first + q * TEAMS;
#pragma unroll
            for (int i = 0; i < CHANNELS; i++) {
                const int c = (i / 4 * G + g) * 4 + i % 4;
                if (s == 0 && c < job.channels && pixel < job.pixels)
                    tess_put_at(job.out.dtype, job.to,
                                tess_place(job.out, job.flat_out, n, pixel) + out_at + c,
                                st.sum[q][i] / st.total[q]);
            }
        }
    }
}

template <int CHANNELS, int G, int S>
cudaError_t launch(const attention_job &job, int heads, cudaStream_t stream)
{
    const int block = THREADS / (G * S) * QUERIES;
    const dim3 grid((unsigned)((job.pixels + block - 1) / block), (unsigned)heads,
                    (unsigned)(job.in.n < MOST_IMAGES ? job.in.n : MOST_IMAGES));
    attention_kernel<CHANNELS, G, S><<<grid, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

const char *refuses(const tess_op *op, int)
{
    if (op->kind != TESS_OP_ATTENTION)
        return "not attention";
    if (!tess_is_value(op->in[0].dtype) || !tess_is_value(op->out[0].dtype))
        return "values are fp32, fp16 or bf16";
    if (op->activation != TESS_LINEAR)
        return "attention ends with no activation";
    if (op->out[0].c / op->attention.heads > 1024 || op->attention.heads > 65535)
        return "takes heads of up to 1024 channels, up to 65535 of them";
    if (op->in[0].d * op->in[0].h * op->in[0].w > 1 << 30)
        return "takes up to 1073741824 pixels an image";
    return NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const int heads = op->attention.heads;
    const tess_head first = tess_head_of(op, 0), second = tess_head_of(op, 1);
    attention_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.flat_in = tess_flat(&op->in[0]);
    job.flat_out = tess_flat(&op->out[0]);
    job.pixels = (int)(op->in[0].d * op->in[0].h * op->in[0].w);
    job.channels = (int)first.channels;
    job.first_step = second.query - first.query;
    job.part_step = first.key - first.query;
    job.scale = (float)(1.4426950408889634 / sqrt((double)first.channels));
    job.from = buffers->in[0];
    job.to = buffers->out[0];
    return first.channels <= 8     ? launch<8, 1, 4>(job, heads, stream)
           : first.channels <= 16  ? launch<16, 1, 4>(job, heads, stream)
           : first.channels <= 32  ? launch<32, 1, 4>(job, heads, stream)
           : first.channels <= 64  ? launch<32, 2, 4>(job, heads, stream)
           : first.channels <= 128 ? launch<32, 4, 4>(job, heads, stream)
           : first.channels <= 256 ? launch<32, 8, 4>(job, heads, stream)
           : first.channels <= 512 ? launch<32, 16, 2>(job, heads, stream)
                                   : launch<32, 32, 1>(job, heads, stream);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_attention = {refuses, run, NULL, NULL};
