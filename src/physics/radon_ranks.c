/* The Radon transform of an image that ranks share: each has a strip of its rows, and some of the views. To project, the ranks
 * gather the image, and each projects it onto its own views; to backproject, they gather the views, and each computes its strip. So
 * every value is summed as by one rank, to the last bit. What is gathered is scratch, of one channel, and small beside a network's
 * activations. */
#include "base/checked.h"
#include "base/mem.h"
#include "geometry/ray2.h"
#include "physics/radon_impl.h"

enum { ALIGNMENT = 256 };

typedef struct shared {
    tess_operator
        op; /* first: a tess_operator * is a shared *; its `inner` takes the whole image and this rank's views */
    tess_prepared *backproject; /* of all views onto this rank's strip */
    tess_block table;           /* of all views */
    tess_dist_exchange *exchange;
    tess_dist_transfer *list;
    int64_t size, views, columns;
    size_t gathered_at; /* in the scratch, after that of `inner` */
} shared;

static shared *shared_of(tess_operator *op)
{
    return (shared *)op;
}

static int64_t view_of(const shared *s, int rank)
{
    return s->views * rank / s->op.share->dist->size;
}

/* Gathers rows [first[r], first[r + 1]) of each rank r into `all`; `mine` may be this rank's place in it. */
static void gather(const shared *s, bool views, const float *mine, float *all)
{
    const tess_dist *dist = s->op.share->dist;
    const int64_t row = views ? s->columns : s->size;
    tess_error error;
    int count = 0;
    for (int r = 0; r < dist->size; r++) {
        const int64_t from[2] = {views ? view_of(s, r) : s->op.share->from[r],
                                 views ? view_of(s, r + 1) : s->op.share->from[r + 1]};
        float *to = all + from[0] * row;
        if (to == mine)
            continue;
        s->list[count] =
            (tess_dist_transfer){.peer = r,
                                 .send = mine,
                                 .receive = to,
                                 .receive_bytes = (size_t)((from[1] - from[0]) * row) * sizeof(float)};
        count++;
    }
    const int64_t own = views ? view_of(s, dist->rank + 1) - view_of(s, dist->rank) : s->op.image.h;
    for (int i = 0; i < count; i++)
        s->list[i].send_bytes = (size_t)(own * row) * sizeof(float);
    tess_status status = tess_dist_exchange_begin(s->exchange, s->list, count, &error);
    if (status == TESS_OK)
        status = tess_dist_exchange_end(s->exchange, &error);
    (void)!tess_share_keep(s->op.share, status, &error); /* several ranks: it is kept */
}

static void forward(tess_operator *op, const void *strip, void *measurement, void *scratch,
                    tess_stream *stream)
{
    float *image = (float *)((char *)scratch + shared_of(op)->gathered_at);
    gather(shared_of(op), false, strip, image);
    op->inner->table->forward(op->inner, image, measurement, scratch, stream);
}

static void backproject(const shared *s, const void *views, void *strip, void *scratch, tess_stream *stream)
{
    const tess_op_buffers call = {
        .in = {views}, .out = {strip}, .weights = s->table.data, .workspace = scratch};
    s->op.device->ops->run(s->op.device, s->backproject, &call, stream);
}

static void adjoint(tess_operator *op, const void *measurement, void *strip, void *scratch,
                    tess_stream *stream)
{
    const shared *s = shared_of(op);
    float *views = (float *)((char *)scratch + s->gathered_at);
    gather(s, true, measurement, views);
    backproject(s, views, strip, scratch, stream);
}

static void inverse(tess_operator *op, const void *measurement, void *strip, void *scratch,
                    tess_stream *stream)
{
    const shared *s = shared_of(op);
    const int rank = op->share->dist->rank;
    float *views = (float *)((char *)scratch + s->gathered_at), *mine = views + view_of(s, rank) * s->columns;
    int64_t pitch;
    const float *rows = tess_radon_filter(op->inner, measurement, scratch, &pitch, stream);
    for (int64_t k = 0; k < view_of(s, rank + 1) - view_of(s, rank); k++)
        op->device->memory->copy(op->device, mine + k * s->columns, rows + k * pitch,
                                 (size_t)s->columns * sizeof *mine, stream);
    gather(s, true, mine, views);
    backproject(s, views, strip, scratch, stream);
}

static void destroy(tess_operator *op)
{
    shared *s = shared_of(op);
    if (s->backproject)
        op->device->ops->release(op->device, s->backproject);
    op->device->memory->free(op->device, &s->table);
    tess_dist_exchange_destroy(s->exchange);
    tess_small_free(s->list);
    tess_operator_destroy(op->inner);
    tess_small_free(s);
}

static const tess_operator_table pair = {.destroy = destroy, .forward = forward, .adjoint = adjoint},
                                 with_inverse = {.destroy = destroy,
                                                 .forward = forward,
                                                 .adjoint = adjoint,
                                                 .inverse = inverse};

static tess_status hold_table(shared *s, const tess_radon_settings *settings, tess_error *error)
{
    tess_device *device = s->op.device;
    const size_t count = (size_t)s->views * TESS_RAY2_NUMBERS;
    double *table = tess_small_alloc(count, sizeof *table);
    if (!table)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld angles", (long long)s->views);
    tess_radon_fill_table(settings, s->columns, table);
    tess_status status =
        device->memory->alloc(device, &s->table, TESS_MEM_WORKSPACE, count * sizeof *table, error);
    if (status == TESS_OK) {
        device->memory->copy(device, s->table.data, table, count * sizeof *table, NULL);
        status = device->streams->sync(device, NULL, error);
    }
    tess_small_free(table);
    s->op.held_bytes += s->table.bytes;
    return status;
}

/* The transform of this rank's views, whose measurement, costs and bytes are those of the operator. */
static tess_status make_inner(shared *s, tess_device *device, const tess_radon_settings *settings,
                              tess_error *error)
{
    tess_share *share = settings->share;
    tess_operator *inner = NULL;
    tess_radon_settings some = *settings;
    s->op.share = share;
    const int64_t first = view_of(s, share->dist->rank);
    some.share = NULL;
    some.all_views = s->views;
    some.views = view_of(s, share->dist->rank + 1) - first;
    some.angles += first;
    some.centres = some.centres ? some.centres + first : NULL;
    TESS_TRY(tess_radon_create_scan(device, &some, &inner, error));
    s->op = *inner;
    s->op.inner = inner;
    s->op.share = share;
    s->op.table = inner->table->inverse ? &with_inverse : &pair;
    s->op.image = tess_tensor_2d(TESS_F32, 1, tess_share_rows(share, s->size), s->size, 1);
    s->op.image_first = tess_share_first(share) * s->size;
    return TESS_OK;
}

static tess_status build(shared *s, const tess_radon_settings *settings, tess_error *error)
{
    tess_operator *op = &s->op;
    tess_device *device = op->device;
    const int64_t views = s->views * s->columns, image = s->size * s->size;
    tess_op back = {.kind = TESS_OP_BACKPROJECT,
                    .inputs = 1,
                    .outputs = 1,
                    .in = {tess_tensor_2d(TESS_F32, 1, s->views, s->columns, 1)},
                    .out = {op->image},
                    .rays = tess_radon_rays(settings)};
    back.rays.first = tess_share_first(op->share);
    for (int k = 0; k < TESS_SPATIAL; k++)
        back.kernel[k] = back.stride[k] = 1;
    tess_op_needs needs;
    TESS_TRY(device->ops->query(device, &back, &needs, error));
    TESS_TRY(device->ops->prepare(device, &back, &s->backproject, error));
    TESS_TRY(hold_table(s, settings, error));
    s->gathered_at =
        tess_align_size(needs.workspace > op->scratch_bytes ? needs.workspace : op->scratch_bytes, ALIGNMENT);
    op->scratch_bytes = s->gathered_at + (size_t)tess_max_i64(views, image) * sizeof(float);
    s->list = tess_small_alloc((size_t)op->share->dist->size, sizeof *s->list);
    if (!s->list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    return tess_dist_exchange_create(op->share->dist, op->share->dist->size, &s->exchange, error);
}

tess_status tess_radon_create_shared(tess_device *device, const tess_radon_settings *settings,
                                     tess_operator **out, tess_error *error)
{
    *out = NULL;
    shared *s = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the Radon transform");
    s->size = settings->size;
    s->views = settings->views;
    s->columns = settings->columns ? settings->columns : settings->size;
    tess_status status = make_inner(s, device, settings, error);
    if (status != TESS_OK) {
        tess_small_free(s);
        return status;
    }
    status = build(s, settings, error);
    if (status != TESS_OK) {
        destroy(&s->op);
        return status;
    }
    *out = &s->op;
    return TESS_OK;
}
