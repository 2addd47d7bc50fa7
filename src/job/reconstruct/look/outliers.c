/* Found values are kept in a list and written when all are known, so that the result does not depend on the order. */
#include "job/reconstruct/look/outliers.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/common/note.h"
#include "job/reconstruct/look/blur_rows.h"
#include "job/reconstruct/look/outlier.h"

enum { MOST = 65536, REACH = TESS_OUTLIER_REACH, SIDE = TESS_OUTLIER_SIDE };
_Static_assert((int)SIDE == (int)TESS_BLUR_ROWS, "a window has all rows that a visit shows");
static const double MOST_SHARE = 0.002; /* of all values; more are no defects of a camera */
static const double DIFFERENCES = 4; /* an outlier exceeds the mean difference of neighbours by this factor */
static const double COUNTS = 8;      /* of whole numbers: a smaller span may be chance, as of photons */
static const double WHOLE = 1e-3;    /* from a whole number: less is rounding */

typedef struct outlier {
    int64_t at; /* in the measurements of this rank */
    float value;
} outlier;

typedef struct search {
    tess_blur_rows rows;
    double differences; /* of neighbours in a row, their sum */
    double fractions;   /* values that are not whole numbers in the file */
    tess_outlier_limits limits;
    outlier *list;
    int64_t count;     /* may exceed MOST: further ones are only counted */
    int64_t first_one; /* index in the whole measurement; INT64_MAX: none */
} search;

static void add_texture(void *user, const tess_blur_rows *rows, int64_t row)
{
    search *s = user;
    const tess_problem *p = rows->problem;
    const float *values = tess_blur_row(rows, row);
    for (int64_t i = 0; i < rows->samples; i++) {
        const double value = (double)values[i] * p->unit + p->offset;
        s->fractions += fabs(value - rint(value)) > WHOLE;
        if (i >= p->channels)
            s->differences += (double)fabsf(values[i] - values[i - p->channels]);
    }
}

static void add_outliers(void *user, const tess_blur_rows *rows, int64_t row)
{
    search *s = user;
    const tess_problem *p = rows->problem;
    const int64_t channels = p->channels, samples = rows->samples;
    const float *around[SIDE];
    float window[SIDE * SIDE], value;
    if (row == 0 || row == p->height - 1) /* the rim of a point outside, perhaps; so are outer columns */
        return;
    for (int dy = -REACH; dy <= REACH; dy++)
        around[dy + REACH] = tess_blur_row(rows, row + dy);
    for (int64_t i = channels; i < samples - channels; i++) {
        for (int dx = -REACH; dx <= REACH; dx++) {
            const int64_t column = tess_min_i64(tess_max_i64(i / channels + dx, 0), p->width - 1);
            for (int y = 0; y < SIDE; y++)
                window[y * SIDE + dx + REACH] = around[y][column * channels + i % channels];
        }
        if (!tess_is_outlier(&s->limits, window, &value))
            continue;
        if (s->count < MOST)
            s->list[s->count] = (outlier){(rows->blur * rows->own + row - rows->first) * samples + i, value};
        s->count++;
        s->first_one = tess_min_i64(s->first_one, (rows->blur * p->height + row) * samples + i);
    }
}

/* Collective: of one blur. */
static tess_status search_blur(search *s, int64_t blur, tess_error *error)
{
    const tess_problem *p = s->rows.problem;
    tess_sampled_kernel kernel = {0};
    tess_status status = tess_stop_check(&s->rows.w->engine->stop, error);
    if (status == TESS_OK)
        status = tess_sample_kernel(p, blur, &kernel, error);
    status = tess_share_agree(p->share, status, error);
    if (status == TESS_OK)
        s->limits = tess_outlier_limits_of(&kernel);
    tess_small_free(kernel.values);
    TESS_TRY(status);
    s->differences = s->fractions = 0;
    TESS_TRY(tess_blur_rows_choose(&s->rows, blur, error));
    TESS_TRY(tess_share_keep(p->share, tess_blur_rows_visit(&s->rows, add_texture, s, error), error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &s->differences, error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &s->fractions, error));
    s->limits.excess = DIFFERENCES * s->differences / (double)(p->height * s->rows.samples);
    s->limits.span = s->fractions == 0 ? COUNTS / p->unit : 0;
    return tess_share_keep(p->share, tess_blur_rows_visit(&s->rows, add_outliers, s, error), error);
}

static tess_status replace(const search *s, tess_error *error)
{
    tess_workspace *w = s->rows.w;
    tess_device *device = w->device;
    for (int64_t i = 0; i < s->count; i++)
        device->memory->copy(device, (float *)w->measurement.data + s->list[i].at, &s->list[i].value,
                             sizeof s->list[i].value, NULL);
    return device->streams->sync(device, NULL, error);
}

/* Collective. */
static tess_status finish(search *s, tess_problem *p, const tess_common *common, tess_error *error)
{
    double count = (double)s->count, most = count,
           first = s->first_one < INT64_MAX ? (double)s->first_one : INFINITY;
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &count, error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_MOST, &most, error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_LEAST, &first, error));
    if (count == 0)
        return TESS_OK;
    const int64_t pixel = (int64_t)first / p->channels;
    const long long row = pixel / p->width, column = pixel % p->width;
    if (most > MOST || count > MOST_SHARE * (double)(p->count * p->height * s->rows.samples)) {
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: %.0f values, the first at row %lld, column %lld, stand out from those around them more "
            "than this kernel lets a point of light do; they are too many for defects of a camera and "
            "stay: the kernel may be wider than the blur, or the noise has outliers (filter it first)",
            p->measurement, count, row, column);
        return TESS_OK;
    }
    p->outliers = (int64_t)count;
    tess_note(common, TESS_NOTE_WARNING,
              "%s: %.0f value(s), the first at row %lld, column %lld, stand out from those around them more "
              "than the kernel lets a point of light do, as hot and dead pixels; they are replaced by the "
              "median around them (\"outliers\": false keeps them)",
              p->measurement, count, row, column);
    return tess_share_agree(p->share, replace(s, error), error);
}

tess_status tess_problem_replace_outliers(tess_problem *p, tess_workspace *w, const tess_common *common,
                                          tess_error *error)
{
    search s = {.first_one = INT64_MAX};
    if (p->keep_outliers || p->as_published || p->height < SIDE || p->width < SIDE)
        return TESS_OK;
    tess_status status = tess_blur_rows_open(&s.rows, p, w, error);
    if (status == TESS_OK) {
        s.list = tess_small_alloc(MOST, sizeof *s.list);
        status = s.list ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look for outliers");
        status = tess_share_agree(p->share, status, error);
    }
    for (int64_t i = 0; i < p->count && status == TESS_OK; i++)
        status = search_blur(&s, i, error);
    if (status == TESS_OK)
        status = finish(&s, p, common, error);
    tess_small_free(s.list);
    tess_blur_rows_close(&s.rows);
    return status;
}
