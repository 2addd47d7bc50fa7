/* attention_matrix.cuh: what a warp of attention_matrix.cu does with 16 queries and with keys and values in shared memory.
 * The scores of 16 queries and 8 keys are the sums of one product; rounded, they are the left operand of the next one. */
#ifndef TESS_CUDA_ATTENTION_MATRIX_CUH
#define TESS_CUDA_ATTENTION_MATRIX_CUH

#include <math.h>

#include "cuda/attention/fragments.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

/* STEP: keys that a warp processes at once. CHUNK: pieces of 8 channels of keys, and of values, in shared memory.
 * POLYNOMIAL: of four exponentials, how many the FMA units compute: a card's units for special functions are the limit of
 * this kernel, and a polynomial takes nine instructions. */
enum { WARPS = 4, THREADS = 32 * WARPS, ROWS = 16, STEP = 32, PIECE = 8, CHUNK = 1024, POLYNOMIAL = 1 };

/* Weights are 2^(score - most + SHIFT) with most >= the largest score: fp16 has its full precision from 2^-14 to 2^16. */
const float SHIFT = 14;
/* From here on fp32 has no fractions. */
const float WHOLE = 1 << 24;

/* LIMIT: a bound on a query's scores serves as `most` up to here. The largest weight is then at least 2^(SHIFT - 2 LIMIT);
 * beside it, 4096 weights that fp16 rounds to zero are less than 2^-11. ONES: a pair of them. */
template <typename T> struct numbers;
template <> struct numbers<__half> {
    static constexpr float LIMIT = 8;
    static constexpr uint32_t ONES = 0x3c003c00;
};
template <> struct numbers<__nv_bfloat16> {
    static constexpr float LIMIT = 40;
    static constexpr uint32_t ONES = 0x3f803f80;
};

/* Keys and values in shared memory: planes of pieces [piece][key]. The step between planes avoids bank conflicts. */
template <int PIECES> struct chunk {
    enum { KEYS = CHUNK / PIECES, PLANE = KEYS + PIECE / PIECES, SIZE = PIECES * PLANE };
};

/* What a lane holds of 16 queries: rows g and g + 8. total: the sum of the weights, four times (two of each row). */
template <int PIECES> struct queries {
    uint32_t query[PIECES][2];
    float sum[PIECES][4], total[4], most[2], scale[2];
};

/* 2^x, within 8e-5 of it: 2^(x - n) as a polynomial for the nearest integer n, which is then added to the exponent. */
__device__ __forceinline__ float polynomial_power2(float x)
{
    const float magic = 12582912.f; /* 1.5 * 2^23: adding it rounds to an integer, in the lowest bits */
    x = tess_larger(x, -126.f);
    const float rounded = x + magic, f = x - (rounded - magic);
    const float y = fmaf(fmaf(fmaf(0.05517167f, f, 0.24261112f), f, 0.69326099f), f, 0.99992807f);
    return __uint_as_float(__float_as_uint(y) + (__float_as_uint(rounded) << 23));
}

/* The scores of 16 queries and 32 keys, of which `left` are there. */
template <typename T, int PIECES, bool MASKED>
__device__ __forceinline__ void score_step(const uint32_t (&query)[PIECES][2],
                                           const uint32_t (&keys)[PIECES][4], int left, float (&score)[4][4])
{
    const int t = (int)threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < 4; j++) {
#pragma unroll
        for (int c = 0; c < 4; c++)
            score[j][c] = 0;
        if constexpr (PIECES == 1) {
            tess_matrix_add8<T>(score[j], query[0], keys[0][j]);
        } else {
#pragma unroll
            for (int p = 0; p < PIECES; p += 2) {
                const uint32_t a[4] = {query[p][0], query[p][1], query[p + 1][0], query[p + 1][1]},
                               b[2] = {keys[p][j], keys[p + 1][j]};
                tess_matrix_add<T>(score[j], a, b);
            }
        }
#pragma unroll
        for (int c = 0; MASKED && c < 4; c++)
            if (8 * j + 2 * t + c % 2 >= left)
                score[j][c] = -INFINITY;
    }
}

template <int PIECES>
__device__ __forceinline__ void load_keys(uint32_t (&to)[PIECES][4], const uint4 *keys, int first)
{
#pragma unroll
    for (int p = 0; p < PIECES; p++)
        tess_matrix_load(to[p], keys + p * chunk<PIECES>::PLANE + first + (int)threadIdx.x % 32);
}

/* Raises top[r] to the largest of 32 scores of row r that this lane has. */
template <typename T, int PIECES, bool MASKED>
__device__ __forceinline__ void top_step(const queries<PIECES> &q, const uint4 *keys, int first, int left,
                                         float (&top)[2])
{
    uint32_t key[PIECES][4];
    float score[4][4];
    load_keys<PIECES>(key, keys, first);
    score_step<T, PIECES, MASKED>(q.query, key, left, score);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            top[c / 2] = fmaxf(top[c / 2], score[j][c]);
}

/* A bound of the scores of each row, from the lengths of the query and of the longest key (squared). */
template <typename T, int PIECES>
__device__ __forceinline__ void bound_scores(const queries<PIECES> &q, float longest, float (&top)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float square = 0;
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const tess_vector<T, 2> both = *reinterpret_cast<const tess_vector<T, 2> *>(&q.query[p][r]);
            const float low = tess_value(both.v[0]), high = tess_value(both.v[1]);
            square = fmaf(low, low, fmaf(high, high, square));
        }
        square += __shfl_xor_sync(~0u, square, 1);
        square += __shfl_xor_sync(~0u, square, 2);
        top[r] = sqrtf(square * longest);
    }
}

/* The largest scores of the rows among the first `there` keys. */
template <typename T, int PIECES>
__device__ __forceinline__ void find_scores(const queries<PIECES> &q, const uint4 *keys, int there,
                                            float (&top)[2])
{
    top[0] = top[1] = -INFINITY;
    int k = 0;
    for (; k + STEP <= there; k += STEP)
        top_step<T, PIECES, false>(q, keys, k, STEP, top);
    if (k < there)
        top_step<T, PIECES, true>(q, keys, k, there - k, top);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 1));
        top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 2));
    }
}

/* Sets `most` of the rows for the next chunk and rescales the sums. A bound needs no product; bf16 nearly always uses it.
 * Where it exceeds LIMIT (fp16: already for queries and keys of variance 1) the largest scores are computed, and once more
 * with their exponentials. Scores without fractions are multiplied by a power of two, so that the largest one less `most`
 * is zero and not the rounding error of `most`. */
template <typename T, int PIECES>
__device__ __forceinline__ void raise_most(queries<PIECES> &q, const uint4 *keys, int there, float longest,
                                           float scale)
{
    float top[2];
    bound_scores<T, PIECES>(q, longest, top);
    const bool near = fmaxf(top[0], top[1]) * scale <= numbers<T>::LIMIT && longest < INFINITY;
    if (!__all_sync(~0u, near))
        find_scores<T, PIECES>(q, keys, there, top);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        q.scale[r] = scale;
        float most = fmaxf(q.most[r], fmaf(top[r], scale, -SHIFT));
        if (fabsf(most) >= WHOLE) {
            q.scale[r] = scale >= 0.5f ? 0.5f : 0.25f;
            most = fmaxf(q.most[r], top[r] * q.scale[r]);
        }
        const float rescale = tess_power2(q.most[r] - most);
        q.most[r] = most;
#pragma unroll
        for (int c = 2 * r; c < 2 * r + 2; c++) {
            q.total[c] *= rescale;
#pragma unroll
            for (int p = 0; p < PIECES; p++)
                q.sum[p][c] *= rescale;
        }
    }
}

/* Adds the weighted values of 32 keys, and the weights as they were rounded: they divide the sums at the end. */
template <typename T, int PIECES, bool MASKED>
__device__ __forceinline__ void add_step(queries<PIECES> &q, const uint32_t (&keys)[PIECES][4],
                                         const uint32_t (&values)[PIECES][4], int left)
{
    const uint32_t ones[2] = {numbers<T>::ONES, numbers<T>::ONES};
    float score[4][4];
    score_step<T, PIECES, MASKED>(q.query, keys, left, score);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const float x = fmaf(score[j][c], q.scale[c / 2], -q.most[c / 2]);
            score[j][c] = (j + c) % 4 < POLYNOMIAL ? polynomial_power2(x) : tess_power2(x);
        }
#pragma unroll
    for (int j = 0; j < 4; j += 2) {
        uint32_t weight[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *pair = &score[j + i / 2][i % 2 * 2];
            weight[i] = tess_rounded_pair<T>(pair[0], pair[1]);
        }
        tess_matrix_add<T>(q.total, weight, ones);
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const uint32_t value[2] = {values[p][j], values[p][j + 1]};
            tess_matrix_add<T>(q.sum[p], weight, value);
        }
    }
}

} // namespace

#endif
