/* smooth_transfer.c: the preconditioner of the smooth fill: the sum over levels of P D^-1 P^T (Bramble, Pasciak and Xu, 1990),
 * where P interpolates with quadratic B-splines, which have finite bending energy, as a plate needs. Only splines that lie
 * inside a void take part, so that no valid pixel is moved; nearer to the rim the finer levels do the work. At the raster's edge,
 * where the surface is free, all splines that reach over it take part, so that planes up to the edge are sums of coarse splines. */
#include "base/checked.h"
#include "smooth_impl.h"

/* The line is combined from rows of the finer level, then its pairs of columns are; pixels beyond the raster count as 0. */
static void restrict_run(const tess_smooth_level *fine, tess_smooth_level *coarse, const tess_smooth_run *run,
                         double *restrict line)
{
    static const double weights[4] = {0.25, 0.75, 0.75, 0.25};
    const int64_t low = 2 * run->from - 3, high = 2 * run->to - 1, from = tess_max_i64(low, 0),
                  to = tess_min_i64(high, fine->w);
    const double *rows[4];
    double w[4];
    for (int64_t j = 0; j < 4; j++) {
        const int64_t row = 2 * run->y - 3 + j;
        const bool inside = row >= 0 && row < fine->h;
        rows[j] = fine->r + (inside ? row : 0) * fine->w;
        w[j] = inside ? weights[j] : 0;
    }
    for (int64_t x = low; x < from; x++)
        line[x] = 0;
    for (int64_t x = to; x < high; x++)
        line[x] = 0;
    const double *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
    for (int64_t x = from; x < to; x++)
        line[x] = (w[0] * a[x] + w[3] * d[x]) + (w[1] * b[x] + w[2] * c[x]);
    double *restrict out = coarse->r + (int64_t)run->y * coarse->w;
    for (int64_t x = run->from; x < run->to; x++) {
        const double *at = line + 2 * x;
        out[x] = 0.25 * (at[-3] + at[0]) + 0.75 * (at[-2] + at[-1]);
    }
}

/* z of the finer level += P z. */
static void prolong_run(const tess_smooth_level *coarse, tess_smooth_level *fine, const tess_smooth_run *run,
                        double *restrict line)
{
    const int64_t near = run->y / 2 + 1, far = run->y % 2 ? near + 1 : near - 1, from = run->from,
                  to = run->to;
    const double *a = coarse->z + near * coarse->w, *b = coarse->z + far * coarse->w;
    for (int64_t i = from / 2; i < (to + 1) / 2 + 2 - to % 2; i++)
        line[i] = 0.75 * a[i] + 0.25 * b[i];
    double *restrict z = fine->z + (int64_t)run->y * fine->w;
    if (from % 2)
        z[from] += 0.75 * line[from / 2 + 1] + 0.25 * line[from / 2 + 2];
    for (int64_t i = (from + 1) / 2; i < to / 2; i++) {
        z[2 * i] += 0.25 * line[i] + 0.75 * line[i + 1];
        z[2 * i + 1] += 0.75 * line[i + 1] + 0.25 * line[i + 2];
    }
    if (to % 2)
        z[to - 1] += 0.25 * line[to / 2] + 0.75 * line[to / 2 + 1];
}

void tess_smooth_precondition(tess_smooth_system *system)
{
    double *line = system->line + TESS_SMOOTH_MARGIN;
    for (int l = 1; l < system->count; l++)
        for (int64_t i = 0; i < system->levels[l].run_count; i++)
            restrict_run(&system->levels[l - 1], &system->levels[l], &system->levels[l].runs[i], line);
    for (int l = system->count; l-- > 0;) {
        tess_smooth_level *level = &system->levels[l];
        for (int64_t i = 0; i < level->run_count; i++) {
            const tess_smooth_run *run = &level->runs[i];
            const int64_t row = (int64_t)run->y * level->w;
            double *restrict z = level->z;
            for (int64_t x = row + run->from; x < row + run->to; x++)
                z[x] = level->r[x] * (double)level->inverse[x];
            if (l + 1 < system->count)
                prolong_run(&system->levels[l + 1], level, run, line);
        }
    }
}
