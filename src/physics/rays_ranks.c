/* Rays through a volume that ranks share: each has a slab of slices, and some of the views. Projections of slabs add up to that
 * of the volume, and slabs of a backprojection do not depend on each other, so no rank needs more of the volume than its slab. A few
 * views at a time, in their order: to project, every rank projects its slab onto them, and their owner adds up what all send, in the order
 * of ranks; to backproject, the owner sends them to all. */
#include <math.h>

#include "base/checked.h"
#include "geometry/ray3.h"
#include "physics/rays_impl.h"

enum { MOST_VIEWS = 8, STAGE_BYTES = 16 << 20, ALIGNMENT = 256 };

/* The ops for so many views at a time; those that do not occur are NULL. */
typedef struct view_ops {
    tess_prepared *project, *backproject[2], *add; /* the second one adds to the volume */
} view_ops;

typedef struct shared {
    tess_rays rays;
    int64_t views, view, most; /* all views; values of one; most at a time */
    view_ops ops[MOST_VIEWS + 1];
    tess_dist_exchange *exchange;
    size_t stage_at[2];  /* in the scratch, after the workspace: some views each */
    size_t padded_bytes; /* of the rows of a filtered view */
} shared;

static shared *shared_of(tess_operator *op)
{
    return (shared *)op;
}

static int64_t first_of(const shared *s, int rank)
{
    return s->views * rank / s->rays.base.share->dist->size;
}

/* Some views at a time, with their owner. */
typedef struct portion {
    int owner;
    int64_t first, count;
} portion;

static bool next_portion(const shared *s, portion *p)
{
    p->first += p->count;
    if (p->first >= s->views)
        return false;
    while (p->first >= first_of(s, p->owner + 1))
        p->owner++;
    p->count = tess_min_i64(s->most, first_of(s, p->owner + 1) - p->first);
    return true;
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

static void transfer(const shared *s, const tess_dist_transfer *one)
{
    tess_error error;
    tess_status status = tess_dist_exchange_begin(s->exchange, one, 1, &error);
    if (status == TESS_OK)
        status = tess_dist_exchange_end(s->exchange, &error);
    keep(s, status, &error);
}

/* The owner adds up the projections of all ranks, of which `own` is this rank's. */
static void add_up(const shared *s, const portion *p, void *own, void *other, void *sum, tess_stream *stream)
{
    tess_device *device = s->rays.base.device;
    const tess_dist *dist = s->rays.base.share->dist;
    const size_t bytes = bytes_of(s, p->count);
    if (dist->rank != p->owner) {
        transfer(s, &(tess_dist_transfer){.peer = p->owner, .send = own, .send_bytes = bytes});
        return;
    }
    for (int r = 0; r < dist->size; r++) {
        void *theirs = r == dist->rank ? own : other;
        if (r != dist->rank)
            transfer(s, &(tess_dist_transfer){.peer = r, .receive = other, .receive_bytes = bytes});
        if (r == 0)
            device->memory->copy(device, sum, theirs, bytes, stream);
        else
            device->ops->run(device, s->ops[p->count].add,
                             &(tess_op_buffers){.in = {sum, theirs}, .out = {sum}}, stream);
    }
}

static void forward(tess_operator *op, const void *slab, void *measurement, void *scratch,
                    tess_stream *stream)
{
    const shared *s = shared_of(op);
    char *at = scratch;
    for (portion p = {0}; next_portion(s, &p);) {
        const tess_op_buffers call = {.in = {slab},
                                      .out = {at + s->stage_at[0]},
                                      .weights = table_of(s, p.first),
                                      .workspace = scratch};
        op->device->ops->run(op->device, s->ops[p.count].project, &call, stream);
        const bool mine = p.owner == op->share->dist->rank;
        add_up(s, &p, at + s->stage_at[0], at + s->stage_at[1],
               mine ? (float *)measurement + (p.first - first_of(s, p.owner)) * s->view : NULL, stream);
    }
}

/* A portion of the measurement, on all ranks. */
static const void *spread_portion(const shared *s, const portion *p, const void *measurement, void *stage,
                                  tess_stream *stream)
{
    tess_device *device = s->rays.base.device;
    tess_dist *dist = s->rays.base.share->dist;
    const size_t bytes = bytes_of(s, p->count);
    tess_error error;
    if (dist->rank == p->owner)
        device->memory->copy(device, stage,
                             (const float *)measurement + (p->first - first_of(s, p->owner)) * s->view, bytes,
                             stream);
    keep(s, tess_dist_broadcast(dist, p->owner, stage, bytes, &error), &error);
    return stage;
}

static void adjoint(tess_operator *op, const void *measurement, void *slab, void *scratch,
                    tess_stream *stream)
{
    const shared *s = shared_of(op);
    for (portion p = {0}; next_portion(s, &p);) {
        const void *views = spread_portion(s, &p, measurement, (char *)scratch + s->stage_at[0], stream);
        const tess_op_buffers call = {
            .in = {views}, .out = {slab}, .weights = table_of(s, p.first), .workspace = scratch};
        op->device->ops->run(op->device, s->ops[p.count].backproject[p.first > 0], &call, stream);
    }
}

/* The owner of a view filters it, and sends it to all. */
static void inverse(tess_operator *op, const void *measurement, void *slab, void *scratch,
                    tess_stream *stream)
{
    const shared *s = shared_of(op);
    tess_dist *dist = op->share->dist;
    const tess_rays *r = &s->rays;
    int owner = 0;
    for (int64_t view = 0; view < s->views; view++) {
        tess_error error;
        while (view >= first_of(s, owner + 1))
            owner++;
        if (dist->rank == owner)
            tess_fdk_filter(r->fdk, r->filter, table_of(s, view),
                            (const float *)measurement + (view - first_of(s, owner)) * s->view, scratch,
                            stream);
        keep(s, tess_dist_broadcast(dist, owner, scratch, s->padded_bytes, &error), &error);
        tess_fdk_spread(r->fdk, 0, view > 0, table_of(s, view), slab, scratch, stream);
    }
}

static void destroy(tess_operator *op)
{
    shared *s = shared_of(op);
    for (int64_t n = 0; n <= MOST_VIEWS; n++) {
        tess_prepared *const all[] = {s->ops[n].project, s->ops[n].backproject[0], s->ops[n].backproject[1],
                                      s->ops[n].add};
        for (int i = 0; i < 4; i++)
            if (all[i])
                op->device->ops->release(op->device, all[i]);
    }
    tess_dist_exchange_destroy(s->exchange);
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
    tess_op add = {.kind = TESS_OP_COMBINE,
                   .inputs = 2,
                   .outputs = 1,
                   .in = {project.out[0], project.out[0]},
                   .out = {project.out[0]},
                   .combine = {.a = 1, .b = 1, .low = -INFINITY, .high = INFINITY}};
    for (int k = 0; k < TESS_SPATIAL; k++)
        add.kernel[k] = add.stride[k] = 1;
    return prepare_op(s, &add, &ops->add, workspace, error);
}

static tess_status build(shared *s, const tess_rays_settings *settings, tess_error *error)
{
    tess_operator *base = &s->rays.base;
    tess_share *share = settings->share;
    const int rank = share->dist->rank;
    const int64_t slices = tess_share_rows(share, settings->depth);
    const double part = (double)slices / (double)settings->depth;
    size_t workspace = 0;
    base->share = share;
    base->image_first = tess_share_first(share) * settings->height * settings->width;
    base->image = tess_tensor_3d(TESS_F32, 1, slices, settings->height, settings->width, 1);
    base->measurement = tess_tensor_3d(TESS_F32, 1, first_of(s, rank + 1) - first_of(s, rank), settings->rows,
                                       settings->columns, 1);
    base->forward_flops *= part;
    base->forward_bytes *= part;
    s->most = tess_max_i64(1, tess_min_i64(MOST_VIEWS, (int64_t)(STAGE_BYTES / bytes_of(s, 1))));
    for (portion p = {0}; next_portion(s, &p);)
        if (!s->ops[p.count].project)
            TESS_TRY(prepare_views(s, settings, p.count, &workspace, error));
    s->stage_at[0] = tess_align_size(workspace, ALIGNMENT);
    s->stage_at[1] = s->stage_at[0] + tess_align_size(bytes_of(s, s->most), ALIGNMENT);
    base->scratch_bytes = s->stage_at[1] + tess_align_size(bytes_of(s, s->most), ALIGNMENT);
    base->table = s->rays.fdk ? &with_inverse : &pair;
    if (s->rays.fdk) {
        TESS_TRY(tess_fdk_take(s->rays.fdk, settings, tess_share_first(share), slices, error));
        s->padded_bytes = (size_t)(settings->rows * tess_filter_padded(settings->columns)) * sizeof(float);
        if (tess_fdk_scratch(s->rays.fdk) > base->scratch_bytes)
            base->scratch_bytes = tess_fdk_scratch(s->rays.fdk);
    }
    return tess_dist_exchange_create(share->dist, 1, &s->exchange, error);
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
    s->views = settings->views;
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
