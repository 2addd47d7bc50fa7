#include "physics/rays_impl.h"

#include <math.h>
#include <string.h>

#include "geometry/ray3.h"

typedef struct whole {
    tess_rays rays;
    tess_prepared *project, *backproject;
} whole;

tess_op tess_rays_slab(const tess_rays_settings *s, tess_op_kind kind, int64_t first, int64_t slices,
                       bool accumulate)
{
    const tess_tensor volume = tess_tensor_3d(TESS_F32, 1, slices, s->height, s->width, 1),
                      views = tess_tensor_3d(TESS_F32, 1, s->views, s->rows, s->columns, 1);
    const bool project = kind == TESS_OP_PROJECT;
    tess_op op = {.kind = kind,
                  .inputs = 1,
                  .outputs = 1,
                  .in = {project ? volume : views},
                  .out = {project ? views : volume}};
    op.rays = (tess_op_rays){.geometry = s->geometry,
                             .spacing = s->spacing,
                             .first = first,
                             .depth = s->depth,
                             .accumulate = accumulate};
    for (int i = 0; i < TESS_SPATIAL; i++)
        op.kernel[i] = op.stride[i] = 1;
    return op;
}

void tess_rays_circle(int64_t views, double source_distance, double detector_distance, double pitch,
                      double *vectors)
{
    const double pi = 3.14159265358979323846;
    for (int64_t i = 0; i < views; i++) {
        const double angle = 2 * pi * (double)i / (double)views, s = sin(angle), c = cos(angle);
        const double view[TESS_VIEW3_NUMBERS] = {s * source_distance,
                                                 -c * source_distance,
                                                 0,
                                                 -s * detector_distance,
                                                 c * detector_distance,
                                                 0,
                                                 c * pitch,
                                                 s * pitch,
                                                 0,
                                                 0,
                                                 0,
                                                 pitch};
        memcpy(vectors + i * TESS_VIEW3_NUMBERS, view, sizeof view);
    }
}

static void whole_destroy(tess_operator *op)
{
    whole *w = (whole *)op;
    if (w->project)
        op->device->ops->release(op->device, w->project);
    if (w->backproject)
        op->device->ops->release(op->device, w->backproject);
    tess_rays_clear(&w->rays);
    tess_small_free(w);
}

static void whole_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                          tess_stream *stream)
{
    const whole *w = (const whole *)op;
    const tess_op_buffers call = {
        .in = {image}, .out = {measurement}, .weights = w->rays.table.data, .workspace = scratch};
    op->device->ops->run(op->device, w->project, &call, stream);
}

static void whole_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    const whole *w = (const whole *)op;
    const tess_op_buffers call = {
        .in = {measurement}, .out = {image}, .weights = w->rays.table.data, .workspace = scratch};
    op->device->ops->run(op->device, w->backproject, &call, stream);
}

static void whole_inverse(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    const tess_rays *r = (const tess_rays *)op;
    tess_fdk_run(r->fdk, 0, r->filter, r->table.data, measurement, image, scratch, stream);
}

static const tess_operator_table with_inverse = {.destroy = whole_destroy,
                                                 .forward = whole_forward,
                                                 .adjoint = whole_adjoint,
                                                 .inverse = whole_inverse},
                                 without_inverse = {.destroy = whole_destroy,
                                                    .forward = whole_forward,
                                                    .adjoint = whole_adjoint};

void tess_rays_set_filter(tess_operator *op, tess_filter filter)
{
    ((tess_rays *)op)->filter = filter;
}

tess_status tess_rays_begin(tess_rays *r, tess_device *device, const tess_rays_settings *s,
                            size_t filter_bytes, tess_error *error)
{
    tess_operator *base = &r->base;
    const tess_op project = tess_rays_slab(s, TESS_OP_PROJECT, 0, s->depth, false);
    base->device = device;
    base->name = s->geometry == TESS_CONE_3D ? "cone" : "parallel3d";
    base->image = project.in[0];
    base->measurement = project.out[0];
    size_t bytes;
    if (!tess_tensor_bytes(&base->image, &bytes) || !tess_tensor_bytes(&base->measurement, &bytes))
        return tess_fail(error, TESS_OVER_LIMIT, "a volume or views of more bytes than there are addresses");

    const size_t table_bytes = (size_t)s->views * TESS_VIEW3_NUMBERS * sizeof(double);
    TESS_TRY(device->memory->alloc(device, &r->table, TESS_MEM_WORKSPACE, table_bytes, error));
    device->memory->copy(device, r->table.data, s->vectors, table_bytes, NULL);
    TESS_TRY(device->streams->sync(device, NULL, error));
    base->held_bytes = r->table.bytes;

    const tess_status status = tess_fdk_create(device, s, filter_bytes, &r->fdk, error);
    if (status != TESS_OK && status != TESS_UNSUPPORTED)
        return status;
    if (r->fdk)
        base->held_bytes += tess_fdk_held(r->fdk);
    /* A ray crosses at most as many slices as the longest side has. */
    const double rays_count = (double)s->views * (double)s->rows * (double)s->columns;
    const double samples = rays_count * fmax(fmax((double)s->depth, (double)s->height), (double)s->width);
    base->forward_flops = TESS_SAMPLE_FLOPS * samples;
    base->forward_bytes = TESS_SAMPLE_BYTES * samples +
                          4 * (rays_count + (double)s->depth * (double)s->height * (double)s->width);
    return TESS_OK;
}

void tess_rays_clear(tess_rays *r)
{
    tess_fdk_destroy(r->fdk);
    if (r->base.device)
        r->base.device->memory->free(r->base.device, &r->table);
}

static tess_status prepare(whole *w, const tess_rays_settings *s, tess_error *error)
{
    tess_operator *base = &w->rays.base;
    tess_device *device = base->device;
    const tess_op project = tess_rays_slab(s, TESS_OP_PROJECT, 0, s->depth, false),
                  backproject = tess_rays_slab(s, TESS_OP_BACKPROJECT, 0, s->depth, false);
    tess_op_needs forward, adjoint;
    TESS_TRY(device->ops->query(device, &project, &forward, error));
    TESS_TRY(device->ops->query(device, &backproject, &adjoint, error));
    TESS_TRY(device->ops->prepare(device, &project, &w->project, error));
    TESS_TRY(device->ops->prepare(device, &backproject, &w->backproject, error));
    base->scratch_bytes = forward.workspace > adjoint.workspace ? forward.workspace : adjoint.workspace;
    if (!w->rays.fdk)
        return TESS_OK;
    TESS_TRY(tess_fdk_cut(w->rays.fdk, s, s->depth, error));
    base->table = &with_inverse;
    if (tess_fdk_scratch(w->rays.fdk) > base->scratch_bytes)
        base->scratch_bytes = tess_fdk_scratch(w->rays.fdk);
    return TESS_OK;
}

tess_status tess_rays_create(tess_device *device, const tess_rays_settings *settings, tess_operator **out,
                             tess_error *error)
{
    *out = NULL;
    TESS_TRY(tess_rays_check(settings, error));
    whole *w = tess_small_alloc(1, sizeof *w);
    if (!w)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for an operator");
    w->rays.base.table = &without_inverse;
    tess_status status = tess_rays_begin(&w->rays, device, settings, TESS_FDK_USUAL_BYTES, error);
    if (status == TESS_OK)
        status = prepare(w, settings, error);
    if (status != TESS_OK) {
        whole_destroy(&w->rays.base);
        return status;
    }
    *out = &w->rays.base;
    return TESS_OK;
}
