#include "job/reconstruct/problem_data.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "job/reconstruct/detector_grid.h"
#include "job/reconstruct/finite.h"
#include "job/reconstruct/resize.h"
#include "job/reconstruct/shadow.h"
#include "job/reconstruct/values.h"
#include "job/reconstruct/views.h"
#include "physics/phantom.h"

enum { SUBSAMPLES = 4, SUBVOXELS = 2, SLICES = 64 };

/* Reads rows of a file as values and passes each on. */
typedef struct file_rows {
    const tess_problem *problem;
    tess_workspace *workspace;
    const char *path;
    tess_extent extent; /* as planned */
    float *to;          /* in host or device memory */
    bool device;
    bool numbers; /* integers are not divided by their type's maximum */
    bool holes;   /* missing values are allowed, and become NaN */
} file_rows;

static tess_status take_row(const file_rows *f, double file_unit, double file_offset, int64_t y, float *row,
                            tess_error *error)
{
    const tess_problem *p = f->problem;
    const float unit = (float)file_unit;
    for (int64_t i = 0; i < f->extent.width * f->extent.channels; i++) {
        const long long a = y, b = i / f->extent.channels;
        if (!isfinite(row[i])) { /* counted; refused at the end, or a hole */
            row[i] = f->holes ? NAN : row[i];
            continue;
        }
        if (f->path == p->image && !(row[i] >= 0 && row[i] <= 1))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: holds %g at row %lld, column %lld; an image's values lie between 0 and 1",
                             f->path, (double)row[i], a, b);
        row[i] = (float)((double)row[i] - file_offset) / unit;
        if (!isfinite(row[i]))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: a value at row %lld is too large for the range up to %g; \"range\" is that "
                             "of the image, in the units of the file",
                             f->path, a, p->unit);
    }
    return TESS_OK;
}

static tess_status read_rows(const file_rows *f, tess_values *from, tess_error *error)
{
    const tess_problem *p = f->problem;
    tess_device *device = f->workspace->engine->device;
    const tess_image_info *info = &from->info;
    const tess_extent *is = &f->extent;
    const int64_t samples = is->width * is->channels;
    if (info->height != is->height || info->width != is->width || info->channels != is->channels)
        return tess_fail(error, TESS_BAD_INPUT, "%s: changed while the job ran; run it again", f->path);
    /* An integer truth for blurs without a range is on the scale of its own type. */
    const bool own = p->physics == TESS_PHYSICS_BLUR && info->dtype != TESS_F32 && !f->numbers;
    const double unit = own ? 1 : p->unit, offset = own ? 0 : p->offset;
    tess_bad_values bad = {0};
    tess_kept kept = {0};
    for (int64_t y = 0; y < is->height; y++) {
        float *row = f->device ? f->workspace->host.rows[1] : f->to + y * samples;
        TESS_TRY(tess_values_next(from, error));
        TESS_TRY(tess_values_take(from, f->numbers ? 1 : info->full_scale, 0, samples, row, &kept, error));
        tess_bad_values_count(&bad, y, row, samples);
        TESS_TRY(take_row(f, unit, offset, y, row, error));
        if (!f->device)
            continue;
        device->memory->copy(device, f->to + y * samples, row, (size_t)samples * sizeof(float), NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
    }
    if (f->holes && bad.nan + bad.infinite == is->height * samples)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has no value to compare with: all are NaN or missing (nodata value, mask)",
                         f->path);
    if (!f->holes)
        TESS_TRY(tess_bad_values_check(&bad, f->path, *is, p->physics == TESS_PHYSICS_CONE, error));
    return tess_kept_check(&kept, f->path, error);
}

static tess_status read_file(const file_rows *f, tess_error *error)
{
    tess_values values = {0};
    tess_status status = tess_values_open(f->problem->memory, f->path, TESS_AXES_PLAIN, 0, &values, error);
    if (status == TESS_OK) {
        tess_values_lend(&values, f->workspace->host.rows[0]);
        status = read_rows(f, &values, error);
    }
    tess_values_close(&values);
    return status;
}

static tess_status read_resized(const tess_problem *p, tess_workspace *w, tess_error *error)
{
    tess_block own = {0};
    TESS_TRY(tess_block_alloc(p->memory, &own, TESS_MEM_HOST,
                              (size_t)(p->image_height * p->image_width * p->channels) * sizeof(float),
                              error));
    const file_rows file = {.problem = p,
                            .workspace = w,
                            .path = p->image,
                            .extent = {p->image_height, p->image_width, p->channels},
                            .to = own.data};
    tess_status status = read_file(&file, error);
    if (status == TESS_OK)
        tess_resize_bicubic(own.data, p->image_height, p->image_width, p->channels, w->host.truth, p->height,
                            p->width);
    tess_block_free(&own);
    return status;
}

static void find_peak(tess_host_part *host, int64_t count)
{
    float peak = 0;
    for (int64_t i = 0; i < count; i++)
        peak = fmaxf(peak, host->truth[i]);
    host->truth_peak = peak > 0 ? peak : 1;
}

static void scale_truth(tess_host_part *host, int64_t count, float factor)
{
    for (int64_t i = 0; i < count; i++)
        host->truth[i] *= factor;
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
    const int64_t count = tess_problem_rows(p) * tess_problem_row(p);
    tess_host_part *host = &w->host;
    if (p->resized)
        return read_resized(p, w, error);
    if (path) {
        const file_rows file = {.problem = p,
                                .workspace = w,
                                .path = path,
                                .extent = tess_problem_image_extent(p),
                                .to = host->truth,
                                .numbers = truth_is_numbers(p),
                                .holes = !p->image};
        TESS_TRY(read_file(&file, error));
        find_peak(host, count);
        if (p->range_from == TESS_RANGE_FROM_TYPE && (double)host->truth_peak * p->unit <= 1.5)
            scale_truth(host, count, (float)p->unit); /* floats of [0, 1] compared with integers */
        return TESS_OK;
    }
    if (p->physics == TESS_PHYSICS_CONE)
        tess_phantom_3d(p->depth, p->height, p->width, SUBVOXELS, host->truth);
    else if (p->physics == TESS_PHYSICS_RADON)
        tess_phantom_2d(p->width, SUBSAMPLES, host->truth);
    else
        tess_phantom_colour(p->height, p->width, host->truth);
    return TESS_OK;
}

/* Adds noise to one piece of a measurement; the noise of a value depends only on its operator and position. */
typedef struct noise {
    const tess_problem *problem;
    tess_pool *pool;
    float level;
    uint64_t seed;
    int64_t first, count;
    float *values;
} noise;

static void add_noise_slice(void *arg, int64_t slice, int thread)
{
    (void)thread;
    const noise *n = arg;
    const tess_problem *p = n->problem;
    /* Each blur has its own random numbers; the views of a scan are one measurement. */
    const int64_t each = p->physics == TESS_PHYSICS_BLUR ? p->height * p->width * p->channels : INT64_MAX;
    float draws[TESS_PIECE / SLICES];
    int64_t at = slice * (TESS_PIECE / SLICES);
    const int64_t end = tess_min_i64(n->count, at + TESS_PIECE / SLICES);
    while (at < end) {
        const int64_t item = (n->first + at) / each, inside = (n->first + at) % each;
        const int64_t some = tess_min_i64(end - at, each - inside);
        tess_rng_normal((tess_rng_key){n->seed, (uint32_t)item, 0}, inside, some, draws);
        for (int64_t i = 0; i < some; i++) {
            float value = n->values[at + i] + n->level * draws[i];
            if (p->clamped)
                value = fminf(fmaxf(value, (float)p->low), (float)p->high);
            n->values[at + i] = value;
        }
        at += some;
    }
}

static void add_noise(void *user, int64_t first, int64_t count, float *values)
{
    noise *n = user;
    n->first = first;
    n->count = count;
    n->values = values;
    tess_pool_run(n->pool, SLICES, add_noise_slice, n);
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
    tess_device *device = target->workspace->engine->device;
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
    device->memory->copy(device, (float *)target->workspace->measurement.data + view * samples, seen,
                         (size_t)samples * sizeof *seen, NULL);
    return device->streams->sync(device, NULL, error);
}

tess_status tess_problem_add_noise(const tess_problem *p, tess_workspace *w, void *measurement, double level,
                                   uint64_t seed, tess_error *error)
{
    noise n = {.problem = p, .pool = w->engine->host, .level = (float)level, .seed = seed};
    return tess_workspace_pieces(w, measurement, tess_workspace_values(&w->op->measurement), true, add_noise,
                                 &n, error);
}

static tess_status simulate(const tess_problem *p, tess_workspace *w, double level, uint64_t seed,
                            tess_error *error)
{
    tess_operator *op = w->op;
    tess_device *device = w->engine->device;
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
    if (looked_at)
        p->edge = tess_shadow_edge(&shadow);
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
    const file_rows file = {.problem = p,
                            .workspace = w,
                            .path = p->measurement,
                            .extent = tess_problem_measurement_extent(p),
                            .to = w->measurement.data,
                            .device = true,
                            .numbers = !(p->as_published && p->range_from != TESS_RANGE_FROM_GIVEN)};
    return read_file(&file, error);
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
