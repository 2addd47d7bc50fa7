/* A stripe is what the mean of a whole row differs by from the rows on both sides. Horizontal edges of a picture do so too, but few
 * rows have them, and the median ignores those; a pattern that repeats from row to row is smooth after a blur, so that rows which are two
 * apart differ by more, and those of stripes do not. The mean of a row of texture differs as well, but its halves do so independently, and
 * those of stripes by the same. All this holds for columns, too.
 *
 * A kernel that is narrow across the lines leaves a pattern of the scene as rough as it is: then nobody can tell, and none are found.
 *
 * Each difference counts up to a limit, so that few edges do not matter. Where most of a picture is edges, as of barcodes and text, the limit
 * hides that it is smooth; there the differences without a limit must say so, too. */
#include "job/reconstruct/look/stripes.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/reconstruct/look/blur_rows.h"

enum { LAGS = TESS_BLUR_ROWS_REACH, LEAST_LINES = 16 };
static const double SMOOTH = 1.5; /* ratio of the differences at both distances: more is a picture */
static const double LEFT =
    0.2; /* part of the differences of a scene's lines after the blur: more may be lines of the scene */
static const double PLAIN = 1.5; /* ratio of the differences to what the halves differ by: less is texture */
static const double CUT = 0.02;  /* of the range: differences count up to this */
static const double MOST_CUT =
    0.1; /* share of the differences that are larger: more are a picture of edges, or strong stripes */
static const double MEDIAN = 1.4826, DIFFERENCE = 1.2247; /* deviation of normal numbers; of a difference */

enum { LIMITED, WHOLE, KINDS };

typedef struct lines {
    /* sums of the differences at each distance, of both halves of each */
    double *rows[KINDS][LAGS], *columns[KINDS][LAGS];
    double *cut; /* differences of rows and of columns, at distance 1, that are limited */
} lines;

static void add(lines *l, bool column, int lag, int64_t line, double most, double difference)
{
    double *(*sums)[LAGS] = column ? l->columns : l->rows;
    sums[LIMITED][lag][line] += fmax(-most, fmin(most, difference));
    sums[WHOLE][lag][line] += difference;
    l->cut[column] += lag == 0 && fabs(difference) > most;
}

static double between(float middle, float one, float other)
{
    return (double)middle - 0.5 * ((double)one + (double)other);
}

static void add_row(void *user, const tess_blur_rows *rows, int64_t row)
{
    lines *l = user;
    const tess_problem *p = rows->problem;
    const float *at = tess_blur_row(rows, row);
    const double most = CUT * p->high;
    for (int lag = 0; lag < LAGS; lag++) {
        const float *above = tess_blur_row(rows, row - lag - 1), *below = tess_blur_row(rows, row + lag + 1);
        const int64_t far = (lag + 1) * p->channels, half = row >= p->height / 2;
        for (int64_t i = 0; i < rows->samples; i++) {
            add(l, false, lag, 2 * row + (i >= rows->samples / 2), most, between(at[i], above[i], below[i]));
            if (i >= far && i < rows->samples - far)
                add(l, true, lag, 2 * (i / p->channels) + half, most,
                    between(at[i], at[i - far], at[i + far]));
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

static bool is_smooth(double *const sums[LAGS], int64_t count, double values, double *means)
{
    return !(deviation(sums[1], 1, count, values, means) <
             SMOOTH * deviation(sums[0], 1, count, values, means));
}

/* `cut`: how many differences are limited; `values`: those of a line. */
static double level_of(double *sums[KINDS][LAGS], double cut, int64_t count, double values, double *means)
{
    const double near = deviation(sums[LIMITED][0], 1, count, values, means),
                 texture = deviation(sums[LIMITED][0], -1, count, values, means);
    if (is_smooth(sums[LIMITED], count, values, means) || !(near > PLAIN * texture) ||
        (cut > MOST_CUT * (double)count * values && is_smooth(sums[WHOLE], count, values, means)))
        return 0;
    return sqrt(near * near - texture * texture);
}

/* The part of the kernel across the lines, at one place. */
static double across(const tess_blur_kernel *kernel, bool columns, int64_t at)
{
    const int64_t count = columns ? kernel->width : kernel->height,
                  along = columns ? kernel->height : kernel->width;
    double sum = 0;
    for (int64_t i = 0; at >= 0 && at < count && i < along; i++)
        sum += (double)kernel->values[columns ? i * kernel->width + at : at * kernel->width + i];
    return sum;
}

/* Whether little is left after this blur of what lines of a scene, independent of each other, differ by from those on both sides. */
static bool blurs_lines(const tess_problem *p, int64_t blur, bool columns)
{
    if (!p->kernels)
        return true;
    const tess_blur_kernel *kernel = &p->kernels[blur];
    const int64_t count = columns ? kernel->width : kernel->height;
    double squares = 0, all = 0;
    for (int64_t at = -1; at <= count; at++) {
        const double left = across(kernel, columns, at) -
                            0.5 * (across(kernel, columns, at - 1) + across(kernel, columns, at + 1));
        squares += left * left;
        all += across(kernel, columns, at);
    }
    return sqrt(squares) < LEFT * DIFFERENCE * all;
}

static int64_t sums_of(const tess_problem *p)
{
    return 2 * KINDS * LAGS * (p->height + p->width) + 2;
}

/* Collective: of one blur. `memory`: the sums, and the means of one direction. */
static tess_status find(tess_blur_rows *rows, int64_t blur, double *memory, double *level, tess_error *error)
{
    const tess_problem *p = rows->problem;
    const int64_t all = sums_of(p);
    lines l;
    for (int64_t i = 0; i < all; i++)
        memory[i] = 0;
    l.cut = memory + all - 2;
    for (int i = 0; i < KINDS * LAGS; i++) {
        l.rows[i / LAGS][i % LAGS] = memory + 2 * i * (p->height + p->width);
        l.columns[i / LAGS][i % LAGS] = l.rows[i / LAGS][i % LAGS] + 2 * p->height;
    }
    TESS_TRY(tess_share_agree(p->share, tess_stop_check(&rows->w->engine->stop, error), error));
    TESS_TRY(tess_blur_rows_choose(rows, blur, error));
    TESS_TRY(tess_share_keep(p->share, tess_blur_rows_visit(rows, add_row, &l, error), error));
    if (tess_share_many(p->share))
        TESS_TRY(tess_dist_sum_f64(p->share->dist, memory, all, error));
    if (blurs_lines(p, blur, false))
        *level = fmax(*level, level_of(l.rows, l.cut[0], p->height, (double)rows->samples, memory + all));
    if (blurs_lines(p, blur, true))
        *level = fmax(
            *level, level_of(l.columns, l.cut[1], p->width, (double)(p->height * p->channels), memory + all));
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
