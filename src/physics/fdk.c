/* Views are processed in chunks, so that the filtered rows, twice as long as the measured ones, never take much
 * memory.
 *
 * With the detector scaled down to the axis, at its pitch t there, f = pi / (views t) sum over views of (R / depth)^2
 * times the filtered value, where R is the source's distance from the axis; this includes the factor 1/2 of a full
 * circle and the angle 2 pi / views. A half circle of parallel rays gives the same. */
#include "physics/fdk.h"

#include <math.h>

#include "base/checked.h"
#include "op/scan3.h"

enum { COSINE, TRANSFORM, FILTER, BACK, STEPS, FILTERS = 2, ALIGNMENT = 256 };

struct tess_fdk {
    tess_device *device;
    tess_prepared *step[STEPS];
    tess_prepared **spread; /* two for each slab: one for the first views, one that adds further views */
    int64_t slabs;
    tess_block spectra; /* of the two filters, one after the other */
    int64_t views, chunk;
    int64_t pixels, bins; /* of a view; of a filter */
    size_t spectrum_at, workspace_at, scratch;
};

/* Returns the largest divisor of the number of views whose padded rows stay within the bound, so that all chunks have
 * the same size. */
static int64_t choose_chunk(int64_t views, size_t view_bytes, size_t bytes)
{
    for (int64_t chunk = views; chunk > 1; chunk--)
        if (views % chunk == 0 && (size_t)chunk <= bytes / view_bytes)
            return chunk;
    return 1;
}

/* Pitch of the columns scaled to the axis, mean over the views. */
static double pitch_at_axis(const tess_rays_settings *s)
{
    const tess_op op = tess_rays_slab(s, TESS_OP_PROJECT, 0, s->depth, false);
    const tess_scan3 scan = tess_scan3_of(&op.rays, &op.in[0], &op.out[0]);
    const double origin[3] = {0.5 * (double)(s->width - 1), 0.5 * (double)(s->height - 1),
                              0.5 * (double)(s->depth - 1)};
    double sum = 0;
    for (int64_t i = 0; i < s->views; i++) {
        const tess_view3 view = tess_view3_of(&scan, s->vectors + i * TESS_VIEW3_NUMBERS);
        const tess_shadow3 shadow = tess_view3_shadow(&view);
        double seen[3];
        tess_shadow3_at(&shadow, origin, seen);
        sum += seen[2] * sqrt(tess_dot3(view.u, view.u)) * s->spacing;
    }
    return sum / (double)s->views;
}

static void describe(const tess_fdk *fdk, const tess_rays_settings *s, tess_op ops[STEPS])
{
    const int64_t padded = tess_filter_padded(s->columns);
    const tess_tensor views = tess_tensor_3d(TESS_F32, 1, fdk->chunk, s->rows, s->columns, 1),
                      longer = tess_tensor_3d(TESS_F32, 1, fdk->chunk, s->rows, padded, 1);
    const tess_op_rays rays = {.geometry = s->geometry, .spacing = s->spacing};
    ops[COSINE] = (tess_op){
        .kind = TESS_OP_RAY_COSINE, .inputs = 1, .outputs = 1, .in = {views}, .out = {longer}, .rays = rays};
    tess_filter_ops(fdk->chunk * s->rows, padded, &ops[TRANSFORM], &ops[FILTER], &ops[BACK]);
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < TESS_SPATIAL; k++)
            ops[i].kernel[k] = ops[i].stride[k] = 1;
}

/* Op for slices [first, first + slices). */
static tess_op spread_op(const tess_fdk *fdk, const tess_rays_settings *s, int64_t first, int64_t slices,
                         bool accumulate)
{
    const double pi = 3.14159265358979323846;
    tess_tensor seen = tess_tensor_3d(TESS_F32, 1, fdk->chunk, s->rows, tess_filter_padded(s->columns), 1);
    seen.w = s->columns; /* of the padded rows */
    tess_op op = {.kind = TESS_OP_RAY_SPREAD,
                  .inputs = 1,
                  .outputs = 1,
                  .in = {seen},
                  .out = {tess_tensor_3d(TESS_F32, 1, slices, s->height, s->width, 1)}};
    op.rays = (tess_op_rays){.geometry = s->geometry,
                             .spacing = s->spacing,
                             .first = first,
                             .depth = s->depth,
                             .accumulate = accumulate,
                             .scale = pi / ((double)s->views * pitch_at_axis(s))};
    for (int k = 0; k < TESS_SPATIAL; k++)
        op.kernel[k] = op.stride[k] = 1;
    return op;
}

static tess_status prepare(tess_fdk *fdk, const tess_rays_settings *s, tess_error *error)
{
    tess_device *device = fdk->device;
    tess_op ops[STEPS];
    describe(fdk, s, ops);
    size_t workspace = 0;
    for (int i = 0; i < STEPS; i++) {
        tess_op_needs needs;
        TESS_TRY(device->ops->query(device, &ops[i], &needs, error));
        TESS_TRY(device->ops->prepare(device, &ops[i], &fdk->step[i], error));
        workspace = needs.workspace > workspace ? needs.workspace : workspace;
    }
    tess_op_needs needs; /* for the whole volume: no slab needs more */
    const tess_op spread = spread_op(fdk, s, 0, s->depth, false);
    TESS_TRY(device->ops->query(device, &spread, &needs, error));
    workspace = needs.workspace > workspace ? needs.workspace : workspace;
    size_t rows_bytes, half_bytes;
    if (!tess_tensor_bytes(&ops[TRANSFORM].in[0], &rows_bytes) ||
        !tess_tensor_bytes(&ops[TRANSFORM].out[0], &half_bytes))
        return tess_fail(error, TESS_OVER_LIMIT, "views of %lld x %lld pixels are too large to filter",
                         (long long)s->rows, (long long)s->columns);
    fdk->spectrum_at = tess_align_size(rows_bytes, ALIGNMENT);
    fdk->workspace_at = fdk->spectrum_at + tess_align_size(half_bytes, ALIGNMENT);
    fdk->scratch = fdk->workspace_at + workspace;
    return TESS_OK;
}

static tess_status load_filters(tess_fdk *fdk, int64_t padded, tess_error *error)
{
    tess_device *device = fdk->device;
    const size_t count = (size_t)fdk->bins;
    TESS_TRY(device->memory->alloc(device, &fdk->spectra, TESS_MEM_WORKSPACE, FILTERS * count * sizeof(float),
                                   error));
    float *values = tess_small_alloc(FILTERS * count, sizeof *values);
    if (!values)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the filters of %lld columns",
                         (long long)padded);
    tess_status status = tess_filter_spectrum(TESS_FILTER_RAM_LAK, padded, 1, values, error);
    if (status == TESS_OK)
        status = tess_filter_spectrum(TESS_FILTER_HANN, padded, 1, values + count, error);
    if (status == TESS_OK) {
        device->memory->copy(device, fdk->spectra.data, values, FILTERS * count * sizeof *values, NULL);
        status = device->streams->sync(device, NULL, error);
    }
    tess_small_free(values);
    return status;
}

tess_status tess_fdk_create(tess_device *device, const tess_rays_settings *settings, size_t bytes,
                            tess_fdk **out, tess_error *error)
{
    *out = NULL;
    tess_fdk *fdk = tess_small_alloc(1, sizeof *fdk);
    if (!fdk)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for FDK");
    const int64_t padded = tess_filter_padded(settings->columns);
    const size_t view_bytes = (size_t)settings->rows * (size_t)padded * sizeof(float);
    fdk->device = device;
    fdk->views = settings->views;
    fdk->chunk = choose_chunk(settings->views, view_bytes, bytes);
    fdk->pixels = settings->rows * settings->columns;
    fdk->bins = padded / 2 + 1;
    tess_status status = prepare(fdk, settings, error);
    if (status == TESS_OK)
        status = load_filters(fdk, padded, error);
    if (status != TESS_OK) {
        tess_fdk_destroy(fdk);
        return status;
    }
    *out = fdk;
    return TESS_OK;
}

tess_status tess_fdk_cut(tess_fdk *fdk, const tess_rays_settings *s, int64_t thickness, tess_error *error)
{
    tess_device *device = fdk->device;
    fdk->slabs = tess_ceil_div(s->depth, thickness);
    fdk->spread = tess_small_alloc((size_t)fdk->slabs * 2, sizeof *fdk->spread);
    if (!fdk->spread)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld slabs", (long long)fdk->slabs);
    for (int64_t i = 0; i < 2 * fdk->slabs; i++) {
        const int64_t first = i / 2 * thickness;
        const tess_op op = spread_op(fdk, s, first, tess_min_i64(thickness, s->depth - first), i % 2);
        TESS_TRY(device->ops->prepare(device, &op, &fdk->spread[i], error));
    }
    return TESS_OK;
}

void tess_fdk_destroy(tess_fdk *fdk)
{
    if (!fdk)
        return;
    for (int i = 0; i < STEPS; i++)
        if (fdk->step[i])
            fdk->device->ops->release(fdk->device, fdk->step[i]);
    for (int64_t i = 0; fdk->spread && i < 2 * fdk->slabs; i++)
        if (fdk->spread[i])
            fdk->device->ops->release(fdk->device, fdk->spread[i]);
    tess_small_free(fdk->spread);
    fdk->device->memory->free(fdk->device, &fdk->spectra);
    tess_small_free(fdk);
}

size_t tess_fdk_scratch(const tess_fdk *fdk)
{
    return fdk->scratch;
}

size_t tess_fdk_held(const tess_fdk *fdk)
{
    return fdk->spectra.bytes;
}

void tess_fdk_run(const tess_fdk *fdk, int64_t slab, tess_filter filter, const void *table,
                  const void *measurement, void *volume, void *scratch, tess_stream *stream)
{
    tess_device *device = fdk->device;
    void *rows = scratch, *half = (char *)scratch + fdk->spectrum_at,
         *workspace = (char *)scratch + fdk->workspace_at;
    const float *window = (const float *)fdk->spectra.data + (filter == TESS_FILTER_HANN ? fdk->bins : 0);
    for (int64_t first = 0; first < fdk->views; first += fdk->chunk) {
        const double *vectors = (const double *)table + first * TESS_VIEW3_NUMBERS;
        const tess_op_buffers calls[STEPS] = {
            [COSINE] = {.in = {(const float *)measurement + first * fdk->pixels},
                        .out = {rows},
                        .weights = vectors,
                        .workspace = workspace},
            [TRANSFORM] = {.in = {rows}, .out = {half}, .workspace = workspace},
            [FILTER] = {.in = {half, window}, .out = {half}, .workspace = workspace},
            [BACK] = {.in = {half}, .out = {rows}, .workspace = workspace}};
        const tess_op_buffers spread = {
            .in = {rows}, .out = {volume}, .weights = vectors, .workspace = workspace};
        for (int i = 0; i < STEPS; i++)
            device->ops->run(device, fdk->step[i], &calls[i], stream);
        device->ops->run(device, fdk->spread[2 * slab + (first > 0)], &spread, stream);
    }
}
