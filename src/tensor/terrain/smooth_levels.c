/* smooth_levels.c: the grids of the smooth fill's preconditioner, from the void pixels of the raster. */
#include <string.h>

#include "base/checked.h"
#include "smooth_impl.h"

static void take(char *scratch, size_t *used, size_t bytes, void *pointer)
{
    void *at = scratch ? scratch + *used : NULL;
    memcpy(pointer, &at, sizeof at);
    *used += tess_align_size(bytes, 64);
}

/* Splines that cover `size` pixels. */
static int64_t coarser(int64_t size)
{
    return size / 2 + 2;
}

size_t tess_smooth_place(tess_smooth_system *system, int64_t h, int64_t w, void *scratch)
{
    size_t used = 0;
    const size_t pixels = (size_t)(h * w), line = (size_t)(tess_max_i64(h, w) + 2 * TESS_SMOOTH_MARGIN);
    *system = (tess_smooth_system){0};
    take(scratch, &used, pixels * sizeof(double), &system->u);
    take(scratch, &used, pixels * sizeof(double), &system->p);
    take(scratch, &used, pixels * sizeof(double), &system->q);
    take(scratch, &used, 2 * line * sizeof(double), &system->line);
    while (system->count < TESS_SMOOTH_LEVELS) {
        tess_smooth_level *level = &system->levels[system->count++];
        const size_t count = (size_t)(h * w), runs = (size_t)(h * ((w + 1) / 2));
        level->h = h, level->w = w;
        take(scratch, &used, count, &level->active);
        take(scratch, &used, count * sizeof(float), &level->tension);
        take(scratch, &used, count * sizeof(float), &level->inverse);
        take(scratch, &used, runs * sizeof *level->runs, &level->runs);
        take(scratch, &used, (size_t)h * sizeof *level->rows, &level->rows);
        take(scratch, &used, (size_t)w * sizeof *level->columns, &level->columns);
        take(scratch, &used, count * sizeof(double), &level->r);
        take(scratch, &used, count * sizeof(double), &level->z);
        if (coarser(h) >= h && coarser(w) >= w)
            break;
        h = coarser(h), w = coarser(w);
    }
    return used;
}

/* The sums over spline `at` of a level, as far as it lies on the raster: one weight on this level is spread to finer and
 * finer ones. `sizes`: of this axis on all levels. */
static tess_smooth_sums sum_spline(const int64_t *sizes, int level, int64_t at, double *lines[2])
{
    double *now = lines[0], *finer = lines[1];
    int64_t from = at, to = at + 1;
    now[at] = 1;
    for (int l = level; l-- > 0;) {
        const int64_t low = tess_max_i64(2 * from - 3, 0), high = tess_min_i64(2 * to - 1, sizes[l]);
        for (int64_t i = low; i < high; i++) {
            const int64_t near = i / 2 + 1, far = i % 2 ? near + 1 : near - 1;
            finer[i] = (near >= from && near < to ? 0.75 * now[near] : 0) +
                       (far >= from && far < to ? 0.25 * now[far] : 0);
        }
        double *other = now;
        now = finer, finer = other, from = low, to = high;
    }
    tess_smooth_sums sums = {0};
    for (int64_t i = from; i < to + 2; i++) { /* differences between i - 2, i - 1 and i */
        const double a = i < to ? now[i] : 0, b = i - 1 >= from && i - 1 < to ? now[i - 1] : 0,
                     c = i - 2 >= from ? now[i - 2] : 0;
        sums.square += a * a;
        if (i >= 1 && i < sizes[0])
            sums.first += (a - b) * (a - b);
        if (i >= 2 && i < sizes[0])
            sums.second += (a - 2 * b + c) * (a - 2 * b + c);
    }
    return sums;
}

/* Those of all splines of an axis. Away from the edges, all are equal. */
static void sum_axis(const int64_t *sizes, int level, double *lines[2], tess_smooth_sums *sums)
{
    enum { AT_EDGE = 4 };
    const int64_t size = sizes[level];
    for (int64_t i = 0; i < size; i++)
        sums[i] = i > AT_EDGE && i < size - AT_EDGE ? sums[i - 1] : sum_spline(sizes, level, i, lines);
}

/* A coarser spline that covers one pixel of the finer level is known there. */
static bool is_known(int64_t at, int64_t finer)
{
    return at == 0 || 2 * at - 3 == finer - 1;
}

static void find_inverse(const tess_smooth_level *finer, tess_smooth_level *level, double plate)
{
    for (int64_t y = 0; y < level->h; y++)
        for (int64_t x = 0; x < level->w; x++) {
            const int64_t i = y * level->w + x;
            const tess_smooth_sums a = level->rows[y], b = level->columns[x];
            const double bending = a.square * b.second + a.second * b.square + 2 * a.first * b.first,
                         slope = a.square * b.first + a.first * b.square,
                         energy = plate * bending + (double)level->tension[i] * slope;
            const bool known = finer && (is_known(y, finer->h) || is_known(x, finer->w));
            level->inverse[i] = level->active[i] && !known && energy > 0 ? (float)(1 / energy) : 0;
        }
}

static void find_runs(tess_smooth_level *level)
{
    level->run_count = 0;
    for (int64_t y = 0; y < level->h; y++) {
        const uint8_t *row = level->active + y * level->w;
        for (int64_t x = 0; x < level->w; x++) {
            if (!row[x])
                continue;
            const int64_t from = x;
            while (x < level->w && row[x])
                x++;
            level->runs[level->run_count++] = (tess_smooth_run){(int32_t)y, (int32_t)from, (int32_t)x};
        }
    }
}

/* A spline is active when all fine pixels that it covers are, or lie beyond the raster's edge. */
static void coarsen(const tess_smooth_level *fine, tess_smooth_level *coarse)
{
    for (int64_t y = 0; y < coarse->h; y++)
        for (int64_t x = 0; x < coarse->w; x++) {
            const int64_t top = tess_max_i64(2 * y - 3, 0), bottom = tess_min_i64(2 * y + 1, fine->h);
            const int64_t left = tess_max_i64(2 * x - 3, 0), right = tess_min_i64(2 * x + 1, fine->w);
            bool active = true;
            for (int64_t j = top; j < bottom && active; j++)
                for (int64_t i = left; i < right && active; i++)
                    active = fine->active[j * fine->w + i];
            coarse->active[y * coarse->w + x] = active;
            coarse->tension[y * coarse->w + x] = fine->tension[top * fine->w + left];
        }
}

void tess_smooth_prepare(tess_smooth_system *system)
{
    int64_t heights[TESS_SMOOTH_LEVELS], widths[TESS_SMOOTH_LEVELS];
    const int64_t side = tess_max_i64(system->levels[0].h, system->levels[0].w) + 2 * TESS_SMOOTH_MARGIN;
    double *lines[2] = {system->line, system->line + side};
    int used = 0;
    for (int l = 0; l < system->count; l++) {
        tess_smooth_level *level = &system->levels[l], *finer = l > 0 ? level - 1 : NULL;
        heights[l] = level->h, widths[l] = level->w;
        if (finer)
            coarsen(finer, level);
        find_runs(level);
        if (level->run_count == 0)
            break;
        sum_axis(heights, l, lines, level->rows);
        sum_axis(widths, l, lines, level->columns);
        find_inverse(finer, level, system->plate);
        memset(level->r, 0, (size_t)(level->h * level->w) * sizeof *level->r);
        memset(level->z, 0, (size_t)(level->h * level->w) * sizeof *level->z);
        used = l + 1;
    }
    system->count = used;
}
