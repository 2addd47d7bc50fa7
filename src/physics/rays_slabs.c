/* Rays through a volume that the device cannot hold. The device's memory holds one slab of the volume and one part of
 * the views at a time: projections of slabs are added up on the device, then copied to the host; a slab accumulates
 * the backprojections of all views, then is copied to the host. The cut is chosen by the bytes that a gradient must
 * move. */
#include <math.h>

#include "base/checked.h"
#include "geometry/ray3.h"
#include "physics/rays_impl.h"

enum { ALIGNMENT = 256, FILTER_SHARE = 8 };
enum { PROJECT, BACKPROJECT, DIRECTIONS };

typedef struct cut {
    int64_t thickness, slabs; /* slices of a slab; the last may be thinner */
    int64_t share, parts;     /* views of a part; the last may have fewer */
    size_t bytes;             /* of the device, in total */
} cut;

typedef struct slabs {
    tess_rays rays;
    tess_block stage; /* a slab, a part of the views, workspace */
    cut cut;
    int64_t depth, views, slice, view; /* the last two are counted in values */
    size_t views_at, workspace_at;
    tess_prepared **ops; /* index_of */
} slabs;

/* Index of an op: the last part of the views has its own ops, and so do ops that add. */
static int64_t index_of(const slabs *s, int direction, int64_t slab, int64_t part, bool add)
{
    return ((slab * DIRECTIONS + direction) * 2 + (part == s->cut.parts - 1)) * 2 + add;
}

static int64_t slices_of(const slabs *s, int64_t slab)
{
    return tess_min_i64(s->cut.thickness, s->depth - slab * s->cut.thickness);
}

static int64_t views_of(const slabs *s, int64_t part)
{
    return tess_min_i64(s->cut.share, s->views - part * s->cut.share);
}

static void slabs_destroy(tess_operator *op)
{
    slabs *s = (slabs *)op;
    for (int64_t i = 0; s->ops && i < s->cut.slabs * DIRECTIONS * 4; i++)
        if (s->ops[i])
            op->device->ops->release(op->device, s->ops[i]);
    tess_small_free(s->ops);
    if (op->device)
        op->device->memory->free(op->device, &s->stage);
    tess_rays_clear(&s->rays);
    tess_small_free(s);
}

static void copy_slab(const slabs *s, int64_t slab, const void *from, bool up, void *to, tess_stream *stream)
{
    tess_device *device = s->rays.base.device;
    const int64_t at = slab * s->cut.thickness * s->slice;
    device->memory->copy(device, (float *)to + (up ? 0 : at), (const float *)from + (up ? at : 0),
                         (size_t)(slices_of(s, slab) * s->slice) * sizeof(float), stream);
}

static void copy_part(const slabs *s, int64_t part, const void *from, bool up, void *to, tess_stream *stream)
{
    tess_device *device = s->rays.base.device;
    const int64_t at = part * s->cut.share * s->view;
    device->memory->copy(device, (float *)to + (up ? 0 : at), (const float *)from + (up ? at : 0),
                         (size_t)(views_of(s, part) * s->view) * sizeof(float), stream);
}

/* Runs one slab and one part of the views on their staged copies. */
static void run(const slabs *s, int direction, int64_t slab, int64_t part, bool add, tess_stream *stream)
{
    tess_device *device = s->rays.base.device;
    char *stage = s->stage.data;
    void *volume = stage, *views = stage + s->views_at;
    const tess_op_buffers call = {.in = {direction == PROJECT ? volume : views},
                                  .out = {direction == PROJECT ? views : volume},
                                  .weights = (const double *)s->rays.table.data +
                                             part * s->cut.share * TESS_VIEW3_NUMBERS,
                                  .workspace = stage + s->workspace_at};
    device->ops->run(device, s->ops[index_of(s, direction, slab, part, add)], &call, stream);
}

static void slabs_forward(tess_operator *op, const void *image, void *measurement, void *scratch,
                          tess_stream *stream)
{
    (void)scratch;
    const slabs *s = (const slabs *)op;
    char *stage = s->stage.data;
    for (int64_t part = 0; part < s->cut.parts; part++) {
        for (int64_t slab = 0; slab < s->cut.slabs; slab++) {
            if (s->cut.slabs > 1 || part == 0)
                copy_slab(s, slab, image, true, stage, stream);
            run(s, PROJECT, slab, part, slab > 0, stream);
        }
        copy_part(s, part, stage + s->views_at, false, measurement, stream);
    }
}

static void slabs_adjoint(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    (void)scratch;
    const slabs *s = (const slabs *)op;
    char *stage = s->stage.data;
    for (int64_t slab = 0; slab < s->cut.slabs; slab++) {
        for (int64_t part = 0; part < s->cut.parts; part++) {
            if (s->cut.parts > 1 || slab == 0)
                copy_part(s, part, measurement, true, stage + s->views_at, stream);
            run(s, BACKPROJECT, slab, part, part > 0, stream);
        }
        copy_slab(s, slab, stage, false, image, stream);
    }
}

static void slabs_inverse(tess_operator *op, const void *measurement, void *image, void *scratch,
                          tess_stream *stream)
{
    (void)scratch;
    const slabs *s = (const slabs *)op;
    const tess_rays *r = &s->rays;
    char *stage = s->stage.data;
    for (int64_t slab = 0; slab < s->cut.slabs; slab++) {
        tess_fdk_run(r->fdk, slab, r->filter, r->table.data, measurement, stage, stage + s->views_at, stream);
        copy_slab(s, slab, stage, false, image, stream);
    }
}

static const tess_operator_table with_inverse = {.destroy = slabs_destroy,
                                                 .forward = slabs_forward,
                                                 .adjoint = slabs_adjoint,
                                                 .inverse = slabs_inverse},
                                 without_inverse = {.destroy = slabs_destroy,
                                                    .forward = slabs_forward,
                                                    .adjoint = slabs_adjoint};

void tess_rays_cuts(const tess_operator *op, int64_t *slabs_count, int64_t *parts)
{
    const slabs *s = (const slabs *)op;
    *slabs_count = s->cut.slabs;
    *parts = s->cut.parts;
}

static tess_op op_of(const tess_rays_settings *settings, int direction, int64_t first, int64_t slices,
                     int64_t views, bool add)
{
    tess_rays_settings some = *settings;
    some.views = views;
    return tess_rays_slab(&some, direction == PROJECT ? TESS_OP_PROJECT : TESS_OP_BACKPROJECT, first, slices,
                          add);
}

static tess_status workspace_of(const slabs *s, const tess_rays_settings *settings, const cut *c,
                                size_t *workspace, tess_error *error)
{
    tess_device *device = s->rays.base.device;
    *workspace = 0;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const tess_op op = op_of(settings, direction, 0, c->thickness, c->share, true);
        tess_op_needs needs;
        TESS_TRY(device->ops->query(device, &op, &needs, error));
        *workspace = needs.workspace > *workspace ? needs.workspace : *workspace;
    }
    return TESS_OK;
}

static size_t values(int64_t count)
{
    return tess_align_size((size_t)count * sizeof(float), ALIGNMENT);
}

/* Finds how many views fit at a time beside slabs of this thickness; share 0: none fit. */
static tess_status fit_views(const slabs *s, const tess_rays_settings *settings, size_t bytes, cut *c,
                             tess_error *error)
{
    const size_t slab = values(c->thickness * s->slice),
                 filter = s->rays.fdk ? tess_fdk_scratch(s->rays.fdk) : 0;
    c->share = 0;
    if (slab + filter > bytes)
        return TESS_OK;
    c->share = tess_min_i64(s->views, (int64_t)((bytes - slab) / values(s->view)));
    for (; c->share > 0; c->share -= 1 + c->share / 8) {
        size_t workspace;
        TESS_TRY(workspace_of(s, settings, c, &workspace, error));
        const size_t beside = values(c->share * s->view) + workspace;
        c->bytes = slab + (beside > filter ? beside : filter);
        if (c->bytes > bytes)
            continue;
        c->parts = tess_ceil_div(s->views, c->share);
        c->share = tess_ceil_div(s->views, c->parts);
        return TESS_OK;
    }
    c->share = 0;
    return TESS_OK;
}

/* Values moved by a forward and an adjoint. */
static double moved(const slabs *s, const cut *c)
{
    const double volume = (double)s->depth * (double)s->slice, views = (double)s->views * (double)s->view;
    return volume * (double)(c->slabs > 1 ? c->parts : 1) + views + volume +
           views * (double)(c->parts > 1 ? c->slabs : 1);
}

static tess_status choose(slabs *s, const tess_rays_settings *settings, size_t bytes, tess_error *error)
{
    double least = INFINITY;
    for (int64_t n = 1; n <= s->depth; n++) {
        cut c = {.thickness = tess_ceil_div(s->depth, n)};
        c.slabs = tess_ceil_div(s->depth, c.thickness);
        if (c.slabs < n)
            continue;
        TESS_TRY(fit_views(s, settings, bytes, &c, error));
        if (c.share > 0 && moved(s, &c) < least) {
            least = moved(s, &c);
            s->cut = c;
        }
        if (c.share > 0 && c.parts == 1)
            break;
    }
    if (isfinite(least))
        return TESS_OK;
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "a slice of %lld x %lld and a view of %lld x %lld do not fit the %.1f MiB that are left for them",
        (long long)settings->height, (long long)settings->width, (long long)settings->rows,
        (long long)settings->columns, (double)bytes / (1 << 20));
}

static tess_status prepare(slabs *s, const tess_rays_settings *settings, tess_error *error)
{
    tess_operator *base = &s->rays.base;
    tess_device *device = base->device;
    const size_t count = (size_t)s->cut.slabs * DIRECTIONS * 4;
    if (!(s->ops = tess_small_alloc(count, sizeof *s->ops)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld slabs", (long long)s->cut.slabs);
    for (int64_t slab = 0; slab < s->cut.slabs; slab++)
        for (int i = 0; i < DIRECTIONS * 4; i++) {
            const int direction = i / 4;
            const int64_t part = i / 2 % 2 ? s->cut.parts - 1 : 0;
            const tess_op op = op_of(settings, direction, slab * s->cut.thickness, slices_of(s, slab),
                                     views_of(s, part), i % 2);
            tess_prepared **slot = &s->ops[index_of(s, direction, slab, part, i % 2)];
            if (!*slot)
                TESS_TRY(device->ops->prepare(device, &op, slot, error));
        }
    if (s->rays.fdk)
        TESS_TRY(tess_fdk_cut(s->rays.fdk, settings, s->cut.thickness, error));
    base->table = s->rays.fdk ? &with_inverse : &without_inverse;
    s->views_at = values(s->cut.thickness * s->slice);
    s->workspace_at = s->views_at + values(s->cut.share * s->view);
    TESS_TRY(device->memory->alloc(device, &s->stage, TESS_MEM_WORKSPACE, s->cut.bytes, error));
    base->held_bytes += s->stage.bytes;
    return TESS_OK;
}

tess_status tess_rays_create_slabs(tess_device *device, const tess_rays_settings *settings, size_t bytes,
                                   tess_operator **out, tess_error *error)
{
    *out = NULL;
    TESS_TRY(tess_rays_check(settings, error));
    slabs *s = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for an operator");
    s->rays.base.table = &without_inverse;
    s->depth = settings->depth;
    s->views = settings->views;
    s->slice = settings->height * settings->width;
    s->view = settings->rows * settings->columns;
    const size_t filter =
        bytes / FILTER_SHARE < TESS_FDK_USUAL_BYTES ? bytes / FILTER_SHARE : TESS_FDK_USUAL_BYTES;
    tess_status status = tess_rays_begin(&s->rays, device, settings, filter, error);
    if (status == TESS_OK)
        status = choose(s, settings, bytes, error);
    if (status == TESS_OK)
        status = prepare(s, settings, error);
    if (status != TESS_OK) {
        slabs_destroy(&s->rays.base);
        return status;
    }
    *out = &s->rays.base;
    return TESS_OK;
}
