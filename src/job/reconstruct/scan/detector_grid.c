#include "job/reconstruct/scan/detector_grid.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

enum { NUMBERS = 12, LEAST_PIXELS = 4, LEAST_ROWS = 2 };
static const double PARALLEL = 1e-3; /* of a vector's length: less is parallel */
static const double ALIGNED = 0.05;  /* rows that are off their slices by at most this fit */
/* Sides of a voxel in pixels. Voxels smaller than the first need no rows of their own: no row of pixels lies between
 * two slices alone. Voxels larger than the second need larger columns. */
static const double SMALL = 0.9, LARGE = 1.05;
static const double ROUNDING = 1e-6; /* lines at an edge lie on it, whatever the unit of length */

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Where the plane through the origin that is parallel to the detector is seen: one voxel there is `scale` long on the
 * detector, and height 0 is seen at height `zero`. */
static bool plane_of(const tess_problem *p, const double *view, double *scale, double *zero)
{
    const double *s = view, *d = view + 3, *u = view + 6, *v = view + 9;
    const double normal[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                              u[0] * v[1] - u[1] * v[0]};
    const double along = dot(normal, s), depth = dot(normal, d);
    if (hypot(v[0], v[1]) > PARALLEL * fabs(v[2]) || fabs(u[2]) > PARALLEL * hypot(u[0], u[1]))
        return false;
    *scale = p->parallel ? 1 : 1 - depth / along;
    *zero = p->parallel ? depth / along * s[2] : s[2] * (1 - *scale);
    return isfinite(*scale) && isfinite(*zero) && *scale > 0;
}

/* One axis of the new detector in a view, in pixels of the file: where a line of the grid is, counted from the edge of
 * the first pixel, and the distance of lines. */
typedef struct lines {
    double at, step;
} lines;

static bool lines_of(const tess_problem *p, int64_t view, lines *rows, lines *columns)
{
    const double *v = p->vectors + NUMBERS * view;
    double scale, zero;
    if (!plane_of(p, v, &scale, &zero))
        return false;
    rows->step = scale / fabs(v[11]);
    rows->at = 0.5 * (double)p->file_rows + (zero - v[5]) / v[11] +
               (p->depth % 2 ? 0 : 0.5 * rows->step); /* an even volume has no slice in the middle */
    columns->step = scale / sqrt(dot(v + 6, v + 6));
    columns->at = 0.5 * (double)p->file_columns;
    return isfinite(rows->at) && isfinite(columns->step);
}

/* The lines that lie on `pixels` pixels: the number of the first, and how many. */
static int64_t inside(const lines *l, int64_t pixels, double *first)
{
    *first = ceil(-l->at / l->step - ROUNDING);
    return (int64_t)(floor(((double)pixels - l->at) / l->step + ROUNDING) - *first) + 1;
}

/* Columns lie on both sides of the middle. */
static int64_t columns_inside(const lines *l, int64_t pixels)
{
    return (int64_t)floor((double)pixels / l->step + ROUNDING) + 1;
}

/* The largest distance of a row from the nearest slice. */
static double misfit(const lines *l, int64_t pixels)
{
    const double ends[] = {0.5, (double)pixels - 0.5};
    double most = fabs(l->step - 1) > 0.5 ? 1 : 0;
    for (int i = 0; i < 2; i++) {
        const double x = (ends[i] - l->at) / l->step;
        most = fmax(most, fabs(x - round(x)) * l->step);
    }
    return fmax(most, 0.5 * fabs(l->step - 1) * (double)pixels);
}

typedef struct decision {
    bool rows, columns;
    int64_t row_count, column_count;
} decision;

/* Both axes are resampled in all views or in none. */
static bool decide(const tess_problem *p, decision *out)
{
    *out = (decision){.row_count = INT64_MAX, .column_count = INT64_MAX};
    bool rows = p->file_rows >= LEAST_ROWS && p->depth + p->margin_depth > 1,
         columns = p->file_columns >= LEAST_PIXELS;
    for (int64_t i = 0; i < p->count; i++) {
        lines row, column;
        double first;
        if (!lines_of(p, i, &row, &column))
            return false;
        rows = rows && row.step > SMALL;
        columns = columns && column.step > LARGE;
        out->rows = out->rows || misfit(&row, p->file_rows) > ALIGNED;
        out->row_count = tess_min_i64(out->row_count, inside(&row, p->file_rows, &first));
        out->column_count = tess_min_i64(out->column_count, columns_inside(&column, p->file_columns));
    }
    out->rows = out->rows && rows && out->row_count > 0;
    out->columns = columns && out->column_count > 0;
    return out->rows || out->columns;
}

/* The new detector begins at `first` pixels of the file. */
static void move(double *view, int axis, double first, double step, int64_t count, int64_t pixels)
{
    double *along = view + 6 + 3 * axis;
    const double by = first + 0.5 * step * (double)count - 0.5 * (double)pixels;
    for (int k = 0; k < 3; k++) {
        view[3 + k] += by * along[k];
        along[k] *= step;
    }
}

tess_status tess_detector_grid_choose(tess_problem *p, tess_error *error)
{
    decision d;
    const bool scanned = p->physics == TESS_PHYSICS_CONE && !p->synthetic && !p->as_published;
    if (!scanned || p->keep_detector || !decide(p, &d))
        return TESS_OK;
    if (!(p->detector_grid = tess_small_alloc((size_t)p->count, sizeof *p->detector_grid)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the grid of the detector");
    const int64_t rows = d.rows ? d.row_count : p->file_rows,
                  columns = d.columns ? d.column_count : p->file_columns;
    for (int64_t i = 0; i < p->count; i++) {
        tess_detector_grid *g = &p->detector_grid[i];
        lines row, column;
        double first;
        (void)lines_of(p, i, &row, &column);
        *g = (tess_detector_grid){0, 1, 0, 1};
        if (d.rows) {
            /* of one line too many, that which is nearer to the edge is left out */
            const int64_t more = inside(&row, p->file_rows, &first) - rows;
            const double low = row.at + first * row.step,
                         high = (double)p->file_rows - (low + (double)(rows + more - 1) * row.step);
            first += floor(0.5 * (double)(more + (low < high)));
            g->row_step = row.step;
            g->first_row = row.at + (first - 0.5) * row.step;
        }
        if (d.columns) {
            g->column_step = column.step;
            g->first_column = column.at - 0.5 * (double)columns * column.step;
        }
        double *view = p->vectors + NUMBERS * i;
        move(view, 0, g->first_column, g->column_step, columns, p->file_columns);
        move(view, 1, g->first_row, g->row_step, rows, p->file_rows);
    }
    p->rows = rows;
    p->columns = columns;
    return TESS_OK;
}

/* The share of pixel i in the integral up to x: a cubic between the integrals at the edges of pixels. */
static double share(double x, int64_t i)
{
    const double whole = floor(x), f = x - whole;
    const double weights[4] = {f * (-1 + f * (2 - f)) / 2, (2 + f * f * (-5 + 3 * f)) / 2,
                               f * (1 + f * (4 - 3 * f)) / 2, f * f * (f - 1) / 2};
    double sum = 0;
    for (int k = 0; k < 4; k++)
        if ((int64_t)whole - 1 + k > i)
            sum += weights[k];
    return sum;
}

static int64_t taps_of(double step)
{
    return (int64_t)ceil(step) + 5;
}

/* The mean over [from, from + step]: `taps` weights of pixels, the first of which is returned. */
static int64_t weigh(double from, double step, int64_t taps, double *weights)
{
    const int64_t first = (int64_t)floor(from) - 2;
    for (int64_t k = 0; k < taps; k++)
        weights[k] = (share(from + step, first + k) - share(from, first + k)) / step;
    return first;
}

/* Pixels beyond the edge are like that at the edge. */
static int64_t within(int64_t i, int64_t count)
{
    return tess_min_i64(tess_max_i64(i, 0), count - 1);
}

tess_status tess_detector_resampler_open(const tess_problem *p, tess_detector_resampler *r, tess_error *error)
{
    double most[2] = {1, 1};
    *r = (tess_detector_resampler){.problem = p};
    for (int64_t i = 0; p->detector_grid && i < p->count; i++) {
        most[0] = fmax(most[0], p->detector_grid[i].row_step);
        most[1] = fmax(most[1], p->detector_grid[i].column_step);
    }
    if (!p->detector_grid)
        return TESS_OK;
    r->line = tess_small_alloc((size_t)p->file_columns, sizeof *r->line);
    r->row_weights = tess_small_alloc((size_t)taps_of(most[0]), sizeof *r->row_weights);
    r->weights = tess_small_alloc((size_t)(p->columns * taps_of(most[1])), sizeof *r->weights);
    return r->line && r->row_weights && r->weights
               ? TESS_OK
               : tess_fail(error, TESS_NO_MEMORY, "no memory to resample the views");
}

void tess_detector_resample(const tess_detector_resampler *r, int64_t view, const float *from, float *to)
{
    const tess_problem *p = r->problem;
    const tess_detector_grid *g = &p->detector_grid[view];
    const int64_t row_taps = taps_of(g->row_step), taps = taps_of(g->column_step);
    for (int64_t c = 0; c < p->columns; c++)
        (void)weigh(g->first_column + (double)c * g->column_step, g->column_step, taps,
                    r->weights + c * taps);
    for (int64_t y = 0; y < p->rows; y++) {
        const int64_t top =
            weigh(g->first_row + (double)y * g->row_step, g->row_step, row_taps, r->row_weights);
        for (int64_t x = 0; x < p->file_columns; x++) {
            double sum = 0;
            for (int64_t k = 0; k < row_taps; k++)
                sum += r->row_weights[k] * (double)from[within(top + k, p->file_rows) * p->file_columns + x];
            r->line[x] = (float)sum;
        }
        for (int64_t c = 0; c < p->columns; c++) {
            const int64_t left = (int64_t)floor(g->first_column + (double)c * g->column_step) - 2;
            double sum = 0;
            for (int64_t k = 0; k < taps; k++)
                sum += r->weights[c * taps + k] * (double)r->line[within(left + k, p->file_columns)];
            to[y * p->columns + c] = (float)sum;
        }
    }
}

void tess_detector_resampler_close(tess_detector_resampler *r)
{
    tess_small_free(r->line);
    tess_small_free(r->row_weights);
    tess_small_free(r->weights);
}
