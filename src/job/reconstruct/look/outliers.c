/* The values of a rank are visited row by row, with two rows above and below in a ring buffer; ranks first tell each other the
 * rows beside the borders between them. Found values are kept in a list and written when all are known, so that the result
 * does not depend on the order. */
#include "job/reconstruct/look/outliers.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/common/note.h"
#include "job/reconstruct/look/outlier.h"

enum { MOST = 65536, REACH = TESS_OUTLIER_REACH, SIDE = TESS_OUTLIER_SIDE };
static const double MOST_SHARE = 0.002; /* of all values; more are no defects of a camera */
static const double DIFFERENCES = 4; /* an outlier exceeds the mean difference of neighbours by this factor */
static const double COUNTS = 8;      /* of whole numbers: a smaller span may be chance, as of photons */
static const double WHOLE = 1e-3;    /* from a whole number: less is rounding */

typedef struct outlier {
    int64_t at; /* in the measurements of this rank */
    float value;
} outlier;

typedef struct search {
    tess_problem *problem;
    tess_workspace *w;
    int64_t blur, first, own; /* rows of this rank */
    int64_t samples;          /* of a row */
    float *ring;              /* row y is at y modulo SIDE */
    float *edges;             /* two rows on both sides of each border between ranks */
    outlier *list;
    int64_t count;     /* may exceed MOST: further ones are only counted */
    int64_t first_one; /* index in the whole measurement; INT64_MAX: none */
} search;

static int64_t borders(const search *s)
{
    return tess_share_many(s->problem->share) ? s->problem->share->dist->size - 1 : 0;
}

/* The first of the four rows beside border `i`. */
static int64_t edge_row(const search *s, int64_t i)
{
    return tess_problem_shown(s->problem, s->problem->share, (int)i + 1) - REACH;
}

static bool is_own(const search *s, int64_t row)
{
    return row >= s->first && row < s->first + s->own;
}

static void copy_own(const search *s, int64_t row, float *to)
{
    tess_device *device = s->w->engine->device;
    const float *from = s->w->measurement.data;
    device->memory->copy(device, to, from + ((s->blur * s->own) + row - s->first) * s->samples,
                         (size_t)s->samples * sizeof *to, NULL);
}

/* Collective. */
static tess_status tell_edges(search *s, tess_error *error)
{
    tess_device *device = s->w->engine->device;
    const int64_t rows = 2 * REACH * borders(s);
    if (rows == 0)
        return TESS_OK;
    memset(s->edges, 0, (size_t)(rows * s->samples) * sizeof *s->edges);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = edge_row(s, i / (2 * REACH)) + i % (2 * REACH);
        if (is_own(s, row))
            copy_own(s, row, s->edges + i * s->samples);
    }
    TESS_TRY(tess_share_keep(s->problem->share, device->streams->sync(device, NULL, error), error));
    return tess_dist_sum_f32(s->problem->share->dist, s->edges, rows * s->samples, error);
}

static void fetch_row(const search *s, int64_t row)
{
    float *to = s->ring + row % SIDE * s->samples;
    if (is_own(s, row)) {
        copy_own(s, row, to);
        return;
    }
    for (int64_t i = 0; i < borders(s); i++) {
        const int64_t at = row - edge_row(s, i);
        if (at >= 0 && at < 2 * REACH)
            memcpy(to, s->edges + (i * 2 * REACH + at) * s->samples, (size_t)s->samples * sizeof *to);
    }
}

static int64_t inside(int64_t at, int64_t length)
{
    return tess_min_i64(tess_max_i64(at, 0), length - 1);
}

/* Calls `visit` for each row of this rank, with the rows around it in the ring. */
static tess_status walk(search *s, void (*visit)(search *s, int64_t row, void *user), void *user,
                        tess_error *error)
{
    tess_device *device = s->w->engine->device;
    const int64_t height = s->problem->height;
    int64_t next = tess_max_i64(s->first - REACH, 0);
    for (int64_t row = s->first; row < s->first + s->own; row++) {
        for (; next <= tess_min_i64(row + REACH, height - 1); next++)
            fetch_row(s, next);
        TESS_TRY(device->streams->sync(device, NULL, error));
        visit(s, row, user);
    }
    return TESS_OK;
}

typedef struct texture {
    double differences; /* of neighbours in a row, their sum */
    double fractions;   /* values that are not whole numbers in the file */
} texture;

static void add_texture(search *s, int64_t row, void *user)
{
    texture *t = user;
    const float *values = s->ring + row % SIDE * s->samples;
    const tess_problem *p = s->problem;
    for (int64_t i = 0; i < s->samples; i++) {
        const double value = (double)values[i] * p->unit + p->offset;
        t->fractions += fabs(value - rint(value)) > WHOLE;
        if (i >= p->channels)
            t->differences += (double)fabsf(values[i] - values[i - p->channels]);
    }
}

static void add_outliers(search *s, int64_t row, void *user)
{
    const tess_outlier_limits *limits = user;
    const tess_problem *p = s->problem;
    const int64_t channels = p->channels;
    const float *rows[SIDE];
    float window[SIDE * SIDE], value;
    if (row == 0 || row == p->height - 1) /* the rim of a point outside, perhaps; so are outer columns */
        return;
    for (int dy = -REACH; dy <= REACH; dy++)
        rows[dy + REACH] = s->ring + inside(row + dy, p->height) % SIDE * s->samples;
    for (int64_t i = channels; i < s->samples - channels; i++) {
        for (int dx = -REACH; dx <= REACH; dx++) {
            const int64_t from = inside(i / channels + dx, p->width) * channels + i % channels;
            for (int y = 0; y < SIDE; y++)
                window[y * SIDE + dx + REACH] = rows[y][from];
        }
        if (!tess_is_outlier(limits, window, &value))
            continue;
        if (s->count < MOST)
            s->list[s->count] = (outlier){(s->blur * s->own + row - s->first) * s->samples + i, value};
        s->count++;
        s->first_one = tess_min_i64(s->first_one, (s->blur * p->height + row) * s->samples + i);
    }
}

/* Collective: of one blur. */
static tess_status search_blur(search *s, tess_error *error)
{
    tess_problem *p = s->problem;
    tess_sampled_kernel kernel = {0};
    texture t = {0};
    tess_status status = tess_stop_check(&s->w->engine->stop, error);
    if (status == TESS_OK)
        status = tess_sample_kernel(p, s->blur, &kernel, error);
    status = tess_share_agree(p->share, status, error);
    if (status == TESS_OK)
        status = tell_edges(s, error);
    if (status == TESS_OK)
        status = tess_share_keep(p->share, walk(s, add_texture, &t, error), error);
    if (status == TESS_OK)
        status = tess_share_add(p->share, TESS_SHARE_SUM, &t.differences, error);
    if (status == TESS_OK)
        status = tess_share_add(p->share, TESS_SHARE_SUM, &t.fractions, error);
    if (status == TESS_OK) {
        tess_outlier_limits limits = tess_outlier_limits_of(&kernel);
        limits.excess = DIFFERENCES * t.differences / (double)(p->height * s->samples);
        limits.span = t.fractions == 0 ? COUNTS / p->unit : 0;
        status = tess_share_keep(p->share, walk(s, add_outliers, &limits, error), error);
    }
    tess_small_free(kernel.values);
    return status;
}

static tess_status replace(const search *s, tess_error *error)
{
    tess_device *device = s->w->engine->device;
    for (int64_t i = 0; i < s->count; i++)
        device->memory->copy(device, (float *)s->w->measurement.data + s->list[i].at, &s->list[i].value,
                             sizeof s->list[i].value, NULL);
    return device->streams->sync(device, NULL, error);
}

/* Collective. */
static tess_status finish(search *s, const tess_common *common, tess_error *error)
{
    tess_problem *p = s->problem;
    double count = (double)s->count, most = count,
           first = s->first_one < INT64_MAX ? (double)s->first_one : INFINITY;
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_SUM, &count, error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_MOST, &most, error));
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_LEAST, &first, error));
    if (count == 0)
        return TESS_OK;
    const int64_t pixel = (int64_t)first / p->channels;
    const long long row = pixel / p->width, column = pixel % p->width;
    if (most > MOST || count > MOST_SHARE * (double)(p->count * p->height * s->samples)) {
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
    search s = {.problem = p,
                .w = w,
                .first = tess_problem_first(p),
                .own = tess_problem_own(p),
                .samples = tess_problem_row(p),
                .first_one = INT64_MAX};
    if (p->keep_outliers || p->as_published || p->height < SIDE || p->width < SIDE)
        return TESS_OK;
    s.ring = tess_small_alloc((size_t)((SIDE + 2 * REACH * borders(&s)) * s.samples), sizeof *s.ring);
    s.list = tess_small_alloc(MOST, sizeof *s.list);
    s.edges = s.ring ? s.ring + SIDE * s.samples : NULL;
    tess_status status =
        s.ring && s.list ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look for outliers");
    status = tess_share_agree(p->share, status, error);
    for (; s.blur < p->count && status == TESS_OK; s.blur++)
        status = search_blur(&s, error);
    if (status == TESS_OK)
        status = finish(&s, common, error);
    tess_small_free(s.list);
    tess_small_free(s.ring);
    return status;
}
