/* Symmetric matrices in fp64: sums of outer products in registers, and the steps of a triangular factor by blocks. */
#include <math.h>
#include <stdbool.h>

#include "cpu/conv/kernels.h"
#include "cpu/conv/simd.h"

/* Doubles of a vector; columns of a block; rows of a register block, which leave registers for one vector of each column. */
enum { LANES = VECTOR / 2, WIDTH = LANES * BLOCK_VECTORS, STRIP = TESS_VECTOR == 16 ? 8 : 4 };

typedef double vec64 __attribute__((vector_size(TESS_VECTOR * 4)));
typedef double loose64 __attribute__((vector_size(TESS_VECTOR * 4), aligned(8), may_alias));

static inline vec64 load64(const double *from)
{
    return *(const loose64 *)from;
}

static inline void store64(double *to, vec64 value)
{
    *(loose64 *)to = value;
}

static inline __attribute__((always_inline)) void strip(const double *a, const double *b, int64_t depth,
                                                        double sign, double *m)
{
    vec64 sum[STRIP][BLOCK_VECTORS] = {{{0}}};
    for (int64_t k = 0; k < depth; k++, a += WIDTH, b += WIDTH) {
        vec64 w[BLOCK_VECTORS];
        for (int j = 0; j < BLOCK_VECTORS; j++)
            w[j] = load64(b + j * LANES);
#if defined(__aarch64__)
        vec64 lanes[STRIP / LANES]; /* multiplies by a lane need no copies of it */
        for (int i = 0; i < STRIP / LANES; i++)
            lanes[i] = load64(a + i * LANES);
        for (int i = 0; i < STRIP; i++)
            for (int j = 0; j < BLOCK_VECTORS; j++)
                sum[i][j] += w[j] * lanes[i / LANES][i % LANES];
#else
        for (int i = 0; i < STRIP; i++)
            for (int j = 0; j < BLOCK_VECTORS; j++)
                sum[i][j] += w[j] * a[i];
#endif
    }
    for (int i = 0; i < STRIP; i++)
        for (int j = 0; j < BLOCK_VECTORS; j++) {
            double *to = m + i * WIDTH + j * LANES;
            store64(to, load64(to) + sign * sum[i][j]);
        }
}

static void outer(const double *a, const double *b, int64_t depth, double sign, double *m)
{
    for (int r = 0; r < WIDTH; r += STRIP)
        strip(a + r, b, depth, sign, m + r * WIDTH);
}

static void centre(const float *pixel, const double *mean, int64_t channels, double *to, int64_t step)
{
    int64_t c = 0;
    for (; c + WIDTH <= channels; c += WIDTH, to += step)
        for (int i = 0; i < WIDTH; i++)
            to[i] = (double)pixel[c + i] - mean[c + i];
    for (int i = 0; c < channels && i < WIDTH; i++)
        to[i] = c + i < channels ? (double)pixel[c + i] - mean[c + i] : 0;
}

static void subtract(const double *from, const double *row_factor, const double *factor, int64_t rows,
                     double *to)
{
    vec64 f[BLOCK_VECTORS];
    for (int j = 0; j < BLOCK_VECTORS; j++)
        f[j] = load64(factor + j * LANES);
    for (int64_t r = 0; r < rows; r++)
        for (int j = 0; j < BLOCK_VECTORS; j++) {
            const int64_t at = r * WIDTH + j * LANES;
            store64(to + at, load64(from + at) - row_factor[r] * f[j]);
        }
}

static bool factor(double *m, int pivots, double *inverse)
{
    for (int r = 0; r < pivots; r++) {
        double *row = m + r * WIDTH;
        if (!(row[r] > 0) || !(row[r] < INFINITY))
            return false;
        inverse[r] = 1 / sqrt(row[r]);
        for (int c = 0; c < WIDTH; c++)
            row[c] *= inverse[r];
        for (int q = r + 1; q < WIDTH; q++)
            for (int c = 0; c < WIDTH; c++)
                m[q * WIDTH + c] -= row[q] * row[c];
    }
    return true;
}

/* Row by row, from the rows above; all columns at once. */
static void solve(const double *u, const double *inverse, double *m)
{
    vec64 x[WIDTH][BLOCK_VECTORS];
    for (int r = 0; r < WIDTH; r++)
        for (int j = 0; j < BLOCK_VECTORS; j++) {
            vec64 value = load64(m + r * WIDTH + j * LANES);
            for (int k = 0; k < r; k++)
                value -= u[k * WIDTH + r] * x[k][j];
            x[r][j] = value * inverse[r];
            store64(m + r * WIDTH + j * LANES, x[r][j]);
        }
}

extern const tess_f64_kernels TESS_ISA_NAME(tess_f64_kernels);
const tess_f64_kernels TESS_ISA_NAME(tess_f64_kernels) = {
    .block = WIDTH, .outer = outer, .centre = centre, .subtract = subtract, .factor = factor, .solve = solve};
