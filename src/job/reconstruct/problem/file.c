/* Measured data: a JSON file that names the operator, its geometry and the arrays in the same folder.
 *
 *   {"operator": "blur", "angles": [0, 45, 90], "sigma": [3.0, 1.5], "measurement": "y.npy"} (problem/blur.c)
 *   {"operator": "radon", "angles": [0, 1.8, ...], "circle": true, "measurement": "sinogram.npy"}
 *   {"operator": "cone", "vectors": "vectors.npy", "volume": [D, H, W], "measurement": "views.npy"}
 *   (problem/volume.c)
 *
 * All may have "truth" (an image or volume), "noise" (standard deviation of the measurements' noise) and "range" (the
 * least and the largest value; otherwise from the data). Measurements of several blurs are stacked vertically: (blurs
 * * height, width[, channels]); for scans see problem/radon.c and views.h. Names are relative to the JSON file. An
 * unknown entry is an error: "nose" in place of "noise" would give a plausible but wrong picture. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "job/reconstruct/problem/read.h"
#include "job/reconstruct/problem/values.h"

enum { MOST_BYTES = 16 << 20 };

static tess_status read_text(const char *path, char **text, size_t *length, tess_error *error)
{
    FILE *file = NULL;
    tess_status status = tess_file_open(path, &file, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, path);
    if (!(*text = tess_small_alloc(MOST_BYTES, 1)))
        status = tess_fail(error, TESS_NO_MEMORY, "%s: no memory to read it", path);
    else if ((*length = fread(*text, 1, MOST_BYTES, file)) == MOST_BYTES)
        status =
            tess_fail(error, TESS_BAD_INPUT, "%s: is larger than 16 MiB; arrays belong in NPY files", path);
    else if (ferror(file))
        status = tess_fail(error, TESS_IO_FAILED, "%s: cannot be read", path);
    fclose(file);
    return status;
}

char *tess_problem_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    const size_t folder = name[0] != '/' && slash ? (size_t)(slash - path) + 1 : 0;
    char *out = tess_small_alloc(folder + strlen(name) + 1, 1);
    if (!out)
        return NULL;
    memcpy(out, path, folder);
    strcpy(out + folder, name);
    return out;
}

tess_status tess_problem_sibling(const char *path, const tess_json *json, const char *key, char **out,
                                 tess_error *error)
{
    const char *name = tess_json_get_string(json, key, NULL);
    if (tess_json_get(json, key) && (!name || !*name))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"%s\" must be the name of a file", path, key);
    if (!name)
        return TESS_OK;
    *out = tess_problem_beside(path, name);
    return *out ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
}

static tess_status numbers(const char *path, const tess_json *list, const char *key, int64_t count,
                           double *values, tess_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        values[i] = tess_json_as_double(tess_json_at(list, i), NAN);
        if (!isfinite(values[i]))
            return tess_fail(error, TESS_BAD_INPUT, "%s: \"%s\" must be a list of numbers", path, key);
    }
    return TESS_OK;
}

static tess_status header_of(const char *file, tess_axes axes, tess_problem *p, tess_image_info *info,
                             tess_error *error)
{
    tess_values values = {0};
    const tess_status status = tess_values_open(p->memory, file, axes, 0, &values, error);
    const size_t held = status == TESS_OK ? tess_values_held(&values, true) : 0;
    *info = values.info;
    tess_values_close(&values);
    TESS_TRY(status);
    p->held = held > p->held ? held : p->held;
    if (info->alpha)
        return tess_fail(error, TESS_UNSUPPORTED, "%s: has an alpha channel; save it without one", file);
    return TESS_OK;
}

/* Whether the file is an array (blurs, height, width[, channels]): blurs stand one above another. */
static bool is_stack(tess_problem *p)
{
    tess_image_info info;
    return p->count > 1 && header_of(p->measurement, TESS_AXES_PLAIN, p, &info, NULL) == TESS_OK &&
           info.axes == TESS_AXES_HWC && info.height == p->count;
}

/* A stack would be read as a picture with a row for each blur, or looks like (channels, height, width). */
static tess_status header_of_blurs(tess_axes axes, tess_problem *p, tess_image_info *info, tess_error *error)
{
    if (axes == TESS_AXES_PICTURE && is_stack(p))
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: its first axis is as long as there are blurs, %lld; if it counts them, save "
            "y.reshape(-1, y.shape[2]), because they stand one above another; if it is (channels, "
            "height, width), move it to the end",
            p->measurement, (long long)p->count);
    return header_of(p->measurement, axes, p, info, error);
}

tess_status tess_problem_read_angles(const char *path, const tess_json *json, const char *forms,
                                     tess_problem *p, tess_error *error)
{
    const tess_json *angles = tess_json_get(json, "angles");
    p->count = tess_json_length(angles);
    if (!tess_json_is_array(angles) || p->count < 1)
        return tess_fail(error, TESS_BAD_INPUT, "%s: needs \"angles\": %s", path, forms);
    if (!(p->angles = tess_small_alloc((size_t)p->count, sizeof *p->angles)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the angles");
    return numbers(path, angles, "angles", p->count, p->angles, error);
}

static tess_status read_range(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_json *range = tess_json_get(json, "range");
    double ends[2] = {0, 1};
    p->range_from = range ? TESS_RANGE_FROM_GIVEN : TESS_RANGE_FROM_DATA;
    if (range && tess_json_length(range) != 2)
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"range\" is a list of two numbers", path);
    if (range)
        TESS_TRY(numbers(path, range, "range", 2, ends, error));
    if (!(ends[1] > ends[0]) || !(ends[1] > 0))
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"range\" must grow, to above 0", path);
    if (ends[1] < FLT_MIN || ends[1] > FLT_MAX || ends[0] < -FLT_MAX)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: \"range\" [%g, %g] is beyond 32-bit floats; scale it and the measurements alike", path,
            ends[0], ends[1]);
    p->low = ends[0];
    p->high = ends[1];
    return TESS_OK;
}

/* Pictures of 8 and 16 bits range up to their type's maximum; other integers are not scaled. */
static void range_of_type(const tess_image_info *info, tess_problem *p)
{
    p->floats = info->dtype == TESS_F32;
    if (p->range_from != TESS_RANGE_FROM_DATA || (info->dtype != TESS_U8 && info->dtype != TESS_U16))
        return;
    p->range_from = TESS_RANGE_FROM_TYPE;
    p->high = info->full_scale;
}

/* Of several blurs none is like the result, and a nodata value may be that of a dark pixel of the result. */
static void keep_metadata(const tess_image_info *info, tess_problem *p)
{
    p->says = info->says;
    p->like_measurement = p->count == 1 && !info->masked && !info->foreign;
    p->extras_bytes = info->extras_bytes;
}

static tess_status size_agrees(const char *path, const tess_json *json, const tess_problem *p,
                               tess_error *error)
{
    const struct {
        const char *key;
        int64_t is;
    } sizes[] = {{"height", p->height}, {"width", p->width}, {"size", p->width}, {"channels", p->channels}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const tess_json *entry = tess_json_get(json, sizes[i].key);
        const int64_t told = tess_json_as_whole(entry, sizes[i].is);
        if (entry && !tess_json_is_whole(entry))
            return tess_fail(error, TESS_BAD_INPUT, "%s: \"%s\" must be a whole number; %s makes it %lld",
                             path, sizes[i].key, p->measurement, (long long)sizes[i].is);
        if (told != sizes[i].is)
            return tess_fail(error, TESS_BAD_INPUT, "%s: \"%s\" is %lld, but %s makes it %lld", path,
                             sizes[i].key, (long long)told, p->measurement, (long long)sizes[i].is);
    }
    return TESS_OK;
}

/* The order of the axes of a blur's arrays. */
static tess_status read_axes(const char *path, const tess_json *json, tess_axes *axes, tess_error *error)
{
    const tess_json *entry = tess_json_get(json, "axes");
    const char *name = tess_json_as_string(entry, "");
    *axes = !entry                     ? TESS_AXES_PICTURE
            : strcmp(name, "HW") == 0  ? TESS_AXES_HW
            : strcmp(name, "HWC") == 0 ? TESS_AXES_HWC
                                       : TESS_AXES_AUTO;
    return *axes != TESS_AXES_AUTO
               ? TESS_OK
               : tess_fail(error, TESS_BAD_INPUT,
                           "%s: \"axes\" must be \"HW\" or \"HWC\": arrays are (height, width) or (height, "
                           "width, channels)",
                           path);
}

static tess_status check_truth(tess_problem *p, tess_axes axes, tess_error *error)
{
    const tess_extent is = tess_problem_image_extent(p);
    tess_image_info info;
    TESS_TRY(header_of(p->truth, axes == TESS_AXES_PICTURE ? axes : TESS_AXES_PLAIN, p, &info, error));
    if (info.height == is.height && info.width == is.width && info.channels == is.channels)
        return TESS_OK;
    p->flat_truth = p->physics == TESS_PHYSICS_CONE && p->depth == 1 && info.height == p->height &&
                    info.width == p->width && info.channels == 1;
    if (p->flat_truth)
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "%s: is (%lld, %lld, %d), but what %s gives is (%lld, %lld, %lld); name a truth of that shape, "
        "or none",
        p->truth, (long long)info.height, (long long)info.width, info.channels, p->measurement,
        (long long)is.height, (long long)is.width, (long long)is.channels);
}

static tess_problem_kind kind_of(const tess_json *json, tess_problem *p)
{
    const char *name = tess_json_get_string(json, "operator", "");
    p->parallel = strcmp(name, "parallel3d") == 0;
    return strcmp(name, "blur") == 0                  ? TESS_PROBLEM_BLUR
           : strcmp(name, "radon") == 0               ? TESS_PROBLEM_RADON
           : p->parallel || strcmp(name, "cone") == 0 ? TESS_PROBLEM_VOLUME
                                                      : TESS_PROBLEM_UNKNOWN;
}

static tess_status describe(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_problem_kind kind = kind_of(json, p);
    tess_axes axes = TESS_AXES_PLAIN;
    tess_image_info info;
    if (!tess_json_get(json, "operator"))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: needs to be {\"operator\": ..., ...}, with \"blur\", \"radon\", \"cone\" or "
                         "\"parallel3d\"",
                         path);
    if (kind == TESS_PROBLEM_UNKNOWN)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: \"operator\" is \"%.40s\"; use \"blur\", \"radon\", \"cone\" or \"parallel3d\"",
                         path, tess_json_get_string(json, "operator", ""));
    TESS_TRY(tess_problem_check_keys(path, json, kind, error));
    TESS_TRY(tess_problem_sibling(path, json, "measurement", &p->measurement, error));
    TESS_TRY(tess_problem_sibling(path, json, "truth", &p->truth, error));
    TESS_TRY(tess_problem_sibling(path, json, "vectors", &p->geometry, error));
    if (!p->measurement)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: needs \"measurement\", the name of a file, or of a folder of views", path);
    if (kind == TESS_PROBLEM_BLUR)
        TESS_TRY(tess_problem_read_kernels(path, json, p, error));
    if (kind == TESS_PROBLEM_BLUR && !p->kernels)
        TESS_TRY(
            tess_problem_read_angles(path, json,
                                     "a list of degrees, with \"sigma\", for Gaussian blurs; or \"kernel\" "
                                     "or \"kernels\": names of NPY files, for measured ones",
                                     p, error));
    TESS_TRY(read_range(path, json, p, error));
    p->noise = tess_json_get_double(json, "noise", -1);
    p->keep_dead = !tess_json_get_bool(json, "dead_pixels", true);
    p->keep_rings = !tess_json_get_bool(json, "rings", true);
    p->keep_outliers = !tess_json_get_bool(json, "outliers", true);
    p->hidden.keep[TESS_HIDDEN_MISSING] = !tess_json_get_bool(json, "missing", true);
    p->hidden.keep[TESS_HIDDEN_BRIGHT] = p->hidden.keep[TESS_HIDDEN_DARK] =
        !tess_json_get_bool(json, "saturated", true);
    p->hidden.keep[TESS_HIDDEN_FRAME] = !tess_json_get_bool(json, "frame", true);
    if (kind == TESS_PROBLEM_BLUR) {
        TESS_TRY(read_axes(path, json, &axes, error));
        TESS_TRY(header_of_blurs(axes, p, &info, error));
        range_of_type(&info, p);
        keep_metadata(&info, p);
        p->quantised = tess_jpeg_quantisation(p->measurement);
    }
    TESS_TRY(kind == TESS_PROBLEM_BLUR    ? tess_problem_read_blur(path, json, p, &info, error)
             : kind == TESS_PROBLEM_RADON ? tess_problem_read_radon(path, json, p, error)
                                          : tess_problem_read_volume(path, json, p, error));
    TESS_TRY(size_agrees(path, json, p, error));
    return p->truth ? check_truth(p, axes, error) : TESS_OK;
}

tess_status tess_problem_read(const char *path, tess_problem *p, tess_error *error)
{
    char *text = NULL;
    size_t length = 0;
    tess_json *json = NULL;
    p->synthetic = false;
    tess_status status = read_text(path, &text, &length, error);
    if (status == TESS_OK) {
        status = tess_json_parse(text, length, &json, error);
        if (status != TESS_OK)
            status = tess_fail_prefix(error, TESS_BAD_INPUT, path);
    }
    if (status == TESS_OK)
        status = describe(path, json, p, error);
    tess_json_free(json);
    tess_small_free(text);
    return status;
}
