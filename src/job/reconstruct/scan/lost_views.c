/* The sum of a view changes little from view to view: it is the mass of the object where all of that is seen, and where it
 * is not, views close to each other see almost the same part. */
#include "job/reconstruct/scan/lost_views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { LEAST_VIEWS = 12, WINDOW = 12, NUMBERS = 12 }; /* WINDOW: views on each side */
static const double CALM = 0.5;                       /* of the median: neighbours within it are alike */
static const double MOST_OTHERS = 1.0 / 3;            /* share of the neighbours that may be farther away */
static const double EMPTY = 0.1, DARK = 3;            /* of the median: less, more is a lost view */
static const double EVEN = 0.3;                       /* of its mean: deviation of a view without light */
static const double MOST_LOST = 0.15;                 /* of all views; more is not by chance */

tess_view_stats tess_view_stats_of(const float *values, int64_t count)
{
    double sum = 0, squares = 0;
    int64_t known = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            continue;
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
        known++;
    }
    const double n = known ? (double)known : 1, mean = sum / n;
    return (tess_view_stats){mean, sqrt(fmax(squares / n - mean * mean, 0))};
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool is_lost(const tess_view_stats *stats, int64_t count, int64_t view)
{
    double near[2 * WINDOW];
    int n = 0, alike = 0;
    const int64_t first = tess_max_i64(0, tess_min_i64(view - WINDOW, count - 2 * WINDOW - 1));
    for (int64_t i = first; i < count && n < 2 * WINDOW; i++)
        if (i != view)
            near[n++] = stats[i].mean;
    qsort(near, (size_t)n, sizeof *near, by_value);
    const double median = near[n / 2], own = stats[view].mean;
    for (int i = 0; i < n; i++)
        alike += fabs(near[i] - median) < CALM * median;
    if (!(median > 0) || (double)(n - alike) > MOST_OTHERS * (double)n)
        return false;
    return fabs(own) < EMPTY * median || (own > DARK * median && stats[view].deviation < EVEN * own);
}

/* Removes the entries of the lost views from an array with `numbers` for each view. */
static void compact(const tess_problem *p, double *values, int64_t numbers)
{
    int64_t lost = 0;
    for (int64_t i = 0; values && i < p->count + p->lost_count; i++) {
        if (lost < p->lost_count && p->lost[lost] == i) {
            lost++;
            continue;
        }
        memmove(values + (i - lost) * numbers, values + i * numbers, (size_t)numbers * sizeof *values);
    }
}

tess_status tess_problem_leave_out_lost(tess_problem *p, const tess_view_stats *stats, tess_error *error)
{
    int64_t found = 0;
    if (p->count < LEAST_VIEWS)
        return TESS_OK;
    for (int64_t i = 0; i < p->count; i++)
        found += is_lost(stats, p->count, i);
    if (found == 0 || (double)found > MOST_LOST * (double)p->count)
        return TESS_OK;
    if (!(p->lost = tess_small_alloc((size_t)found, sizeof *p->lost)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld lost views", (long long)found);
    for (int64_t i = 0; i < p->count; i++)
        if (is_lost(stats, p->count, i))
            p->lost[p->lost_count++] = i;
    p->count -= found;
    compact(p, p->angles, 1);
    compact(p, p->vectors, NUMBERS);
    return TESS_OK;
}
