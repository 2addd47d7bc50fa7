/* Describes the problem: sizes, angles, files. All errors in it are found here, before any memory is allocated. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/problem/read.h"
#include "job/reconstruct/problem/values.h"
#include "physics/convolve.h"
#include "physics/radon.h"
#include "physics/rays.h"

enum {
    USUAL_SIZE = 256,
    USUAL_DEPTH = 96,
    USUAL_BLURS = 8,
    USUAL_VIEWS = 100,
    USUAL_CONES = 50,
    MOST_DEPTH = 4096
};

double *tess_angles(int64_t count, bool last_included)
{
    double *angles = tess_small_alloc((size_t)count, sizeof *angles);
    const int64_t steps = last_included ? tess_max_i64(count - 1, 1) : count;
    for (int64_t i = 0; angles && i < count; i++)
        angles[i] = 180.0 * (double)i / (double)steps;
    return angles;
}

bool tess_problem_has_truth(const tess_problem *p)
{
    return p->synthetic || p->truth;
}

/* The user's picture at its own size, or with its longer side resized to `size`, as the reference does. */
static tess_status describe_image(const tess_reconstruct_settings *s, tess_problem *p, tess_error *error)
{
    tess_values values = {0};
    const tess_status status = tess_values_open(p->memory, s->image, TESS_AXES_PICTURE, 0, &values, error);
    const tess_image_info info = values.info;
    p->held = status == TESS_OK ? tess_values_held(&values, true) : 0;
    tess_values_close(&values);
    TESS_TRY(status);
    const int64_t longer = tess_max_i64(info.height, info.width), channels = info.channels - info.alpha;
    p->image = tess_small_strdup(s->image);
    p->height = p->image_height = info.height;
    p->width = p->image_width = info.width;
    p->channels = channels;
    if (info.alpha)
        return tess_fail(error, TESS_UNSUPPORTED, "%s: has an alpha channel; save it without one", s->image);
    if (s->size > 0 && s->size != longer) {
        p->resized = true;
        p->height = tess_max_i64(info.height * s->size / longer, 1);
        p->width = tess_max_i64(info.width * s->size / longer, 1);
    }
    if (longer > 1 << 16)
        return tess_fail(error, TESS_BAD_INPUT, "%s: has a side of %lld pixels; at most 65536 are taken",
                         s->image, (long long)longer);
    return p->image ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
}

static tess_status deblur(const tess_reconstruct_settings *s, tess_problem *p, tess_error *error)
{
    p->physics = TESS_PHYSICS_BLUR;
    p->height = p->width = s->size ? s->size : USUAL_SIZE;
    if (s->size_width)
        p->width = s->size_width;
    p->channels = 3;
    if (s->image)
        TESS_TRY(describe_image(s, p, error));
    const double size = (double)tess_max_i64(p->height, p->width);
    p->count = s->operators ? s->operators : USUAL_BLURS;
    p->angles = tess_angles(p->count, true);
    p->blur[0] = 0.01 * size;
    p->blur[1] = 0.005 * size;
    p->clamped = true;
    return TESS_OK;
}

static void tomo2d(const tess_reconstruct_settings *s, tess_problem *p)
{
    p->physics = TESS_PHYSICS_RADON;
    p->height = p->width = s->size ? s->size : USUAL_SIZE;
    p->channels = 1;
    p->count = s->angles ? s->angles : USUAL_VIEWS;
    p->angles = tess_angles(p->count, false);
    p->circle = true;
    p->rows = 1;
    p->columns = p->width;
    p->centre = 0.5 * (double)(p->columns - 1);
}

/* The source is two widths from the axis; the detector is one width behind it and sees the ball inside the volume. */
static tess_status tomo3d(const tess_reconstruct_settings *s, tess_problem *p, tess_error *error)
{
    if (s->size > MOST_DEPTH)
        return tess_fail(error, TESS_BAD_OPTION, "`size` %lld: a volume takes at most %d", (long long)s->size,
                         MOST_DEPTH);
    p->physics = TESS_PHYSICS_CONE;
    p->depth = p->height = p->width = s->size ? s->size : USUAL_DEPTH;
    p->channels = 1;
    p->count = s->angles ? s->angles : USUAL_CONES;
    p->rows = p->columns = p->width + tess_ceil_div(p->width, 8);
    p->vectors = tess_small_alloc((size_t)p->count, 12 * sizeof *p->vectors);
    if (!p->vectors)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the views");
    tess_rays_circle(p->count, 2 * (double)p->width, (double)p->width, 1.5, p->vectors);
    return TESS_OK;
}

tess_extent tess_problem_image_extent(const tess_problem *p)
{
    return p->physics == TESS_PHYSICS_CONE ? (tess_extent){p->depth, p->height, p->width}
                                           : (tess_extent){p->height, p->width, p->channels};
}

tess_extent tess_problem_measurement_extent(const tess_problem *p)
{
    if (p->physics == TESS_PHYSICS_BLUR)
        return (tess_extent){p->count * p->height, p->width, p->channels};
    if (p->physics == TESS_PHYSICS_RADON)
        return (tess_extent){p->count, p->columns, 1};
    return (tess_extent){p->count, p->rows, p->columns};
}

double tess_problem_measured_unit(const tess_problem *p)
{
    const bool voxels =
        p->physics == TESS_PHYSICS_RADON || (p->physics == TESS_PHYSICS_CONE && !p->as_published);
    return voxels ? p->unit * p->spacing : p->unit;
}

int64_t tess_problem_row(const tess_problem *p)
{
    return p->width * p->channels;
}

int64_t tess_problem_rows(const tess_problem *p)
{
    return p->depth * p->height;
}

int64_t tess_problem_divided(const tess_problem *p)
{
    return p->depth > 1 ? p->depth : p->unknown ? tess_convolve_side(p->height, p->margin[0]) : p->height;
}

/* Ranks have rows of an image, and whole slices of a volume. */
int64_t tess_problem_shown(const tess_problem *p, const tess_share *share, int rank)
{
    const int64_t from = share->from[rank];
    return p->depth > 1 ? from * p->height : tess_max_i64(0, tess_min_i64(from - p->margin[0], p->height));
}

int64_t tess_problem_first(const tess_problem *p)
{
    return tess_share_many(p->share) ? tess_problem_shown(p, p->share, p->share->dist->rank) : 0;
}

int64_t tess_problem_own(const tess_problem *p)
{
    return tess_share_many(p->share)
               ? tess_problem_shown(p, p->share, p->share->dist->rank + 1) - tess_problem_first(p)
               : tess_problem_rows(p);
}

int64_t tess_problem_view(const tess_problem *p, int rank)
{
    return p->count * rank / p->share->dist->size;
}

int64_t tess_problem_first_view(const tess_problem *p)
{
    return tess_share_many(p->share) ? tess_problem_view(p, p->share->dist->rank) : 0;
}

int64_t tess_problem_own_views(const tess_problem *p)
{
    return tess_share_many(p->share)
               ? tess_problem_view(p, p->share->dist->rank + 1) - tess_problem_first_view(p)
               : p->count;
}

/* Rejects options that this problem does not use, because the user expects them to change something. */
static tess_status check_options(const tess_reconstruct_settings *s, tess_error *error)
{
    const bool blur = strcmp(s->problem, "deblur") == 0, scan = strncmp(s->problem, "tomo", 4) == 0;
    const struct {
        const char *option;
        bool given, used;
    } options[] = {{"`size`", s->size > 0, blur || scan},
                   {"`operators`", s->operators > 0, blur},
                   {"`angles`", s->angles > 0, scan},
                   {"`image`", s->image != NULL, blur}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].given && !options[i].used)
            return tess_fail(error, TESS_BAD_OPTION, "%s: means nothing to `problem` %s; leave it out",
                             options[i].option, s->problem);
    return TESS_OK;
}

/* Converts lengths to voxels, so that nothing depends on the unit of the vectors and the spacing. */
static void count_in_voxels(tess_problem *p)
{
    for (int64_t i = 0; p->vectors && i < 12 * p->count; i++)
        p->vectors[i] /= p->spacing;
}

/* Networks were trained on images up to 1, so files of another range are scaled; the published loop does not scale
 * them. */
void tess_problem_choose_unit(const tess_reconstruct_settings *s, tess_problem *p)
{
    const bool published = s->preset && strcmp(s->preset, "deepinv") == 0;
    p->as_published = published;
    if (!published && p->physics == TESS_PHYSICS_CONE)
        count_in_voxels(p);
    if (published) {
        if (p->range_from != TESS_RANGE_FROM_GIVEN) {
            p->range_from = TESS_RANGE_FROM_DEFAULT;
            p->high = 1;
        }
    } else if (!p->synthetic && p->physics == TESS_PHYSICS_BLUR) {
        p->offset = p->low;
        p->unit = p->high - p->low;
        p->low = 0;
        p->high = 1;
    } else {
        p->unit = p->high;
        p->low /= p->unit;
        p->high = 1;
    }
    p->noise /= tess_problem_measured_unit(p);
}

tess_status tess_problem_describe(tess_memory *memory, tess_stop *stop, const tess_reconstruct_settings *s,
                                  tess_problem *p, tess_error *error)
{
    const char *suffix = strrchr(s->problem, '.');
    *p = (tess_problem){.memory = memory,
                        .stop = stop,
                        .name = tess_small_strdup(s->problem),
                        .high = 1,
                        .depth = 1,
                        .noise = -1,
                        .noise_estimate = -1,
                        .synthetic = true,
                        .spacing = 1,
                        .row = -1,
                        .unit = 1};
    if (!p->name)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
    if (strcmp(s->problem, "deblur") == 0)
        TESS_TRY(deblur(s, p, error));
    else if (strcmp(s->problem, "tomo2d") == 0)
        tomo2d(s, p);
    else if (strcmp(s->problem, "tomo3d") == 0)
        TESS_TRY(tomo3d(s, p, error));
    else if (suffix && strcmp(suffix, ".json") == 0)
        TESS_TRY(tess_problem_read(s->problem, p, error));
    else
        return tess_fail(error, TESS_BAD_OPTION, "`problem` %s: use deblur, tomo2d, tomo3d or a .json file",
                         s->problem);
    TESS_TRY(check_options(s, error));
    if (!p->synthetic)
        tess_problem_doubts(p, &s->common);
    tess_problem_choose_unit(s, p);
    return p->angles || p->vectors || p->kernels
               ? TESS_OK
               : tess_fail(error, TESS_NO_MEMORY, "no memory for the angles");
}

void tess_problem_to_units(const tess_problem *p, int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(fmin(fmax((double)values[i], p->low), tess_problem_top(p)) * p->unit + p->offset);
}

void tess_problem_clear(tess_problem *p)
{
    tess_small_free(p->name);
    tess_small_free(p->angles);
    tess_small_free(p->vectors);
    tess_small_free(p->detector_grid);
    tess_small_free(p->centres);
    tess_small_free(p->dead);
    tess_small_free(p->zingers);
    tess_small_free(p->lost);
    tess_small_free(p->flat);
    tess_small_free(p->dark);
    tess_small_free(p->image);
    tess_small_free(p->truth);
    tess_small_free(p->measurement);
    tess_small_free(p->geometry);
    tess_problem_clear_blur(p);
    *p = (tess_problem){0};
}

static tess_status make_operator(const tess_problem *p, tess_device *device, size_t slab_bytes,
                                 tess_operator **op, tess_error *error)
{
    if (p->physics == TESS_PHYSICS_RADON) {
        const tess_radon_settings scan = {.size = p->width + 2 * p->margin[1],
                                          .views = p->count,
                                          .columns = p->columns,
                                          .angles = p->angles,
                                          .centres = p->centres,
                                          .circle = p->circle,
                                          .corners = true,
                                          .share = p->share};
        return tess_share_many(p->share) ? tess_radon_create_shared(device, &scan, op, error)
                                         : tess_radon_create_scan(device, &scan, op, error);
    }
    if (p->physics == TESS_PHYSICS_CONE) {
        const tess_rays_settings rays = {.geometry = p->parallel ? TESS_PARALLEL_3D : TESS_CONE_3D,
                                         .depth = p->depth + 2 * p->margin_depth,
                                         .height = p->height + 2 * p->margin[0],
                                         .width = p->width + 2 * p->margin[1],
                                         .spacing = p->as_published ? p->spacing : 1,
                                         .views = p->count,
                                         .rows = p->rows,
                                         .columns = p->columns,
                                         .vectors = p->vectors,
                                         .share = p->share};
        if (tess_share_many(p->share))
            return tess_rays_create_shared(device, &rays, op, error);
        return slab_bytes ? tess_rays_create_slabs(device, &rays, slab_bytes, op, error)
                          : tess_rays_create(device, &rays, op, error);
    }
    return tess_problem_blur(p, device, NULL, op, error);
}

static tess_status of_files(const tess_problem *p, tess_status status, tess_error *error)
{
    if (p->synthetic || (status != TESS_BAD_OPTION && status != TESS_BAD_INPUT))
        return status;
    return tess_fail_prefix(error, TESS_BAD_INPUT, p->geometry ? p->geometry : p->name);
}

tess_status tess_problem_sketch(const tess_problem *p, tess_device *device, tess_operator *op, bool *known,
                                tess_error *error)
{
    *known = p->physics == TESS_PHYSICS_BLUR;
    return *known ? of_files(p, tess_problem_blur(p, device, op, NULL, error), error) : TESS_OK;
}

tess_status tess_problem_operator(const tess_problem *p, tess_device *device, size_t slab_bytes,
                                  tess_operator **op, tess_error *error)
{
    return of_files(p, make_operator(p, device, slab_bytes, op, error), error);
}
