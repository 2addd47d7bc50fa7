#include "job/reconstruct/problem/data.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/problem/data_rows.h"
#include "job/reconstruct/problem/views.h"
#include "job/reconstruct/run/quality.h"
#include "job/reconstruct/scan/detector_grid.h"
#include "job/reconstruct/scan/resize.h"
#include "job/reconstruct/scan/shadow.h"
#include "physics/phantom.h"

enum { SUBSAMPLES = 4, SUBVOXELS = 2 };

/* The rows of the truth that this rank needs. */
static void rows_of_truth(const tess_problem *p, int64_t *first, int64_t *count)
{
    *first = tess_problem_first(p) - tess_judge_above(p);
    *count = tess_problem_own(p) + tess_judge_above(p);
}

static tess_bicubic resize_of(const tess_problem *p)
{
    tess_bicubic resize = {.from_height = p->image_height,
                           .from_width = p->image_width,
                           .channels = p->channels,
                           .height = p->height,
                           .width = p->width};
    rows_of_truth(p, &resize.first, &resize.rows);
    return resize;
}

size_t tess_problem_resize_bytes(const tess_problem *p)
{
    const tess_bicubic resize = resize_of(p);
    int64_t first, count;
    if (!p->resized)
        return 0;
    tess_bicubic_source(&resize, &first, &count);
    return (size_t)(count * p->image_width * p->channels) * sizeof(float);
}

static tess_status read_resized(const tess_problem *p, tess_workspace *w, float *truth, tess_error *error)
{
    const tess_bicubic resize = resize_of(p);
    tess_block own = {0};
    TESS_TRY(tess_block_alloc(p->memory, &own, TESS_MEM_HOST, tess_problem_resize_bytes(p), error));
    tess_data_rows file = {.problem = p,
                           .workspace = w,
                           .path = p->image,
                           .extent = {p->image_height, p->image_width, p->channels},
                           .to = own.data};
    tess_bicubic_source(&resize, &file.first, &file.count);
    tess_status status = tess_data_rows_read(&file, error);
    if (status == TESS_OK)
        tess_resize_bicubic(&resize, own.data, truth);
    tess_block_free(&own);
    return status;
}

static tess_status find_peak(const tess_problem *p, tess_host_part *host, int64_t count, tess_error *error)
{
    float peak = 0;
    for (int64_t i = 0; i < count; i++)
        peak = fmaxf(peak, host->truth[i]);
    double most = (double)peak;
    TESS_TRY(tess_share_add(p->share, TESS_SHARE_MOST, &most, error));
    host->truth_peak = most > 0 ? (float)most : 1;
    return TESS_OK;
}

static void scale_truth(tess_host_part *host, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++)
        host->truth[i] *= factor;
}

/* The part of a truth's file that this rank needs: rows of an image, slices of a volume, which are rows of the file, or
 * rows of the only slice. */
static void choose_part(const tess_problem *p, tess_data_rows *file)
{
    rows_of_truth(p, &file->first, &file->count);
    if (p->flat_truth) {
        file->extent = (tess_extent){p->height, p->width, 1};
    } else if (p->depth > 1) {
        file->first /= p->height;
        file->count /= p->height;
    } else if (p->physics == TESS_PHYSICS_CONE) {
        file->from = file->first * p->width;
        file->part = file->count * p->width;
        file->first = 0;
        file->count = 1;
    }
}

/* Whether an integer truth is in the units of the measurements: always for scans, which use integers as they are, and
 * for blurs whose units are not just their type's. */
static bool truth_is_numbers(const tess_problem *p)
{
    if (p->synthetic)
        return false;
    return p->physics == TESS_PHYSICS_BLUR
               ? p->range_from == TESS_RANGE_FROM_GIVEN || p->range_from == TESS_RANGE_FROM_DATA
               : !p->as_published;
}

tess_status tess_problem_truth(const tess_problem *p, tess_workspace *w, tess_error *error)
{
    const char *path = p->image ? p->image : p->truth;
    const int64_t count = tess_problem_own(p) * tess_problem_row(p);
    tess_host_part *host = &w->host;
    int64_t first, rows;
    rows_of_truth(p, &first, &rows);
    float *truth = host->truth - w->layout.above_values; /* the rows above are there, too */
    if (p->resized)
        return read_resized(p, w, truth, error);
    if (path) {
        tess_data_rows file = {.problem = p,
                               .workspace = w,
                               .path = path,
                               .extent = tess_problem_image_extent(p),
                               .to = truth,
                               .numbers = truth_is_numbers(p),
                               .holes = !p->image};
        choose_part(p, &file);
        TESS_TRY(tess_share_agree(p->share, tess_data_rows_read(&file, error), error));
        TESS_TRY(find_peak(p, host, count, error));
        if (p->range_from == TESS_RANGE_FROM_TYPE && (double)host->truth_peak * p->unit <= 1.5)
            scale_truth(host, count, (float)p->unit); /* floats of [0, 1] compared with integers */
        return TESS_OK;
    }
    if (p->physics == TESS_PHYSICS_CONE)
        tess_phantom_3d_rows(p->depth, p->height, p->width, SUBVOXELS, first, rows, truth);
    else if (p->physics == TESS_PHYSICS_RADON)
        tess_phantom_2d_rows(p->width, SUBSAMPLES, first, rows, truth);
    else
        tess_phantom_colour_rows(p->height, p->width, first, rows, truth);
    return TESS_OK;
}

typedef struct view_target {
    const tess_problem *problem;
    tess_workspace *workspace;
    tess_shadow *shadow; /* of a sinogram; NULL: none */
    const tess_detector_resampler *resampler;
} view_target;

/* Copies a view of a scan to the device. */
static tess_status take_view(void *user, int64_t view, float *values, tess_error *error)
{
    const view_target *target = user;
    const tess_problem *p = target->problem;
    tess_device *device = target->workspace->device;
    const int64_t samples = p->rows * p->columns, read = p->file_rows * p->file_columns;
    const float unit = (float)tess_problem_measured_unit(p);
    for (int64_t i = 0; i < read; i++) {
        values[i] /= unit;
        if (!isfinite(values[i]))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "%s: a value of view %lld is too large for the range up to %g; \"range\" is that of "
                "the image, in the units of the file",
                p->measurement, (long long)view, p->unit);
    }
    if (target->shadow)
        tess_shadow_add(target->shadow, view, values);
    float *seen = values;
    if (p->detector_grid) {
        seen = target->workspace->host.rows[0];
        tess_detector_resample(target->resampler, view, values, seen);
    }
    view -= tess_problem_first_view(p);
    if (view < 0 || view >= tess_problem_own_views(p))
        return TESS_OK; /* another rank's */
    device->memory->copy(device, (float *)target->workspace->measurement.data + view * samples, seen,
                         (size_t)samples * sizeof *seen, NULL);
    return device->streams->sync(device, NULL, error);
}

static tess_status simulate(const tess_problem *p, tess_workspace *w, double level, uint64_t seed,
                            tess_error *error)
{
    tess_operator *op = w->op;
    tess_device *device = w->device;
    device->memory->copy(device, w->vectors[0], w->host.truth,
                         (size_t)tess_workspace_values(&op->image) * sizeof(float), NULL);
    op->table->forward(op, w->vectors[0], w->measurement.data, w->scratch, NULL);
    return tess_problem_add_noise(p, w, w->measurement.data, level, seed, error);
}

static tess_status read_scan(tess_problem *p, tess_workspace *w, tess_error *error)
{
    tess_shadow shadow = {0};
    const bool looked_at = p->physics == TESS_PHYSICS_RADON;
    if (looked_at)
        TESS_TRY(tess_shadow_open(p, &shadow, error));
    tess_detector_resampler resampler;
    view_target target = {p, w, looked_at ? &shadow : NULL, &resampler};
    tess_status status = tess_detector_resampler_open(p, &resampler, error);
    if (status == TESS_OK)
        status = tess_problem_each_view(p, w->host.rows[1], &p->starved, take_view, &target, error);
    tess_detector_resampler_close(&resampler);
    if (looked_at) {
        p->edge = tess_shadow_edge(&shadow);
        p->background = tess_shadow_background(&shadow, &p->background_share);
    }
    tess_shadow_close(&shadow);
    return status;
}

tess_status tess_problem_measure(tess_problem *p, tess_workspace *w, double level, uint64_t seed,
                                 tess_error *error)
{
    if (p->synthetic)
        return simulate(p, w, level, seed, error);
    if (p->physics != TESS_PHYSICS_BLUR)
        return read_scan(p, w, error);
    const tess_data_rows file = {.problem = p,
                                 .workspace = w,
                                 .path = p->measurement,
                                 .extent = tess_problem_measurement_extent(p),
                                 .to = w->measurement.data,
                                 .device = true,
                                 .rounded = &p->rounded,
                                 .holes = p->hidden.count[TESS_HIDDEN_MISSING] > 0,
                                 .numbers = !(p->as_published && p->range_from != TESS_RANGE_FROM_GIVEN)};
    return tess_data_rows_read(&file, error);
}

double tess_problem_starved_share(const tess_problem *p)
{
    return (double)p->starved / ((double)p->count * (double)(p->file_rows * p->file_columns));
}

bool tess_problem_truncated(const tess_problem *p)
{
    static const double MOST = 0.05; /* of the largest mean; as for the search of the axis */
    return p->edge > MOST || p->edge_rows > MOST;
}

bool tess_problem_enlarged(const tess_problem *p)
{
    return p->margin_depth > 0 || p->margin[0] > 0 || p->margin[1] > 0;
}
