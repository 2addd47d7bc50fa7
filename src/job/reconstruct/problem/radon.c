/* The geometry of a sinogram: its entries in a problem file, and the search for its axis.
 *
 *   {"operator": "radon", "measurement": "sinogram.npy", "angles": [0, 1.8, ...], "centre": 127.5, "spacing": 0.1}
 *
 * "angles" is a list of degrees, the name of a file of them, or {"from": 0, "to": 180, "count": 100, "endpoint":
 * false}; "rotation" is their direction. "centre" is the column at which the axis is seen, or "auto"; "axis" is the
 * pixel [row, column] of the image through which it passes; "size" is the image's side. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "io/numbers.h"
#include "job/reconstruct/problem/views.h"
#include "job/reconstruct/scan/dead_pixels.h"
#include "job/reconstruct/scan/mistakes.h"
#include "job/reconstruct/scan/shadow.h"
#include "physics/centre.h"

enum { MOST_VIEWS = 100000 };

static tess_status evenly(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const double from = tess_json_get_double(json, "from", NAN), to = tess_json_get_double(json, "to", NAN);
    const tess_json *endpoint = tess_json_get(json, "endpoint");
    const bool last = tess_json_as_bool(endpoint, false);
    p->count = tess_json_as_whole(tess_json_get(json, "count"), 0);
    for (const char *key = tess_json_next_key(json, NULL); key; key = tess_json_next_key(json, key))
        if (strcmp(key, "from") && strcmp(key, "to") && strcmp(key, "count") && strcmp(key, "endpoint"))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: \"angles\": \"%.40s\" is none of from, to, count and endpoint", path, key);
    if (!isfinite(from) || !isfinite(to) || p->count < 1 || p->count > MOST_VIEWS ||
        (endpoint && !tess_json_is_bool(endpoint)))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: \"angles\" needs {\"from\": 0, \"to\": 180, \"count\": 100, \"endpoint\": false}, in "
            "degrees, of at most %d views",
            path, MOST_VIEWS);
    if (!(p->angles = tess_small_alloc((size_t)p->count, sizeof *p->angles)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the angles");
    const int64_t steps = last && p->count > 1 ? p->count - 1 : p->count;
    for (int64_t i = 0; i < p->count; i++)
        p->angles[i] = from + (to - from) * (double)i / (double)steps;
    return TESS_OK;
}

static tess_status read_angles(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_json *angles = tess_json_get(json, "angles"), *rotation = tess_json_get(json, "rotation");
    const char *way = rotation ? tess_json_as_string(rotation, "") : "counterclockwise";
    const bool back = strcmp(way, "clockwise") == 0;
    if (!back && strcmp(way, "counterclockwise") != 0)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: \"rotation\" must be \"counterclockwise\" or \"clockwise\": the way in which the "
            "detector turns as the angles grow",
            path);
    if (tess_json_is_string(angles)) {
        TESS_TRY(tess_problem_sibling(path, json, "angles", &p->geometry, error));
        TESS_TRY(tess_numbers_read(p->geometry, MOST_VIEWS, &p->angles, &p->count, error));
        if (p->count < 1)
            return tess_fail(error, TESS_BAD_INPUT, "%s: holds no angles", p->geometry);
    } else if (tess_json_is_object(angles)) {
        TESS_TRY(evenly(path, angles, p, error));
    } else {
        TESS_TRY(tess_problem_read_angles(
            path, json,
            "a list of degrees, the name of a file of them, or {\"from\": 0, \"to\": 180, \"count\": 100}", p,
            error));
    }
    for (int64_t i = 0; back && i < p->count; i++)
        p->angles[i] = -p->angles[i];
    return TESS_OK;
}

/* Computes where each view shows the middle of the image, unless it is the middle of the detector in all views. */
static tess_status place_axis(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_json *axis = tess_json_get(json, "axis");
    const double middle = 0.5 * (double)(p->width - 1), degree = 3.14159265358979323846 / 180;
    double at[2] = {middle, middle}; /* row, column */
    for (int i = 0; axis && i < 2; i++) {
        at[i] = tess_json_length(axis) == 2 ? tess_json_as_double(tess_json_at(axis, i), NAN) : NAN;
        if (!(at[i] >= 0 && at[i] <= 2 * middle))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: \"axis\" must be [row, column] of the image, numbers from 0 to %lld", path,
                             (long long)p->width - 1);
    }
    p->axis_given = axis != NULL;
    memcpy(p->axis, at, sizeof at);
    if (!axis && p->centre_from == TESS_CENTRE_MIDDLE)
        return TESS_OK;
    if (!(p->centres = tess_small_alloc((size_t)p->count, sizeof *p->centres)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the views");
    for (int64_t k = 0; k < p->count; k++)
        p->centres[k] = p->centre + (middle - at[1]) * cos(p->angles[k] * degree) -
                        (middle - at[0]) * sin(p->angles[k] * degree);
    return TESS_OK;
}

typedef struct sinogram {
    const tess_problem *p;
    float *values;
} sinogram;

static tess_status keep_view(void *user, int64_t view, float *values, tess_error *error)
{
    (void)error;
    const sinogram *s = user;
    memcpy(s->values + view * s->p->columns, values, (size_t)s->p->columns * sizeof *values);
    return TESS_OK;
}

static tess_status search_centre(const tess_problem *p, tess_centre *centre, tess_error *error)
{
    tess_block views = {0};
    int64_t starved;
    const size_t read =
        tess_align_size((size_t)((p->count + 1) * p->columns) * sizeof(float), sizeof(double));
    TESS_TRY(tess_block_alloc(p->memory, &views, TESS_MEM_HOST,
                              read + tess_centre_bytes(p->count, p->columns), error));
    sinogram s = {p, views.data};
    tess_status status =
        tess_problem_each_view(p, s.values + p->count * p->columns, &starved, keep_view, &s, error);
    if (status == TESS_OK) {
        const tess_centre_views v = {s.values, p->angles, p->count, p->columns, p->stop};
        status = tess_centre_find(&v, (char *)views.data + read, centre, error);
        if (status != TESS_OK)
            status = tess_fail_prefix(error, status, p->measurement);
    }
    tess_block_free(&views);
    return status;
}

/* The middle is right for most sinograms; where it is far from what the views show, that is said. */
static tess_status doubt_middle(tess_problem *p, tess_error *error)
{
    tess_centre centre = {0};
    tess_error unused = {0}; /* often it cannot be found */
    if (search_centre(p, &centre, &unused) == TESS_OK)
        tess_scan_doubt_centre(p, &centre);
    return tess_stop_check(p->stop, error);
}

static tess_status find_centre(tess_problem *p, tess_error *error)
{
    tess_centre centre = {0};
    const tess_status status = search_centre(p, &centre, error);
    p->centre = centre.column;
    p->centre_pairs = centre.pairs;
    p->centre_within = centre.within;
    p->centre_from = centre.pairs      ? TESS_CENTRE_PAIRS
                     : centre.spectrum ? TESS_CENTRE_SPECTRUM
                                       : TESS_CENTRE_MASS;
    return status;
}

static tess_status read_centre(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_json *centre = tess_json_get(json, "centre");
    p->centre = 0.5 * (double)(p->columns - 1);
    if (!centre)
        return TESS_OK;
    p->centre = tess_json_as_double(centre, NAN);
    if (strcmp(tess_json_as_string(centre, ""), "auto") == 0)
        return TESS_OK; /* NaN: it is searched when dead pixels are known */
    p->centre_from = TESS_CENTRE_GIVEN;
    if (!(fabs(p->centre) <= 65536))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: \"centre\" must be \"auto\" or a column, counted from 0: %g is the middle of %s", path,
            0.5 * (double)(p->columns - 1), p->measurement);
    return TESS_OK;
}

static tess_status check_shape(const char *path, const tess_json *json, tess_problem *p,
                               const tess_views_info *is, tess_error *error)
{
    const tess_json *row = tess_json_get(json, "row");
    p->row = tess_json_as_whole(row, -1);
    if (row && !tess_json_is_whole(row))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: \"row\" must be a whole number: a row of each view, counted from 0", path);
    if (is->array && is->rows > 1 && !row)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: is %lld x %lld with %lld channel(s), but a sinogram has one row for each of the %lld "
            "angles of %s; of (views, rows, columns) name a row with \"row\"",
            p->measurement, (long long)is->views, (long long)is->rows, (long long)is->columns,
            (long long)p->count, path);
    if (is->views != p->count)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has %lld views of %lld columns, but %s has %lld angles: a sinogram has one row "
                         "for each%s",
                         p->measurement, (long long)is->views, (long long)is->columns, path,
                         (long long)p->count,
                         p->geometry && p->count == 2 * is->views
                             ? "; a text file of angles has one number a line, with a decimal point"
                             : "");
    if (row && is->array && is->flat)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: \"row\" chooses a row of each view, but %s is a sinogram already, with a row for "
            "each view; leave \"row\" out",
            path, p->measurement);
    if (is->rows > 1 ? p->row < 0 || p->row >= is->rows : row && p->row != 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: each view of %s has %lld row(s); \"row\" must be one of them, counted from 0%s",
                         path, p->measurement, (long long)is->rows, is->rows > 1 ? "" : ", or be left out");
    return TESS_OK;
}

tess_status tess_problem_read_radon(const char *path, const tess_json *json, tess_problem *p,
                                    tess_error *error)
{
    tess_views_info is;
    TESS_TRY(read_angles(path, json, p, error));
    TESS_TRY(tess_problem_look_at_views(p, &is, error));
    TESS_TRY(check_shape(path, json, p, &is, error));
    const tess_json *size = tess_json_get(json, "size");
    p->physics = TESS_PHYSICS_RADON;
    p->circle = tess_json_get_bool(json, "circle", true);
    p->rows = p->file_rows = 1;
    p->columns = p->file_columns = is.columns;
    p->height = p->width = tess_json_as_whole(size, is.columns);
    p->channels = 1;
    TESS_TRY(tess_problem_read_spacing(path, json, "a pixel, of the detector and of the image", p, error));
    if (p->width < 2 || p->width > 65536) /* checked before it is used */
        return tess_fail(error, TESS_BAD_INPUT, "%s: an image has a side from 2 to 65536, not %lld", path,
                         (long long)p->width);
    TESS_TRY(tess_problem_read_counts(path, json, p, &is, error));
    TESS_TRY(read_centre(path, json, p, error));
    TESS_TRY(tess_problem_find_faults(p, error));
    if (isnan(p->centre))
        TESS_TRY(find_centre(p, error));
    else if (p->centre_from == TESS_CENTRE_MIDDLE && !p->transmission)
        TESS_TRY(doubt_middle(p, error));
    TESS_TRY(place_axis(path, json, p, error));
    return tess_problem_look_outside(p, error);
}
