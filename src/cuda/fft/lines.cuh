/* lines.cuh: transforms of complex lines, each by LINE / 16 threads of a block (private to filter_passes.cuh).
 *
 * Thread j of a line holds its values j, j + T, j + 2 T ... in 16 registers, before and after a transform:
 * pointwise work between two transforms (a chirp, a filter) needs no memory. Stockham's stages have radix 16,
 * the last one the rest; between two stages the values pass through shared memory once: 2048 = 16 16 8 takes
 * two exchanges. One position is skipped after every 16 values there, so that neither writes with a step of 16
 * nor consecutive reads have bank conflicts.
 *
 * A length n that is not a power of two uses Bluestein's chirp: X_k = w_k sum_i (x_i w_i) conj(w_(k - i)), w_k
 * = exp(-i pi k^2 / n). The sum is a circular convolution of LINE >= 2 n - 1 values: two more transforms. */
#ifndef TESS_CUDA_LINES_CUH
#define TESS_CUDA_LINES_CUH

namespace
{

enum { HELD = 16 }; /* values per thread */

__device__ __forceinline__ float2 operator+(float2 a, float2 b)
{
    return make_float2(a.x + b.x, a.y + b.y);
}

__device__ __forceinline__ float2 operator-(float2 a, float2 b)
{
    return make_float2(a.x - b.x, a.y - b.y);
}

__device__ __forceinline__ float2 operator*(float2 a, float2 b)
{
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

__device__ __forceinline__ float2 conjugate(float2 a)
{
    return make_float2(a.x, -a.y);
}

/* a times i. */
__device__ __forceinline__ float2 turned(float2 a)
{
    return make_float2(-a.y, a.x);
}

/* The inverse transform, without its division, is the transform with real and imaginary parts exchanged. */
__device__ __forceinline__ void exchange_parts(float2 v[HELD])
{
#pragma unroll
    for (int q = 0; q < HELD; q++)
        v[q] = make_float2(v[q].y, v[q].x);
}

/* The position of value i of a line in shared memory. */
__device__ __forceinline__ int spread(int i)
{
    return i + i / HELD;
}

/* Small transforms of v[0], v[STEP] ..., in natural order before and after. */
template <int STEP> __device__ __forceinline__ void small2(float2 *v)
{
    const float2 a = v[0], b = v[STEP];
    v[0] = a + b;
    v[STEP] = a - b;
}

template <int STEP> __device__ __forceinline__ void small4(float2 *v)
{
    const float2 a = v[0] + v[2 * STEP], b = v[0] - v[2 * STEP], c = v[STEP] + v[3 * STEP],
                 d = turned(v[3 * STEP] - v[STEP]); /* -i (v1 - v3) */
    v[0] = a + c;
    v[STEP] = b + d;
    v[2 * STEP] = a - c;
    v[3 * STEP] = b - d;
}

/* x[2 a + b]: four pairs, the second of each multiplied by its power of the 8th root. */
template <int STEP> __device__ __forceinline__ void small8(float2 *v)
{
    const float half = 0.70710678118654752f;
    small4<2 * STEP>(v);
    small4<2 * STEP>(v + STEP);
    v[3 * STEP] = v[3 * STEP] * make_float2(half, -half);
    v[5 * STEP] = make_float2(v[5 * STEP].y, -v[5 * STEP].x);
    v[7 * STEP] = v[7 * STEP] * make_float2(-half, -half);
    float2 x[8];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        small2<STEP>(v + 2 * k * STEP);
        x[k] = v[2 * k * STEP];
        x[k + 4] = v[(2 * k + 1) * STEP];
    }
#pragma unroll
    for (int k = 0; k < 8; k++)
        v[k * STEP] = x[k];
}

/* x[4 a + b]: four transforms of four. */
__device__ __forceinline__ void small16(float2 *v)
{
    const float c = 0.92387953251128674f, s = 0.38268343236508977f, h = 0.70710678118654752f;
    const float2 root[10] = {{1, 0},   {c, -s}, {h, -h}, {s, -c}, {0, -1}, {0, 0},
                             {-h, -h}, {0, 0},  {0, 0},  {-c, s}}; /* exp(-2 pi i m / 16) for m = b k */
#pragma unroll
    for (int b = 0; b < 4; b++)
        small4<4>(v + b);
#pragma unroll
    for (int k = 1; k < 4; k++)
#pragma unroll
        for (int b = 1; b < 4; b++)
            v[b + 4 * k] = v[b + 4 * k] * root[b * k];
#pragma unroll
    for (int k = 0; k < 4; k++)
        small4<1>(v + 4 * k);
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int b = 0; b < k; b++) {
            const float2 x = v[b + 4 * k];
            v[b + 4 * k] = v[k + 4 * b];
            v[k + 4 * b] = x;
        }
}

template <int RADIX, int STEP> __device__ __forceinline__ void small_transform(float2 *v)
{
    if (RADIX == 16)
        small16(v);
    else if (RADIX == 8)
        small8<STEP>(v);
    else if (RADIX == 4)
        small4<STEP>(v);
    else
        small2<STEP>(v);
}

/* Multiplies v[r STEP] by w^r; each power is a product of at most four factors. */
template <int RADIX, int STEP> __device__ __forceinline__ void turn_by(float2 *v, float2 w)
{
    float2 power[RADIX];
    power[0] = make_float2(1, 0);
    power[1] = w;
#pragma unroll
    for (int r = 2; r < RADIX; r++)
        power[r] = power[r / 2] * power[r - r / 2];
#pragma unroll
    for (int r = 1; r < RADIX; r++)
        v[r * STEP] = v[r * STEP] * power[r];
}

/* The stages from the one whose butterflies are DONE values wide. `roots`: exp(-2 pi i k / LINE). */
template <int LINE, int DONE>
__device__ __forceinline__ void stages(float2 v[HELD], float2 *shared, int j,
                                       const float2 *__restrict__ roots)
{
    constexpr int THREADS = LINE / HELD, LEFT = LINE / DONE, RADIX = LEFT >= HELD ? HELD : LEFT,
                  EACH = HELD / RADIX; /* butterflies per thread */
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (DONE > 1)
            turn_by<RADIX, EACH>(v + e, roots[(j + e * THREADS) % DONE * (LINE / (DONE * RADIX))]);
        small_transform<RADIX, EACH>(v + e);
    }
    if constexpr (DONE * RADIX < LINE) {
        __syncthreads(); /* all threads have read the old values */
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int b = j + e * THREADS, at = b / DONE * (DONE * RADIX) + b % DONE;
#pragma unroll
            for (int r = 0; r < RADIX; r++)
                shared[spread(at + r * DONE)] = v[e + r * EACH];
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < HELD; q++)
            v[q] = shared[spread(j + q * THREADS)];
        stages<LINE, DONE * RADIX>(v, shared, j, roots);
    }
}

/* Hides the value from the compiler, which otherwise keeps the roots of one transform for the next and runs
 * out of registers. */
__device__ __forceinline__ int opaque(int j)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(j));
#endif
    return j;
}

/* The tables of one length, in the card's memory. */
struct line_tables {
    int n;
    const float2 *roots; /* LINE */
    /* chirp: n values; chirp_spectrum: LINE values, the transform of the other factor, divided by LINE. */
    const float2 *chirp;
    const float2 *chirp_spectrum;
};

template <int LINE, bool CHIRP>
__device__ __forceinline__ void transform(float2 v[HELD], float2 *shared, int j, const line_tables &t)
{
    constexpr int THREADS = LINE / HELD;
    if (CHIRP) {
#pragma unroll
        for (int q = 0; q < HELD; q++) {
            const int k = j + q * THREADS;
            v[q] = k < t.n ? v[q] * t.chirp[k] : make_float2(0, 0);
        }
        j = opaque(j);
        stages<LINE, 1>(v, shared, j, t.roots);
        j = opaque(j);
#pragma unroll
        for (int q = 0; q < HELD; q++)
            v[q] = v[q] * t.chirp_spectrum[j + q * THREADS];
        exchange_parts(v);
    }
    j = opaque(j);
    stages<LINE, 1>(v, shared, j, t.roots);
    j = opaque(j);
    if (CHIRP) {
        exchange_parts(v);
#pragma unroll
        for (int q = 0; q < HELD; q++) {
            const int k = j + q * THREADS;
            if (k < t.n)
                v[q] = v[q] * t.chirp[k];
        }
    }
}

} // namespace

#endif
