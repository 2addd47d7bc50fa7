/* A value is suspect if it is beyond its up to eight neighbours in column and view, all but one of them, by more than
 * these differ and by many deviations of the noise. A wire of one pixel that moves fast, or a plate seen from its edge,
 * looks like that as well. But such an object attenuates alike in all views, so that the sum of a view stays where it
 * was, and a zinger moves the sum by what it is off. So a suspect counts if the view's sum fits the views before and
 * after it better without than with it. Noise and light that drifts move the whole sum, too. So what is left is judged by the sum over the
 * columns that such an object can reach from one view to the next. */
#include "job/reconstruct/scan/zingers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/problem/views.h"

enum { LEAST_VIEWS = 8, LEAST_COLUMNS = 8, LEAST_NEAR = 5, WINDOW = 6, WIDER = 6 };
static const double BEYOND = 0.5;    /* spans of the neighbours */
static const double DEVIATIONS = 15; /* of the noise */
static const double FAR = 0.05;      /* of the largest line integral */
static const double BETTER = 0.3;    /* of the difference that the sum had */
static const double RARE = 5;        /* that difference, in medians of those of all views */
static const double CALM = 0.1;      /* of the views: so many have none; an object is in all */
static const double MOST = 0.05;     /* of a column, or of a view: more is another fault */
static const double DRIFT = 0.1;     /* of the light, from a view to the next */
static const double NARROW = 0.25;   /* of the columns, at most, that decide instead of all */
static const double TO_SIGMA =
    0.60526; /* the median of a second difference's absolute value becomes a deviation */

typedef struct search {
    tess_problem *problem;
    int64_t views, columns;
    float *all;         /* (views, columns) */
    float *off;         /* of each value: by how much a suspect is off; 0: it is none */
    float *line;        /* a row, or a number for each view, for sorting */
    double *sum, *rest; /* of each view; without the suspects */
    double largest;
    int64_t suspects;
} search;

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double median(float *values, int64_t count)
{
    if (count == 0)
        return 0;
    qsort(values, (size_t)count, sizeof *values, by_value);
    return 0.5 * ((double)values[(count - 1) / 2] + (double)values[count / 2]);
}

static float at(const search *s, int64_t view, int64_t column)
{
    return view < 0 || view >= s->views || column < 0 || column >= s->columns
               ? NAN
               : s->all[view * s->columns + column];
}

static tess_status keep(void *user, int64_t view, float *values, tess_error *error)
{
    (void)error;
    search *s = user;
    memcpy(s->all + view * s->columns, values, (size_t)s->columns * sizeof *values);
    return TESS_OK;
}

/* The largest that two columns side by side see, in half of the views: no zinger is as wide. */
static double largest_of(search *s)
{
    float *most = s->off; /* not used yet */
    for (int64_t k = 0; k < s->views; k++) {
        most[k] = 0;
        for (int64_t i = 1; i < s->columns; i++)
            most[k] = fmaxf(most[k], fminf(at(s, k, i - 1), at(s, k, i)));
    }
    return median(most, s->views);
}

/* The noise of a view: second differences along the columns, or along the views, are mostly noise. */
static double noise_of(search *s, int64_t view)
{
    double least = INFINITY;
    for (int along = 0; along < 2; along++) {
        int64_t count = 0;
        for (int64_t i = 0; i < s->columns; i++) {
            const float before = along ? at(s, view - 1, i) : at(s, view, i - 1),
                        after = along ? at(s, view + 1, i) : at(s, view, i + 1),
                        second = before - 2 * at(s, view, i) + after;
            if (!isnan(second))
                s->line[count++] = fabsf(second);
        }
        if (count > 0)
            least = fmin(least, TO_SIGMA * median(s->line, count));
    }
    return least;
}

/* Sorts the values around one; returns their number. */
static int neighbours(const search *s, int64_t view, int64_t column, float near[8])
{
    int count = 0;
    for (int64_t k = view - 1; k <= view + 1; k++)
        for (int64_t i = column - 1; i <= column + 1; i++)
            if ((k != view || i != column) && !isnan(at(s, k, i)))
                near[count++] = at(s, k, i);
    qsort(near, (size_t)count, sizeof *near, by_value);
    return count;
}

static void suspect_view(search *s, int64_t view)
{
    const double noise = noise_of(s, view);
    for (int64_t i = 0; i < s->columns; i++) {
        float near[8];
        const int count = neighbours(s, view, i, near);
        const float value = at(s, view, i);
        float *off = &s->off[view * s->columns + i];
        *off = 0;
        if (isnan(value) || count < LEAST_NEAR)
            continue;
        const double low = (double)near[1], high = (double)near[count - 2],
                     least = fmax(fmax(BEYOND * (high - low), DEVIATIONS * noise), FAR * s->largest);
        /* a column that is off in views one after the other is another fault */
        const float before = at(s, view - 1, i), after = at(s, view + 1, i);
        const double above = (double)(value - fmaxf(before, after)),
                     below = (double)(fminf(before, after) - value);
        if (fmin((double)value - high, above) > least || fmin(low - (double)value, below) > least)
            *off = value - 0.5f * (near[(count - 1) / 2] + near[count / 2]);
    }
}

/* Takes back the suspects of columns and views that have many. */
static void spare_many(search *s)
{
    const int64_t step[2] = {1, s->columns}, lines[2] = {s->views, s->columns},
                  length[2] = {s->columns, s->views};
    for (int across = 0; across < 2; across++)
        for (int64_t line = 0; line < lines[across]; line++) {
            float *first = s->off + line * step[1 - across];
            int64_t count = 0;
            for (int64_t i = 0; i < length[across]; i++)
                count += first[i * step[across]] != 0;
            for (int64_t i = 0; (double)count > fmax(2, MOST * (double)length[across]) && i < length[across];
                 i++)
                first[i * step[across]] = 0;
        }
}

/* What the sum of a view should be: the median of the nearest views. */
static double expected(const search *s, const double *sums, int64_t view)
{
    float near[2 * WINDOW + 1];
    int64_t count = 0;
    const int64_t first = tess_max_i64(0, tess_min_i64(view - WINDOW, s->views - 2 * WINDOW - 1));
    for (int64_t k = first; k < s->views && k <= first + 2 * WINDOW; k++)
        if (k != view)
            near[count++] = (float)sums[k];
    return median(near, count);
}

/* The median of how far sums are from what is expected. */
static double scatter_of(search *s, const double *sums)
{
    for (int64_t k = 0; k < s->views; k++)
        s->line[k] = (float)fabs(sums[k] - expected(s, sums, k));
    return median(s->line, s->views);
}

/* Lists a suspect, and corrects it. */
static void accept_one(search *s, int64_t view, int64_t column)
{
    tess_problem *p = s->problem;
    const int64_t place = view * s->columns + column;
    s->all[place] -= s->off[place];
    s->off[place] = 0;
    p->zingers[p->zinger_count++] = (tess_zinger){view, column, s->all[place]};
}

static void accept(search *s, int64_t view)
{
    s->sum[view] = s->rest[view];
    for (int64_t i = 0; i < s->columns; i++)
        if (s->off[view * s->columns + i] != 0)
            accept_one(s, view, i);
}

/* Accepts what the sums show, and corrects these; returns whether there was something. Where most views have zingers, only
 * the sums without the suspects agree. */
static bool decide(search *s)
{
    int64_t calm = 0;
    bool any = false;
    for (int64_t k = 0; k < s->views; k++) {
        double off = 0;
        for (int64_t i = 0; i < s->columns; i++)
            off += (double)s->off[k * s->columns + i];
        s->rest[k] = s->sum[k] - off;
        calm += off == 0;
    }
    const double all = scatter_of(s, s->sum), rest = scatter_of(s, s->rest);
    const bool most = rest < BETTER * all && (double)calm > CALM * (double)s->views;
    for (int64_t k = 0; k < s->views; k++) {
        const double right = expected(s, most ? s->rest : s->sum, k), with = fabs(s->sum[k] - right),
                     without = fabs(s->rest[k] - right);
        if (!(with > RARE * (most ? rest : all) && without < BETTER * with))
            continue;
        accept(s, k);
        any = true;
    }
    return any;
}

static double sum_around(const search *s, int64_t view, int64_t column, int64_t reach)
{
    double sum = 0;
    for (int64_t i = tess_max_i64(0, column - reach); i <= tess_min_i64(s->columns - 1, column + reach); i++)
        sum += isnan(at(s, view, i)) ? 0 : (double)at(s, view, i);
    return sum;
}

/* Columns that a part of the object passes from a view to the one after it, and as many that a plate spreads over that one of them sees from
 * its edge. */
static double passes(const search *s, int64_t view)
{
    const double *angles = s->problem->angles;
    return (double)s->columns * fabs(remainder(angles[view + 1] - angles[view], 180)) * 0.017453292519943295;
}

/* Whether the sum of a view around a column, less what the suspect is off, is that of another view, whose light may differ. */
static bool agrees(const search *s, int64_t view, int64_t other, int64_t column, int64_t reach)
{
    const double off = (double)s->off[view * s->columns + column],
                 is = sum_around(s, view, column, reach) - off, was = sum_around(s, other, column, reach),
                 rest = s->sum[view] - off - is, rest_was = s->sum[other] - was,
                 drift = rest_was > 0 ? fmax(1 - DRIFT, fmin(rest / rest_was, 1 + DRIFT)) : 1;
    return fabs(is - drift * was) < BETTER * fabs(off);
}

/* A wire that is in this view is also among these columns of the views beside it, at least of one of both; so is what a plate holds. Others
 * may come and go at the ends, but not at those of wider sums, too. */
static void decide_nearby(search *s, int64_t view, int64_t column)
{
    const double least = 2 + ceil(fmax(passes(s, view - 1), passes(s, view)));
    if (2 * least + 1 > NARROW * (double)s->columns)
        return;
    for (int64_t reach = (int64_t)least; reach <= (int64_t)least + WIDER; reach += 2)
        if (!agrees(s, view, view - 1, column, reach) || !agrees(s, view, view + 1, column, reach))
            return;
    s->sum[view] -= (double)s->off[view * s->columns + column];
    accept_one(s, view, column);
}

static int by_place(const void *a, const void *b)
{
    const tess_zinger *x = a, *y = b;
    return x->view != y->view ? (x->view > y->view) - (x->view < y->view) : (x->at > y->at) - (x->at < y->at);
}

static tess_status look(search *s, tess_error *error)
{
    tess_problem *p = s->problem;
    int64_t starved;
    TESS_TRY(tess_problem_each_view(p, s->line, &starved, keep, s, error));
    s->largest = largest_of(s);
    for (int64_t k = 0; k < s->views; k++) {
        TESS_TRY(tess_stop_check(p->stop, error));
        s->sum[k] = 0;
        for (int64_t i = 0; i < s->columns; i++)
            s->sum[k] += isnan(at(s, k, i)) ? 0 : (double)at(s, k, i);
        suspect_view(s, k);
    }
    spare_many(s);
    for (int64_t i = 0; i < s->views * s->columns; i++)
        s->suspects += s->off[i] != 0;
    if (s->suspects == 0)
        return TESS_OK;
    if (!(p->zingers = tess_small_alloc((size_t)s->suspects, sizeof *p->zingers)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld values", (long long)s->suspects);
    while (decide(s))
        TESS_TRY(tess_stop_check(p->stop, error)); /* corrected sums tell more about the views beside them */
    for (int64_t k = 1; k < s->views - 1; k++)
        for (int64_t i = 0; i < s->columns; i++)
            if (s->off[k * s->columns + i] != 0)
                decide_nearby(s, k, i);
    qsort(p->zingers, (size_t)p->zinger_count, sizeof *p->zingers, by_place);
    return TESS_OK;
}

tess_status tess_problem_find_zingers(tess_problem *p, tess_error *error)
{
    const size_t count = (size_t)(p->count * p->columns), line = (size_t)tess_max_i64(p->count, p->columns);
    tess_block block = {0};
    search s = {.problem = p, .views = p->count, .columns = p->columns};
    if (p->rows != 1 || p->physics != TESS_PHYSICS_RADON || p->count < LEAST_VIEWS ||
        p->columns < LEAST_COLUMNS)
        return TESS_OK;
    TESS_TRY(tess_block_alloc(p->memory, &block, TESS_MEM_HOST,
                              2 * (size_t)p->count * sizeof *s.sum + (2 * count + line) * sizeof(float),
                              error));
    s.sum = block.data;
    s.rest = s.sum + p->count;
    s.all = (float *)(s.rest + p->count);
    s.off = s.all + count;
    s.line = s.off + count;
    const tess_status status = look(&s, error);
    tess_block_free(&block);
    return status;
}

void tess_zingers_fill(const tess_problem *p, int64_t view, float *values)
{
    int64_t first = 0, end = p->zinger_count;
    while (first < end) {
        const int64_t middle = (first + end) / 2;
        *(p->zingers[middle].view < view ? &first : &end) = middle + (p->zingers[middle].view < view);
    }
    for (; first < p->zinger_count && p->zingers[first].view == view; first++)
        values[p->zingers[first].at] = p->zingers[first].value;
}
