#include "job/reconstruct/scan/shadow3.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/problem/views.h"
#include "job/reconstruct/scan/height.h"
#include "job/reconstruct/scan/turning.h"
#include "physics/rays.h"

enum {
    SAMPLES = 128, /* of each side of the detector that are looked at */
    INNER = 16,    /* parts of the volume, from its middle outwards */
    PLACES = 4,
    DISTANCES = 512, /* in voxels; what is farther counts as the last one */
    SIDE = 0,        /* beside the volume, along its width or height */
    ABOVE = 1,       /* or below it, along its depth */
    EDGE = 2,        /* outer columns and rows */
    LEAST = 16,      /* rays of a view, for an error that can be trusted */
    BESIDE = 2       /* voxels on each side for what hardly sticks out */
};
/* as in shadow.c */
static const double CLEAR = 0.02, CERTAIN = 3, FAINT = 1;
static const double MOST_GROWTH = 8; /* of the number of voxels that are computed */

/* Rays diverge, so those that pass a voxel beside a face meet the volume further on, at an edge. They cross little of it,
 * but see more than as much of the object can hold. */
static const double GRAZING = 3;   /* voxels of the volume that they cross */
static const double HOLDS = 1.5;   /* times the mean value of the rays through the middle */
static const double ONE_VIEW = 6;  /* as CERTAIN; each view has a test of its own */
static const double HEIGHT = 0.75; /* of the volume's: farther up they pass its top */

typedef struct grazing {
    double sum, squares, crossed;
    int64_t count;
} grazing;

typedef struct distance {
    double sum, squares, far;
    int64_t count;
} distance;

typedef struct frame {
    const tess_problem *problem;
    double half[3]; /* of the volume's sides, in voxels: x, y, z */
} frame;

typedef struct shadow3 {
    frame of;
    double inner[INNER], crossed[INNER];
    grazing *grazing; /* of each view */
    tess_heights *heights;
    int64_t inner_count[INNER];
    /* apart by where the ray passes in the other directions, since most of a large detector sees air there */
    distance outside[2][PLACES][DISTANCES];
} shadow3;

/* Where a ray is nearest to the middle of the volume, with each side of the volume as the unit, and whether the ray meets
 * the volume. A pixel has a width, so a ray that passes within half of it counts. */
static bool meets(const frame *s, int64_t view, int64_t r, int64_t c, double foot[3], double from[3],
                  double along[3])
{
    const tess_problem *p = s->problem;
    const double *v = p->vectors + 12 * view, right = (double)c - 0.5 * (double)(p->columns - 1),
                 down = (double)r - 0.5 * (double)(p->rows - 1);
    double product = 0, square = 0, wide = 0, low = -INFINITY, high = INFINITY;
    for (int i = 0; i < 3; i++) {
        const double pixel = v[3 + i] + right * v[6 + i] + down * v[9 + i], unit = s->half[i] * p->spacing;
        from[i] = (p->parallel ? pixel : v[i]) / unit;
        along[i] = (p->parallel ? v[i] : pixel - v[i]) / unit;
        product += from[i] * along[i];
        square += along[i] * along[i];
        wide = fmax(wide, fmax(fabs(v[6 + i]), fabs(v[9 + i])) / p->spacing);
    }
    const double at = -product / square;
    const double beyond = 0.5 * wide * (p->parallel ? 1 : fabs(at));
    for (int i = 0; i < 3; i++) {
        const double side = 1 + beyond / s->half[i];
        foot[i] = from[i] + at * along[i];
        if (fabs(along[i]) < 1e-12) {
            if (fabs(from[i]) > side)
                high = -INFINITY;
            continue;
        }
        const double a = (-side - from[i]) / along[i], b = (side - from[i]) / along[i];
        low = fmax(low, fmin(a, b));
        high = fmin(high, fmax(a, b));
    }
    return high >= low;
}

/* Voxels of the volume that a ray crosses, and the height of their middle, with half of the depth as the unit. */
static double crosses(const frame *s, const double from[3], const double along[3], double *height)
{
    double low = -INFINITY, high = INFINITY, square = 0;
    for (int i = 0; i < 3; i++) {
        square += along[i] * along[i] * s->half[i] * s->half[i];
        if (fabs(along[i]) < 1e-12) {
            high = fabs(from[i]) > 1 ? -INFINITY : high;
            continue;
        }
        low = fmax(low, fmin((-1 - from[i]) / along[i], (1 - from[i]) / along[i]));
        high = fmin(high, fmax((-1 - from[i]) / along[i], (1 - from[i]) / along[i]));
    }
    *height = fabs(from[2] + 0.5 * (low + high) * along[2]);
    return high > low ? (high - low) * sqrt(square) : 0;
}

/* Where a ray that misses the volume passes nearest to the line through its middle along its depth, with each side of the
 * volume as the unit, and whether it passes above or below the volume. A volume of a few slices is too low, not too
 * narrow, for a ray at a slant: the nearest point to its middle may be anywhere. */
static bool passes_above(const frame *s, const double from[3], const double along[3], double foot[3])
{
    double low = -INFINITY, high = INFINITY, product = 0, square = 0;
    for (int i = 0; i < 2; i++) {
        product += from[i] * along[i];
        square += along[i] * along[i];
        if (fabs(along[i]) < 1e-12) {
            high = fabs(from[i]) > 1 ? -INFINITY : high;
            continue;
        }
        low = fmax(low, fmin((-1 - from[i]) / along[i], (1 - from[i]) / along[i]));
        high = fmin(high, fmax((-1 - from[i]) / along[i], (1 - from[i]) / along[i]));
    }
    const double steep = along[2] * along[2] * s->half[2] * s->half[2];
    /* along the depth: where it is at half of it */
    const double at = square > 1e-6 * steep ? -product / square : -from[2] / along[2];
    for (int i = 0; i < 3; i++)
        foot[i] = from[i] + at * along[i];
    return high >= low && fabs(foot[2]) > 1;
}

static void begin(const tess_problem *p, frame *s)
{
    const int64_t sides[3] = {p->width, p->height, p->depth};
    s->problem = p;
    for (int i = 0; i < 3; i++)
        s->half[i] = 0.5 * (double)sides[i];
}

static int64_t step_of(int64_t side)
{
    return tess_ceil_div(side, SAMPLES);
}

static tess_rays_settings rays_of(const tess_problem *p, const int64_t volume[3])
{
    return (tess_rays_settings){.geometry = p->parallel ? TESS_PARALLEL_3D : TESS_CONE_3D,
                                .depth = volume[0],
                                .height = volume[1],
                                .width = volume[2],
                                .spacing = p->spacing,
                                .views = p->count,
                                .rows = p->rows,
                                .columns = p->columns,
                                .vectors = p->vectors};
}

static bool is_sound(const tess_problem *p, const int64_t volume[3])
{
    const tess_rays_settings rays = rays_of(p, volume);
    tess_error why;
    return tess_rays_check(&rays, &why) == TESS_OK;
}

bool tess_shadow3_misses(const tess_problem *p)
{
    frame s;
    double foot[3], from[3], along[3];
    begin(p, &s);
    if (!is_sound(p, (const int64_t[3]){p->depth, p->height, p->width}))
        return false; /* the operator says what is wrong */
    if (tess_heights_matter(p))
        return true;
    for (int64_t view = 0; view < p->count; view++)
        for (int64_t r = 0; r < p->rows; r += tess_max_i64(p->rows - 1, 1))
            for (int64_t c = 0; c < p->columns; c += step_of(p->columns))
                if (!meets(&s, view, r, c, foot, from, along) ||
                    !meets(&s, view, r, p->columns - 1, foot, from, along))
                    return true;
    return false;
}

static void add_crossing(shadow3 *s, int64_t view, int part, double value, const double from[3],
                         const double along[3])
{
    double height;
    const double crossed = crosses(&s->of, from, along, &height);
    grazing *g = &s->grazing[view];
    s->crossed[part] += crossed;
    if (!(crossed > 0 && crossed < GRAZING && height < HEIGHT))
        return;
    g->sum += value;
    g->squares += value * value;
    g->crossed += crossed;
    g->count++;
}

static tess_status add_view(void *user, int64_t view, float *values, tess_error *error)
{
    (void)error;
    shadow3 *s = user;
    const tess_problem *p = s->of.problem;
    if (s->heights)
        tess_heights_add(s->heights, view, values);
    for (int64_t r = 0; r < p->rows; r += step_of(p->rows))
        for (int64_t c = 0; c < p->columns; c += step_of(p->columns)) {
            double foot[3], from[3], along[3], away[3];
            const double value = (double)values[r * p->columns + c];
            if (meets(&s->of, view, r, c, foot, from, along)) {
                const double most = fmax(fmax(fabs(foot[0]), fabs(foot[1])), fabs(foot[2]));
                const int part = (int)fmin(most * INNER, INNER - 1);
                s->inner[part] += value;
                s->inner_count[part]++;
                add_crossing(s, view, part, value, from, along);
                continue;
            }
            const bool above = passes_above(&s->of, from, along, foot);
            for (int i = 0; i < 3; i++)
                away[i] = (fabs(foot[i]) - 1) * s->of.half[i];
            const double most = fmax(above ? away[2] : fmax(away[0], away[1]), 0);
            const double across = above ? fmax(fabs(foot[0]), fabs(foot[1])) : fabs(foot[2]);
            const int place = (int)fmin(across * (PLACES - 1), PLACES - 1);
            distance *d = &s->outside[above ? ABOVE : SIDE][place][(int)fmin(most, DISTANCES - 1)];
            d->sum += value;
            d->squares += value * value;
            d->count++;
            d->far = fmax(d->far, most);
        }
    return TESS_OK;
}

/* Voxels that the volume needs on both sides, and what is seen there as a share of the largest. */
static int64_t needed(const shadow3 *s, int where, double *share)
{
    double largest = 0, far = -1;
    for (int i = 0; i < INNER; i++)
        if (s->inner_count[i])
            largest = fmax(largest, s->inner[i] / (double)s->inner_count[i]);
    for (int i = 0; i < PLACES * DISTANCES && largest > 0; i++) {
        const distance *d = &s->outside[where][i / DISTANCES][i % DISTANCES];
        const double n = (double)d->count, mean = n > 0 ? d->sum / n : 0,
                     error = n > 1 ? sqrt(fmax(d->squares / n - mean * mean, 0) / (n - 1)) : INFINITY;
        if (!(mean > CLEAR * largest && mean > CERTAIN * error))
            continue;
        far = fmax(far, d->far);
        *share = fmax(*share, mean / fmax(largest, mean));
    }
    return far < 0 ? 0 : (int64_t)ceil(far + FAINT);
}

/* Whether something sticks out beside the volume that no ray sees alone. */
static bool sticks_out(const shadow3 *s, double *share)
{
    double largest = 0, most = 0, found = 0;
    for (int i = 0; i < INNER; i++)
        if (s->inner_count[i] && s->crossed[i] > 0) {
            largest = fmax(largest, s->inner[i] / (double)s->inner_count[i]);
            most = fmax(most, s->inner[i] / s->crossed[i]);
        }
    for (int64_t k = 0; k < s->of.problem->count && largest > 0; k++) {
        const grazing *g = &s->grazing[k];
        const double n = (double)g->count, mean = n > 0 ? g->sum / n : 0,
                     more = n > 0 ? mean - HOLDS * most * g->crossed / n : 0;
        if (g->count >= LEAST && more > CLEAR * largest &&
            more > ONE_VIEW * sqrt(fmax(g->squares / n - mean * mean, 0) / (n - 1)))
            found = fmax(found, more / largest);
    }
    *share = fmax(*share, found);
    return found > 0;
}

static void conclude(tess_problem *p, const shadow3 *s)
{
    const int64_t higher = s->heights ? tess_heights_missing(s->heights, &p->outside) : 0,
                  above = tess_max_i64(needed(s, ABOVE, &p->outside), higher),
                  beside = needed(s, SIDE, &p->outside),
                  side = tess_max_i64(beside, sticks_out(s, &p->outside) ? BESIDE : 0);
    const int64_t asked[3] = {p->depth, p->height, p->width},
                  volume[3] = {p->depth + 2 * above, p->height + 2 * side, p->width + 2 * side};
    double growth = 1;
    for (int i = 0; i < 3; i++) {
        growth *= (double)volume[i] / (double)asked[i];
        p->needed[i] = volume[i];
    }
    if (!(growth <= MOST_GROWTH) || !is_sound(p, volume))
        return;
    p->margin_depth = above;
    p->margin[0] = p->margin[1] = side;
}

tess_status tess_problem_look_around(tess_problem *p, tess_error *error)
{
    tess_block view = {0};
    int64_t starved;
    shadow3 *s = tess_small_alloc(1, sizeof *s);
    tess_status status = s ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the views");
    if (status == TESS_OK)
        status = tess_block_alloc(p->memory, &view, TESS_MEM_HOST,
                                  (size_t)(p->rows * p->columns) * sizeof(float), error);
    if (status == TESS_OK && !(s->grazing = tess_small_alloc((size_t)p->count, sizeof *s->grazing)))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to look at the views");
    if (status == TESS_OK && tess_heights_matter(p))
        status = tess_heights_create(p, &s->heights, error);
    if (status == TESS_OK) {
        begin(p, &s->of);
        status = tess_problem_each_view(p, view.data, &starved, add_view, s, error);
    }
    if (status == TESS_OK)
        conclude(p, s);
    tess_block_free(&view);
    tess_small_free(s ? s->grazing : NULL);
    tess_heights_destroy(s ? s->heights : NULL);
    tess_small_free(s);
    return status;
}

/* The mean of the outer lines of one side, or of both, as a share of the largest of all lines; 0 if all are outer ones. */
static double edge_of(const float *mean, int64_t lines, int64_t step, int64_t length, int64_t along,
                      bool both)
{
    double edges[2] = {0, 0}, largest = 0;
    const int64_t edge = tess_min_i64(EDGE, lines);
    for (int64_t i = 0; i < lines; i++) {
        double sum = 0;
        for (int64_t k = 0; k < length; k++)
            sum += (double)mean[i * step + k * along];
        largest = fmax(largest, sum);
        edges[0] += i < edge ? sum / (double)edge : 0;
        edges[1] += i >= lines - edge ? sum / (double)edge : 0;
    }
    if (!(largest > 0) || lines <= 2 * EDGE)
        return 0;
    return (both ? fmin(edges[0], edges[1]) : fmax(edges[0], edges[1])) / largest;
}

void tess_shadow3_edges(tess_problem *p, const float *mean)
{
    const tess_turning turning = tess_problem_turning(p);
    /* In a half fan one side sees what the other one misses half a turn later. */
    const bool half =
        turning.full && turning.columns[0] >= 0 && turning.columns[1] <= (double)(p->columns - 1);
    p->edge = edge_of(mean, p->columns, 1, p->rows, p->columns, half);
    p->edge_rows = edge_of(mean, p->rows, p->columns, p->columns, 1, false);
}
