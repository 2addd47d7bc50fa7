/* smooth_solve.c: preconditioned conjugate gradients on the energy of the smooth fill. */
#include <string.h>

#include "base/checked.h"
#include "smooth_impl.h"

enum { MOST_ITERATIONS = 600 };

/* Gradient of the energy at one pixel from the differences that exist: for pixels near the raster's edge. */
static double apply_pixel(const tess_smooth_system *system, const double *v, int64_t y, int64_t x)
{
    const int64_t h = system->levels[0].h, w = system->levels[0].w;
    const double *at = v + y * w + x;
    double plate = 0, slope = 0;
    for (int64_t c = -1; c <= 1; c++) {
        const double factor = c ? 1 : -2;
        if (x + c >= 1 && x + c < w - 1)
            plate += factor * (at[c - 1] - 2 * at[c] + at[c + 1]);
        if (y + c >= 1 && y + c < h - 1)
            plate += factor * (at[(c - 1) * w] - 2 * at[c * w] + at[(c + 1) * w]);
    }
    for (int64_t j = -1; j <= 0; j++)
        for (int64_t i = -1; i <= 0; i++) {
            const double *cell = at + j * w + i;
            if (y + j >= 0 && y + j + 1 < h && x + i >= 0 && x + i + 1 < w)
                plate += (i == j ? 2 : -2) * (cell[0] - cell[1] - cell[w] + cell[w + 1]);
        }
    slope += x > 0 ? at[0] - at[-1] : 0, slope += x + 1 < w ? at[0] - at[1] : 0;
    slope += y > 0 ? at[0] - at[-w] : 0, slope += y + 1 < h ? at[0] - at[w] : 0;
    return system->plate * plate + (double)system->levels[0].tension[y * w + x] * slope;
}

/* The same, where all differences exist: the stencils of the biharmonic and the Laplace operator. */
static void apply_inner(const tess_smooth_system *system, const double *v, int64_t y, int64_t from,
                        int64_t to)
{
    const int64_t w = system->levels[0].w;
    const double *c = v + y * w, *n = c - w, *s = c + w, *nn = n - w, *ss = s + w;
    const float *tension = system->levels[0].tension + y * w;
    const uint8_t *active = system->levels[0].active + y * w;
    double *q = system->q + y * w;
    const double weight = system->plate;
    for (int64_t x = from; x < to; x++) {
        const double four = n[x] + s[x] + c[x - 1] + c[x + 1];
        const double diagonal = n[x - 1] + n[x + 1] + s[x - 1] + s[x + 1];
        const double far = nn[x] + ss[x] + c[x - 2] + c[x + 2];
        const double sum =
            weight * (20 * c[x] - 8 * four + 2 * diagonal + far) + (double)tension[x] * (4 * c[x] - four);
        q[x] = active[x] ? sum : 0;
    }
}

/* q = gradient of the energy at v, at active pixels; 0 between them. */
static void apply(const tess_smooth_system *system, const double *v)
{
    const tess_smooth_level *level = &system->levels[0];
    const int64_t h = level->h, w = level->w;
    for (int64_t y = 0; y < h; y++) {
        const int64_t first = level->spans[2 * y], end = level->spans[2 * y + 1];
        int64_t from = tess_max_i64(first, 2), to = tess_min_i64(end, w - 2);
        if (y < 2 || y >= h - 2 || from >= to)
            from = to = end;
        else
            apply_inner(system, v, y, from, to);
        for (int64_t x = first; x < end; x++) {
            if (x == from)
                x = to;
            if (x < end)
                system->q[y * w + x] = level->active[y * w + x] ? apply_pixel(system, v, y, x) : 0;
        }
    }
}

/* The sum over active pixels, in four parts of each row. */
static double dot(const tess_smooth_level *level, const double *a, const double *b)
{
    double total = 0;
    for (int64_t y = 0; y < level->h; y++) {
        const double *p = a + y * level->w, *q = b + y * level->w;
        const int64_t end = level->spans[2 * y + 1];
        double part[4] = {0};
        int64_t x = level->spans[2 * y];
        for (; x + 4 <= end; x += 4)
            for (int k = 0; k < 4; k++)
                part[k] += p[x + k] * q[x + k];
        for (; x < end; x++)
            part[0] += p[x] * q[x];
        total += (part[0] + part[1]) + (part[2] + part[3]);
    }
    return total;
}

/* a = b + factor a, or a += factor b with `add`. */
static void combine(const tess_smooth_level *level, double *a, const double *b, double factor, bool add)
{
    for (int64_t y = 0; y < level->h; y++) {
        const int64_t first = y * level->w + level->spans[2 * y],
                      end = y * level->w + level->spans[2 * y + 1];
        if (add)
            for (int64_t i = first; i < end; i++)
                a[i] += factor * b[i];
        else
            for (int64_t i = first; i < end; i++)
                a[i] = b[i] + factor * a[i];
    }
}

int tess_smooth_solve(tess_smooth_system *system, double tolerance)
{
    tess_smooth_level *level = &system->levels[0];
    memset(system->p, 0, (size_t)(level->h * level->w) * sizeof *system->p);
    apply(system, system->u);
    combine(level, level->r, system->q, 0, false);
    combine(level, level->r, level->r, -2, true); /* r = -gradient */
    double old = 0, start = 0;
    for (int iteration = 0; iteration < MOST_ITERATIONS; iteration++) {
        tess_smooth_precondition(system);
        const double rz = dot(level, level->r, level->z);
        if (iteration == 0)
            start = rz;
        if (!(rz > tolerance * tolerance * start))
            return iteration;
        combine(level, system->p, level->z, iteration ? rz / old : 0, false);
        apply(system, system->p);
        const double pq = dot(level, system->p, system->q);
        if (!(pq > 0)) /* only rounding is left */
            return iteration;
        combine(level, system->u, system->p, rz / pq, true);
        combine(level, level->r, system->q, -rz / pq, true);
        old = rz;
    }
    return MOST_ITERATIONS;
}
