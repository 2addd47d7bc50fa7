#include "physics/by_views.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

enum { ALIGNMENT = 256, PAIR = 2 };

typedef struct by_views {
    tess_operator op; /* first: a tess_operator * is a by_views * */
    tess_prepared *add;
    tess_dist_exchange *exchange;
    tess_dist_transfer *list;
    int64_t row;              /* values of the image in a unit of share->from */
    size_t image_at, part_at; /* in the scratch, after that of `inner`: the whole image, a strip */
} by_views;

static by_views *by_views_of(tess_operator *op)
{
    return (by_views *)op;
}

static float *part_of(const by_views *v, void *image, int rank)
{
    return (float *)image + v->op.share->from[rank] * v->row;
}

static size_t part_bytes(const by_views *v, int rank)
{
    const int64_t *from = v->op.share->from;
    return (size_t)((from[rank + 1] - from[rank]) * v->row) * sizeof(float);
}

static void exchange(const by_views *v, int count)
{
    tess_error error;
    tess_status status = tess_dist_exchange_begin(v->exchange, v->list, count, &error);
    if (status == TESS_OK)
        status = tess_dist_exchange_end(v->exchange, &error);
    (void)!tess_share_keep(v->op.share, status, &error); /* several ranks: it is kept */
}

static void gather(const by_views *v, const void *strip, void *image)
{
    const tess_dist *dist = v->op.share->dist;
    for (int r = 0; r < dist->size; r++)
        v->list[r] = (tess_dist_transfer){.peer = r,
                                          .send = strip,
                                          .send_bytes = part_bytes(v, dist->rank),
                                          .receive = part_of(v, image, r),
                                          .receive_bytes = part_bytes(v, r)};
    exchange(v, dist->size);
}

/* Each rank gets its strip of all images: first its own, then that of the rank before it, and so on around. */
static void reduce(const by_views *v, void *image, void *part, void *strip, tess_stream *stream)
{
    tess_device *device = v->op.device;
    const tess_dist *dist = v->op.share->dist;
    device->memory->copy(device, strip, part_of(v, image, dist->rank), part_bytes(v, dist->rank), stream);
    for (int turn = 1; turn < dist->size; turn++) {
        const int to = (dist->rank + turn) % dist->size, from = (dist->rank + dist->size - turn) % dist->size;
        v->list[0] =
            (tess_dist_transfer){.peer = to, .send = part_of(v, image, to), .send_bytes = part_bytes(v, to)};
        v->list[1] =
            (tess_dist_transfer){.peer = from, .receive = part, .receive_bytes = part_bytes(v, dist->rank)};
        exchange(v, PAIR);
        device->ops->run(device, v->add, &(tess_op_buffers){.in = {strip, part}, .out = {strip}}, stream);
    }
}

static void forward(tess_operator *op, const void *strip, void *measurement, void *scratch,
                    tess_stream *stream)
{
    const by_views *v = by_views_of(op);
    void *image = (char *)scratch + v->image_at;
    gather(v, strip, image);
    op->inner->table->forward(op->inner, image, measurement, scratch, stream);
}

static void adjoint(tess_operator *op, const void *measurement, void *strip, void *scratch,
                    tess_stream *stream)
{
    const by_views *v = by_views_of(op);
    void *image = (char *)scratch + v->image_at;
    op->inner->table->adjoint(op->inner, measurement, image, scratch, stream);
    reduce(v, image, (char *)scratch + v->part_at, strip, stream);
}

static void inverse(tess_operator *op, const void *measurement, void *strip, void *scratch,
                    tess_stream *stream)
{
    const by_views *v = by_views_of(op);
    void *image = (char *)scratch + v->image_at;
    op->inner->table->inverse(op->inner, measurement, image, scratch, stream);
    reduce(v, image, (char *)scratch + v->part_at, strip, stream);
}

static void destroy(tess_operator *op)
{
    by_views *v = by_views_of(op);
    if (v->add)
        op->device->ops->release(op->device, v->add);
    tess_dist_exchange_destroy(v->exchange);
    tess_small_free(v->list);
    tess_operator_destroy(op->inner);
    tess_small_free(v);
}

static const tess_operator_table pair = {.destroy = destroy, .forward = forward, .adjoint = adjoint},
                                 with_inverse = {.destroy = destroy,
                                                 .forward = forward,
                                                 .adjoint = adjoint,
                                                 .inverse = inverse};

static tess_status build(by_views *v, tess_error *error)
{
    tess_operator *op = &v->op;
    tess_share *share = op->share;
    const tess_dist *dist = share->dist;
    tess_op add = {.kind = TESS_OP_COMBINE,
                   .inputs = 2,
                   .outputs = 1,
                   .in = {op->image, op->image},
                   .out = {op->image},
                   .combine = {.a = 1, .b = 1, .low = -INFINITY, .high = INFINITY}};
    for (int k = 0; k < TESS_SPATIAL; k++)
        add.kernel[k] = add.stride[k] = 1;
    size_t whole;
    if (!tess_tensor_bytes(&op->inner->image, &whole))
        return tess_fail(error, TESS_OVER_LIMIT, "the image has more bytes than there are addresses");
    v->image_at = tess_align_size(op->inner->scratch_bytes, ALIGNMENT);
    v->part_at = v->image_at + tess_align_size(whole, ALIGNMENT);
    op->scratch_bytes = v->part_at + tess_align_size(part_bytes(v, dist->rank), ALIGNMENT);
    v->list = tess_small_alloc((size_t)dist->size, sizeof *v->list);
    if (!v->list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the strips of an image");
    TESS_TRY(tess_dist_exchange_create(share->dist, dist->size, &v->exchange, error));
    return op->device->ops->prepare(op->device, &add, &v->add, error);
}

tess_status tess_by_views_create(tess_operator *inner, tess_share *share, tess_operator **out,
                                 tess_error *error)
{
    *out = NULL;
    by_views *v = tess_small_alloc(1, sizeof *v);
    if (!v) {
        tess_operator_destroy(inner);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for an operator");
    }
    v->op = *inner; /* measurement, costs, bytes */
    v->op.table = inner->table->inverse ? &with_inverse : &pair;
    v->op.inner = inner;
    v->op.share = share;
    v->op.norm_squared = 0;
    v->op.image =
        tess_tensor_2d(TESS_F32, 1, tess_share_rows(share, inner->image.h), inner->image.w, inner->image.c);
    v->row = inner->image.w * inner->image.c;
    v->op.image_first = tess_share_first(share) * v->row;
    const tess_status status = build(v, error);
    if (status != TESS_OK) {
        destroy(&v->op);
        return status;
    }
    *out = &v->op;
    return TESS_OK;
}
