/* Line integrals of each view: as measured, or -log((counts - dark) / (flat - dark)) of the detector's counts. Flat
 * and dark fields are images of a view's size, averaged if there are several, or numbers. */
#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "job/reconstruct/look/finite.h"
#include "job/reconstruct/problem/views.h"
#include "job/reconstruct/scan/dead_pixels.h"
#include "job/reconstruct/scan/zingers.h"

enum { SAMPLED = 4096 };          /* pixels of which the median light is taken */
static const double WEAK = 0.01;  /* of the median light of all pixels: less is a dead pixel */
static const double LEAST = 1e-4; /* share of the light of a ray without a count, if one count is unknown */
static const double MOST_DEAD = 0.1; /* of the pixels of a flat field; more is a wrong file */

typedef struct fields {
    tess_block block; /* flat, then dark */
    float *flat, *dark;
    double least; /* light of a pixel that works: a dead one has what its noise leaves above "dark" */
    /* What a ray without a count is given, at least: half a count, and this share of the light. */
    double half_count, least_share;
    int64_t samples; /* of a view, as far as it is read */
} fields;

/* Adds one image whose rows are the views of `v`, or the average of all its views. */
static tess_status average(tess_views *v, const char *path, const tess_problem *p, int64_t full_rows,
                           float *view, float *sum, tess_error *error)
{
    const int64_t columns = p->file_columns;
    const tess_views_info *is = tess_views_about(v);
    const bool image = is->rows == 1 && full_rows > 1 && is->views == full_rows;
    if (is->columns != columns || (!image && is->rows != full_rows))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: is (%lld, %lld, %lld); a view has %lld rows and %lld columns, and a flat or dark field "
            "as many",
            path, (long long)is->views, (long long)is->rows, (long long)is->columns, (long long)full_rows,
            (long long)columns);
    const int64_t samples = image || p->row >= 0 ? columns : full_rows * columns;
    tess_bad_values bad = {0};
    for (int64_t k = 0; k < is->views; k++) {
        TESS_TRY(tess_views_next(v, image ? -1 : p->row, view, error));
        if (image && p->row >= 0 && k != p->row)
            continue;
        tess_bad_values_count(&bad, k, view, samples);
        float *to = image && p->row < 0 ? sum + k * columns : sum;
        for (int64_t i = 0; i < samples; i++)
            to[i] += view[i] / (float)(image ? 1 : is->views);
    }
    const bool rows = samples > columns;
    return tess_bad_values_check(&bad, path,
                                 rows ? (tess_extent){is->views, full_rows, columns}
                                      : (tess_extent){is->views, columns, 1},
                                 rows, error);
}

static tess_status read_field(const char *path, double value, const tess_problem *p, int64_t full_rows,
                              float *view, float *sum, tess_error *error)
{
    if (!path) {
        for (int64_t i = 0; i < p->file_rows * p->file_columns; i++)
            sum[i] = (float)value;
        return TESS_OK;
    }
    tess_views *v = NULL;
    tess_status status = tess_views_open(p->memory, p->stop, path, &v, error);
    if (status == TESS_OK)
        status = average(v, path, p, full_rows, view, sum, error);
    tess_views_close(v);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The median light of pixels all over the detector. */
static double median_light(const fields *f)
{
    float light[SAMPLED];
    const int64_t step = tess_ceil_div(f->samples, SAMPLED);
    size_t count = 0;
    for (int64_t i = 0; i < f->samples; i += step)
        if (f->flat[i] > f->dark[i])
            light[count++] = f->flat[i] - f->dark[i];
    qsort(light, count, sizeof *light, by_value);
    return count ? (double)light[count / 2] : 0;
}

static tess_status read_fields(const tess_problem *p, int64_t full_rows, float *view, fields *f,
                               tess_error *error)
{
    f->samples = p->file_rows * p->file_columns;
    TESS_TRY(tess_block_alloc(p->memory, &f->block, TESS_MEM_HOST, tess_problem_field_bytes(p), error));
    f->flat = f->block.data;
    f->dark = f->flat + f->samples;
    TESS_TRY(read_field(p->flat, p->flat_value, p, full_rows, view, f->flat, error));
    TESS_TRY(read_field(p->dark, p->dark_value, p, full_rows, view, f->dark, error));
    int64_t dead = 0;
    for (int64_t i = 0; i < f->samples; i++)
        dead += !(f->flat[i] > f->dark[i]) || !isfinite(f->flat[i]);
    if ((double)dead > MOST_DEAD * (double)f->samples)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "\"flat\" is not above \"dark\" at %lld of %lld pixels; repair these pixels in both and in "
            "the views first",
            (long long)dead, (long long)f->samples);
    f->least = WEAK * median_light(f);
    /* Above "dark" the noise of that decides, not one count. */
    f->half_count = 0.5 * p->count_unit;
    f->least_share = p->count_unit > 0 && !p->dark && p->dark_value == 0 ? 0 : LEAST;
    return TESS_OK;
}

size_t tess_problem_field_bytes(const tess_problem *p)
{
    return p->counts ? 2 * (size_t)(p->file_rows * p->file_columns) * sizeof(float) : 0;
}

/* The least share of a pixel's light. */
static double least_share(const fields *f, double light)
{
    return fmin(fmax(f->half_count / light, f->least_share), 1);
}

/* NaN where "flat" is hardly above "dark", which is a dead pixel. */
static void to_integrals(const fields *f, float *values)
{
    for (int64_t i = 0; i < f->samples; i++) {
        const double light = (double)f->flat[i] - (double)f->dark[i];
        if (!isfinite(values[i]))
            continue;
        values[i] =
            light > f->least && isfinite(light)
                ? (float)-log(fmax(((double)values[i] - (double)f->dark[i]) / light, least_share(f, light)))
                : NAN;
    }
}

/* Dead pixels do not count: they were filled. */
static int64_t count_starved(const fields *f, const float *values)
{
    int64_t starved = 0;
    for (int64_t i = 0; i < f->samples; i++) {
        const double light = (double)f->flat[i] - (double)f->dark[i];
        starved += light > f->least && values[i] >= (float)-log(least_share(f, light));
    }
    return starved;
}

static tess_status each(const tess_problem *p, tess_views *v, const fields *f, float *values,
                        int64_t *starved, tess_view_fn fn, void *user, tess_error *error)
{
    const tess_views_info *is = tess_views_about(v);
    tess_bad_values bad = {0};
    int64_t lost = 0;
    for (int64_t k = 0; k < p->count + p->lost_count; k++) {
        TESS_TRY(tess_views_next(v, is->rows > 1 ? p->row : -1, values, error));
        tess_bad_values_count(&bad, k, values, p->file_rows * p->file_columns);
        if (lost < p->lost_count && p->lost[lost] == k) {
            lost++;
            continue;
        }
        if (p->counts)
            to_integrals(f, values);
        tess_zingers_fill(p, k, values);
        tess_dead_pixels_fill(p, values);
        if (p->counts)
            *starved += count_starved(f, values);
        if (bad.nan + bad.infinite == 0)
            TESS_TRY(fn(user, k - lost, values, error));
    }
    TESS_TRY(tess_bad_values_check(&bad, p->measurement, tess_problem_measurement_extent(p),
                                   p->physics == TESS_PHYSICS_CONE, error));
    return tess_views_check(v, error);
}

tess_status tess_problem_each_view(const tess_problem *p, float *values, int64_t *starved, tess_view_fn fn,
                                   void *user, tess_error *error)
{
    tess_views *v = NULL;
    fields f = {0};
    *starved = 0;
    tess_status status = tess_views_open(p->memory, p->stop, p->measurement, &v, error);
    if (status == TESS_OK) {
        const tess_views_info *is = tess_views_about(v);
        const int64_t rows = p->row >= 0 ? 1 : is->rows;
        if (is->views != p->count + p->lost_count || rows != p->file_rows || is->columns != p->file_columns)
            status = tess_fail(error, TESS_BAD_INPUT, "%s: changed while the job ran; run it again",
                               p->measurement);
        else if (p->counts)
            status = read_fields(p, is->rows, values, &f, error);
    }
    if (status == TESS_OK)
        status = each(p, v, &f, values, starved, fn, user, error);
    tess_views_close(v);
    tess_block_free(&f.block);
    return status;
}
