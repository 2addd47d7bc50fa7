/* A stripe is what the mean of a whole row differs by from the rows on both sides. Horizontal edges of a picture do so too, but few
 * rows have them, and the median ignores those; a pattern that repeats from row to row is smooth after a blur, so that rows which are two
 * apart differ by more, and those of stripes do not. The mean of a row of texture differs as well, but its halves do so independently, and
 * those of stripes by the same. All this holds for columns, too. */
#include "job/reconstruct/look/stripes.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/look/blur_rows.h"

enum { LAGS = TESS_BLUR_ROWS_REACH, LEAST_LINES = 16 };
static const double SMOOTH = 1.5; /* ratio of the differences at both distances: more is a picture */
static const double PLAIN = 1.5;  /* ratio of the differences to what the halves differ by: less is texture */
static const double CUT = 0.02;   /* differences count up to this, so that few edges do not matter */
static const double MEDIAN = 1.4826, DIFFERENCE = 1.2247; /* deviation of normal numbers; of a difference */

typedef struct lines {
    double *rows[LAGS], *columns[LAGS]; /* sums of the differences at each distance, of both halves of each */
} lines;

static double cut(const tess_problem *p, float middle, float one, float other)
{
    const double most = CUT * p->high;
    return fmax(-most, fmin(most, (double)middle - 0.5 * ((double)one + (double)other)));
}

static void add_row(void *user, const tess_blur_rows *rows, int64_t row)
{
    lines *l = user;
    const tess_problem *p = rows->problem;
    const float *at = tess_blur_row(rows, row);
    for (int64_t lag = 1; lag <= LAGS; lag++) {
        const float *above = tess_blur_row(rows, row - lag), *below = tess_blur_row(rows, row + lag);
        const int64_t far = lag * p->channels, half = row >= p->height / 2;
        for (int64_t i = 0; i < rows->samples; i++) {
            l->rows[lag - 1][2 * row + (i >= rows->samples / 2)] += cut(p, at[i], above[i], below[i]);
            if (i >= far && i < rows->samples - far)
                l->columns[lag - 1][2 * (i / p->channels) + half] += cut(p, at[i], at[i - far], at[i + far]);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The deviation of the means of lines, without those at both ends; or, with a sign of -1, of half of what their halves differ by. */
static double deviation(const double *sums, int sign, int64_t count, double values, double *means)
{
    for (int64_t i = 0; i < count; i++)
        means[i] = fabs(sums[2 * i] + sign * sums[2 * i + 1]) / values;
    qsort(means + LAGS, (size_t)(count - 2 * LAGS), sizeof *means, by_value);
    return MEDIAN / DIFFERENCE * means[count / 2];
}

static double level_of(double *const sums[LAGS], int64_t count, double values, double *means)
{
    const double near = deviation(sums[0], 1, count, values, means),
                 far = deviation(sums[1], 1, count, values, means),
                 texture = deviation(sums[0], -1, count, values, means);
    return far < SMOOTH * near && near > PLAIN * texture ? sqrt(near * near - texture * texture) : 0;
}

static int64_t sums_of(const tess_problem *p)
{
    return 2 * LAGS * (p->height + p->width);
}

/* Collective: of one blur. `memory`: the sums, and the means of one direction. */
static tess_status find(tess_blur_rows *rows, int64_t blur, double *memory, double *level, tess_error *error)
{
    const tess_problem *p = rows->problem;
    const int64_t all = sums_of(p);
    lines l;
    for (int64_t i = 0; i < all; i++)
        memory[i] = 0;
    for (int lag = 0; lag < LAGS; lag++) {
        l.rows[lag] = memory + 2 * lag * (p->height + p->width);
        l.columns[lag] = l.rows[lag] + 2 * p->height;
    }
    TESS_TRY(tess_share_agree(p->share, tess_stop_check(&rows->w->engine->stop, error), error));
    TESS_TRY(tess_blur_rows_choose(rows, blur, error));
    TESS_TRY(tess_share_keep(p->share, tess_blur_rows_visit(rows, add_row, &l, error), error));
    if (tess_share_many(p->share))
        TESS_TRY(tess_dist_sum_f64(p->share->dist, memory, all, error));
    *level =
        fmax(*level, fmax(level_of(l.rows, p->height, (double)rows->samples, memory + all),
                          level_of(l.columns, p->width, (double)(p->height * p->channels), memory + all)));
    return TESS_OK;
}

tess_status tess_problem_find_stripes(const tess_problem *p, tess_workspace *w, double *level,
                                      tess_error *error)
{
    tess_blur_rows rows;
    *level = 0;
    if (p->height < LEAST_LINES || p->width < LEAST_LINES)
        return TESS_OK;
    double *memory = NULL;
    tess_status status = tess_blur_rows_open(&rows, p, w, error);
    if (status == TESS_OK) {
        memory = tess_small_alloc((size_t)(sums_of(p) + tess_max_i64(p->height, p->width)), sizeof *memory);
        status = memory ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look for stripes");
        status = tess_share_agree(p->share, status, error);
    }
    for (int64_t i = 0; i < p->count && status == TESS_OK; i++)
        status = find(&rows, i, memory, level, error);
    tess_small_free(memory);
    tess_blur_rows_close(&rows);
    return status;
}
