/* Winograd's F(2x2, 3x3) over BFMMLA: 2.25 times fewer products than the direct sum, and transforms that only
 * add. Transformed values are rounded to bf16 once more; F(4x4) has larger, uneven coefficients and would lose
 * far more. Every output depends on only its nine inputs, so exact halos stay small.
 *
 *   input  t0 = d0 - d2, t1 = d1 + d2, t2 = d2 - d1, t3 = d1 - d3
 *   kernel g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2
 *   output y0 = m0 + m1 + m2, y1 = m1 - m2 - m3
 *
 * v of one point: pairs of tiles, [pair][cin / 4][2][4], the layout of BFMMLA's left operand. */
#include <arm_neon.h>

#include "cpu/conv/kernels.h"

enum { SIDE = 2, REACH = SIDE + 2, POINTS = REACH * REACH, PAIRS = 4, BLOCK = 8, DEPTH = 4 };

extern const tess_winograd_kernels tess_bf16_winograd_arm;

static inline float32x4_t load4(const uint16_t *from)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
}

static inline void store4(uint16_t *to, float32x4_t value)
{
    vst1_bf16((bfloat16_t *)to, vcvt_bf16_f32(value)); /* rounds to nearest even */
}

static inline void input_points(float32x4_t d0, float32x4_t d1, float32x4_t d2, float32x4_t d3,
                                float32x4_t t[4])
{
    t[0] = vsubq_f32(d0, d2);
    t[1] = vaddq_f32(d1, d2);
    t[2] = vsubq_f32(d2, d1);
    t[3] = vsubq_f32(d1, d3);
}

static void kernel_points(float g0, float g1, float g2, float u[4])
{
    u[0] = g0;
    u[1] = 0.5f * (g0 + g1 + g2);
    u[2] = 0.5f * (g0 - g1 + g2);
    u[3] = g2;
}

static inline float widen(uint16_t value)
{
    return vgetq_lane_f32(vreinterpretq_f32_u32(vdupq_n_u32((uint32_t)value << 16)), 0);
}

static void transform_weights(const void *weights, void *u, int64_t step, int64_t cin, int64_t first,
                              int64_t last)
{
    for (int64_t item = first; item < last; item++) {
        const uint16_t *g = (const uint16_t *)weights + item * 9 * BLOCK;
        const int64_t b = item / cin, i = item % cin;
        uint16_t *to = (uint16_t *)u + b * cin * BLOCK + i / DEPTH * DEPTH * BLOCK + i % DEPTH;
        for (int lane = 0; lane < BLOCK; lane++) {
            float rows[3][4], column[4];
            for (int y = 0; y < 3; y++)
                kernel_points(widen(g[(3 * y) * BLOCK + lane]), widen(g[(3 * y + 1) * BLOCK + lane]),
                              widen(g[(3 * y + 2) * BLOCK + lane]), rows[y]);
            for (int x = 0; x < 4; x++) {
                kernel_points(rows[0][x], rows[1][x], rows[2][x], column);
                uint16_t rounded[4];
                store4(rounded, vld1q_f32(column));
                for (int y = 0; y < 4; y++)
                    to[(y * 4 + x) * step + lane * DEPTH] = rounded[y];
            }
        }
    }
}

static void transform_input(const void *const *pixel, int64_t cin, void *v, int64_t step, int64_t tile)
{
    uint16_t *to = (uint16_t *)v + tile / 2 * 2 * cin + tile % 2 * DEPTH;
    for (int64_t c = 0; c < cin; c += DEPTH) {
        float32x4_t rows[4][4], column[4];
        for (int y = 0; y < 4; y++) {
            const uint16_t *const *p = (const uint16_t *const *)pixel + 4 * y;
            input_points(load4(p[0] + c), load4(p[1] + c), load4(p[2] + c), load4(p[3] + c), rows[y]);
        }
        for (int x = 0; x < 4; x++) {
            input_points(rows[0][x], rows[1][x], rows[2][x], rows[3][x], column);
            for (int y = 0; y < 4; y++)
                store4(to + (y * 4 + x) * step + 2 * c, column[y]);
        }
    }
}

static inline bfloat16x8_t load8(const uint16_t *from)
{
    return vreinterpretq_bf16_u16(vld1q_u16(from));
}

static inline void register_block(const uint16_t *v, const uint16_t *u, float *m, int64_t cin, int64_t cout)
{
    float32x4_t sum[PAIRS][BLOCK / 2];
    for (int i = 0; i < PAIRS; i++)
        for (int j = 0; j < BLOCK / 2; j++)
            sum[i][j] = vdupq_n_f32(0);
    for (int64_t c = 0; c < cin; c += DEPTH, u += DEPTH * BLOCK) {
        bfloat16x8_t w[BLOCK / 2];
        for (int j = 0; j < BLOCK / 2; j++)
            w[j] = load8(u + 8 * j);
        for (int i = 0; i < PAIRS; i++) {
            bfloat16x8_t pair = load8(v + i * 2 * cin + 2 * c);
            for (int j = 0; j < BLOCK / 2; j++)
                sum[i][j] = vbfmmlaq_f32(sum[i][j], pair, w[j]);
        }
    }
    for (int i = 0; i < PAIRS; i++)
        for (int j = 0; j < BLOCK / 2; j += 2) { /* two 2x2 results make four channels of two tiles */
            float64x2_t a = vreinterpretq_f64_f32(sum[i][j]), b = vreinterpretq_f64_f32(sum[i][j + 1]);
            vst1q_f32(m + 2 * i * cout + 2 * j, vreinterpretq_f32_f64(vzip1q_f64(a, b)));
            vst1q_f32(m + (2 * i + 1) * cout + 2 * j, vreinterpretq_f32_f64(vzip2q_f64(a, b)));
        }
}

static void multiply(const void *v, const void *u, float *m, int64_t rows, int64_t cin, int64_t blocks)
{
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t t = 0; t < rows; t += 2 * PAIRS)
            register_block((const uint16_t *)v + t * cin, (const uint16_t *)u + b * cin * BLOCK,
                           m + t * blocks * BLOCK + b * BLOCK, cin, blocks * BLOCK);
}

static inline void output_points(float32x4_t m0, float32x4_t m1, float32x4_t m2, float32x4_t m3,
                                 float32x4_t y[2])
{
    y[0] = vaddq_f32(vaddq_f32(m0, m1), m2);
    y[1] = vsubq_f32(vsubq_f32(m1, m2), m3);
}

static void transform_output(const float *m, int64_t step, int64_t channels, const tess_winograd_out *out)
{
    for (int64_t c = 0; c < channels; c += DEPTH) {
        float32x4_t columns[4][2], line[2];
        for (int x = 0; x < 4; x++) {
            const float *p = m + x * step + c;
            output_points(vld1q_f32(p), vld1q_f32(p + 4 * step), vld1q_f32(p + 8 * step),
                          vld1q_f32(p + 12 * step), columns[x]);
        }
        for (int y = 0; y < SIDE; y++) {
            output_points(columns[0][y], columns[1][y], columns[2][y], columns[3][y], line);
            for (int x = 0; x < SIDE; x++) {
                int at = SIDE * y + x;
                if (!out->out[at])
                    continue;
                float32x4_t value = line[x];
                if (out->bias)
                    value = vaddq_f32(value, vld1q_f32(out->bias + c));
                if (out->mapped)
                    value = vaddq_f32(value, vdupq_n_f32(out->map[at]));
                for (int r = 0; r < out->residuals; r++)
                    value = vaddq_f32(value, load4((const uint16_t *)out->residual[r][at] + c));
                if (out->masked) {
                    const uint32x4_t keep = vcgtzq_f32(load4((const uint16_t *)out->mask[at] + c));
                    value = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(value), keep));
                }
                if (out->relu)
                    value = vmaxq_f32(value, vdupq_n_f32(0));
                store4((uint16_t *)out->out[at] + c, value);
            }
        }
    }
}

const tess_winograd_kernels tess_bf16_winograd_arm = {.side = SIDE,
                                                      .rows = 2 * PAIRS,
                                                      .block = BLOCK,
                                                      .element = sizeof(uint16_t),
                                                      .weights = transform_weights,
                                                      .input = transform_input,
                                                      .multiply = multiply,
                                                      .output = transform_output};
