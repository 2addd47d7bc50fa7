/* smooth_solve.c: preconditioned conjugate gradients on the energy of the smooth fill. */
#include <string.h>

#include "base/checked.h"
#include "smooth_impl.h"

enum { MOST_ITERATIONS = 600 };

/* Half of the gradient of an axis: of the squared second differences to the pixels at -2 .. 2, of the squared first ones to those at
 * -1 .. 1. Differences that would leave the raster are left out. */
typedef struct axis {
    double second[5], first[3];
} axis;

static axis axis_at(int64_t at, int64_t size)
{
    axis a = {{0}, {0}};
    for (int c = -1; c <= 1; c++)
        if (at + c >= 1 && at + c < size - 1) {
            const double factor = c ? 1 : -2;
            a.second[c + 1] += factor, a.second[c + 2] -= 2 * factor, a.second[c + 3] += factor;
        }
    for (int c = 0; c <= 2; c += 2)
        if (at + c >= 1 && at + c - 1 < size)
            a.first[1] += 1, a.first[c] -= 1;
    return a;
}

/* Five rows around one, of which those beyond the raster are never read, since their factors are 0. */
typedef struct rows {
    const double *at[5];
} rows;

/* Gradient of the energy at one pixel: for pixels near the raster's left and right edges. */
static double apply_pixel(const rows *v, const axis *down, const axis *across, int64_t x, double plate,
                          double tension)
{
    double bending = 0, slope = 0;
    for (int k = -2; k <= 2; k++) {
        if (down->second[k + 2] != 0)
            bending += down->second[k + 2] * v->at[k + 2][x];
        if (across->second[k + 2] != 0)
            bending += across->second[k + 2] * v->at[2][x + k];
    }
    for (int j = -1; j <= 1; j++) {
        if (down->first[j + 1] != 0)
            slope += down->first[j + 1] * v->at[j + 2][x];
        if (across->first[j + 1] != 0)
            slope += across->first[j + 1] * v->at[2][x + j];
        for (int i = -1; i <= 1; i++) {
            const double factor = down->first[j + 1] * across->first[i + 1];
            if (factor != 0)
                bending += 2 * factor * v->at[j + 2][x + i];
        }
    }
    return plate * bending + tension * slope;
}

/* The same, where all differences along the row exist. */
static void apply_inner(const rows *v, const axis *down, double plate, const float *tension, int64_t from,
                        int64_t to, double *restrict q)
{
    const double *nn = v->at[0], *n = v->at[1], *c = v->at[2], *s = v->at[3], *ss = v->at[4];
    const double up = down->first[0], here = down->first[1], low = down->first[2];
    const double of_nn = plate * down->second[0], of_ss = plate * down->second[4],
                 of_n = plate * (down->second[1] + 4 * up), of_s = plate * (down->second[3] + 4 * low),
                 of_c = plate * (down->second[2] + 6 + 4 * here), of_side = plate * (-4 - 2 * here),
                 of_upper = plate * -2 * up, of_lower = plate * -2 * low;
    for (int64_t x = from; x < to; x++) {
        const double side = c[x - 1] + c[x + 1], upper = n[x - 1] + n[x + 1], lower = s[x - 1] + s[x + 1];
        const double bending = (of_c * c[x] + of_side * side) + (of_n * n[x] + of_s * s[x]) +
                               (of_upper * upper + of_lower * lower) + (of_nn * nn[x] + of_ss * ss[x]) +
                               plate * (c[x - 2] + c[x + 2]);
        q[x] = bending + (double)tension[x] * ((up * n[x] + low * s[x]) + ((2 + here) * c[x] - side));
    }
}

/* The sum of products, in eight parts. */
static double dot(const double *a, const double *b, int64_t count)
{
    double part[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++)
            part[k] += a[i + k] * b[i + k];
    for (; i < count; i++)
        sum += a[i] * b[i];
    return sum + (((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])));
}

/* q = gradient of the energy at v, at active pixels. Returns the sum of v q. */
static double apply(const tess_smooth_system *system, const double *v)
{
    const tess_smooth_level *level = &system->levels[0];
    const int64_t h = level->h, w = level->w;
    double sum = 0;
    for (int64_t i = 0; i < level->run_count; i++) {
        const tess_smooth_run *run = &level->runs[i];
        const int64_t y = run->y, from = tess_min_i64(tess_max_i64(run->from, 2), run->to),
                      to = tess_max_i64(tess_min_i64(run->to, w - 2), from);
        const axis down = axis_at(y, h);
        const float *tension = level->tension + y * w;
        double *q = system->q + y * w;
        rows around;
        for (int64_t k = 0; k < 5; k++)
            around.at[k] = v + tess_min_i64(tess_max_i64(y + k - 2, 0), h - 1) * w;
        apply_inner(&around, &down, system->plate, tension, from, to, q);
        for (int64_t x = run->from; x < run->to; x++) {
            if (x == from)
                x = to;
            if (x >= run->to)
                break;
            const axis across = axis_at(x, w);
            q[x] = apply_pixel(&around, &down, &across, x, system->plate, (double)tension[x]);
        }
        sum += dot(v + y * w + run->from, q + run->from, run->to - run->from);
    }
    return sum;
}

/* The sum of r z. */
static double residual(const tess_smooth_level *level)
{
    double sum = 0;
    for (int64_t i = 0; i < level->run_count; i++) {
        const tess_smooth_run *run = &level->runs[i];
        const int64_t first = run->y * level->w + run->from;
        sum += dot(level->r + first, level->z + first, run->to - run->from);
    }
    return sum;
}

/* p = z + factor p. */
static void turn(const tess_smooth_system *system, double factor)
{
    const tess_smooth_level *level = &system->levels[0];
    double *restrict p = system->p;
    for (int64_t i = 0; i < level->run_count; i++) {
        const tess_smooth_run *run = &level->runs[i];
        const int64_t row = run->y * level->w;
        for (int64_t x = row + run->from; x < row + run->to; x++)
            p[x] = level->z[x] + factor * p[x];
    }
}

/* u += factor p and r -= factor q. */
static void go(const tess_smooth_system *system, double factor)
{
    const tess_smooth_level *level = &system->levels[0];
    double *restrict u = system->u, *restrict r = level->r;
    for (int64_t i = 0; i < level->run_count; i++) {
        const tess_smooth_run *run = &level->runs[i];
        const int64_t row = run->y * level->w;
        for (int64_t x = row + run->from; x < row + run->to; x++) {
            u[x] += factor * system->p[x];
            r[x] -= factor * system->q[x];
        }
    }
}

int tess_smooth_solve(tess_smooth_system *system, double tolerance)
{
    tess_smooth_level *level = &system->levels[0];
    memset(system->p, 0, (size_t)(level->h * level->w) * sizeof *system->p);
    (void)apply(system, system->u);
    go(system, 1); /* r = -gradient */
    double old = 0, start = 0;
    for (int iteration = 0; iteration < MOST_ITERATIONS; iteration++) {
        tess_smooth_precondition(system);
        const double rz = residual(level);
        if (iteration == 0)
            start = rz;
        if (!(rz > tolerance * tolerance * start))
            return iteration;
        turn(system, iteration ? rz / old : 0);
        const double pq = apply(system, system->p);
        if (!(pq > 0)) /* only rounding is left */
            return iteration;
        go(system, rz / pq);
        old = rz;
    }
    return MOST_ITERATIONS;
}
