#include "job/reconstruct/scan/rings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/reconstruct/scan/turning.h"

enum {
    LEAST_VIEWS = 30,
    LEAST_COLUMNS = 32,
    LEAST_PAIRS = 8,       /* of columns at the same distance from the axis */
    PASSES = 4,            /* towards the means: the first is plain, the others nearly medians */
    REACH = 5,             /* columns on each side whose median is what a column should have */
    SMOOTH = 3,            /* the same of the mean of those medians */
    MOST_VALUES = 1 << 26, /* of a larger scan, only some views are looked at for the first time */
    LEAST_SAMPLED = 64,
    WIDEST = 2 * REACH + 1
};
static const double LEAST_TURN = 170; /* degrees: the image of fewer is far from the solution for long */
static const double PLAIN = 2;        /* standard errors that the two sides of the axis differ by */
static const double PEAK = 5, ONE_SIDED = 0.5; /* standard errors of one column; of all squares */
static const double LEAST = 0.02; /* of the range, times a pixel: less is no ring that one sees */
static const double NEAR = 0.5;   /* mean deviations from the mean: values beyond count as this */
static const double FEW = 0.1;    /* of the views: a smaller share within that is not relied upon */
static const double TO_ERROR =
    1.25 * 1.25;                 /* a mean deviation becomes a standard error of a median, for one view */
static const double JITTER = 1;  /* columns within which all views show the axis */
static const double WEAK = 0.18; /* of the range, times a pixel: rings that matter less than edges */
static const double EDGE = 4.5, ALIKE = 3; /* medians of all columns; ratio of the two sides of an edge */
static const double EXPLAINS = 2;          /* times a value near the mirrored place */
static const double SHARE = 0.17;          /* of all squares, beyond what the other side explains */
static const double PLAIN_MEDIAN = 1.5;    /* standard errors of the median of all columns; noise has 0.7 */
static const double DENSE = 1.25;          /* of what one sees: a median that edges do not reach */
static const double WHOLE = 0.05;          /* of a column: columns of both sides are at the same distance */

/* For each pixel: the mean over the views, the sum and the number of values near it, the error that was subtracted;
 * then a number for each row. */
typedef struct rings {
    const tess_problem *p;
    tess_workspace *w;
    int64_t columns, pixels, views;
    double axis; /* its column */
    double *mean, *sum, *near, *error, *scatter;
    double most; /* deviation beyond which values are cut */
    int64_t at;  /* of the view in the host's rows */
} rings;

static bool axis_of(const tess_problem *p, double *axis)
{
    const tess_turning t = tess_problem_turning(p);
    *axis = 0.5 * (t.columns[0] + t.columns[1]);
    const double pairs = fmin(*axis, (double)(p->columns - 1) - *axis);
    return t.degrees >= LEAST_TURN && t.columns[1] - t.columns[0] <= JITTER && pairs >= LEAST_PAIRS;
}

bool tess_rings_wanted(const tess_problem *p)
{
    double axis;
    /* what a wrong axis leaves looks like errors of pixels */
    return !p->synthetic && !p->as_published && !p->keep_rings && p->axis_off == 0 &&
           p->physics != TESS_PHYSICS_BLUR && p->count >= LEAST_VIEWS && p->columns >= LEAST_COLUMNS &&
           axis_of(p, &axis);
}

int64_t tess_rings_values(const tess_problem *p)
{
    return tess_rings_wanted(p) ? 4 * p->rows * p->columns + p->rows : 0;
}

int64_t tess_rings_row(const tess_problem *p)
{
    const int64_t pixels = p->rows * p->columns;
    return tess_rings_wanted(p) ? tess_max_i64(pixels, tess_min_i64(p->count * pixels, TESS_PIECE)) : 0;
}

/* Rows: with more, what a symmetric object leaves on both sides of the axis is not in one row, and looks like errors of pixels. */
static const double MOST_ROLL = 1;

/* Copies `count` views to the host. */
static tess_status fetch(const rings *r, const void *from, int64_t view, int64_t count, float *to,
                         tess_error *error)
{
    tess_device *device = r->w->device;
    device->memory->copy(device, to, (const float *)from + view * r->pixels,
                         (size_t)(count * r->pixels) * sizeof *to, NULL);
    return device->streams->sync(device, NULL, error);
}

/* Adds a row of a view in the host's rows, measured and projected, to the sums. */
static void add_row(void *user, int64_t row, int thread)
{
    (void)thread;
    rings *r = user;
    const float *measured = r->w->host.rows[0] + r->at, *projected = r->w->host.rows[1] + r->at;
    double scatter = 0;
    for (int64_t i = row * r->columns; i < (row + 1) * r->columns; i++) {
        const double off = (double)measured[i] + r->error[i] - (double)projected[i] - r->mean[i];
        scatter += fabs(off);
        r->near[i] += fabs(off) < r->most;
        r->sum[i] += fmax(-r->most, fmin(off, r->most));
    }
    r->scatter[row] += scatter;
}

/* Adds every `step`-th view, of those that this rank has; several at a time, since small copies from a device take long. */
static tess_status add_views(rings *r, int64_t step, tess_error *error)
{
    const int64_t room = step > 1 ? 1 : tess_rings_row(r->p) / r->pixels, all = tess_problem_own_views(r->p),
                  first = tess_problem_first_view(r->p);
    for (int64_t k = tess_round_up(first, step) - first, count; k < all; k += step * count) {
        count = tess_min_i64(room, all - k);
        TESS_TRY(tess_stop_check(&r->w->engine->stop, error));
        TESS_TRY(fetch(r, r->w->measurement.data, k, count, r->w->host.rows[0], error));
        TESS_TRY(fetch(r, r->w->term.residual, k, count, r->w->host.rows[1], error));
        for (r->at = 0; r->at < count * r->pixels; r->at += r->pixels, r->views++)
            tess_pool_run(r->w->engine->host, r->p->rows, add_row, r);
    }
    return TESS_OK;
}

/* Collective: adds up what the ranks have of the views. */
static tess_status add_ranks(rings *r, tess_status mine, tess_error *error)
{
    tess_share *const share = r->p->share;
    double views = (double)r->views;
    TESS_TRY(tess_share_agree(share, mine, error));
    if (!tess_share_many(share))
        return TESS_OK;
    TESS_TRY(tess_dist_sum_f64(share->dist, r->sum, 2 * r->pixels, error)); /* and `near` */
    TESS_TRY(tess_dist_sum_f64(share->dist, r->scatter, r->p->rows, error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_SUM, &views, error));
    r->views = (int64_t)views;
    return TESS_OK;
}

/* The mean over the views of what the image does not explain; edges of the object, which pass a column in a few views,
 * do not move it much, as each value counts up to half of the usual deviation only. */
static tess_status average(rings *r, int64_t step, tess_error *error)
{
    const int64_t rows = r->p->rows;
    memset(r->mean, 0, (size_t)r->pixels * sizeof *r->mean);
    r->most = INFINITY;
    for (int pass = 0; pass < PASSES; pass++) {
        memset(r->sum, 0, 2 * (size_t)r->pixels * sizeof *r->sum); /* and `near` */
        memset(r->scatter, 0, (size_t)rows * sizeof *r->scatter);
        r->views = 0;
        TESS_TRY(add_ranks(r, add_views(r, step, error), error));
        double all = 0;
        for (int64_t i = 0; i < r->pixels; i++)
            r->mean[i] += r->sum[i] / fmax(r->near[i], FEW * (double)r->views);
        for (int64_t y = 0; y < rows; y++) {
            all += r->scatter[y];
            r->scatter[y] /= (double)(r->columns * r->views);
        }
        r->most = NEAR * all / ((double)r->pixels * (double)r->views);
    }
    return TESS_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Beyond an end, columns are mirrored. */
static double at(const double *row, int64_t i, int64_t count)
{
    return row[i < 0 ? -i : i >= count ? 2 * count - 2 - i : i];
}

/* `out` = `row` without what is smooth along it, for which `spare` has room: an error of few columns stays whole, as a
 * median does not see it. */
static void sharpen(const double *row, int64_t count, double *spare, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        double around[WIDEST];
        for (int64_t j = -REACH; j <= REACH; j++)
            around[REACH + j] = at(row, i + j, count);
        qsort(around, WIDEST, sizeof *around, by_value);
        spare[i] = around[REACH];
    }
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int64_t j = -SMOOTH; j <= SMOOTH; j++)
            sum += at(spare, i + j, count);
        out[i] = row[i] - sum / (2 * SMOOTH + 1);
    }
}

/* What column i has that the other side of the axis does not explain. Where columns of one side lie between those of the
 * other, an edge is seen by other parts of a column: it has other values there, but about the same energy. */
static double beyond(const rings *r, const double *row, int64_t i, int64_t low, int64_t high)
{
    if (low == high)
        return sqrt(0.5) * fabs(row[i] - row[low]);
    double most = 0;
    for (int64_t k = tess_max_i64(low - 1, 0); k <= tess_min_i64(high + 1, r->columns - 1); k++)
        most = fmax(most, EXPLAINS * fabs(row[k]));
    return sqrt(fmax(0, row[i] * row[i] - most * most));
}

/* Whether a row has errors; `error` is the standard error that noise causes. `level` is what is
 * one-sided, `sorted` has room for a row. */
static bool plain(const rings *r, const double *row, double error, double *sorted, double *level)
{
    const double visible = LEAST * r->p->high;
    double square = 0, all = 0, peak = 0;
    int64_t count = 0;
    bool between = false;
    for (int64_t i = 0; i < r->columns; i++) {
        const double mirror = 2 * r->axis - (double)i, low = floor(mirror + WHOLE),
                     high = ceil(mirror - WHOLE);
        sorted[i] = fabs(row[i]);
        if (low < 0 || high > (double)(r->columns - 1))
            continue;
        const double off = beyond(r, row, i, (int64_t)low, (int64_t)high);
        square += off * off;
        all += row[i] * row[i];
        peak = fmax(peak, off);
        between = between || low < high;
        count++;
    }
    qsort(sorted, (size_t)r->columns, sizeof *sorted, by_value);
    const double middle = sorted[r->columns / 2], one_sided = count > 0 ? sqrt(square / (double)count) : 0;
    *level = fmax(one_sided, middle);
    const bool single = peak > PEAK * error && square > ONE_SIDED * all && one_sided > visible,
               many = one_sided > fmax(PLAIN * error, visible);
    if (!between)
        return single || many;
    /* thin shells leave much, of which the other side explains most; errors of most columns explain each other, but
     * edges are few */
    return single || (many && square > SHARE * all) || middle > fmax(PLAIN_MEDIAN * error, DENSE * visible);
}

/* Takes back what both sides of the axis have, if it is more than other columns have: an edge of a symmetric object.
 * `edge` has room for a row. */
static void spare_edges(const rings *r, double *row, double *edge)
{
    for (int64_t i = 0; i < r->columns; i++)
        edge[i] = fabs(row[i]);
    qsort(edge, (size_t)r->columns, sizeof *edge, by_value);
    const double most = EDGE * edge[r->columns / 2];
    for (int64_t i = 0; i < r->columns; i++) {
        const double mirror = 2 * r->axis - (double)i, low = floor(mirror + WHOLE),
                     high = ceil(mirror - WHOLE), more = low < high ? 1 : 0;
        double common = 0;
        for (double k = fmax(low - more, 0); k <= fmin(high + more, (double)(r->columns - 1)); k++)
            common = fmax(common, row[i] < 0 ? -row[(int64_t)k] : row[(int64_t)k]);
        edge[i] = common > most && fabs(row[i]) > most && fabs(row[i]) < ALIKE * common ? row[i] : 0;
    }
    for (int64_t i = 0; i < r->columns; i++)
        row[i] -= edge[i];
}

/* Leaves the new error of each pixel in `sum`; returns whether there are errors. */
static bool decide(rings *r)
{
    bool any = false;
    for (int64_t y = 0; y < r->p->rows; y++) {
        const size_t bytes = (size_t)r->columns * sizeof(double);
        const int64_t first = y * r->columns;
        double *const next = r->sum + first, *const before = r->error + first;
        bool known = false;
        double level;
        for (int64_t i = 0; i < r->columns; i++)
            known = known || before[i] != 0;
        sharpen(r->mean + first, r->columns, r->near + first, next);
        const double error = TO_ERROR * r->scatter[y] / sqrt((double)r->views);
        const bool found = plain(r, next, error, r->near + first, &level);
        if (!known && !found)
            memcpy(next, before, bytes);
        else {
            if (level < WEAK * r->p->high)
                spare_edges(r, next, r->near + first);
            any = true;
        }
    }
    return any;
}

static tess_status correct(rings *r, tess_error *error)
{
    tess_device *device = r->w->device;
    float *const values = r->w->host.rows[0];
    for (int64_t k = 0; k < tess_problem_own_views(r->p); k++) {
        TESS_TRY(fetch(r, r->w->measurement.data, k, 1, values, error));
        for (int64_t i = 0; i < r->pixels; i++)
            values[i] += (float)(r->error[i] - r->sum[i]);
        device->memory->copy(device, (float *)r->w->measurement.data + k * r->pixels, values,
                             (size_t)r->pixels * sizeof *values, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
    }
    memcpy(r->error, r->sum, (size_t)r->pixels * sizeof *r->error);
    return TESS_OK;
}

tess_status tess_rings_subtract(const tess_problem *p, tess_workspace *w, const void *x, double *level,
                                tess_error *error)
{
    const int64_t pixels = p->rows * p->columns, columns = p->columns;
    double energy;
    rings r = {.p = p, .w = w, .columns = columns, .pixels = pixels};
    r.mean = w->host.rings;
    r.sum = r.mean + pixels;
    r.near = r.sum + pixels;
    r.error = r.near + pixels;
    r.scatter = r.error + pixels;
    if (!axis_of(p, &r.axis))
        return TESS_OK;
    if (!(*level > 0))
        memset(r.error, 0, (size_t)pixels * sizeof *r.error);
    const int64_t most = tess_max_i64(1, p->count / LEAST_SAMPLED),
                  step = *level > 0 ? 1 : tess_min_i64(most, tess_ceil_div(p->count * pixels, MOST_VALUES));
    TESS_TRY(tess_data_term_energy(&w->term, x, &energy, error));
    TESS_TRY(average(&r, step, error));
    if (!decide(&r))
        return TESS_OK;
    TESS_TRY(tess_share_agree(p->share, correct(&r, error), error));
    double square = 0;
    for (int64_t i = 0; i < pixels; i++)
        square += r.error[i] * r.error[i];
    *level = sqrt(square / (double)pixels);
    return TESS_OK;
}

void tess_rings_note(const tess_problem *p, double level, bool fits, const tess_common *common)
{
    const char *const what = p->rows > 1 ? "pixels" : "columns";
    if (!(level > 0))
        return;
    level *= tess_problem_measured_unit(p);
    if (!fits || tess_problem_turning(p).roll > MOST_ROLL)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: all views differ alike from what the image explains, by %.3g (root mean square): by errors "
            "of the detector's %s, or because %s; that is subtracted, since it would become rings: "
            "\"rings\": false keeps it",
            p->measurement, level, what,
            fits ? "it is turned in its plane" : "the views are not as declared");
    else
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: the detector's %s have errors that are the same in all views, %.3g (root mean square), "
            "which would become rings; they are subtracted: \"rings\": false keeps them",
            p->measurement, what, level);
}
