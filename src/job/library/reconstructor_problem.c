/* A problem whose geometry and measurements are arrays of the caller. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/library/reconstructor.h"

enum { MOST_SIDE = 1 << 16, MOST_KERNELS = 1024, MOST_VIEWS = 100000, MOST_KERNEL = 1 << 22, NUMBERS = 12 };

static tess_status copy_numbers(const double *from, int64_t count, const char *name, double **to,
                                tess_error *error)
{
    if (!from)
        return tess_fail(error, TESS_BAD_OPTION, "`%s` is NULL", name);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(from[i]))
            return tess_fail(error, TESS_BAD_OPTION, "`%s` holds %g at %lld; every number must be finite",
                             name, from[i], (long long)i);
    *to = tess_small_alloc((size_t)count, sizeof **to);
    if (!*to)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for `%s`", name);
    memcpy(*to, from, (size_t)count * sizeof **to);
    return TESS_OK;
}

static tess_status check_side(const char *name, int64_t side, int64_t most, tess_error *error)
{
    if (side >= 1 && side <= most)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_OPTION, "`%s` is %lld; use 1 to %lld", name, (long long)side,
                     (long long)most);
}

static tess_status set_range(const tess_reconstructor_settings *s, tess_problem *p, tess_error *error)
{
    tess_dtype dtype;
    if (!tess_element_dtype(s->element, &dtype))
        return tess_fail(error, TESS_BAD_OPTION, "element %d: use one of TESS_ELEMENT_U8 to TESS_ELEMENT_F64",
                         (int)s->element);
    const double full = tess_samples_full_scale(dtype);
    const bool given = s->range_low != 0 || s->range_high != 0, integers = full > 1;
    p->floats = !integers;
    p->range_from = given                                       ? TESS_RANGE_FROM_GIVEN
                    : integers && s->kind == TESS_OPERATOR_BLUR ? TESS_RANGE_FROM_TYPE
                                                                : TESS_RANGE_FROM_DATA;
    p->low = given ? s->range_low : 0;
    p->high = given ? s->range_high : p->range_from == TESS_RANGE_FROM_TYPE ? full : 1;
    if (!(p->high > p->low) || !(p->high >= FLT_MIN) || p->high > FLT_MAX || !(p->low >= -FLT_MAX))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "range %g to %g: must grow, to above 0, and fit 32-bit floats; 0 and 0 take it from the "
            "data",
            p->low, p->high);
    if (isnan(s->noise))
        return tess_fail(error, TESS_BAD_OPTION, "`noise` is no number");
    p->noise = s->noise < 0 ? -1 : s->noise;
    return TESS_OK;
}

static tess_status blur(const tess_reconstructor_settings *s, tess_problem *p, tess_error *error)
{
    p->physics = TESS_PHYSICS_BLUR;
    p->unknown = !s->circular;
    TESS_TRY(check_side("count", s->count, MOST_KERNELS, error));
    TESS_TRY(check_side("kernel_height", s->kernel_height, MOST_SIDE, error));
    TESS_TRY(check_side("kernel_width", s->kernel_width, MOST_SIDE, error));
    TESS_TRY(check_side("channels", s->channels, MOST_SIDE, error));
    const int64_t each = s->kernel_height * s->kernel_width;
    if (each > MOST_KERNEL)
        return tess_fail(error, TESS_BAD_OPTION, "a kernel of %lld x %lld is more than can be used",
                         (long long)s->kernel_height, (long long)s->kernel_width);
    if (s->depth != 1)
        return tess_fail(error, TESS_BAD_OPTION, "`depth` is %lld; a blurred picture has 1",
                         (long long)s->depth);
    p->kernels = tess_small_alloc((size_t)s->count, sizeof *p->kernels);
    if (!p->kernels)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the kernels");
    p->count = s->count;
    for (int64_t i = 0; i < s->count; i++) {
        double *values = NULL;
        TESS_TRY(copy_numbers(s->kernels ? s->kernels + i * each : NULL, each, "kernels", &values, error));
        p->kernels[i] =
            (tess_blur_kernel){.values = values, .height = s->kernel_height, .width = s->kernel_width};
        if (tess_kernel_check(&p->kernels[i], i, error) != TESS_OK)
            return TESS_BAD_OPTION; /* the message is set already */
    }
    if (p->unknown)
        tess_problem_set_margin(p);
    return TESS_OK;
}

static tess_status radon(const tess_reconstructor_settings *s, tess_problem *p, tess_error *error)
{
    p->physics = TESS_PHYSICS_RADON;
    p->circle = !s->corners;
    p->rows = 1;
    p->columns = s->columns;
    p->centre = 0.5 * (double)(s->columns - 1);
    TESS_TRY(check_side("count", s->count, MOST_VIEWS, error));
    TESS_TRY(check_side("columns", s->columns, MOST_SIDE, error));
    if (s->depth != 1 || s->channels != 1 || s->height != s->width || s->width < 2)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "a result of %lld x %lld x %lld with %lld channel(s): of a sinogram it is a square of 1 "
            "channel",
            (long long)s->depth, (long long)s->height, (long long)s->width, (long long)s->channels);
    p->count = s->count;
    TESS_TRY(copy_numbers(s->angles, s->count, "angles", &p->angles, error));
    if (!(s->centre >= 0))
        return isnan(s->centre) ? tess_fail(error, TESS_BAD_OPTION, "`centre` is no number") : TESS_OK;
    if (s->centre > MOST_SIDE)
        return tess_fail(error, TESS_BAD_OPTION, "`centre` is %g; it is a column, counted from 0", s->centre);
    p->centre = s->centre;
    p->centre_from = TESS_CENTRE_GIVEN;
    p->centres = tess_small_alloc((size_t)s->count, sizeof *p->centres);
    for (int64_t i = 0; p->centres && i < s->count; i++)
        p->centres[i] = s->centre;
    return p->centres ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the views");
}

static tess_status cone(const tess_reconstructor_settings *s, tess_problem *p, tess_error *error)
{
    p->physics = TESS_PHYSICS_CONE;
    p->parallel = s->parallel;
    p->rows = s->rows;
    p->columns = s->columns;
    p->count = s->count;
    TESS_TRY(check_side("count", s->count, MOST_VIEWS, error));
    TESS_TRY(check_side("rows", s->rows, MOST_SIDE, error));
    TESS_TRY(check_side("columns", s->columns, MOST_SIDE, error));
    TESS_TRY(check_side("depth", s->depth, MOST_SIDE, error));
    if (s->channels != 1)
        return tess_fail(error, TESS_BAD_OPTION, "`channels` is %lld; a volume has 1",
                         (long long)s->channels);
    return copy_numbers(s->vectors, NUMBERS * s->count, "vectors", &p->vectors, error);
}

tess_status tess_reconstructor_problem(const tess_reconstructor_settings *s, tess_problem *p,
                                       tess_error *error)
{
    *p = (tess_problem){.name = tess_small_strdup("tess_reconstructor_plan"),
                        .measurement = tess_small_strdup("the measurements"),
                        .depth = s->depth,
                        .height = s->height,
                        .width = s->width,
                        .channels = s->channels,
                        .spacing = s->spacing,
                        .row = -1,
                        .keep_rings = true, /* the caller's measurements are used as they are */
                        .keep_outliers = true,
                        .unit = 1};
    if (!p->name || !p->measurement)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
    TESS_TRY(check_side("height", s->height, MOST_SIDE, error));
    TESS_TRY(check_side("width", s->width, MOST_SIDE, error));
    if (!(s->spacing > 0) || !isfinite(s->spacing))
        return tess_fail(error, TESS_BAD_OPTION, "`spacing` is %g; it must be above 0", s->spacing);
    TESS_TRY(set_range(s, p, error));
    switch (s->kind) {
    case TESS_OPERATOR_BLUR:
        return blur(s, p, error);
    case TESS_OPERATOR_RADON:
        return radon(s, p, error);
    case TESS_OPERATOR_CONE:
        return cone(s, p, error);
    }
    return tess_fail(error, TESS_BAD_OPTION,
                     "kind %d: use TESS_OPERATOR_BLUR, TESS_OPERATOR_RADON or TESS_OPERATOR_CONE",
                     (int)s->kind);
}

void tess_reconstructor_extent(const tess_problem *p, int64_t sizes[4])
{
    const bool blurs = p->physics == TESS_PHYSICS_BLUR, sinogram = p->physics == TESS_PHYSICS_RADON;
    sizes[0] = sinogram ? 1 : p->count;
    sizes[1] = blurs ? p->height : sinogram ? p->count : p->rows;
    sizes[2] = blurs ? p->width : p->columns;
    sizes[3] = blurs ? p->channels : 1;
}
