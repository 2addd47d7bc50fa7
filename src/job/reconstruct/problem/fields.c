/* The entries of a problem file about the views: their files and sizes, the unit of length, and how counts become line
 * integrals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/reconstruct/problem/views.h"

enum { LONGEST_NAME = 255 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

tess_status tess_problem_look_at_views(tess_problem *p, tess_views_info *is, tess_error *error)
{
    tess_views *v = NULL;
    const tess_status status = tess_views_open(p->memory, p->stop, p->measurement, &v, error);
    if (status == TESS_OK) {
        *is = *tess_views_about(v);
        if (is->first)
            snprintf(p->view_order, sizeof p->view_order, "%lld views, the first %.*s, the last %.*s",
                     (long long)is->views, LONGEST_NAME, base_name(is->first), LONGEST_NAME,
                     base_name(is->last));
        is->first = is->last = NULL; /* they end with the views */
    }
    tess_views_close(v);
    return status;
}

/* Beyond these limits, line integrals divided by the spacing leave the range of 32-bit floats. */
static const double FINEST = 1e-20, COARSEST = 1e20;

tess_status tess_problem_read_spacing(const char *path, const tess_json *json, const char *of,
                                      tess_problem *p, tess_error *error)
{
    const tess_json *spacing = tess_json_get(json, "spacing");
    p->spacing = spacing ? tess_json_as_double(spacing, NAN) : 1;
    if (!(p->spacing > 0) || !isfinite(p->spacing))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"spacing\" must be a number above 0: the side of %s",
                         path, of);
    if (p->spacing < FINEST || p->spacing > COARSEST)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: \"spacing\" is %g, which 32-bit floats do not bear; choose a unit of length in "
                         "which it lies between %g and %g",
                         path, p->spacing, FINEST, COARSEST);
    return TESS_OK;
}

/* A number, or the name of a file. */
static tess_status read_field(const char *path, const tess_json *json, const char *key, char **file,
                              double *value, tess_error *error)
{
    const tess_json *entry = tess_json_get(json, key);
    if (!entry)
        return TESS_OK;
    if (!tess_json_is_number(entry))
        return tess_problem_sibling(path, json, key, file, error);
    *value = tess_json_as_double(entry, NAN);
    return isfinite(*value) ? TESS_OK
                            : tess_fail(error, TESS_BAD_INPUT, "%s: \"%s\" must be finite", path, key);
}

tess_status tess_problem_read_counts(const char *path, const tess_json *json, tess_problem *p,
                                     const tess_views_info *is, tess_error *error)
{
    const tess_json *counts = tess_json_get(json, "counts"), *flat = tess_json_get(json, "flat"),
                    *dark = tess_json_get(json, "dark");
    if (counts && !tess_json_is_bool(counts))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"counts\" must be true or false", path);
    p->counts = tess_json_as_bool(counts, flat != NULL);
    p->bare_integers = is->integers && !p->counts && !counts; /* "counts": false confirms it */
    if (p->counts && !flat)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: \"counts\" need \"flat\": an image, or a number, of what the detector counts without "
            "the object",
            path);
    if (!p->counts && (flat || dark))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: \"flat\" and \"dark\" are for counts; write \"counts\": true, or take them out",
                         path);
    TESS_TRY(read_field(path, json, "flat", &p->flat, &p->flat_value, error));
    TESS_TRY(read_field(path, json, "dark", &p->dark, &p->dark_value, error));
    const char *const files[] = {p->flat, p->dark};
    size_t held = is->held;
    for (int i = 0; i < 2; i++)
        if (files[i]) {
            tess_views *v = NULL;
            const tess_status status = tess_views_open(p->memory, p->stop, files[i], &v, error);
            if (status == TESS_OK && tess_views_about(v)->held > held - is->held)
                held = is->held + tess_views_about(v)->held;
            tess_views_close(v);
            TESS_TRY(status);
        }
    held += tess_block_granted(tess_problem_field_bytes(p));
    p->held = held > p->held ? held : p->held;
    return tess_problem_find_count_unit(p, is, error);
}
