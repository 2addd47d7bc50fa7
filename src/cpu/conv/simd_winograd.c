/* Winograd's F(4x4, 3x3) (Lavin and Gray, 2016) on the points 0, +-sqrt(1/2), +-sqrt(2), infinity. They are
 * symmetric under x -> 1/x, which keeps the three transforms evenly scaled. In fp32 the error is about twice
 * that of the direct sum; with the textbook points 0, +-1, +-2 it is five times
 * (bench/studies/winograd_points.py). With a = sqrt(1/2), b = sqrt(2):
 *   input  t0 = d0 - 5/2 d2 + d4,  t1,2 = (d4 - 2 d2) +- a (d3 - 2 d1),  t3,4 = (d4 - d2/2) +- b (d3 - d1/2),
 *          t5 = d1 - 5/2 d3 + d5
 *   kernel g0, -(g0 +- a g1 + g2/2) / 1.5, (g0 +- b g1 + 2 g2) / 6, g2
 *   output y0 = m0 + m1+m2 + m3+m4,  y1 = a (m1-m2) + b (m3-m4),  y2 = (m1+m2)/2 + 2 (m3+m4),
 *          y3 = a/2 (m1-m2) + 2b (m3-m4) + m5
 * All channel counts here are multiples of the register block. */
#include "cpu/conv/kernels.h"
#include "cpu/conv/simd.h"

#define ROOT_HALF 0.70710678118654752f
#define ROOT_TWO  1.41421356237309505f

static inline void kernel_points(vec g0, vec g1, vec g2, vec u[6])
{
    vec even_a = g0 + 0.5f * g2, odd_a = ROOT_HALF * g1, even_b = g0 + 2.0f * g2, odd_b = ROOT_TWO * g1;
    u[0] = g0;
    u[1] = (even_a + odd_a) * (-1.0f / 1.5f);
    u[2] = (even_a - odd_a) * (-1.0f / 1.5f);
    u[3] = (even_b + odd_b) * (1.0f / 6.0f);
    u[4] = (even_b - odd_b) * (1.0f / 6.0f);
    u[5] = g2;
}

static inline void input_points(vec d0, vec d1, vec d2, vec d3, vec d4, vec d5, vec t[6])
{
    vec even_a = d4 - 2.0f * d2, odd_a = ROOT_HALF * (d3 - 2.0f * d1);
    vec even_b = d4 - 0.5f * d2, odd_b = ROOT_TWO * (d3 - 0.5f * d1);
    t[0] = d0 + d4 - 2.5f * d2;
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = d1 + d5 - 2.5f * d3;
}

static inline void output_points(vec m0, vec m1, vec m2, vec m3, vec m4, vec m5, vec y[4])
{
    vec sum_a = m1 + m2, odd_a = ROOT_HALF * (m1 - m2), sum_b = m3 + m4, odd_b = ROOT_TWO * (m3 - m4);
    y[0] = m0 + sum_a + sum_b;
    y[1] = odd_a + odd_b;
    y[2] = 0.5f * sum_a + 2.0f * sum_b;
    y[3] = 0.5f * odd_a + 2.0f * odd_b + m5;
}

static void transform_weights(const void *weights, void *u, int64_t step, int64_t cin, int64_t first,
                              int64_t last)
{
    (void)cin;
    for (int64_t item = first; item < last; item++)
        for (int j = 0; j < BLOCK_VECTORS; j++) {
            const float *g = (const float *)weights + item * 9 * BLOCK + j * VECTOR;
            float *to = (float *)u + item * BLOCK + j * VECTOR;
            vec rows[3][6];
            for (int y = 0; y < 3; y++)
                kernel_points(load(g + (3 * y) * BLOCK), load(g + (3 * y + 1) * BLOCK),
                              load(g + (3 * y + 2) * BLOCK), rows[y]);
            for (int x = 0; x < 6; x++) {
                vec column[6];
                kernel_points(rows[0][x], rows[1][x], rows[2][x], column);
                for (int y = 0; y < 6; y++)
                    store(to + (y * 6 + x) * step, column[y]);
            }
        }
}

static void transform_input(const void *const *pixel, int64_t cin, void *v, int64_t step, int64_t tile)
{
    float *to = (float *)v + tile * cin;
    for (int64_t c = 0; c < cin; c += VECTOR) {
        vec rows[6][6];
        for (int y = 0; y < 6; y++) {
            const float *const *p = (const float *const *)pixel + 6 * y;
            input_points(load(p[0] + c), load(p[1] + c), load(p[2] + c), load(p[3] + c), load(p[4] + c),
                         load(p[5] + c), rows[y]);
        }
        for (int x = 0; x < 6; x++) {
            vec column[6];
            input_points(rows[0][x], rows[1][x], rows[2][x], rows[3][x], rows[4][x], rows[5][x], column);
            for (int y = 0; y < 6; y++)
                store(to + (y * 6 + x) * step + c, column[y]);
        }
    }
}

static inline void register_block(const float *v, const float *u, float *m, int64_t cin, int64_t cout)
{
    vec sum[ROWS][BLOCK_VECTORS] = {{{0}}};
    for (int64_t c = 0; c < cin; c++) {
        vec w[BLOCK_VECTORS];
        for (int j = 0; j < BLOCK_VECTORS; j++)
            w[j] = load(u + c * BLOCK + j * VECTOR);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < BLOCK_VECTORS; j++)
                sum[i][j] += v[i * cin + c] * w[j];
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < BLOCK_VECTORS; j++)
            store(m + i * cout + j * VECTOR, sum[i][j]);
}

static void multiply(const void *v, const void *u, float *m, int64_t tiles, int64_t cin, int64_t blocks)
{
    for (int64_t b = 0; b < blocks; b++)
        for (int64_t t = 0; t < tiles; t += ROWS)
            register_block((const float *)v + t * cin, (const float *)u + b * cin * BLOCK,
                           m + t * blocks * BLOCK + b * BLOCK, cin, blocks * BLOCK);
}

static void transform_output(const float *m, int64_t step, int64_t channels, const tess_winograd_out *out)
{
    for (int64_t c = 0; c < channels; c += VECTOR) {
        vec rows[4][6]; /* columns of m first: rows[y][x] */
        for (int x = 0; x < 6; x++) {
            const float *p = m + x * step + c;
            vec column[4];
            output_points(load(p), load(p + 6 * step), load(p + 12 * step), load(p + 18 * step),
                          load(p + 24 * step), load(p + 30 * step), column);
            for (int y = 0; y < 4; y++)
                rows[y][x] = column[y];
        }
        for (int y = 0; y < 4; y++) {
            vec line[4];
            output_points(rows[y][0], rows[y][1], rows[y][2], rows[y][3], rows[y][4], rows[y][5], line);
            for (int x = 0; x < 4; x++) {
                int at = 4 * y + x;
                if (!out->out[at])
                    continue;
                vec value = line[x];
                if (out->bias)
                    value += load(out->bias + c);
                if (out->mapped)
                    value += out->map[at];
                for (int r = 0; r < out->residuals; r++)
                    value += load((const float *)out->residual[r][at] + c);
                if (out->masked)
                    value = masked(value, load((const float *)out->mask[at] + c));
                store((float *)out->out[at] + c, out->relu ? relu(value) : value);
            }
        }
    }
}

extern const tess_f32_kernels TESS_ISA_NAME(tess_f32_kernels);
extern const tess_grad_kernels TESS_ISA_NAME(tess_grad_kernels);
extern const tess_f64_kernels TESS_ISA_NAME(tess_f64_kernels);
extern const tess_norm_kernels TESS_ISA_NAME(tess_norm_kernels);
extern void TESS_ISA_NAME(tess_direct_row)(const tess_direct_row *row);

const tess_f32_kernels TESS_ISA_NAME(tess_f32_kernels) = {.isa = TESS_STRING(TESS_ISA),
                                                          .vector = VECTOR,
                                                          .block = BLOCK,
                                                          .direct_row = TESS_ISA_NAME(tess_direct_row),
                                                          .grad = &TESS_ISA_NAME(tess_grad_kernels),
                                                          .f64 = &TESS_ISA_NAME(tess_f64_kernels),
                                                          .norm = &TESS_ISA_NAME(tess_norm_kernels),
                                                          .winograd = {.side = 4,
                                                                       .rows = ROWS,
                                                                       .block = BLOCK,
                                                                       .element = sizeof(float),
                                                                       .weights = transform_weights,
                                                                       .input = transform_input,
                                                                       .multiply = multiply,
                                                                       .output = transform_output}};
