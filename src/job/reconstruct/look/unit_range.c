/* Noise leaves [0, 1] in single pixels, light in several side by side: where a few highlights of a float picture are brighter than 1, a
 * range that ends there would cut them off, and the picture would not fit its blurs around them. */
#include "job/reconstruct/look/unit_range.h"

#include <math.h>

/* largest share of the values of an image of [0, 1] that may lie outside */
static const double MOST_OUTSIDE = 0.02;
/* Of an image of [0, 1]: how far a mean of neighbours may lie outside, and the share of means beyond that. */
enum { RUN = 8 };
static const double OVER_ONE = 0.08, MOST_RUNS = 0.002;
/* Of the noise: three values side by side that all are farther above 1 are light, however few of them there are. */
static const double PLAINLY = 3.5;
static const double TO_SIGMA =
    0.5117; /* the mean of a second difference's absolute value becomes a deviation */

/* Floats whose largest value is less have another unit. */
static const double LEAST_OF_ONE = 0.25;

/* Means of RUN values side by side, of which noise is only a small part. */
typedef struct runs {
    int64_t channels;
    double count, outside;  /* all of them, and those outside of [0, 1] */
    double second, seconds; /* sum of the second differences, and their number */
    double brightest;       /* the largest value that three values side by side reach */
} runs;

static void add_threes(runs *r, int64_t count, const float *values)
{
    const int64_t step = r->channels;
    for (int64_t i = 2 * step; i < count; i++) {
        const double a = (double)values[i - 2 * step], b = (double)values[i - step], c = (double)values[i],
                     second = fabs(a - 2 * b + c);
        if (isnan(second))
            continue;
        r->second += second;
        r->seconds++;
        r->brightest = fmax(r->brightest, fmin(fmin(a, b), c));
    }
}

static void add_runs(void *user, int64_t first, int64_t count, float *values)
{
    runs *r = user;
    (void)first;
    add_threes(r, count, values);
    for (int64_t at = 0; at + RUN * r->channels <= count; at += RUN * r->channels)
        for (int64_t c = 0; c < r->channels; c++) {
            double sum = 0;
            for (int64_t i = 0; i < RUN; i++)
                sum += (double)values[at + i * r->channels + c];
            r->count++;
            r->outside += sum < -OVER_ONE * RUN || sum > (1 + OVER_ONE) * RUN;
        }
}

tess_status tess_problem_looks_like_one(const tess_problem *p, tess_workspace *w, const tess_extremes *e,
                                        bool *is_one, tess_error *error)
{
    tess_share *share = p->share;
    runs r = {.channels = p->channels};
    *is_one = e->low >= -2 && e->high <= 3 && (double)e->outside <= MOST_OUTSIDE * (double)e->count &&
              e->high - fmin(e->low, 0) >= LEAST_OF_ONE;
    if (!*is_one)
        return TESS_OK;
    TESS_TRY(tess_share_keep(share,
                             tess_workspace_pieces(w, w->measurement.data,
                                                   tess_workspace_values(&w->op->measurement), false,
                                                   add_runs, &r, error),
                             error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_SUM, &r.count, error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_SUM, &r.outside, error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_SUM, &r.second, error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_SUM, &r.seconds, error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_MOST, &r.brightest, error));
    const double noise = TO_SIGMA * r.second / fmax(r.seconds, 1);
    *is_one = r.outside <= MOST_RUNS * r.count && r.brightest <= 1 + fmax(OVER_ONE, PLAINLY * noise);
    return TESS_OK;
}
