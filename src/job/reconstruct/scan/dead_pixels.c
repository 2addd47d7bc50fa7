/* A pixel is wild if it does not follow its neighbours (pixel_stats.h), and stuck if it has one value in all views. The object turns, so a pixel that works changes, except that in
 * simulated views without noise air is always 0, and rays through a symmetric part are always alike. Such views have many
 * stuck pixels, and then only values that the neighbours never come near are taken as dead; otherwise noise would have
 * changed each pixel that works. */
#include "job/reconstruct/scan/dead_pixels.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/look/pixel_stats.h"
#include "job/reconstruct/problem/views.h"
#include "job/reconstruct/scan/lost_views.h"
#include "job/reconstruct/scan/mistakes.h"
#include "job/reconstruct/scan/shadow3.h"
#include "job/reconstruct/scan/zingers.h"
#include "job/reconstruct/scan/zingers3.h"

enum { LEAST_VIEWS = 8, MANY_TIMES = 4 };
static const double FEW = 0.02;  /* of the pixels: so few stuck ones are dead, not simulated */
static const double FAR = 0.05;  /* of the largest mean */
static const double AIR = 0.001; /* of the largest mean */

typedef struct looking {
    const tess_problem *problem;
    tess_pixel_stats of;
    tess_turning turning;
    tess_view_stats *views;
    bool *row_stuck;     /* of each row: no pixel changes */
    double largest;      /* mean of a pixel that changes */
    double seen;         /* the same, of two pixels side by side */
    int64_t first, last; /* pixels that change */
    bool noisy;
} looking;

static tess_status add_view(void *user, int64_t view, float *values, tess_error *error)
{
    (void)error;
    looking *l = user;
    tess_pixel_stats_add(&l->of, values);
    l->views[view] = tess_view_stats_of(values, l->of.rows * l->of.columns);
    return TESS_OK;
}

static bool is_stuck(const looking *l, int64_t i)
{
    return tess_pixel_is_stuck(&l->of, i);
}

static bool is_wild(const looking *l, int64_t i)
{
    return tess_pixel_is_wild(&l->of, &l->turning, i, l->seen);
}

/* Whether a pixel may fill others. */
static bool is_good(const looking *l, int64_t i)
{
    if (isnan(l->of.mean[i]) || is_wild(l, i))
        return false;
    /* A column of a sinogram between others that see the object sees it as well. */
    const bool between = l->problem->rows == 1 && i > l->first && i < l->last;
    return !is_stuck(l, i) || (!l->noisy && !between && fabs((double)l->of.low[i]) <= AIR * l->largest);
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
        if (!l->noisy && !isnan(l->of.mean[i]) && !isnan(l->of.mean[at]) &&
            fabs((double)(l->of.low[i] - l->of.low[at])) > AIR * l->largest)
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
    const double value = (double)l->of.low[pixel->at], low = (double)fminf(l->of.low[a], l->of.low[b]),
                 high = (double)fmaxf(l->of.high[a], l->of.high[b]),
                 mean = 0.5 * ((double)l->of.mean[a] + (double)l->of.mean[b]), far = FAR * l->largest;
    if (isnan(l->of.mean[pixel->at]) || is_wild(l, pixel->at))
        return true;
    const bool inside = l->problem->rows == 1 && a != b;
    if (value > high + far || value < (inside ? low : fmin(low, 0)) - far)
        return true;
    /* In a column the object may end between two rows, so a low value is no proof; but with noise a row of one value
     * between rows that change is. */
    return l->noisy && (in_row || (a != b && l->row_stuck[pixel->at / l->of.columns])) &&
           (value > high || value < low || fabs(value - mean) > far);
}

static void survey_rows(looking *l)
{
    for (int64_t r = 0; r < l->of.rows; r++) {
        l->row_stuck[r] = true;
        for (int64_t i = r * l->of.columns; l->row_stuck[r] && i < (r + 1) * l->of.columns; i++)
            l->row_stuck[r] = is_stuck(l, i);
    }
}

/* Counts pixels by kind; `wild` and `unknown` ones are dead, stuck ones may be. Whole rows that are stuck say nothing about
 * noise: they are dead, or the object ends above them. */
static int64_t survey(looking *l, int64_t *unknown)
{
    const int64_t count = l->of.rows * l->of.columns;
    int64_t stuck = 0, wild = 0, negative = 0, scattered = 0, changing = 0;
    survey_rows(l);
    l->seen = tess_pixel_stats_largest(&l->of);
    l->turning = tess_problem_turning(l->problem);
    *unknown = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i % l->of.columns == 0 && tess_stop_poll(l->problem->stop))
            break;
        *unknown += isnan(l->of.mean[i]);
        if (!l->row_stuck[i / l->of.columns]) {
            changing++;
            scattered += is_stuck(l, i) && !isnan(l->of.mean[i]);
        }
        if (is_stuck(l, i) || is_wild(l, i)) {
            ++*(is_stuck(l, i) ? &stuck : &wild);
            continue;
        }
        negative += l->of.low[i] < 0; /* as noise is in air */
        l->largest = fmax(l->largest, (double)l->of.mean[i]);
        l->first = l->last ? l->first : i;
        l->last = i;
    }
    l->noisy = (double)scattered <= FEW * (double)changing || negative > MANY_TIMES * scattered;
    return stuck + wild;
}

/* Lists the dead pixels. */
static tess_status list(looking *l, tess_problem *p, tess_error *error)
{
    const int64_t count = l->of.rows * l->of.columns;
    int64_t unknown;
    const int64_t suspect = survey(l, &unknown);
    TESS_TRY(tess_stop_check(p->stop, error));
    /* too few views, or nothing turns: they show no pixel as stuck; or nobody must look */
    const bool too_few = p->keep_dead || p->count < LEAST_VIEWS || suspect == count;
    if (suspect == 0 || (too_few && unknown == 0))
        return TESS_OK;
    if (!(p->dead = tess_small_alloc((size_t)suspect, sizeof *p->dead)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld dead pixels", (long long)suspect);
    for (int64_t i = 0; i < count; i++) {
        const bool known = !isnan(l->of.mean[i]);
        tess_dead_pixel pixel;
        bool in_row;
        if (i % l->of.columns == 0)
            TESS_TRY(tess_stop_check(p->stop, error));
        if (is_good(l, i) || (known && too_few))
            continue;
        const bool found = find_neighbours(l, i, &pixel, &in_row);
        if (!found && !known)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: \"flat\" is not above \"dark\" anywhere near column %lld", p->measurement,
                             (long long)(i % p->columns));
        if (found && is_dead(l, &pixel, in_row))
            p->dead[p->dead_count++] = pixel;
    }
    return TESS_OK;
}

/* Reads all views; a second time without those that are lost, which would spoil the statistics of the pixels. */
static tess_status look(looking *l, tess_problem *p, float *memory, float *view, tess_error *error)
{
    int64_t starved;
    tess_pixel_stats_begin(&l->of, p->rows, p->columns, memory);
    TESS_TRY(tess_problem_each_view(p, view, &starved, add_view, l, error));
    TESS_TRY(tess_problem_leave_out_lost(p, l->views, error));
    if (p->lost_count == 0)
        return TESS_OK;
    tess_pixel_stats_begin(&l->of, p->rows, p->columns, memory);
    return tess_problem_each_view(p, view, &starved, add_view, l, error);
}

tess_status tess_problem_find_faults(tess_problem *p, tess_error *error)
{
    tess_block block = {0};
    const int64_t count = p->rows * p->columns;
    /* they would make pixels look dead */
    TESS_TRY(p->physics == TESS_PHYSICS_CONE ? tess_problem_find_zingers3(p, error)
                                             : tess_problem_find_zingers(p, error));
    looking l = {.problem = p,
                 .views = tess_small_alloc((size_t)p->count, sizeof *l.views),
                 .row_stuck = tess_small_alloc((size_t)p->rows, sizeof *l.row_stuck)};
    tess_status status =
        l.views && l.row_stuck
            ? tess_block_alloc(p->memory, &block, TESS_MEM_HOST,
                               (TESS_PIXEL_FLOATS + 1) * (size_t)count * sizeof(float), error)
            : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the views");
    float *const view = block.data;
    if (status == TESS_OK)
        status = look(&l, p, view + count, view, error);
    if (status == TESS_OK)
        status = list(&l, p, error);
    if (status == TESS_OK) {
        tess_dead_pixels_fill(p, l.of.mean);
        if (p->physics == TESS_PHYSICS_CONE)
            tess_shadow3_edges(p, l.of.mean);
        tess_scan_mistakes(p, l.of.mean);
    }
    tess_block_free(&block);
    tess_small_free(l.views);
    tess_small_free(l.row_stuck);
    return status;
}

void tess_dead_pixels_fill(const tess_problem *p, float *values)
{
    for (int64_t i = 0; i < p->dead_count; i++) {
        const tess_dead_pixel *d = &p->dead[i];
        values[d->at] = (1 - d->share) * values[d->from[0]] + d->share * values[d->from[1]];
    }
}
