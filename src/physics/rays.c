#include "physics/rays.h"

#include <math.h>
#include <string.h>

#include "device/ray3.h"
#include "physics/fdk.h"

typedef struct rays {
    tess_operator base; /* first: a tess_operator * is a rays * */
    tess_prepared *project, *backproject;
    tess_block table;
    tess_fdk *fdk; /* NULL: the device has no FFT */
    tess_filter filter;
} rays;

tess_op tess_rays_slab(const tess_rays_settings *s, tess_op_kind kind, int64_t first, int64_t slices,
                       bool accumulate)
{
    const tess_tensor volume = tess_tensor_3d(TESS_F32, 1, slices, s->height, s->width, 1),
                      views = tess_tensor_3d(TESS_F32, 1, s->views, s->rows, s->columns, 1);
    const bool project = kind == TESS_OP_PROJECT;
    tess_op op = {.kind = kind, .in = project ? volume : views, .out = project ? views : volume};
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

static void rays_destroy(tess_operator *op)
{
    rays *r = (rays *)op;
    tess_device *device = op->device;
    tess_fdk_destroy(r->fdk);
    if (r->project)
        device->release(device, r->project);
    if (r->backproject)
        device->release(device, r->backproject);
    device->free(device, &r->table);
    tess_small_free(r);
}

static void rays_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                         tess_stream *stream)
{
    const rays *r = (const rays *)op;
    const tess_op_buffers call = {
        .in = image, .out = measurement, .weights = r->table.data, .workspace = scratch};
    op->device->run(op->device, r->project, &call, stream);
}

static void rays_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                         tess_stream *stream)
{
    const rays *r = (const rays *)op;
    const tess_op_buffers call = {
        .in = measurement, .out = image, .weights = r->table.data, .workspace = scratch};
    op->device->run(op->device, r->backproject, &call, stream);
}

static void rays_inverse(tess_operator *op, const void *measurement, void *image, void *scratch,
                         tess_stream *stream)
{
    const rays *r = (const rays *)op;
    tess_fdk_run(r->fdk, r->filter, r->table.data, measurement, image, scratch, stream);
}

static const tess_operator_table with_inverse = {.destroy = rays_destroy,
                                                 .forward = rays_forward,
                                                 .adjoint = rays_adjoint,
                                                 .inverse = rays_inverse},
                                 without_inverse = {.destroy = rays_destroy,
                                                    .forward = rays_forward,
                                                    .adjoint = rays_adjoint};

void tess_rays_set_filter(tess_operator *op, tess_filter filter)
{
    ((rays *)op)->filter = filter;
}

static tess_status prepare(rays *r, const tess_rays_settings *s, tess_error *error)
{
    tess_operator *base = &r->base;
    tess_device *device = base->device;
    const tess_op project = tess_rays_slab(s, TESS_OP_PROJECT, 0, s->depth, false),
                  backproject = tess_rays_slab(s, TESS_OP_BACKPROJECT, 0, s->depth, false);
    base->image = project.in;
    base->measurement = project.out;
    size_t bytes;
    if (!tess_tensor_bytes(&base->image, &bytes) || !tess_tensor_bytes(&base->measurement, &bytes))
        return tess_fail(error, TESS_OVER_LIMIT, "a volume or views of more bytes than there are addresses");
    tess_op_needs forward, adjoint;
    TESS_TRY(device->query(device, &project, &forward, error));
    TESS_TRY(device->query(device, &backproject, &adjoint, error));
    TESS_TRY(device->prepare(device, &project, &r->project, error));
    TESS_TRY(device->prepare(device, &backproject, &r->backproject, error));
    base->scratch_bytes = forward.workspace > adjoint.workspace ? forward.workspace : adjoint.workspace;

    const size_t table_bytes = (size_t)s->views * TESS_VIEW3_NUMBERS * sizeof(double);
    TESS_TRY(device->alloc(device, &r->table, TESS_MEM_WORKSPACE, table_bytes, error));
    device->copy(device, r->table.data, s->vectors, table_bytes, NULL);
    TESS_TRY(device->sync(device, NULL, error));
    base->held_bytes = r->table.bytes;

    const tess_status status = tess_fdk_create(device, s, &r->fdk, error);
    if (status != TESS_OK && status != TESS_UNSUPPORTED)
        return status;
    base->table = r->fdk ? &with_inverse : &without_inverse;
    if (r->fdk) {
        base->held_bytes += tess_fdk_held(r->fdk);
        if (tess_fdk_scratch(r->fdk) > base->scratch_bytes)
            base->scratch_bytes = tess_fdk_scratch(r->fdk);
    }
    /* A ray crosses at most the longest side's slices; 20 operations at each. */
    const double rays_count = (double)s->views * (double)s->rows * (double)s->columns;
    base->forward_flops = 20 * rays_count * fmax(fmax((double)s->depth, (double)s->height), (double)s->width);
    base->forward_bytes = 4 * (rays_count + (double)s->depth * (double)s->height * (double)s->width);
    return TESS_OK;
}

tess_status tess_rays_create(tess_device *device, const tess_rays_settings *settings, tess_operator **out,
                             tess_error *error)
{
    *out = NULL;
    TESS_TRY(tess_rays_check(settings, error));
    rays *r = tess_small_alloc(1, sizeof *r);
    if (!r)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for an operator");
    r->base.device = device;
    r->base.table = &without_inverse;
    r->base.name = settings->geometry == TESS_CONE_3D ? "cone" : "parallel";
    const tess_status status = prepare(r, settings, error);
    if (status != TESS_OK) {
        rays_destroy(&r->base);
        return status;
    }
    *out = &r->base;
    return TESS_OK;
}
