/* The sum of a view changes little from view to view: it is the mass of the object where all of that is seen, and where it
 * is not, views close to each other see almost the same part. Many views may be lost one after the other, so that what a
 * view should see is taken from the nearest ones that are no suspects themselves. */
#include "job/reconstruct/scan/lost_views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { LEAST_VIEWS = 12, WINDOW = 12, NUMBERS = 12 }; /* WINDOW: views on each side */
enum { FEW = 8 };                                     /* lost views one after the other */
static const double CALM = 0.5;                       /* of the median: neighbours within it are alike */
static const double MOST_OTHERS = 1.0 / 3;            /* share of the neighbours that may be farther away */
static const double EMPTY = 0.1, DARK = 3;            /* of the median: less, more is a lost view */
static const double EVEN = 0.3;                       /* of its mean: deviation of a view without light */
static const double SOME_LOST = 0.15, MOST_LOST = 1.0 / 3; /* of all views */

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

typedef struct search {
    const tess_view_stats *stats;
    int64_t count;
    bool *suspect;
    double *sorted; /* of all views */
} search;

/* Whether a view sees nothing, or no light, where it should see `usual`. */
static bool is_blank(const tess_view_stats *view, double usual)
{
    return fabs(view->mean) < EMPTY * usual ||
           (view->mean > DARK * usual && view->deviation < EVEN * view->mean);
}

static double median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* Takes up to `most` views from `from` on, in steps of `step`, that are no suspects. */
static int take(const search *s, int64_t from, int64_t step, int most, double *out)
{
    int n = 0;
    for (int64_t i = from; i >= 0 && i < s->count && n < most; i += step)
        if (!s->suspect[i])
            out[n++] = s->stats[i].mean;
    return n;
}

/* The nearest views that are no suspects: `before` of them, then those after. */
static int nearest(const search *s, int64_t view, double near[2 * WINDOW], int *before)
{
    double after[2 * WINDOW];
    const int right = take(s, view + 1, 1, 2 * WINDOW, after), left = take(s, view - 1, -1, 2 * WINDOW, near),
              wanted = right < WINDOW ? 2 * WINDOW - right : WINDOW;
    *before = left < wanted ? left : wanted;
    int n = *before;
    for (int i = 0; i < right && n < 2 * WINDOW; i++)
        near[n++] = after[i];
    return n;
}

/* How many suspects are side by side here. */
static int64_t run_of(const search *s, int64_t view)
{
    int64_t first = view, last = view;
    while (first > 0 && s->suspect[first - 1])
        first--;
    while (last + 1 < s->count && s->suspect[last + 1])
        last++;
    return last - first + 1;
}

/* An object that leaves the detector's sight does so step by step, so the views beside those that see nothing see less
 * than others. Beside views that were lost they do not; where these are `many`, that is asked for. */
static bool is_lost(const search *s, int64_t view, bool many)
{
    double near[2 * WINDOW], sorted[2 * WINDOW];
    int before, alike = 0;
    const int n = nearest(s, view, near, &before);
    if (!s->suspect[view] || n == 0)
        return false;
    memcpy(sorted, near, (size_t)n * sizeof *near);
    const double usual = median(sorted, n);
    for (int i = 0; i < n; i++)
        alike += fabs(near[i] - usual) < CALM * usual;
    if (!(usual > 0) || (double)(n - alike) > MOST_OTHERS * (double)n || !is_blank(&s->stats[view], usual))
        return false;
    const bool dark = s->stats[view].mean > usual, left = !before || fabs(near[0] - usual) < CALM * usual,
               right = before == n || fabs(near[before] - usual) < CALM * usual;
    return dark || (!many && run_of(s, view) <= FEW) || (left && right);
}

/* Suspects are unlike the views around them, of which most may be lost, or unlike all views. */
static int64_t find_suspects(search *s)
{
    int64_t found = 0;
    for (int64_t i = 0; i < s->count; i++)
        s->sorted[i] = s->stats[i].mean;
    const double usual = median(s->sorted, s->count);
    for (int64_t i = 0; i < s->count; i++) {
        double near[2 * WINDOW];
        int n = 0;
        const int64_t first = tess_max_i64(0, tess_min_i64(i - WINDOW, s->count - 2 * WINDOW - 1));
        for (int64_t k = first; k < s->count && n < 2 * WINDOW; k++)
            if (k != i)
                near[n++] = s->stats[k].mean;
        s->suspect[i] = is_blank(&s->stats[i], usual) || is_blank(&s->stats[i], median(near, n));
        found += s->suspect[i];
    }
    return found;
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

/* Lists the lost views, unless they are too many to be so by chance. */
static tess_status list(const search *s, int64_t suspects, tess_problem *p, tess_error *error)
{
    const bool many = (double)suspects > SOME_LOST * (double)s->count;
    int64_t found = 0, even = 0;
    for (int64_t i = 0; i < s->count; i++) {
        found += is_lost(s, i, many);
        even += s->stats[i].deviation == 0;
    }
    const int64_t blank = even < s->count ? tess_max_i64(found, even) : found;
    const bool too_many = (double)blank > MOST_LOST * (double)s->count;
    p->blank_views = too_many ? blank : 0;
    if (too_many || found == 0)
        return TESS_OK;
    if (!(p->lost = tess_small_alloc((size_t)found, sizeof *p->lost)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld lost views", (long long)found);
    for (int64_t i = 0; i < s->count; i++)
        if (is_lost(s, i, many))
            p->lost[p->lost_count++] = i;
    p->count -= found;
    compact(p, p->angles, 1);
    compact(p, p->vectors, NUMBERS);
    return TESS_OK;
}

tess_status tess_problem_leave_out_lost(tess_problem *p, const tess_view_stats *stats, tess_error *error)
{
    if (p->count < LEAST_VIEWS)
        return TESS_OK;
    search s = {.stats = stats,
                .count = p->count,
                .suspect = tess_small_alloc((size_t)p->count, sizeof *s.suspect),
                .sorted = tess_small_alloc((size_t)p->count, sizeof *s.sorted)};
    const tess_status status = s.suspect && s.sorted
                                   ? list(&s, find_suspects(&s), p, error)
                                   : tess_fail(error, TESS_NO_MEMORY, "no memory to look for lost views");
    tess_small_free(s.suspect);
    tess_small_free(s.sorted);
    return status;
}
