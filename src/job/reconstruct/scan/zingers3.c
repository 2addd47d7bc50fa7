/* A value is suspect if it is beyond its up to 26 neighbours in row, column and view, all but one of them, by more than
 * these differ and by many deviations of the noise. A bead of one pixel that moves fast, or a wire that is seen from its
 * end, looks like that as well. But what they attenuate is seen near the same place in the views before and after, and what
 * a zinger adds is not: a suspect counts if the sum over the pixels around it, as wide as anything moves from view to
 * view, fits those views better without than with it. */
#include "job/reconstruct/scan/zingers3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/problem/views.h"

enum { LEAST_VIEWS = 8, LEAST_COLUMNS = 8, LEAST_NEAR = 5, MOST_NEAR = 26, SAMPLES = 4096, LEAST_REACH = 3 };
static const double BEYOND = 0.75;    /* spans of the neighbours */
static const double DEVIATIONS = 15;  /* of the noise */
static const double FAR = 0.05;       /* of the largest line integral */
static const double BETTER = 0.5;     /* of the difference that the sum had */
static const double CLEAR = 4;        /* deviations of such a sum */
static const double MOVES = 1.2;      /* times half of the columns: the farthest from the axis, as seen */
static const double MOST_TURN = 0.12; /* radians from view to view: of more, a bead moves by rows, too */
static const double MOST = 0.05;      /* of a view, or of the views of a pixel: more is another fault */
static const double TO_SIGMA =
    0.60526; /* the median of a second difference's absolute value becomes a deviation */

typedef struct search {
    tess_problem *problem;
    int64_t views, rows, columns, pixels;
    float *kept[3];    /* views, by their numbers modulo 3 */
    double largest[3]; /* of two pixels side by side in each: few zingers are as wide */
    float *off;        /* of each pixel of a view: by how much a suspect is off; 0: it is none */
    float *hits;       /* of each pixel: views in which it was hit */
    float *sample;
    int64_t room; /* in the list */
} search;

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static float median(float *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return 0.5f * (values[(count - 1) / 2] + values[count / 2]);
}

static float at(const search *s, int64_t view, int64_t row, int64_t column)
{
    return view < 0 || view >= s->views || row < 0 || row >= s->rows || column < 0 || column >= s->columns
               ? NAN
               : s->kept[view % 3][row * s->columns + column];
}

static double largest_of(const search *s, const float *view)
{
    float most = 0;
    for (int64_t i = 1; i < s->pixels; i++)
        if (i % s->columns)
            most = fmaxf(most, fminf(view[i - 1], view[i]));
    return (double)most;
}

/* The noise of a view: second differences along the columns, or along the views, are mostly noise. */
static double noise_of(const search *s, int64_t view)
{
    const int64_t step = tess_max_i64(1, tess_ceil_div(s->pixels, SAMPLES));
    double least = INFINITY;
    for (int along = 0; along < 2; along++) {
        int64_t count = 0;
        for (int64_t i = 0; i < s->pixels; i += step) {
            const int64_t r = i / s->columns, c = i % s->columns;
            const float before = along ? at(s, view - 1, r, c) : at(s, view, r, c - 1),
                        after = along ? at(s, view + 1, r, c) : at(s, view, r, c + 1),
                        second = before - 2 * at(s, view, r, c) + after;
            if (!isnan(second))
                s->sample[count++] = fabsf(second);
        }
        if (count > 0)
            least = fmin(least, TO_SIGMA * (double)median(s->sample, count));
    }
    return least;
}

/* Sorts the values around one; returns their number. */
static int neighbours(const search *s, int64_t view, int64_t pixel, float near[MOST_NEAR])
{
    const int64_t r = pixel / s->columns, c = pixel % s->columns;
    int count = 0;
    for (int64_t k = view - 1; k <= view + 1; k++)
        for (int64_t y = r - 1; y <= r + 1; y++)
            for (int64_t x = c - 1; x <= c + 1; x++)
                if ((k != view || y != r || x != c) && !isnan(at(s, k, y, x)))
                    near[count++] = at(s, k, y, x);
    qsort(near, (size_t)count, sizeof *near, by_value);
    return count;
}

/* By how much a value is off that is `far` from what its pixel has before and after; 0: it is no suspect. */
static float suspicion(const search *s, int64_t view, int64_t pixel, double above, double below, double far)
{
    float near[MOST_NEAR];
    const int count = neighbours(s, view, pixel, near);
    if (count < LEAST_NEAR)
        return 0;
    const double value = (double)s->kept[view % 3][pixel], low = (double)near[1],
                 high = (double)near[count - 2], least = fmax(BEYOND * (high - low), far);
    const bool suspect = fmin(value - high, above) > least || fmin(low - value, below) > least;
    return suspect ? (float)value - median(near, count) : 0;
}

static int64_t suspect_view(search *s, int64_t view, double noise)
{
    const int64_t other = view > 0 ? view - 1 : view + 1, last = view + 1 < s->views ? view + 1 : view - 1;
    const double *l = s->largest, middle = fmax(fmin(l[0], l[1]), fmin(fmax(l[0], l[1]), l[2])),
                 far = fmax(DEVIATIONS * noise, FAR * middle);
    const float *own = s->kept[view % 3], *before = s->kept[other % 3], *after = s->kept[last % 3];
    int64_t found = 0;
    for (int64_t i = 0; i < s->pixels; i++) {
        /* a pixel that is off in views one after the other is another fault */
        const double above = (double)(own[i] - fmaxf(before[i], after[i])),
                     below = (double)(fminf(before[i], after[i]) - own[i]);
        s->off[i] = fmax(above, below) > far ? suspicion(s, view, i, above, below, far) : 0;
        found += s->off[i] != 0;
    }
    return found;
}

/* How far a view is turned from another, in radians. */
static double turn(const search *s, int64_t a, int64_t b)
{
    const double *x = s->problem->vectors + 12 * tess_max_i64(a, 0),
                 *y = s->problem->vectors + 12 * tess_min_i64(b, s->views - 1);
    const double product = x[0] * y[0] + x[1] * y[1] + x[2] * y[2],
                 lengths = sqrt((x[0] * x[0] + x[1] * x[1] + x[2] * x[2]) *
                                (y[0] * y[0] + y[1] * y[1] + y[2] * y[2]));
    return lengths > 0 ? acos(fmax(-1, fmin(product / lengths, 1))) : 0;
}

/* Whether the sum around a suspect fits the views before and after better without it. One of these may have a zinger of
 * its own there. */
static bool is_hit(const search *s, int64_t view, int64_t pixel, int64_t reach, double noise)
{
    const int64_t r = pixel / s->columns, c = pixel % s->columns;
    double sums[3] = {0, 0, 0}, off = 0;
    int64_t count = 0;
    for (int64_t y = tess_max_i64(r - 1, 0); y <= tess_min_i64(r + 1, s->rows - 1); y++)
        for (int64_t x = tess_max_i64(c - reach, 0); x <= tess_min_i64(c + reach, s->columns - 1); x++) {
            if (isnan(at(s, view, y, x)))
                continue;
            for (int k = 0; k < 3; k++) {
                const float value = at(s, view + k - 1, y, x);
                sums[k] += isnan(value) ? 0 : (double)value;
            }
            off += (double)s->off[y * s->columns + x];
            count++;
        }
    if (view == 0)
        sums[0] = sums[2];
    if (view + 1 == s->views)
        sums[2] = sums[0];
    if (fabs(off) < CLEAR * noise * sqrt(2 * (double)count))
        return false;
    const double expected[3] = {0.5 * (sums[0] + sums[2]), sums[0], sums[2]};
    for (int k = 0; k < 3; k++)
        if (fabs(sums[1] - off - expected[k]) < BETTER * fabs(sums[1] - expected[k]))
            return true;
    return false;
}

static tess_status list(search *s, int64_t view, int64_t pixel, tess_error *error)
{
    tess_problem *p = s->problem;
    if (p->zinger_count == s->room) {
        const int64_t room = tess_max_i64(256, 2 * s->room);
        tess_zinger *more = tess_small_realloc(p->zingers, (size_t)room, sizeof *more);
        if (!more)
            return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld values", (long long)room);
        p->zingers = more;
        s->room = room;
    }
    p->zingers[p->zinger_count++] = (tess_zinger){view, pixel, s->kept[view % 3][pixel] - s->off[pixel]};
    s->hits[pixel]++;
    return TESS_OK;
}

static tess_status judge(search *s, int64_t view, tess_error *error)
{
    const double turns = fmax(turn(s, view - 1, view), turn(s, view, view + 1));
    if (turns > MOST_TURN)
        return TESS_OK;
    const double noise = noise_of(s, view);
    const int64_t found = suspect_view(s, view, noise);
    if (found == 0 || (double)found > fmax(2, MOST * (double)s->pixels))
        return TESS_OK;
    const int64_t reach =
        tess_min_i64(s->columns, LEAST_REACH + (int64_t)ceil(0.5 * MOVES * turns * (double)s->columns));
    for (int64_t i = 0; i < s->pixels; i++)
        if (s->off[i] != 0 && is_hit(s, view, i, reach, noise))
            TESS_TRY(list(s, view, i, error));
    return TESS_OK;
}

static tess_status add_view(void *user, int64_t view, float *values, tess_error *error)
{
    search *s = user;
    memcpy(s->kept[view % 3], values, (size_t)s->pixels * sizeof *values);
    s->largest[view % 3] = largest_of(s, values);
    return view ? judge(s, view - 1, error) : TESS_OK;
}

/* Takes back those of pixels that have many. */
static void spare_many(search *s)
{
    tess_problem *p = s->problem;
    int64_t kept = 0;
    for (int64_t i = 0; i < p->zinger_count; i++)
        if ((double)s->hits[p->zingers[i].at] <= fmax(2, MOST * (double)s->views))
            p->zingers[kept++] = p->zingers[i];
    p->zinger_count = kept;
}

tess_status tess_problem_find_zingers3(tess_problem *p, tess_error *error)
{
    tess_block block = {0};
    search s = {.problem = p,
                .views = p->count,
                .rows = p->rows,
                .columns = p->columns,
                .pixels = p->rows * p->columns};
    int64_t starved;
    if (p->count < LEAST_VIEWS || p->columns < LEAST_COLUMNS)
        return TESS_OK;
    TESS_TRY(tess_block_alloc(p->memory, &block, TESS_MEM_HOST,
                              (6 * (size_t)s.pixels + SAMPLES) * sizeof(float), error));
    float *const memory = block.data;
    for (int k = 0; k < 3; k++)
        s.kept[k] = memory + k * s.pixels;
    s.off = memory + 3 * s.pixels;
    s.hits = memory + 4 * s.pixels;
    s.sample = memory + 6 * s.pixels;
    tess_status status = tess_problem_each_view(p, memory + 5 * s.pixels, &starved, add_view, &s, error);
    if (status == TESS_OK)
        status = judge(&s, s.views - 1, error);
    if (status == TESS_OK)
        spare_many(&s);
    tess_block_free(&block);
    return status;
}
