/* The arithmetic of norms: channels lie in the lanes of vectors. A run of pixels is summed in fp32 relative to its first pixel,
 * so that neither a large mean nor an outlier costs precision; runs are summed in fp64. */
#include "cpu/conv/kernels.h"
#include "cpu/conv/simd.h"
#include "tensor/tensor.h"

typedef uint32_t bits __attribute__((vector_size(TESS_VECTOR * 4)));
typedef uint16_t halves __attribute__((vector_size(TESS_VECTOR * 2)));
typedef uint16_t loose_halves __attribute__((vector_size(TESS_VECTOR * 2), aligned(2), may_alias));

static inline vec choose(mask condition, vec yes, vec no)
{
    return (vec)(((mask)yes & condition) | ((mask)no & ~condition));
}

/* `count` channels; the other lanes are 0. */
static inline __attribute__((always_inline)) vec take(const void *data, int64_t at, bool half, int count)
{
    const float *floats = (const float *)data + at;
    const uint16_t *shorts = (const uint16_t *)data + at;
    if (count == VECTOR)
        return half ? (vec)(__builtin_convertvector(*(const loose_halves *)shorts, bits) << 16)
                    : load(floats);
    vec value = {0};
    for (int i = 0; i < count; i++)
        value[i] = half ? tess_bf16_to_float(shorts[i]) : floats[i];
    return value;
}

/* As tess_float_to_bf16. */
static inline halves rounded(vec value)
{
    const bits u = (bits)value, even = (u + 0x7fffu + (u >> 16 & 1u)) >> 16, nan = u >> 16 | 0x40u;
    const bits is_nan = (bits)((mask)(u & 0x7fffffffu) > 0x7f800000);
    return __builtin_convertvector((nan & is_nan) | (even & ~is_nan), halves);
}

static inline __attribute__((always_inline)) void put(void *data, int64_t at, bool half, int count, vec value)
{
    float *floats = (float *)data + at;
    uint16_t *shorts = (uint16_t *)data + at;
    if (count == VECTOR && half)
        *(loose_halves *)shorts = rounded(value);
    else if (count == VECTOR)
        store(floats, value);
    else if (half)
        for (int i = 0; i < count; i++)
            shorts[i] = tess_float_to_bf16(value[i]);
    else
        for (int i = 0; i < count; i++)
            floats[i] = value[i];
}

static inline __attribute__((always_inline)) void sum_lanes(const tess_norm_run *run, int64_t c, int count,
                                                            bool half, double *values, double *squares)
{
    const vec first = take(run->in, c, half, count);
    vec value = {0}, square = {0};
    for (int64_t x = 1; x < run->pixels; x++) {
        const vec v = take(run->in, x * run->in_pixel + c, half, count) - first;
        value += v;
        square += v * v;
    }
    for (int i = 0; i < count; i++) {
        const double f = (double)first[i], v = (double)value[i], all = (double)run->pixels * f;
        values[c + i] += v + all;
        squares[c + i] += (double)square[i] + f * (2 * v + all);
    }
}

static inline __attribute__((always_inline)) void sum_channels(const tess_norm_run *run, bool half,
                                                               double *values, double *squares)
{
    int64_t c = 0;
    for (; c + VECTOR <= run->channels; c += VECTOR)
        sum_lanes(run, c, VECTOR, half, values, squares);
    if (c < run->channels)
        sum_lanes(run, c, (int)(run->channels - c), half, values, squares);
}

static void sum(const tess_norm_run *run, double *values, double *squares)
{
    if (run->in_half)
        sum_channels(run, true, values, squares);
    else
        sum_channels(run, false, values, squares);
}

/* As tess_cpu_exp. */
static inline vec exponential(vec x)
{
    const float magic = 12582912.0f;
    const vec zero = {0};
    x = choose((mask)(x < -87.0f), zero - 87.0f, x);
    x = choose((mask)(x > 88.0f), zero + 88.0f, x);
    const vec whole = x * 1.44269504f + magic, n = whole - magic,
              r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vec total = zero + 1.9875691500e-4f;
    total = total * r + 1.3981999507e-3f;
    total = total * r + 8.3334519073e-3f;
    total = total * r + 4.1665795894e-2f;
    total = total * r + 1.6666665459e-1f;
    total = total * r + 5.0000001201e-1f;
    return (total * r * r + r + 1.0f) * (vec)(((bits)whole + 127u) << 23);
}

/* All pixels: the numbers of the table stay in registers. */
static inline __attribute__((always_inline)) void apply_lanes(const tess_norm_run *run, int64_t c, int count,
                                                              bool in_half, bool out_half)
{
    const vec centre = take(run->table, c, false, count),
              factor = take(run->table, run->channels + c, false, count),
              offset = take(run->table, 2 * run->channels + c, false, count);
    for (int64_t x = 0; x < run->pixels; x++) {
        vec value = (take(run->in, x * run->in_pixel + c, in_half, count) - centre) * factor + offset;
        if (run->silu)
            value /= exponential(-value) + 1.0f;
        else if (run->relu)
            value = relu(value);
        put(run->out, x * run->out_pixel + c, out_half, count, value);
    }
}

static inline __attribute__((always_inline)) void apply_channels(const tess_norm_run *run, bool in_half,
                                                                 bool out_half)
{
    int64_t c = 0;
    for (; c + VECTOR <= run->channels; c += VECTOR)
        apply_lanes(run, c, VECTOR, in_half, out_half);
    if (c < run->channels)
        apply_lanes(run, c, (int)(run->channels - c), in_half, out_half);
}

static void apply(const tess_norm_run *run)
{
    if (run->in_half && run->out_half)
        apply_channels(run, true, true);
    else if (run->in_half)
        apply_channels(run, true, false);
    else if (run->out_half)
        apply_channels(run, false, true);
    else
        apply_channels(run, false, false);
}

extern const tess_norm_kernels TESS_ISA_NAME(tess_norm_kernels);
const tess_norm_kernels TESS_ISA_NAME(tess_norm_kernels) = {.sum = sum, .apply = apply};
