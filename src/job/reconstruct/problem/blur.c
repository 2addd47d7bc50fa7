/* Measured blurs of one picture:
 *
 *   {"operator": "blur", "angles": [0, 45, 90], "sigma": [3.0, 1.5], "measurement": "y.npy"}
 *   {"operator": "blur", "kernels": ["psf0.npy", "psf1.npy"], "measurement": "y.npy", "boundary": "unknown"}
 *
 * In a measured blur, light enters from outside the picture, so by default the picture is estimated with a margin of
 * the kernels' radius around it ("boundary": "unknown"), which is removed at the end. "circular" is for measurements
 * that were made by an FFT, such as those of the synthetic problem. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "io/table.h"
#include "job/reconstruct/problem/read.h"
#include "physics/blur.h"
#include "physics/convolve.h"

enum { MOST_BLURS = 1024, MOST_SIDE = 1 << 16, MOST_VALUES = 1 << 22 };

static tess_status read_kernel(tess_problem *p, int64_t i, tess_error *error)
{
    tess_table table;
    TESS_TRY(tess_table_read(p->kernel_files[i], MOST_VALUES, &table, error));
    p->kernels[i] = (tess_blur_kernel){.values = table.values, .height = table.rows, .width = table.columns};
    const tess_status status = tess_kernel_check(&p->kernels[i], i, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, p->kernel_files[i]);
}

tess_status tess_problem_read_kernels(const char *path, const tess_json *json, tess_problem *p,
                                      tess_error *error)
{
    const tess_json *one = tess_json_get(json, "kernel"), *list = tess_json_get(json, "kernels");
    if (!one && !list)
        return TESS_OK;
    if (tess_json_get(json, "angles") || tess_json_get(json, "sigma") || (one && list))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: gives its blurs twice; use one of \"kernels\", \"kernel\", or \"angles\" with "
                         "\"sigma\"",
                         path);
    const int64_t count = one ? 1 : tess_json_length(list);
    if ((list && !tess_json_is_array(list)) || count < 1 || count > MOST_BLURS)
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"kernels\" is a list of 1 to %d names of NPY files",
                         path, MOST_BLURS);
    p->kernels = tess_small_alloc((size_t)count, sizeof *p->kernels);
    p->kernel_files = tess_small_alloc((size_t)count, sizeof *p->kernel_files);
    if (!p->kernels || !p->kernel_files)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the kernels");
    p->count = count;
    for (int64_t i = 0; i < count; i++) {
        const char *name = tess_json_as_string(one ? one : tess_json_at(list, i), NULL);
        if (!name || !*name)
            return tess_fail(error, TESS_BAD_INPUT, "%s: \"%s\" must name NPY files", path,
                             one ? "kernel" : "kernels");
        if (!(p->kernel_files[i] = tess_problem_beside(path, name)))
            return tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
        TESS_TRY(read_kernel(p, i, error));
    }
    return TESS_OK;
}

static tess_status read_sigma(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_json *sigma = tess_json_get(json, "sigma");
    if (tess_json_length(sigma) != 2)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: a blur needs \"sigma\": [vertical, horizontal], in pixels, or \"kernels\"",
                         path);
    for (int i = 0; i < 2; i++) {
        p->blur[i] = tess_json_as_double(tess_json_at(sigma, i), NAN);
        if (!(p->blur[i] > 0) || !isfinite(p->blur[i]))
            return tess_fail(error, TESS_BAD_INPUT, "%s: \"sigma\" must be two positive numbers", path);
    }
    const double most = fmax(p->blur[0], p->blur[1]), side = (double)tess_max_i64(p->height, p->width);
    if (most > side)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: a \"sigma\" of %g pixels is more than the longer side, %g", path, most, side);
    return TESS_OK;
}

static tess_status read_gains(const char *path, const tess_json *json, tess_problem *p, tess_error *error)
{
    const tess_json *list = tess_json_get(json, "gains");
    if (!list)
        return TESS_OK;
    if (!(p->gains = tess_small_alloc((size_t)p->count, sizeof *p->gains)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld exposures", (long long)p->count);
    for (int64_t i = 0; i < p->count; i++) {
        p->gains[i] = tess_json_as_double(tess_json_at(list, i), NAN);
        if (tess_json_length(list) != p->count || !(p->gains[i] > 0) || !isfinite(p->gains[i]))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: \"gains\" is a list of %lld positive numbers, the exposure of each blur",
                             path, (long long)p->count);
    }
    return TESS_OK;
}

/* The margin covers the reach of the kernels. */
void tess_problem_set_margin(tess_problem *p)
{
    const tess_blur_kernel gaussian = {.gaussian = {p->blur[0], p->blur[1], 0}};
    for (int64_t i = 0; i < (p->kernels ? p->count : 1); i++) {
        const tess_blur_kernel *k = p->kernels ? &p->kernels[i] : &gaussian;
        p->margin[0] = tess_max_i64(p->margin[0], tess_kernel_reach_rows(k));
        p->margin[1] = tess_max_i64(p->margin[1], tess_kernel_reach_columns(k));
    }
}

/* An array of many channels in front of the rows is read as a low picture of very many channels. */
static tess_status check_order(const tess_problem *p, const tess_image_info *info, tess_error *error)
{
    for (int64_t i = 0; p->kernels && info->axes == TESS_AXES_HWC && i < p->count; i++)
        if (p->kernels[i].height > p->height && p->channels > p->height && p->width > p->height)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "%s: is read as %lld rows of %lld columns with %lld channels, but kernel %lld has %lld rows; "
                "if it is (channels, height, width), move its first axis to the end",
                p->measurement, (long long)p->height, (long long)p->width, (long long)p->channels,
                (long long)i, (long long)p->kernels[i].height);
    return TESS_OK;
}

tess_status tess_problem_read_blur(const char *path, const tess_json *json, tess_problem *p,
                                   const tess_image_info *info, tess_error *error)
{
    const tess_json *entry = tess_json_get(json, "boundary");
    const char *boundary = entry ? tess_json_as_string(entry, "") : "unknown";
    p->unknown = strcmp(boundary, "unknown") == 0;
    if (!p->unknown && strcmp(boundary, "circular") != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: \"boundary\" must be \"unknown\" or \"circular\"", path);
    if (info->height % p->count != 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has %lld rows, which the %lld %s of %s do not divide: the measurements of the "
                         "blurs stand one above another",
                         p->measurement, (long long)info->height, (long long)p->count,
                         p->kernels ? "kernels" : "angles", path);
    p->physics = TESS_PHYSICS_BLUR;
    p->height = info->height / p->count;
    p->width = info->width;
    p->channels = info->channels;
    p->channel_axis = info->axes == TESS_AXES_HWC;
    if (p->height < 1 || p->width < 1 || p->height > MOST_SIDE || p->width > MOST_SIDE)
        return tess_fail(error, TESS_BAD_INPUT, "%s: is of %lldx%lld pixels; each side has 1 to %d",
                         p->measurement, (long long)p->height, (long long)p->width, MOST_SIDE);
    TESS_TRY(check_order(p, info, error));
    TESS_TRY(read_gains(path, json, p, error));
    if (!p->kernels)
        TESS_TRY(read_sigma(path, json, p, error));
    if (p->unknown)
        tess_problem_set_margin(p);
    return TESS_OK;
}

void tess_problem_clear_blur(tess_problem *p)
{
    for (int64_t i = 0; p->kernels && i < p->count; i++)
        tess_small_free((void *)p->kernels[i].values);
    for (int64_t i = 0; p->kernel_files && i < p->count; i++)
        tess_small_free(p->kernel_files[i]);
    tess_small_free(p->kernels);
    tess_small_free(p->weights);
    tess_small_free(p->gains);
    tess_small_free(p->contradicts);
    tess_small_free(p->kernel_files);
    tess_small_free(p->hidden.frame);
    tess_small_free(p->hidden.frame_value);
    tess_small_free(p->hidden.blurs);
    tess_small_free(p->hidden.squares);
}

/* Circular Gaussians have real spectra, which have their own ops. */
static tess_status gaussians(const tess_problem *p, tess_device *device, tess_operator *sketch,
                             tess_operator **op, tess_error *error)
{
    const tess_blur_settings blur = {.height = p->height,
                                     .share = p->share,
                                     .width = p->width,
                                     .channels = p->channels,
                                     .count = p->count,
                                     .angles = p->angles,
                                     .sigma_rows = p->blur[0],
                                     .sigma_columns = p->blur[1]};
    return op ? tess_blur_create(device, &blur, op, error) : tess_blur_sketch(device, &blur, sketch, error);
}

/* Creates the operator in *op or, if that is NULL, its sketch. */
tess_status tess_problem_blur(const tess_problem *p, tess_device *device, tess_operator *sketch,
                              tess_operator **op, tess_error *error)
{
    if (!p->kernels && !p->unknown)
        return gaussians(p, device, sketch, op, error);
    tess_blur_kernel *own = p->kernels ? NULL : tess_small_alloc((size_t)p->count, sizeof *own);
    if (!own && !p->kernels)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the kernels");
    for (int64_t i = 0; own && i < p->count; i++)
        own[i].gaussian = (tess_gaussian){p->blur[0], p->blur[1], p->angles[i]};
    const tess_convolve_settings settings = {.height = tess_problem_divided(p),
                                             .width = p->unknown ? tess_convolve_side(p->width, p->margin[1])
                                                                 : p->width,
                                             .channels = p->channels,
                                             .margin_rows = p->margin[0],
                                             .margin_columns = p->margin[1],
                                             .seen_height = p->unknown ? p->height : 0,
                                             .seen_width = p->unknown ? p->width : 0,
                                             .count = p->count,
                                             .kernels = own ? own : p->kernels,
                                             .share = p->share,
                                             .masked = p->hidden.blurs,
                                             .halo = p->halo};
    const tess_status status = op ? tess_convolve_create(device, &settings, op, error)
                                  : tess_convolve_sketch(device, &settings, sketch, error);
    tess_small_free(own);
    return status;
}
