/* Measured views of a volume, with vectors for each view from an NPY file:
 *
 *   {"operator": "cone", "vectors": "vecs.npy", "volume": [501, 501, 501], "spacing": 0.1, "measurement": "y.npy"}
 *
 * Vectors are (views, 12): source, detector centre, step between columns, step between rows, as in ASTRA's cone_vec;
 * with "parallel3d" the direction of the rays replaces the source. Measurements are (views, rows, columns). The
 * creation of the operator checks whether the rays meet the volume. */
#include <math.h>

#include "io/table.h"
#include "job/reconstruct/problem/views.h"
#include "job/reconstruct/scan/dead_pixels.h"
#include "job/reconstruct/scan/shadow3.h"

enum { NUMBERS = 12, MOST_VIEWS = 100000, MOST_SIDE = 1 << 16 };

static tess_status read_vectors(const char *path, tess_problem *p, const tess_views_info *info,
                                tess_error *error)
{
    tess_table table;
    if (!p->geometry)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: needs \"vectors\", the name of an NPY file of 12 numbers a view: source (or the "
            "rays' direction), detector centre, step between columns, step between rows",
            path);
    TESS_TRY(tess_table_read(p->geometry, (int64_t)MOST_VIEWS * NUMBERS, &table, error));
    p->vectors = table.values;
    p->count = table.rows;
    if (table.integers)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: holds integers, to which directions may have been rounded; write float64 or float32",
            p->geometry);
    if (table.columns != NUMBERS)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: has %lld columns; a view has 12: source (or the rays' direction), detector centre, "
            "step between columns, step between rows",
            p->geometry, (long long)table.columns);
    if (info->array && (info->flat || info->columns < 2))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has two axes, or a single column; measurements are (views, rows, columns)",
                         p->measurement);
    if (info->views != p->count)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: is (%lld, %lld, %lld), but %s has the vectors of %lld views; measurements are (views, "
            "rows, columns)",
            p->measurement, (long long)info->views, (long long)info->rows, (long long)info->columns,
            p->geometry, (long long)p->count);
    return TESS_OK;
}

static tess_status read_sizes(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_json *volume = tess_json_get(json, "volume");
    int64_t *const sides[] = {&p->depth, &p->height, &p->width};
    for (int i = 0; i < 3; i++) {
        *sides[i] = tess_json_as_whole(tess_json_at(volume, i), 0);
        if (tess_json_length(volume) != 3 || *sides[i] < 1 || *sides[i] > MOST_SIDE)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: needs \"volume\": [depth, height, width], three numbers from 1 to %d", path,
                             MOST_SIDE);
    }
    const tess_json *resample = tess_json_get(json, "resample");
    if (resample && !tess_json_is_bool(resample))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"resample\" must be true or false", path);
    p->keep_detector = !tess_json_as_bool(resample, true);
    return tess_problem_read_spacing(path, json, "a voxel, in the units of the vectors", p, error);
}

tess_status tess_problem_read_volume(const char *path, const tess_json *json, tess_problem *p,
                                     tess_error *error)
{
    tess_views_info info;
    TESS_TRY(tess_problem_look_at_views(p, &info, error));
    TESS_TRY(read_vectors(path, p, &info, error));
    TESS_TRY(read_sizes(path, json, p, error));
    p->physics = TESS_PHYSICS_CONE;
    p->channels = 1;
    p->rows = p->file_rows = info.rows;
    p->columns = p->file_columns = info.columns;
    TESS_TRY(tess_problem_read_counts(path, json, p, &info, error));
    TESS_TRY(tess_problem_find_faults(p, error));
    return tess_shadow3_misses(p) ? tess_problem_look_around(p, error) : TESS_OK;
}
