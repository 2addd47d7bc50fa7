/* smooth_levels.c: the preconditioner of the smooth fill: the sum over levels of P D^-1 P^T (Bramble, Pasciak and Xu, 1990),
 * where P interpolates with quadratic B-splines, which have finite bending energy, as a plate needs. Only splines that lie
 * inside a void take part, so that no valid pixel is moved; nearer to the rim the finer levels do the work. Over the
 * raster's edge a spline may reach, since the surface is free there. */
#include "smooth_impl.h"

#include <string.h>

#include "base/checked.h"

static size_t take(char *scratch, size_t *used, size_t bytes, void *pointer)
{
    void *at = scratch ? scratch + *used : NULL;
    memcpy(pointer, &at, sizeof at);
    *used += tess_align_size(bytes, 64);
    return *used;
}

size_t tess_smooth_place(tess_smooth_system *system, int64_t h, int64_t w, void *scratch)
{
    size_t used = 0;
    const size_t pixels = (size_t)(h * w);
    *system = (tess_smooth_system){0};
    take(scratch, &used, pixels * sizeof(double), &system->u);
    take(scratch, &used, pixels * sizeof(double), &system->p);
    take(scratch, &used, pixels * sizeof(double), &system->q);
    take(scratch, &used, (size_t)(w + 2 * TESS_SMOOTH_MARGIN) * sizeof(double), &system->line);
    for (int l = 0; l < TESS_SMOOTH_LEVELS; l++) {
        tess_smooth_level *level = &system->levels[system->count++];
        const size_t count = (size_t)(h * w);
        level->h = h, level->w = w;
        take(scratch, &used, count, &level->active);
        take(scratch, &used, count * sizeof(float), &level->tension);
        take(scratch, &used, count * sizeof(float), &level->inverse);
        take(scratch, &used, (size_t)h * 2 * sizeof(int64_t), &level->spans);
        take(scratch, &used, count * sizeof(double), &level->r);
        take(scratch, &used, count * sizeof(double), &level->z);
        if (h <= 2 || w <= 2)
            break;
        h = (h + 1) / 2, w = (w + 1) / 2;
    }
    return used;
}

/* Energies of the two-dimensional spline of each level from sums over the one-dimensional one: of squares (m0), of squared
 * first (m1) and second differences (m2). From level 4 on they follow the scaling of the continuous spline. */
static void find_energies(tess_smooth_system *system)
{
    enum { EXACT = 5, ROOM = 4 << EXACT };
    double spline[ROOM] = {0}, m0 = 1, m1 = 2, m2 = 6;
    int length = 1;
    spline[0] = 1;
    for (int l = 0; l < system->count; l++) {
        if (l > 0 && l < EXACT) {
            double finer[ROOM] = {0};
            for (int i = 0; i < length; i++) {
                finer[2 * i] += spline[i] / 4, finer[2 * i + 1] += spline[i] * 3 / 4;
                finer[2 * i + 2] += spline[i] * 3 / 4, finer[2 * i + 3] += spline[i] / 4;
            }
            length = 2 * length + 2;
            m0 = m1 = m2 = 0;
            for (int i = 0; i < length + 2; i++) {
                const double a = i < length ? finer[i] : 0, b = i >= 1 && i <= length ? finer[i - 1] : 0,
                             c = i >= 2 ? finer[i - 2] : 0;
                m0 += a * a, m1 += (a - b) * (a - b), m2 += (a - 2 * b + c) * (a - 2 * b + c);
            }
            memcpy(spline, finer, sizeof spline);
        } else if (l > 0) {
            m0 *= 2, m1 /= 2, m2 /= 8;
        }
        system->levels[l].slope = 2 * m0 * m1;
        system->levels[l].plate = 2 * m0 * m2 + 2 * m1 * m1;
    }
}

static void find_spans(tess_smooth_level *level)
{
    for (int64_t y = 0; y < level->h; y++) {
        const uint8_t *row = level->active + y * level->w;
        int64_t first = 0, end = level->w;
        while (first < end && !row[first])
            first++;
        while (end > first && !row[end - 1])
            end--;
        level->spans[2 * y] = first, level->spans[2 * y + 1] = end;
    }
}

static void find_inverse(tess_smooth_level *level, double plate)
{
    for (int64_t i = 0; i < level->h * level->w; i++)
        level->inverse[i] =
            level->active[i] ? (float)(1 / (plate * level->plate + level->slope * (double)level->tension[i]))
                             : 0;
}

/* A spline is active when all fine pixels that it covers are, or lie beyond the raster's edge. */
static void coarsen(const tess_smooth_level *fine, tess_smooth_level *coarse)
{
    for (int64_t y = 0; y < coarse->h; y++)
        for (int64_t x = 0; x < coarse->w; x++) {
            const int64_t top = tess_max_i64(2 * y - 1, 0), bottom = tess_min_i64(2 * y + 3, fine->h);
            const int64_t left = tess_max_i64(2 * x - 1, 0), right = tess_min_i64(2 * x + 3, fine->w);
            bool active = true;
            for (int64_t j = top; j < bottom && active; j++)
                for (int64_t i = left; i < right && active; i++)
                    active = fine->active[j * fine->w + i];
            coarse->active[y * coarse->w + x] = active;
            coarse->tension[y * coarse->w + x] = fine->tension[2 * y * fine->w + 2 * x];
        }
}

void tess_smooth_prepare(tess_smooth_system *system)
{
    find_energies(system);
    int used = 0;
    for (int l = 0; l < system->count; l++) {
        tess_smooth_level *level = &system->levels[l];
        if (l > 0)
            coarsen(&system->levels[l - 1], level);
        find_spans(level);
        find_inverse(level, system->plate);
        memset(level->r, 0, (size_t)(level->h * level->w) * sizeof *level->r);
        memset(level->z, 0, (size_t)(level->h * level->w) * sizeof *level->z);
        bool any = false;
        for (int64_t y = 0; y < level->h && !any; y++)
            any = level->spans[2 * y] < level->spans[2 * y + 1];
        if (!any)
            break;
        used = l + 1;
    }
    system->count = used;
}

/* The line is combined from rows of the finer level, then its pairs of columns are; pixels beyond the raster count as 0. */
static void restrict_row(const tess_smooth_level *fine, tess_smooth_level *coarse, int64_t y, double *line)
{
    static const double weights[4] = {0.25, 0.75, 0.75, 0.25};
    const int64_t first = coarse->spans[2 * y], end = coarse->spans[2 * y + 1];
    const int64_t from = tess_max_i64(2 * first - 1, 0), to = tess_min_i64(2 * end + 1, fine->w);
    for (int64_t x = 2 * first - 1; x < 2 * end + 1; x++)
        line[x] = 0;
    for (int64_t j = 0; j < 4; j++) {
        const int64_t row = 2 * y - 1 + j;
        if (row < 0 || row >= fine->h)
            continue;
        const double *r = fine->r + row * fine->w;
        for (int64_t x = from; x < to; x++)
            line[x] += weights[j] * r[x];
    }
    const uint8_t *active = coarse->active + y * coarse->w;
    double *out = coarse->r + y * coarse->w;
    for (int64_t x = first; x < end; x++) {
        const double *at = line + 2 * x;
        out[x] = active[x] ? 0.25 * (at[-1] + at[2]) + 0.75 * (at[0] + at[1]) : 0;
    }
}

/* z of the finer level += P z. Pixel 2k gets 3/4 of coarse pixel k and 1/4 of k - 1; 2k + 1 gets 3/4 of k and 1/4 of k + 1. */
static void prolong_row(const tess_smooth_level *coarse, tess_smooth_level *fine, int64_t y, double *line)
{
    const int64_t near = y / 2, far = y % 2 ? near + 1 : near - 1, first = fine->spans[2 * y],
                  end = fine->spans[2 * y + 1];
    const bool inside = far >= 0 && far < coarse->h;
    const double *a = coarse->z + near * coarse->w, *b = inside ? coarse->z + far * coarse->w : a;
    const double weight = inside ? 0.25 : 0;
    const int64_t low = first / 2 - 1, high = (end + 1) / 2 + 1; /* coarse columns that are read */
    for (int64_t i = low; i < high; i++)
        line[i] = i >= 0 && i < coarse->w ? 0.75 * a[i] + weight * b[i] : 0;
    double *z = fine->z + y * fine->w;
    for (int64_t i = first / 2; i < (end + 1) / 2; i++) {
        if (2 * i >= first)
            z[2 * i] += 0.75 * line[i] + 0.25 * line[i - 1];
        if (2 * i + 1 < end)
            z[2 * i + 1] += 0.75 * line[i] + 0.25 * line[i + 1];
    }
}

void tess_smooth_precondition(tess_smooth_system *system)
{
    double *line = system->line + TESS_SMOOTH_MARGIN;
    for (int l = 0; l + 1 < system->count; l++)
        for (int64_t y = 0; y < system->levels[l + 1].h; y++)
            if (system->levels[l + 1].spans[2 * y] < system->levels[l + 1].spans[2 * y + 1])
                restrict_row(&system->levels[l], &system->levels[l + 1], y, line);
    for (int l = system->count; l-- > 0;) {
        tess_smooth_level *level = &system->levels[l];
        for (int64_t y = 0; y < level->h; y++) {
            const int64_t end = y * level->w + level->spans[2 * y + 1];
            for (int64_t i = y * level->w + level->spans[2 * y]; i < end; i++)
                level->z[i] = level->r[i] * (double)level->inverse[i];
            if (l + 1 < system->count && level->spans[2 * y] < level->spans[2 * y + 1])
                prolong_row(&system->levels[l + 1], level, y, line);
        }
    }
}
