/* BFMMLA: a 2x4 by 4x2 product of bf16 into four fp32 sums. Its left operand is two pixels of four channels in
 * one register. A stage pairs pixel e with pixel e + count/2: a tap that shifts both by one pixel is again an
 * entry of the same stage, so one copy serves every kx. */
#include <arm_neon.h>
#include <stddef.h>

#include "cpu/conv/bf16_finish.h"
#include "cpu/conv/kernels.h"

enum { PAIRS = 4, BLOCK = 8, DEPTH = 4 };

extern const tess_bf16_kernels tess_bf16_kernels_arm;
extern const tess_winograd_kernels tess_bf16_winograd_arm;

static int64_t padded(int64_t cin)
{
    return (cin + DEPTH - 1) / DEPTH * DEPTH;
}

static int64_t arm_stage_elements(int64_t cin, int64_t count, int extra)
{
    return (count / 2 + extra) * padded(cin) * 2;
}

static void stage_pair(const uint16_t *a, const uint16_t *b, int64_t cin, uint16_t *to)
{
    int64_t c = 0;
    for (; c + 8 <= cin; c += 8, to += 16) {
        uint64x2_t x = a ? vreinterpretq_u64_u16(vld1q_u16(a + c)) : vdupq_n_u64(0);
        uint64x2_t y = b ? vreinterpretq_u64_u16(vld1q_u16(b + c)) : vdupq_n_u64(0);
        vst1q_u16(to, vreinterpretq_u16_u64(vzip1q_u64(x, y)));
        vst1q_u16(to + 8, vreinterpretq_u16_u64(vzip2q_u64(x, y)));
    }
    for (; c < padded(cin); c++) {
        uint16_t *lane = to + (c - cin / 8 * 8) / DEPTH * 8 + c % DEPTH;
        lane[0] = a && c < cin ? a[c] : 0;
        lane[DEPTH] = b && c < cin ? b[c] : 0;
    }
}

static void arm_stage(const uint16_t *row, int64_t row_w, int64_t pixel, int64_t cin, int64_t start,
                      int stride, int64_t count, int extra, uint16_t *staged)
{
    const int64_t half = count / 2, entry = padded(cin) * 2;
    for (int64_t e = 0; e < half + extra; e++) {
        int64_t x = start + e * stride, y = start + (e + half) * stride;
        const uint16_t *a = row && x >= 0 && x < row_w ? row + x * pixel : NULL;
        const uint16_t *b = row && y >= 0 && y < row_w ? row + y * pixel : NULL;
        stage_pair(a, b, cin, staged + e * entry);
    }
}

static inline bfloat16x8_t load(const uint16_t *from)
{
    return vreinterpretq_bf16_u16(vld1q_u16(from));
}

static void arm_multiply(const uint16_t *const *tap, const int *shift, int taps, int64_t cin, int64_t at,
                         const uint16_t *panel, float *sums)
{
    const int64_t entry = padded(cin) * 2;
    float32x4_t sum[PAIRS][BLOCK / 2];
    for (int i = 0; i < PAIRS; i++)
        for (int j = 0; j < BLOCK / 2; j++)
            sum[i][j] = vdupq_n_f32(0);
    for (int t = 0; t < taps; t++) {
        const uint16_t *a = tap[t] + (at * PAIRS + shift[t]) * entry;
        for (const uint16_t *end = a + entry; a < end; a += 8, panel += 4 * BLOCK) {
            bfloat16x8_t w[BLOCK / 2];
            for (int j = 0; j < BLOCK / 2; j++)
                w[j] = load(panel + 8 * j);
            for (int i = 0; i < PAIRS; i++) {
                bfloat16x8_t pair = load(a + i * entry);
                for (int j = 0; j < BLOCK / 2; j++)
                    sum[i][j] = vbfmmlaq_f32(sum[i][j], pair, w[j]);
            }
        }
    }
    for (int i = 0; i < PAIRS; i++)
        for (int j = 0; j < BLOCK / 2; j++) {
            vst1_f32(sums + i * BLOCK + 2 * j, vget_low_f32(sum[i][j]));
            vst1_f32(sums + (i + PAIRS) * BLOCK + 2 * j, vget_high_f32(sum[i][j]));
        }
}

static void arm_finish(const tess_bf16_pixel *pixel, const float *sums)
{
    finish_pixel(pixel, sums, BLOCK);
}

static int64_t arm_pixel_of(int64_t count, int64_t at, int i)
{
    return at * PAIRS + i % PAIRS + (i >= PAIRS ? count / 2 : 0);
}

static int64_t arm_panel_place(int64_t cin, int64_t tap, int64_t i, int lane)
{
    return ((tap * padded(cin) + i) / DEPTH * BLOCK + lane) * DEPTH + i % DEPTH;
}

const tess_bf16_kernels tess_bf16_kernels_arm = {.name = "bf16",
                                                 .depth = DEPTH,
                                                 .block = BLOCK,
                                                 .pixels = 2 * PAIRS,
                                                 .stage = arm_stage,
                                                 .stage_elements = arm_stage_elements,
                                                 .multiply = arm_multiply,
                                                 .finish = arm_finish,
                                                 .pixel_of = arm_pixel_of,
                                                 .panel_place = arm_panel_place,
                                                 .winograd = &tess_bf16_winograd_arm};
