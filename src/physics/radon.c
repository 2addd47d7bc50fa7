#include "physics/radon.h"

#include <math.h>

#include "base/checked.h"
#include "geometry/ray2.h"

enum {
    PROJECT,
    BACKPROJECT,
    TRANSFORM,
    FILTER,
    BACK,
    SPREAD,
    STEPS,
    FILTERS = 2,
    ALIGNMENT = 256,
    LARGEST = 65536
};

typedef struct radon {
    tess_operator op; /* first: a tess_operator * is a radon * */
    tess_prepared *step[STEPS];
    tess_block table;  /* TESS_RAY2_NUMBERS of each view */
    tess_block filter; /* a spectrum for each filter, followed by the zeros that pad a row */
    tess_filter chosen;
    int64_t size, views, columns, padded;
    size_t spectrum_at, workspace_at;
} radon;

static radon *radon_of(tess_operator *op)
{
    return (radon *)op;
}

static void run_step(const radon *r, int step, const tess_op_buffers *buffers, tess_stream *stream)
{
    r->op.device->ops->run(r->op.device, r->step[step], buffers, stream);
}

static void radon_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                          tess_stream *stream)
{
    const tess_op_buffers buffers = {
        .in = {image}, .out = {measurement}, .weights = radon_of(op)->table.data, .workspace = scratch};
    run_step(radon_of(op), PROJECT, &buffers, stream);
}

static void radon_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    const tess_op_buffers buffers = {
        .in = {measurement}, .out = {image}, .weights = radon_of(op)->table.data, .workspace = scratch};
    run_step(radon_of(op), BACKPROJECT, &buffers, stream);
}

static int64_t bins(const radon *r)
{
    return r->padded / 2 + 1;
}

static void radon_inverse(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    const radon *r = radon_of(op);
    tess_device *device = op->device;
    const float *from = measurement, *spectra = r->filter.data, *zeros = spectra + FILTERS * bins(r);
    float *rows = scratch;
    char *spectrum = (char *)scratch + r->spectrum_at, *workspace = (char *)scratch + r->workspace_at;
    const size_t measured = (size_t)r->columns * sizeof *rows,
                 missing = (size_t)(r->padded - r->columns) * sizeof *rows;
    for (int64_t k = 0; k < r->views; k++) {
        device->memory->copy(device, rows + k * r->padded, from + k * r->columns, measured, stream);
        device->memory->copy(device, rows + k * r->padded + r->columns, zeros, missing, stream);
    }
    run_step(r, TRANSFORM, &(tess_op_buffers){.in = {rows}, .out = {spectrum}, .workspace = workspace},
             stream);
    run_step(r, FILTER,
             &(tess_op_buffers){
                 .in = {spectrum, spectra + r->chosen * bins(r)}, .out = {spectrum}, .workspace = workspace},
             stream);
    run_step(r, BACK, &(tess_op_buffers){.in = {spectrum}, .out = {rows}, .workspace = workspace}, stream);
    run_step(
        r, SPREAD,
        &(tess_op_buffers){.in = {rows}, .out = {image}, .weights = r->table.data, .workspace = workspace},
        stream);
}

static void radon_destroy(tess_operator *op)
{
    radon *r = radon_of(op);
    for (int i = 0; i < STEPS; i++)
        if (r->step[i])
            op->device->ops->release(op->device, r->step[i]);
    op->device->memory->free(op->device, &r->table);
    op->device->memory->free(op->device, &r->filter);
    tess_small_free(r);
}

static const tess_operator_table pair = {
    .destroy = radon_destroy, .forward = radon_forward, .adjoint = radon_adjoint};
static const tess_operator_table pair_and_inverse = {
    .destroy = radon_destroy, .forward = radon_forward, .adjoint = radon_adjoint, .inverse = radon_inverse};

/* Samples of a ray. Without the circle: larger than the number of image rows by an even number, so that the samples
 * inside the image keep their positions, and large enough to cover the corners. */
static int64_t samples_along(const tess_radon_settings *s)
{
    if (s->circle || !s->corners)
        return s->size;
    return s->size + 2 * (int64_t)ceil(0.5 * (sqrt(2) - 1) * (double)s->size + 1.5);
}

static void describe(const radon *r, const tess_radon_settings *s, tess_op ops[STEPS])
{
    const tess_tensor image = r->op.image, views = r->op.measurement;
    tess_tensor seen =
        tess_tensor_2d(TESS_F32, 1, r->views, r->padded, 1); /* the detector's part of the padded rows */
    seen.w = r->columns;
    const tess_op_rays rays = {
        .geometry = TESS_PARALLEL_2D, .spacing = 1, .circle = s->circle, .along = samples_along(s)};
    ops[PROJECT] = (tess_op){
        .kind = TESS_OP_PROJECT, .inputs = 1, .outputs = 1, .in = {image}, .out = {views}, .rays = rays};
    ops[BACKPROJECT] = (tess_op){
        .kind = TESS_OP_BACKPROJECT, .inputs = 1, .outputs = 1, .in = {views}, .out = {image}, .rays = rays};
    tess_filter_ops(r->views, r->padded, &ops[TRANSFORM], &ops[FILTER], &ops[BACK]);
    ops[SPREAD] = (tess_op){
        .kind = TESS_OP_BACKPROJECT, .inputs = 1, .outputs = 1, .in = {seen}, .out = {image}, .rays = rays};
    for (int i = 0; i < STEPS; i++)
        for (int k = 0; k < TESS_SPATIAL; k++)
            ops[i].kernel[k] = ops[i].stride[k] = 1;
}

/* Prepares steps [first, last) and returns the largest workspace among them. */
static tess_status prepare(radon *r, const tess_op ops[STEPS], int first, int last, size_t *workspace,
                           tess_error *error)
{
    tess_device *device = r->op.device;
    *workspace = 0;
    for (int i = first; i < last; i++) {
        tess_op_needs needs;
        TESS_TRY(device->ops->query(device, &ops[i], &needs, error));
        TESS_TRY(device->ops->prepare(device, &ops[i], &r->step[i], error));
        *workspace = needs.workspace > *workspace ? needs.workspace : *workspace;
    }
    return TESS_OK;
}

/* Copies `count` values of `size` bytes to a block of the device. */
static tess_status hold(radon *r, tess_block *block, const void *values, size_t count, size_t size,
                        tess_error *error)
{
    tess_device *device = r->op.device;
    TESS_TRY(device->memory->alloc(device, block, TESS_MEM_WORKSPACE, count * size, error));
    device->memory->copy(device, block->data, values, count * size, NULL);
    r->op.held_bytes += block->bytes;
    return device->streams->sync(device, NULL, error);
}

static tess_status hold_table(radon *r, const tess_radon_settings *s, tess_error *error)
{
    const double degree = 3.14159265358979323846 / 180;
    const size_t count = (size_t)r->views * TESS_RAY2_NUMBERS;
    double *table = tess_small_alloc(count, sizeof *table);
    if (!table)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld angles", (long long)r->views);
    for (int64_t k = 0; k < r->views; k++) {
        double *numbers = table + TESS_RAY2_NUMBERS * k;
        numbers[0] = cos(s->angles[k] * degree);
        numbers[1] = sin(s->angles[k] * degree);
        numbers[2] = s->centres ? s->centres[k] : 0.5 * (double)(r->columns - 1);
    }
    tess_status status = hold(r, &r->table, table, count, sizeof *table, error);
    tess_small_free(table);
    return status;
}

static tess_status hold_filters(radon *r, tess_error *error)
{
    const double scale = 3.14159265358979323846 / (double)r->views;
    const size_t count = (size_t)(FILTERS * bins(r) + r->padded - r->columns);
    float *values = tess_small_alloc(count, sizeof *values);
    if (!values)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the filters of %lld detectors",
                         (long long)r->columns);
    tess_status status = TESS_OK;
    for (int i = 0; i < FILTERS && status == TESS_OK; i++)
        status = tess_filter_spectrum((tess_filter)i, r->padded, scale, values + i * bins(r), error);
    if (status == TESS_OK)
        status = hold(r, &r->filter, values, count, sizeof *values, error);
    tess_small_free(values);
    return status;
}

static tess_status build(radon *r, const tess_radon_settings *s, tess_error *error)
{
    tess_op ops[STEPS];
    describe(r, s, ops);
    size_t rows_bytes, half_bytes, image_bytes;
    if (!tess_tensor_bytes(&ops[TRANSFORM].in[0], &rows_bytes) ||
        !tess_tensor_bytes(&ops[TRANSFORM].out[0], &half_bytes) ||
        !tess_tensor_bytes(&r->op.image, &image_bytes))
        return tess_fail(error, TESS_OVER_LIMIT, "%lld views of %lld detectors are too many",
                         (long long)r->views, (long long)r->columns);
    TESS_TRY(hold_table(r, s, error));
    size_t workspace;
    TESS_TRY(prepare(r, ops, PROJECT, TRANSFORM, &r->op.scratch_bytes, error));
    const tess_status status = prepare(r, ops, TRANSFORM, STEPS, &workspace, error);
    if (status == TESS_OK) {
        TESS_TRY(hold_filters(r, error));
        r->spectrum_at = tess_align_size(rows_bytes, ALIGNMENT);
        r->workspace_at = r->spectrum_at + tess_align_size(half_bytes, ALIGNMENT);
        r->op.table = &pair_and_inverse;
        if (r->op.scratch_bytes < r->workspace_at + workspace)
            r->op.scratch_bytes = r->workspace_at + workspace;
    } else if (status != TESS_UNSUPPORTED) { /* without the FFT, forward and adjoint still work */
        return status;
    }
    const double samples = (double)r->views * (double)r->columns * (double)r->size;
    const double seen = samples * (s->circle ? 0.7854 : 1.0);
    r->op.forward_flops = TESS_SAMPLE_FLOPS * seen;
    r->op.forward_bytes = TESS_SAMPLE_BYTES * seen + (double)image_bytes +
                          (double)r->views * (double)r->columns * sizeof(float);
    return TESS_OK;
}

/* A view whose detector does not see the image contributes nothing, and a picture comes out all the same. */
static tess_status check_shadow(const tess_radon_settings *s, int64_t view, int64_t columns,
                                tess_error *error)
{
    const double t = s->angles[view] * 3.14159265358979323846 / 180, at = s->centres[view],
                 half = 0.5 * (double)s->size * (s->circle ? 1 : fabs(cos(t)) + fabs(sin(t)));
    if (at + half >= -0.5 && at - half <= (double)columns - 0.5)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_OPTION,
                     "view %lld: the image's shadow misses the detector: it falls on columns %.0f to %.0f of "
                     "%lld; check the centre, a column counted from 0",
                     (long long)view, at - half, at + half, (long long)columns);
}

static tess_status check(const tess_radon_settings *s, int64_t columns, tess_error *error)
{
    if (s->size < 2 || s->size > LARGEST || s->views < 1)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "a Radon transform takes an image of a side from 2 to %d and at least one angle, not "
            "%lld and %lld",
            LARGEST, (long long)s->size, (long long)s->views);
    if (columns < 2 || columns > LARGEST)
        return tess_fail(error, TESS_BAD_OPTION, "a detector has from 2 to %d columns, not %lld", LARGEST,
                         (long long)columns);
    for (int64_t k = 0; k < s->views; k++) {
        if (!isfinite(s->angles[k]))
            return tess_fail(error, TESS_BAD_OPTION, "angle %lld is not a number; give degrees",
                             (long long)k);
        if (s->centres && !(fabs(s->centres[k]) <= 2 * LARGEST))
            return tess_fail(error, TESS_BAD_OPTION,
                             "view %lld sees the axis at column %g; a centre lies within %d of the detector",
                             (long long)k, s->centres[k], 2 * LARGEST);
        if (s->centres)
            TESS_TRY(check_shadow(s, k, columns, error));
    }
    return TESS_OK;
}

tess_status tess_radon_create_scan(tess_device *device, const tess_radon_settings *s, tess_operator **out,
                                   tess_error *error)
{
    *out = NULL;
    const int64_t columns = s->columns ? s->columns : s->size;
    TESS_TRY(check(s, columns, error));
    radon *r = tess_small_alloc(1, sizeof *r);
    if (!r)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the Radon transform");
    *r = (radon){.op = {.table = &pair,
                        .device = device,
                        .name = "radon",
                        .image = tess_tensor_2d(TESS_F32, 1, s->size, s->size, 1),
                        .measurement = tess_tensor_2d(TESS_F32, 1, s->views, columns, 1)},
                 .size = s->size,
                 .views = s->views,
                 .columns = columns,
                 .padded = tess_filter_padded(columns)};
    const tess_status status = build(r, s, error);
    if (status != TESS_OK) {
        radon_destroy(&r->op);
        return status;
    }
    *out = &r->op;
    return TESS_OK;
}

tess_status tess_radon_create(tess_device *device, int64_t size, int64_t views, const double *angles,
                              bool circle, tess_operator **out, tess_error *error)
{
    const tess_radon_settings settings = {.size = size, .views = views, .angles = angles, .circle = circle};
    return tess_radon_create_scan(device, &settings, out, error);
}

void tess_radon_set_filter(tess_operator *op, tess_filter filter)
{
    radon_of(op)->chosen = filter;
}
