/* A pixel is stuck if it has one value in all views. The object turns, so a pixel that works changes, except that in
 * simulated views without noise air is always 0, and rays through a symmetric part are always alike. Such views have many
 * stuck pixels, and then only values that the neighbours never come near are taken as dead; otherwise noise would have
 * changed each pixel that works. */
#include "job/reconstruct/dead_pixels.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/shadow3.h"
#include "job/reconstruct/views.h"

enum { LEAST_VIEWS = 8, MANY_TIMES = 4 };
static const double FEW = 0.02;  /* of the pixels: so few stuck ones are dead, not simulated */
static const double FAR = 0.05;  /* of the largest mean */
static const double AIR = 0.001; /* of the largest mean */

typedef struct looking {
    const tess_problem *problem;
    float *low, *high, *mean; /* of each pixel over all views; NaN: it has no line integrals */
    double largest;           /* mean of a pixel that changes */
    int64_t first, last;      /* pixels that change */
    bool noisy;
} looking;

static tess_status add_view(void *user, int64_t view, float *values, tess_error *error)
{
    (void)error;
    const looking *l = user;
    for (int64_t i = 0; i < l->problem->rows * l->problem->columns; i++) {
        const float value = values[i];
        l->low[i] = view && !(value < l->low[i]) && !isnan(value) ? l->low[i] : value;
        l->high[i] = view && !(value > l->high[i]) && !isnan(value) ? l->high[i] : value;
        l->mean[i] = view ? l->mean[i] + (value - l->mean[i]) / (float)(view + 1) : value;
    }
    return TESS_OK;
}

static bool is_stuck(const looking *l, int64_t i)
{
    return !(l->high[i] > l->low[i]);
}

/* Whether a pixel may fill others. */
static bool is_good(const looking *l, int64_t i)
{
    if (isnan(l->mean[i]))
        return false;
    /* A column of a sinogram between others that see the object sees it as well. */
    const bool between = l->problem->rows == 1 && i > l->first && i < l->last;
    return !is_stuck(l, i) || (!l->noisy && !between && fabs((double)l->low[i]) <= AIR * l->largest);
}

enum { NONE = -1, BLOCKED = -2 };

/* The nearest good pixel in steps of `step`, at most `most` of them, or NONE. Without noise, other stuck pixels with
 * other values on the way mean that these see a symmetric object: BLOCKED. */
static int64_t nearest(const looking *l, int64_t at, int64_t step, int64_t most)
{
    for (int64_t k = 1; k <= most; k++) {
        const int64_t i = at + k * step;
        if (is_good(l, i))
            return i;
        if (!l->noisy && !isnan(l->mean[i]) && !isnan(l->mean[at]) &&
            fabs((double)(l->low[i] - l->low[at])) > AIR * l->largest)
            return BLOCKED;
    }
    return NONE;
}

/* Finds the pixels that this one would be filled from: in its row, otherwise in its column. At the edge of the detector
 * both are the same one. */
static bool find_neighbours(const looking *l, int64_t at, tess_dead_pixel *out, bool *in_row)
{
    const int64_t columns = l->problem->columns, c = at % columns, r = at / columns;
    const int64_t found[4] = {nearest(l, at, -1, c), nearest(l, at, 1, columns - 1 - c),
                              nearest(l, at, -columns, r), nearest(l, at, columns, l->problem->rows - 1 - r)};
    for (int i = 0; i < 4; i++)
        if (found[i] == BLOCKED)
            return false;
    const bool both[2] = {found[0] >= 0 && found[1] >= 0, found[2] >= 0 && found[3] >= 0},
               any[2] = {found[0] >= 0 || found[1] >= 0, found[2] >= 0 || found[3] >= 0};
    *in_row = both[0] || (!both[1] && any[0]);
    const int64_t *pair = *in_row ? found : found + 2;
    if (!any[0] && !any[1])
        return false;
    const int64_t first = pair[0] >= 0 ? pair[0] : pair[1], second = pair[1] >= 0 ? pair[1] : pair[0];
    out->at = at;
    out->from[0] = first;
    out->from[1] = second;
    out->share = second > first ? (float)(at - first) / (float)(second - first) : 0;
    return true;
}

static bool is_dead(const looking *l, const tess_dead_pixel *pixel, bool in_row)
{
    const int64_t a = pixel->from[0], b = pixel->from[1];
    const double value = (double)l->low[pixel->at], low = (double)fminf(l->low[a], l->low[b]),
                 high = (double)fmaxf(l->high[a], l->high[b]),
                 mean = 0.5 * ((double)l->mean[a] + (double)l->mean[b]), far = FAR * l->largest;
    if (isnan(l->mean[pixel->at]))
        return true;
    const bool inside = l->problem->rows == 1 && a != b;
    if (value > high + far || value < (inside ? low : fmin(low, 0)) - far)
        return true;
    /* In a column the object may end between two rows, so a low value is no proof. */
    return l->noisy && in_row && (value > high || value < low || fabs(value - mean) > far);
}

/* Lists the dead pixels. */
static tess_status list(looking *l, tess_problem *p, tess_error *error)
{
    const int64_t count = l->problem->rows * l->problem->columns;
    int64_t stuck = 0, unknown = 0, negative = 0;
    for (int64_t i = 0; i < count; i++) {
        stuck += is_stuck(l, i);
        unknown += isnan(l->mean[i]);
        if (is_stuck(l, i))
            continue;
        negative += l->low[i] < 0; /* as noise is in air */
        l->largest = fmax(l->largest, (double)l->mean[i]);
        l->first = l->last ? l->first : i;
        l->last = i;
    }
    l->noisy = (double)(stuck - unknown) <= FEW * (double)count || negative > MANY_TIMES * stuck;
    /* too few views, or nothing turns: they show no pixel as stuck */
    const bool too_few = l->problem->count < LEAST_VIEWS || stuck == count;
    if (stuck == 0 || (too_few && unknown == 0))
        return TESS_OK;
    if (!(p->dead = tess_small_alloc((size_t)stuck, sizeof *p->dead)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld dead pixels", (long long)stuck);
    for (int64_t i = 0; i < count; i++) {
        const bool known = !isnan(l->mean[i]);
        tess_dead_pixel pixel;
        bool in_row;
        if (!is_stuck(l, i) || is_good(l, i) || (known && too_few))
            continue;
        const bool found = find_neighbours(l, i, &pixel, &in_row);
        if (!found && !known)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: \"flat\" is not above \"dark\" anywhere near column %lld",
                             l->problem->measurement, (long long)(i % l->problem->columns));
        if (found && is_dead(l, &pixel, in_row))
            p->dead[p->dead_count++] = pixel;
    }
    return TESS_OK;
}

size_t tess_problem_dead_bytes(const tess_problem *p)
{
    return 3 * (size_t)(p->rows * p->columns) * sizeof(float);
}

tess_status tess_problem_find_dead(tess_problem *p, float *values, tess_error *error)
{
    tess_block block = {0};
    int64_t starved;
    if (p->looked_for_dead)
        return TESS_OK;
    TESS_TRY(tess_block_alloc(p->memory, &block, TESS_MEM_HOST, tess_problem_dead_bytes(p), error));
    const int64_t count = p->rows * p->columns;
    float *const memory = block.data;
    looking l = {.problem = p, .low = memory, .high = memory + count, .mean = memory + 2 * count};
    tess_status status = tess_problem_each_view(p, values, &starved, add_view, &l, error);
    if (status == TESS_OK)
        status = list(&l, p, error);
    if (status == TESS_OK && p->physics == TESS_PHYSICS_CONE) {
        tess_dead_pixels_fill(p, l.mean);
        tess_shadow3_edges(p, l.mean);
    }
    tess_block_free(&block);
    p->looked_for_dead = true;
    return status;
}

tess_status tess_problem_find_dead_first(tess_problem *p, tess_error *error)
{
    tess_block view = {0};
    TESS_TRY(tess_block_alloc(p->memory, &view, TESS_MEM_HOST, (size_t)(p->rows * p->columns) * sizeof(float),
                              error));
    const tess_status status = tess_problem_find_dead(p, view.data, error);
    tess_block_free(&view);
    return status;
}

void tess_dead_pixels_fill(const tess_problem *p, float *values)
{
    for (int64_t i = 0; i < p->dead_count; i++) {
        const tess_dead_pixel *d = &p->dead[i];
        values[d->at] = (1 - d->share) * values[d->from[0]] + d->share * values[d->from[1]];
    }
}
