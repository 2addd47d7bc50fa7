/* Attention of small heads in fp16 and bf16 by matrix instructions, without storing the matrix of pixels by pixels
 * (FlashAttention, Dao et al. 2022). Such heads have few products a score, so the exponentials are the limit: on an H200
 * 2^x costs eight cycles of a quarter of a multiprocessor, the products of a head of 8 less than half as much.
 *
 * A block has one head of one image and 64 or 128 queries. Chunks of keys and values (1024 keys of a head of 8) are copied to
 * shared memory, and all sums are rescaled once a chunk, not once a step. Each warp has 16 queries, or twice 16 where there
 * are blocks enough to fill a card. What a query gets does not depend on that: decisions are made for the same 16
 * queries, and the order of the sums is that of the keys. Grid: x over queries, y over heads, z over images.
 *
 * Scores and sums are fp32; the weights are rounded to the type of the values. */
#include "cuda/attention/attention_matrix.cuh"
#include "cuda/core/early.cuh"
#include "op/attention.h"

namespace
{

/* ENOUGH: blocks that fill a card, four times its multiprocessors. */
enum { ENOUGH = 528 };
const unsigned MOST_IMAGES = 65535;

struct matrix_job {
    tess_tensor in, out;
    bool flat_in, flat_out;   /* pixels are stride_w apart throughout an image */
    bool whole_in, whole_out; /* a piece of a pixel is read, a pair written, in one instruction */
    int pixels;
    int64_t first_step, part_step; /* channels from one head to the next, and from its query to its key */
    float scale;                   /* factor of the scores, for powers of two */
    const void *from;
    void *to;
};

/* tess_place for pixels that are int: dividing 64 bits would take half of the instructions of this file. */
__device__ __forceinline__ int64_t place(const tess_tensor &t, bool flat, int64_t n, int pixel)
{
    if (flat)
        return n * t.stride_n + pixel * t.stride_w;
    const int row = pixel / (int)t.w, depth = row / (int)t.h;
    return n * t.stride_n + depth * t.stride_d + (row - depth * (int)t.h) * t.stride_h +
           (pixel - row * (int)t.w) * t.stride_w;
}

template <typename T> __device__ __forceinline__ uint4 load_piece(const T *from, bool whole)
{
    if (whole)
        return __ldg(reinterpret_cast<const uint4 *>(from));
    tess_vector<T, PIECE> piece;
#pragma unroll
    for (int i = 0; i < PIECE; i++)
        piece.v[i] = from[i];
    return *reinterpret_cast<const uint4 *>(&piece);
}

template <typename T> __device__ __forceinline__ float square_of(const uint4 &piece)
{
    const tess_vector<T, PIECE> values = *reinterpret_cast<const tess_vector<T, PIECE> *>(&piece);
    float square = 0;
#pragma unroll
    for (int i = 0; i < PIECE; i++)
        square = fmaf(tess_value(values.v[i]), tess_value(values.v[i]), square);
    return square;
}

/* Copies the keys and values of `there` pixels to shared memory, and zeros up to a whole step. longest: of each warp, the
 * largest squared length of a key. */
template <typename T, int PIECES>
__device__ __forceinline__ void load_chunk(const matrix_job &job, int64_t n, int64_t key_at, int first,
                                           int there, uint4 *keys, uint4 *values, float *longest)
{
    const int pieces = (there + STEP - 1) / STEP * STEP * PIECES;
    float most = 0;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < pieces; i += THREADS) { /* by whole warps */
        const int key = i / PIECES, piece = i % PIECES;
        uint4 k = make_uint4(0, 0, 0, 0), v = make_uint4(0, 0, 0, 0);
        if (key < there) {
            const T *from =
                (const T *)job.from + place(job.in, job.flat_in, n, first + key) + key_at + piece * PIECE;
            k = load_piece<T>(from, job.whole_in);
            v = load_piece<T>(from + job.part_step, job.whole_in);
        }
        keys[piece * chunk<PIECES>::PLANE + key] = k;
        values[piece * chunk<PIECES>::PLANE + key] = v;
        float square = square_of<T>(k);
#pragma unroll
        for (int other = 1; other < PIECES; other *= 2)
            square += __shfl_xor_sync(~0u, square, other);
        most = fmaxf(most, square);
    }
#pragma unroll
    for (int other = 16; other > 0; other /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, other));
    if (threadIdx.x % 32 == 0)
        longest[threadIdx.x / 32] = most;
}

template <typename T, int PIECES>
__device__ __forceinline__ void load_queries(const matrix_job &job, int64_t n, int64_t query_at, int first,
                                             queries<PIECES> &q)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int c = 0; c < 4; c++)
        q.total[c] = 0;
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            q.sum[p][c] = 0;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int pixel = first + g + 8 * r;
        const T *from = (const T *)job.from + query_at + 2 * t;
        if (pixel < job.pixels)
            from += place(job.in, job.flat_in, n, pixel);
        q.most[r] = -INFINITY;
#pragma unroll
        for (int p = 0; p < PIECES; p++)
            q.query[p][r] = pixel >= job.pixels ? 0
                            : job.whole_in      ? *reinterpret_cast<const uint32_t *>(from + p * PIECE)
                                                : tess_pair<T>(from[p * PIECE], from[p * PIECE + 1]);
    }
}

template <typename T, int PIECES>
__device__ __forceinline__ void store_queries(const matrix_job &job, int64_t n, int64_t out_at, int first,
                                              const queries<PIECES> &q)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int pixel = first + g + 8 * r;
        if (pixel >= job.pixels)
            continue;
        T *to = (T *)job.to + place(job.out, job.flat_out, n, pixel) + out_at + 2 * t;
        const float factor = 1 / q.total[2 * r];
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const float pair[2] = {q.sum[p][2 * r] * factor, q.sum[p][2 * r + 1] * factor};
            if (job.whole_out) {
                tess_store<2>(to + p * PIECE, pair);
            } else {
                to[p * PIECE] = tess_rounded<T>(pair[0]);
                to[p * PIECE + 1] = tess_rounded<T>(pair[1]);
            }
        }
    }
}

/* Adds what 32 keys from `first` on give to the queries of a warp. */
template <typename T, int PIECES, int TILES, bool MASKED>
__device__ __forceinline__ void add_keys(queries<PIECES> (&q)[TILES], const uint4 *keys, const uint4 *values,
                                         int first, int left)
{
    uint32_t key[PIECES][4], value[PIECES][4];
    load_keys<PIECES>(key, keys, first);
#pragma unroll
    for (int p = 0; p < PIECES; p++)
        tess_matrix_load_turned(value[p], values + p * chunk<PIECES>::PLANE + first + (int)threadIdx.x % 32);
#pragma unroll
    for (int i = 0; i < TILES; i++)
        add_step<T, PIECES, MASKED>(q[i], key, value, left);
}

template <typename T, int PIECES, int TILES>
__global__ void __launch_bounds__(THREADS) matrix_kernel(const __grid_constant__ matrix_job job)
{
    __shared__ uint4 keys[chunk<PIECES>::SIZE], values[chunk<PIECES>::SIZE];
    __shared__ float lengths[WARPS];
    const int first = ((int)blockIdx.x * WARPS + (int)threadIdx.x / 32) * TILES * ROWS;
    const int64_t query_at = blockIdx.y * job.first_step, key_at = query_at + job.part_step,
                  out_at = (int64_t)blockIdx.y * PIECES * PIECE;
    wait_for_grid_before();
    for (int64_t n = blockIdx.z; n < job.in.n; n += gridDim.z) {
        queries<PIECES> q[TILES];
#pragma unroll
        for (int i = 0; i < TILES; i++)
            load_queries<T, PIECES>(job, n, query_at, first + i * ROWS, q[i]);
        for (int begin = 0; begin < job.pixels; begin += chunk<PIECES>::KEYS) {
            const int rest = job.pixels - begin,
                      there = rest < chunk<PIECES>::KEYS ? rest : (int)chunk<PIECES>::KEYS;
            __syncthreads();
            load_chunk<T, PIECES>(job, n, key_at, begin, there, keys, values, lengths);
            __syncthreads();
            if (first >= job.pixels)
                continue;
            float longest = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++)
                longest = fmaxf(longest, lengths[w]);
#pragma unroll
            for (int i = 0; i < TILES; i++)
                raise_most<T, PIECES>(q[i], keys, there, longest, job.scale);
            int k = 0;
            for (; k + STEP <= there; k += STEP)
                add_keys<T, PIECES, TILES, false>(q, keys, values, k, STEP);
            if (k < there)
                add_keys<T, PIECES, TILES, true>(q, keys, values, k, there - k);
        }
#pragma unroll
        for (int i = 0; i < TILES; i++)
            store_queries<T, PIECES>(job, n, out_at, first + i * ROWS, q[i]);
    }
    let_next_grid_start(); /* earlier, its blocks would share multiprocessors with those of this grid */
}

template <typename T, int PIECES, int TILES>
cudaError_t launch(const matrix_job &job, int heads, cudaStream_t stream)
{
    const int block = WARPS * TILES * ROWS;
    const dim3 grid((unsigned)((job.pixels + block - 1) / block), (unsigned)heads,
                    (unsigned)(job.in.n < MOST_IMAGES ? job.in.n : MOST_IMAGES));
    if (TILES == 1 && (int64_t)((grid.x + 1) / 2) * grid.y * grid.z >= ENOUGH)
        return launch<T, PIECES, 2>(job, heads, stream);
    return tess_launch_early(matrix_kernel<T, PIECES, TILES>, grid, THREADS, 0, stream, job);
}

template <typename T>
cudaError_t launch_head(const matrix_job &job, int channels, int heads, cudaStream_t stream)
{
    return channels == 8    ? launch<T, 1, 1>(job, heads, stream)
           : channels == 16 ? launch<T, 2, 1>(job, heads, stream)
                            : launch<T, 4, 1>(job, heads, stream);
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *in = &op->in[0], *out = &op->out[0];
    const int64_t channels = out->c / op->attention.heads;
    if (in->dtype != out->dtype || (in->dtype != TESS_F16 && in->dtype != TESS_BF16))
        return "input and output are both fp16 or both bf16";
    if (op->activation != TESS_LINEAR)
        return "attention ends with no activation";
    if ((channels != 8 && channels != 16 && channels != 32) || op->attention.heads > 65535)
        return "takes heads of 8, 16 or 32 channels, up to 65535 of them";
    if (tess_pixels(in) > 1 << 30)
        return "takes up to 1073741824 pixels an image";
    return NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const tess_head first = tess_head_of(op, 0), second = tess_head_of(op, 1);
    matrix_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.flat_in = tess_flat(&job.in);
    job.flat_out = tess_flat(&job.out);
    job.whole_in = tess_whole(&job.in, buffers->in[0], PIECE);
    job.whole_out = tess_whole(&job.out, buffers->out[0], 2);
    job.pixels = (int)tess_pixels(&job.in);
    job.first_step = second.query - first.query;
    job.part_step = first.key - first.query;
    job.scale = (float)(1.4426950408889634 / sqrt((double)first.channels));
    job.from = buffers->in[0];
    job.to = buffers->out[0];
    const int channels = (int)first.channels, heads = op->attention.heads;
    return job.in.dtype == TESS_F16 ? launch_head<__half>(job, channels, heads, stream)
                                    : launch_head<__nv_bfloat16>(job, channels, heads, stream);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_attention_matrix = {refuses, run, NULL, NULL};
