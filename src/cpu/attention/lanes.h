/* lanes.h: products of attention, forward and backward, of which one side lies in the lanes of vectors: [channel][lane],
 * a lane a pixel. The other side is rows: [pixel][channel], whose values are then scalars for any head size, and no
 * sum crosses lanes. */
#ifndef TESS_CPU_ATTENTION_LANES_H
#define TESS_CPU_ATTENTION_LANES_H

#include "base/checked.h"
#include "tensor/tensor.h"

enum { TESS_LANE_VECTOR = 4, TESS_LANE_VECTORS = 4, TESS_LANES = TESS_LANE_VECTOR * TESS_LANE_VECTORS };
enum { TESS_LANE_ROWS = 4 };

typedef float tess_lane_vec __attribute__((vector_size(TESS_LANE_VECTOR * sizeof(float))));

typedef uint32_t tess_lane_bits __attribute__((vector_size(TESS_LANE_VECTOR * sizeof(float))));

/* `b` where it is larger, else `a`: also where `b` is NaN. */
static inline tess_lane_vec tess_lanes_larger(tess_lane_vec a, tess_lane_vec b)
{
    const tess_lane_bits larger = (tess_lane_bits)(b > a);
    return (tess_lane_vec)(((tess_lane_bits)b & larger) | ((tess_lane_bits)a & ~larger));
}

/* 2^x for x <= 0; below -126 it is 1e-38. The polynomial is that of Cephes for |x| <= 1/2; NaN stays NaN. */
static inline __attribute__((always_inline)) tess_lane_vec tess_lanes_exp2(tess_lane_vec x)
{
    const float magic =
        12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, which the low bits then hold */
    const tess_lane_bits low = (tess_lane_bits)(x < -126.0f);
    x = (tess_lane_vec)(((tess_lane_bits)((tess_lane_vec){0} - 126.0f) & low) | ((tess_lane_bits)x & ~low));
    const tess_lane_vec whole = x + magic, r = x - (whole - magic);
    tess_lane_vec sum = r * 1.535336188319500e-4f + 1.339887440266574e-3f;
    sum = sum * r + 9.618437357674640e-3f;
    sum = sum * r + 5.550332471162809e-2f;
    sum = sum * r + 2.402264791363012e-1f;
    sum = sum * r + 6.931472028550421e-1f;
    sum = sum * r + 1.0f;
    return sum * (tess_lane_vec)(((tess_lane_bits)whole + 127u) << 23);
}

static inline int64_t tess_lanes_place(const tess_tensor *t, int64_t n, int64_t pixel)
{
    const int64_t row = pixel / t->w;
    return n * t->stride_n + row / t->h * t->stride_d + row % t->h * t->stride_h + pixel % t->w * t->stride_w;
}

/* out[r][lane] = the sum over t of a[r * row + t * step] * b[t][lane], for r < `rows`. */
static inline __attribute__((always_inline)) void tess_lanes_products(const float *a, int64_t row,
                                                                      int64_t step, const float *b,
                                                                      int64_t count, int rows, float *out)
{
    tess_lane_vec sums[TESS_LANE_ROWS][TESS_LANE_VECTORS] = {{{0}}};
    for (int64_t t = 0; t < count; t++) {
        const tess_lane_vec *from = (const tess_lane_vec *)(b + t * TESS_LANES);
        for (int r = 0; r < rows; r++) {
            const float factor = a[r * row + t * step];
            for (int i = 0; i < TESS_LANE_VECTORS; i++)
                sums[r][i] += factor * from[i];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < TESS_LANE_VECTORS; i++)
            ((tess_lane_vec *)(out + r * TESS_LANES))[i] = sums[r][i];
}

/* out[row][lane] = the sum over the channels of rows[row][channel] * lanes[channel][lane]. */
static inline void tess_lanes_scores(const float *rows, const float *lanes, int64_t channels, int64_t count,
                                     float *out)
{
    int64_t k = 0;
    for (; k + TESS_LANE_ROWS <= count; k += TESS_LANE_ROWS)
        tess_lanes_products(rows + k * channels, channels, 1, lanes, channels, TESS_LANE_ROWS,
                            out + k * TESS_LANES);
    for (; k < count; k++)
        tess_lanes_products(rows + k * channels, channels, 1, lanes, channels, 1, out + k * TESS_LANES);
}

/* sum[channel][lane] = sum * rescale[lane] + the sum over the rows of rows[row][channel] * factors[row][lane]. */
static inline void tess_lanes_add(const float *rows, const float *factors, int64_t channels, int64_t count,
                                  const float rescale[TESS_LANES], float *sum)
{
    _Alignas(64) float block[TESS_LANE_ROWS][TESS_LANES];
    for (int64_t c = 0; c < channels; c += TESS_LANE_ROWS) {
        const int part = (int)tess_min_i64(TESS_LANE_ROWS, channels - c);
        if (part == TESS_LANE_ROWS)
            tess_lanes_products(rows + c, 1, channels, factors, count, TESS_LANE_ROWS, block[0]);
        else
            for (int r = 0; r < part; r++)
                tess_lanes_products(rows + c + r, 1, channels, factors, count, 1, block[r]);
        for (int r = 0; r < part; r++) {
            float *to = sum + (c + r) * TESS_LANES;
            for (int i = 0; i < TESS_LANES; i++)
                to[i] = to[i] * rescale[i] + block[r][i];
        }
    }
}

#endif
