/* Rays through a volume that ranks share: each has a slab of slices, and some of the views. Projections of slabs add up to that
 * of the volume, and slabs of a backprojection do not depend on each other, so no rank needs more of the volume than its slab. In rounds of
 * a few views of every owner: to project, every rank projects its slab onto them, and their owners add up what all send, in the order
 * of ranks; to backproject, the owners send them to all. Only the rows that see a slab are sent (physics/rays_bands.h). */
#include "base/checked.h"
#include "geometry/ray3.h"
#include "physics/rays_bands.h"
#include "physics/rays_impl.h"

enum { ALIGNMENT = 256 };

/* The ops for so many views at a time; those that do not occur are NULL. */
typedef struct view_ops {
    tess_prepared *project, *backproject[2]; /* the second one adds to the volume */
} view_ops;

typedef struct shared {
    tess_rays rays;
    int64_t view; /* values of one */
    view_ops ops[TESS_BANDS_MOST_VIEWS + 1];
    tess_bands bands;
    size_t stage_at, bands_at[2]; /* in the scratch, after the workspace: some whole views, and bands */
    size_t padded_bytes;          /* of a row of a filtered view */
} shared;

static shared *shared_of(tess_operator *op)
{
    return (shared *)op;
}

static const double *table_of(const shared *s, int64_t view)
{
    return (const double *)s->rays.table.data + view * TESS_VIEW3_NUMBERS;
}

static size_t bytes_of(const shared *s, int64_t views)
{
    return (size_t)(views * s->view) * sizeof(float);
}

static void keep(const shared *s, tess_status status, const tess_error *error)
{
    (void)!tess_share_keep(s->rays.base.share, status, error); /* several ranks: it is kept */
}

/* This rank's views of a round. The cast drops a const that the direction justifies. */
static float *own_views(const shared *s, const void *measurement, int64_t round)
{
    const int rank = s->bands.dist->rank;
    const tess_bands_portion own = tess_bands_portion_of(&s->bands, rank, round);
    return (float *)(uintptr_t)measurement + (own.first - tess_bands_first(&s->bands, rank)) * s->view;
}

static void forward(tess_operator *op, const void *slab, void *measurement, void *scratch,
                    tess_stream *stream)
{
    shared *s = shared_of(op);
    tess_bands *b = &s->bands;
    char *at = scratch, *const buffer[2] = {at + s->bands_at[0], at + s->bands_at[1]};
    float *stage = (float *)(void *)(at + s->stage_at);
    for (int64_t round = 0; round < b->rounds; round++) {
        char *packed = buffer[0];
        for (int owner = 0; owner < b->dist->size; owner++) {
            const tess_bands_portion p = tess_bands_portion_of(b, owner, round);
            if (p.count == 0)
                continue;
            const tess_op_buffers call = {
                .in = {slab}, .out = {stage}, .weights = table_of(s, p.first), .workspace = scratch};
            op->device->ops->run(op->device, s->ops[p.count].project, &call, stream);
            packed = tess_bands_take(b, p, stage, packed);
        }
        tess_error error;
        keep(s, tess_bands_to_owners(b, round, buffer, own_views(s, measurement, round), &error), &error);
    }
}

static void adjoint(tess_operator *op, const void *measurement, void *slab, void *scratch,
                    tess_stream *stream)
{
    shared *s = shared_of(op);
    tess_bands *b = &s->bands;
    char *at = scratch, *const buffer[2] = {at + s->bands_at[0], at + s->bands_at[1]};
    float *stage = (float *)(void *)(at + s->stage_at);
    bool add = false;
    for (int64_t round = 0; round < b->rounds; round++) {
        tess_error error;
        char *packed = buffer[0];
        keep(s, tess_bands_from_owners(b, round, own_views(s, measurement, round), buffer, &error), &error);
        for (int owner = 0; owner < b->dist->size; owner++) {
            const tess_bands_portion p = tess_bands_portion_of(b, owner, round);
            if (p.count == 0)
                continue;
            packed = tess_bands_put(b, p, packed, stage);
            const tess_op_buffers call = {
                .in = {stage}, .out = {slab}, .weights = table_of(s, p.first), .workspace = scratch};
            op->device->ops->run(op->device, s->ops[p.count].backproject[add], &call, stream);
            add = true;
        }
    }
}

/* The owner of a view filters it, and sends it to all. */
static void inverse(tess_operator *op, const void *measurement, void *slab, void *scratch,
                    tess_stream *stream)
{
    shared *s = shared_of(op);
    tess_bands *b = &s->bands;
    const tess_rays *r = &s->rays;
    int owner = 0;
    for (int64_t view = 0; view < b->views; view++) {
        tess_error error;
        while (view >= tess_bands_first(b, owner + 1))
            owner++;
        if (b->dist->rank == owner)
            tess_fdk_filter(r->fdk, r->filter, table_of(s, view),
                            (const float *)measurement + (view - tess_bands_first(b, owner)) * s->view,
                            scratch, stream);
        keep(s, tess_bands_spread(b, owner, view, s->padded_bytes, scratch, &error), &error);
        tess_fdk_spread(r->fdk, 0, view > 0, table_of(s, view), slab, scratch, stream);
    }
}

static void destroy(tess_operator *op)
{
    shared *s = shared_of(op);
    for (int64_t n = 0; n <= TESS_BANDS_MOST_VIEWS; n++) {
        tess_prepared *const all[] = {s->ops[n].project, s->ops[n].backproject[0], s->ops[n].backproject[1]};
        for (int i = 0; i < 3; i++)
            if (all[i])
                op->device->ops->release(op->device, all[i]);
    }
    tess_bands_clear(&s->bands);
    tess_rays_clear(&s->rays);
    tess_small_free(s);
}

static const tess_operator_table pair = {.destroy = destroy, .forward = forward, .adjoint = adjoint},
                                 with_inverse = {.destroy = destroy,
                                                 .forward = forward,
                                                 .adjoint = adjoint,
                                                 .inverse = inverse};

static tess_status prepare_op(shared *s, const tess_op *op, tess_prepared **out, size_t *workspace,
                              tess_error *error)
{
    tess_device *device = s->rays.base.device;
    tess_op_needs needs;
    TESS_TRY(device->ops->query(device, op, &needs, error));
    *workspace = needs.workspace > *workspace ? needs.workspace : *workspace;
    return device->ops->prepare(device, op, out, error);
}

static tess_status prepare_views(shared *s, const tess_rays_settings *settings, int64_t count,
                                 size_t *workspace, tess_error *error)
{
    const tess_share *share = s->rays.base.share;
    const int64_t first = tess_share_first(share), slices = tess_share_rows(share, settings->depth);
    view_ops *ops = &s->ops[count];
    tess_rays_settings some = *settings;
    some.views = count;
    const tess_op project = tess_rays_slab(&some, TESS_OP_PROJECT, first, slices, false);
    TESS_TRY(prepare_op(s, &project, &ops->project, workspace, error));
    for (int i = 0; i < 2; i++) {
        const tess_op back = tess_rays_slab(&some, TESS_OP_BACKPROJECT, first, slices, i);
        TESS_TRY(prepare_op(s, &back, &ops->backproject[i], workspace, error));
    }
    return TESS_OK;
}

/* Ops for as many views as a round has of an owner. */
static tess_status prepare_rounds(shared *s, const tess_rays_settings *settings, size_t *workspace,
                                  tess_error *error)
{
    for (int64_t round = 0; round < s->bands.rounds; round++)
        for (int owner = 0; owner < s->bands.dist->size; owner++) {
            const int64_t count = tess_bands_portion_of(&s->bands, owner, round).count;
            if (count > 0 && !s->ops[count].project)
                TESS_TRY(prepare_views(s, settings, count, workspace, error));
        }
    return TESS_OK;
}

static tess_status build(shared *s, const tess_rays_settings *settings, tess_error *error)
{
    tess_operator *base = &s->rays.base;
    tess_share *share = settings->share;
    const int rank = share->dist->rank;
    const int64_t slices = tess_share_rows(share, settings->depth);
    const double part = (double)slices / (double)settings->depth;
    size_t workspace = 0;
    TESS_TRY(tess_bands_open(settings, &s->bands, error));
    base->share = share;
    base->image_first = tess_share_first(share) * settings->height * settings->width;
    base->image = tess_tensor_3d(TESS_F32, 1, slices, settings->height, settings->width, 1);
    base->measurement =
        tess_tensor_3d(TESS_F32, 1, tess_bands_first(&s->bands, rank + 1) - tess_bands_first(&s->bands, rank),
                       settings->rows, settings->columns, 1);
    base->forward_flops *= part;
    base->forward_bytes *= part;
    TESS_TRY(prepare_rounds(s, settings, &workspace, error));
    s->stage_at = tess_align_size(workspace, ALIGNMENT);
    s->bands_at[0] = s->stage_at + tess_align_size(bytes_of(s, s->bands.most), ALIGNMENT);
    s->bands_at[1] = s->bands_at[0] + tess_align_size(s->bands.bytes[0], ALIGNMENT);
    base->scratch_bytes = s->bands_at[1] + tess_align_size(s->bands.bytes[1], ALIGNMENT);
    base->table = s->rays.fdk ? &with_inverse : &pair;
    if (s->rays.fdk) {
        TESS_TRY(tess_fdk_take(s->rays.fdk, settings, tess_share_first(share), slices, error));
        s->padded_bytes = (size_t)tess_filter_padded(settings->columns) * sizeof(float);
        if (tess_fdk_scratch(s->rays.fdk) > base->scratch_bytes)
            base->scratch_bytes = tess_fdk_scratch(s->rays.fdk);
    }
    return TESS_OK;
}

tess_status tess_rays_create_shared(tess_device *device, const tess_rays_settings *settings,
                                    tess_operator **out, tess_error *error)
{
    *out = NULL;
    TESS_TRY(tess_rays_check(settings, error));
    shared *s = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for an operator");
    s->rays.base.table = &pair;
    s->view = settings->rows * settings->columns;
    tess_status status =
        tess_rays_begin(&s->rays, device, settings, 0, error); /* filters one view at a time */
    if (status == TESS_OK) {
        s->rays.base.share = settings->share;
        status = build(s, settings, error);
    }
    if (status != TESS_OK) {
        destroy(&s->rays.base);
        return status;
    }
    *out = &s->rays.base;
    return TESS_OK;
}
