/* Gradients of a convolution's kernel: sums of outer products over pixels, in registers, and the transforms of Winograd's
 * algorithm for them. The forward algorithm is bilinear, y = A'[(G g) (B' d)] with the transforms of simd_winograd.c;
 * its derivative by g, times the gradient of y, is G'[(A y) (B' d)]. So the input is transformed as in the forward
 * pass, the gradient by A, from 4 to 6 points, and the sum over all tiles by G', from 6 points to 3 taps:
 *   gradient  y0, y0 +- a y1 + y2/2 +- a/2 y3, y0 +- b y1 + 2 y2 +- 2b y3, y3
 *   taps      g0 = m0 - (m1+m2)/1.5 + (m3+m4)/6,  g1 = -a/1.5 (m1-m2) + b/6 (m3-m4),
 *             g2 = -(m1+m2)/3 + (m3+m4)/3 + m5 */
#include <stdbool.h>
#include <stddef.h>

#include "cpu/conv/kernels.h"
#include "cpu/conv/simd.h"

#define ROOT_HALF 0.70710678118654752f
#define ROOT_TWO  1.41421356237309505f

/* Rows of a register block: the most that leave registers for one vector of each column, and divide 64. */
enum { GRAD_ROWS = TESS_VECTOR == 16 ? 8 : 4 };

static inline __attribute__((always_inline)) void register_block(const float *a, int64_t a_step,
                                                                 const float *b, int64_t b_step,
                                                                 int64_t depth, float *m, bool add)
{
    vec sum[GRAD_ROWS][BLOCK_VECTORS];
    for (int i = 0; i < GRAD_ROWS; i++)
        for (int j = 0; j < BLOCK_VECTORS; j++)
            sum[i][j] = add ? load(m + i * BLOCK + j * VECTOR) : (vec){0};
    for (int64_t k = 0; k < depth; k++, a += a_step, b += b_step) {
        vec w[BLOCK_VECTORS];
        for (int j = 0; j < BLOCK_VECTORS; j++)
            w[j] = load(b + j * VECTOR);
#if defined(__aarch64__)
        const vec lanes = load(a); /* multiplies by a lane need no copies of it */
#else
        const float *lanes = a;
#endif
        for (int i = 0; i < GRAD_ROWS; i++)
            for (int j = 0; j < BLOCK_VECTORS; j++)
                sum[i][j] += w[j] * lanes[i];
    }
    for (int i = 0; i < GRAD_ROWS; i++)
        for (int j = 0; j < BLOCK_VECTORS; j++)
            store(m + i * BLOCK + j * VECTOR, sum[i][j]);
}

static void outer(const tess_outer *p, float *m, bool add)
{
    for (int64_t r = 0; r < p->rows; r += GRAD_ROWS)
        for (int64_t c = 0; c < p->columns; c += BLOCK, m += GRAD_ROWS * BLOCK)
            register_block(p->a + r, p->a_step, p->b + c, p->b_step, p->depth, m, add);
}

static inline void gradient_points(vec y0, vec y1, vec y2, vec y3, vec t[6])
{
    vec even_a = y0 + 0.5f * y2, odd_a = ROOT_HALF * (y1 + 0.5f * y3);
    vec even_b = y0 + 2.0f * y2, odd_b = ROOT_TWO * (y1 + 2.0f * y3);
    t[0] = y0;
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = y3;
}

static void transform_gradient(const float *const *pixel, int64_t channels, float *u, int64_t group,
                               int64_t tile, float *bias)
{
    const int64_t step = group * channels;
    for (int64_t c = 0; c < channels; c += VECTOR) {
        float *to = u + tile * channels + c;
        vec rows[4][6], sum = {0};
        for (int y = 0; y < 4; y++) {
            const float *const *p = pixel + 4 * y;
            const vec y0 = load(p[0] + c), y1 = load(p[1] + c), y2 = load(p[2] + c), y3 = load(p[3] + c);
            gradient_points(y0, y1, y2, y3, rows[y]);
            sum += (y0 + y1) + (y2 + y3);
        }
        for (int x = 0; x < 6; x++) {
            vec column[6];
            gradient_points(rows[0][x], rows[1][x], rows[2][x], rows[3][x], column);
            for (int y = 0; y < 6; y++)
                store(to + (y * 6 + x) * step, column[y]);
        }
        if (bias)
            store(bias + c, load(bias + c) + sum);
    }
}

static inline void tap_points(const vec m[6], vec g[3])
{
    vec sum_a = (-1.0f / 1.5f) * (m[1] + m[2]), odd_a = (-ROOT_HALF / 1.5f) * (m[1] - m[2]);
    vec sum_b = (1.0f / 6.0f) * (m[3] + m[4]), odd_b = (ROOT_TWO / 6.0f) * (m[3] - m[4]);
    g[0] = m[0] + sum_a + sum_b;
    g[1] = odd_a + odd_b;
    g[2] = 0.5f * sum_a + 2.0f * sum_b + m[5];
}

static void transform_taps(const float *m, int64_t count, float *taps)
{
    for (int64_t i = 0; i < count; i += VECTOR) {
        vec rows[6][3];
        for (int y = 0; y < 6; y++) {
            vec line[6];
            for (int x = 0; x < 6; x++)
                line[x] = load(m + (6 * y + x) * count + i);
            tap_points(line, rows[y]);
        }
        for (int x = 0; x < 3; x++) {
            const vec column[6] = {rows[0][x], rows[1][x], rows[2][x], rows[3][x], rows[4][x], rows[5][x]};
            vec g[3];
            tap_points(column, g);
            for (int y = 0; y < 3; y++)
                store(taps + (3 * y + x) * count + i, g[y]);
        }
    }
}

static void widen(const uint16_t *from, int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++) {
        union {
            uint32_t u;
            float f;
        } bits = {.u = (uint32_t)from[i] << 16};
        to[i] = bits.f;
    }
}

extern const tess_grad_kernels TESS_ISA_NAME(tess_grad_kernels);
const tess_grad_kernels TESS_ISA_NAME(tess_grad_kernels) = {.rows = GRAD_ROWS,
                                                            .block = BLOCK,
                                                            .outer = outer,
                                                            .gradient = transform_gradient,
                                                            .taps = transform_taps,
                                                            .widen = widen};
