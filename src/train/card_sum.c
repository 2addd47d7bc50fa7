#include "train/card_sum.h"

#include <math.h>

#include "base/checked.h"

enum { MOST = 1 << 22 }; /* values of a piece */

struct tess_card_sum {
    tess_dist *dist;
    tess_nccl *nccl;
    tess_device *device;
    float *values;
    int64_t count, piece;
    tess_block received;      /* parts of the other ranks */
    tess_prepared *add[2];    /* this rank's part of a whole piece, and of the last one; NULL: it has none */
    tess_dist_transfer *list; /* one for each other rank */
};

static int64_t piece_size(int64_t count)
{
    return tess_min_i64(count, MOST);
}

/* Of the largest part. */
static size_t received_bytes(int64_t count, int ranks)
{
    return (size_t)(ranks - 1) * (size_t)(piece_size(count) / ranks + 1) * sizeof(float);
}

size_t tess_card_sum_bytes(tess_device *device, int64_t count, int ranks)
{
    return ranks > 1 && count > 0 ? device->memory->granted(device, received_bytes(count, ranks)) : 0;
}

/* The values of a piece, and where the part of a rank begins in so many. */
static int64_t piece_count(const tess_card_sum *s, int64_t first)
{
    return tess_min_i64(s->piece, s->count - first);
}

static int64_t part_first(const tess_card_sum *s, int64_t values, int rank)
{
    return values * rank / s->dist->size;
}

static int64_t part_count(const tess_card_sum *s, int64_t values, int rank)
{
    return part_first(s, values, rank + 1) - part_first(s, values, rank);
}

static tess_status prepare(tess_card_sum *s, int64_t values, tess_prepared **add, tess_error *error)
{
    const tess_tensor line = tess_tensor_2d(TESS_F32, 1, 1, values, 1);
    const tess_op op = {.kind = TESS_OP_COMBINE,
                        .inputs = 2,
                        .outputs = 1,
                        .in = {line, line},
                        .out = {line},
                        .combine = {.a = 1, .b = 1, .low = -INFINITY, .high = INFINITY}};
    return values > 0 ? s->device->ops->prepare(s->device, &op, add, error) : TESS_OK;
}

tess_status tess_card_sum_open(tess_dist *dist, tess_nccl *nccl, tess_device *device, float *values,
                               int64_t count, tess_card_sum **out, tess_error *error)
{
    tess_card_sum *s = *out = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the sums of the ranks");
    *s = (tess_card_sum){.dist = dist,
                         .nccl = nccl,
                         .device = device,
                         .values = values,
                         .count = count,
                         .piece = piece_size(count)};
    s->list = tess_small_alloc((size_t)dist->size, sizeof *s->list);
    if (!s->list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the sums of the ranks");
    TESS_TRY(device->memory->alloc(device, &s->received, TESS_MEM_WORKSPACE,
                                   received_bytes(count, dist->size), error));
    TESS_TRY(prepare(s, part_count(s, s->piece, dist->rank), &s->add[0], error));
    return prepare(s, part_count(s, count % s->piece, dist->rank), &s->add[1], error);
}

void tess_card_sum_close(tess_card_sum *s)
{
    if (!s)
        return;
    for (int i = 0; i < 2; i++)
        if (s->add[i])
            s->device->ops->release(s->device, s->add[i]);
    s->device->memory->free(s->device, &s->received);
    tess_small_free(s->list);
    tess_small_free(s);
}

static tess_status exchange(tess_card_sum *s, int count, tess_stream *stream, tess_error *error)
{
    TESS_TRY(tess_nccl_begin(s->nccl, s->list, count, stream, error));
    return tess_nccl_end(s->nccl, stream, error);
}

/* Adds this rank's part in the order of the ranks; the last sum goes to its place. */
static void add_part(const tess_card_sum *s, float *own, int64_t count, tess_stream *stream)
{
    const int rank = s->dist->rank, size = s->dist->size;
    float *received = s->received.data, *sum = rank == 0 ? own : received;
    const float *next = received + (rank == 0 ? 0 : count);
    const tess_prepared *add = s->add[part_count(s, s->piece, rank) == count ? 0 : 1];
    for (int r = 1; r < size && count > 0; r++) {
        const tess_op_buffers buffers = {.in = {sum, r == rank ? own : next},
                                         .out = {r == size - 1 ? own : sum}};
        s->device->ops->run(s->device, add, &buffers, stream);
        next += r == rank ? 0 : count;
    }
}

static tess_status run_piece(tess_card_sum *s, float *values, int64_t count, tess_stream *stream,
                             tess_error *error)
{
    const int rank = s->dist->rank;
    const int64_t mine = part_count(s, count, rank);
    float *own = values + part_first(s, count, rank), *received = s->received.data;
    int peers = 0;
    for (int r = 0; r < s->dist->size; r++)
        if (r != rank) {
            s->list[peers] = (tess_dist_transfer){r, values + part_first(s, count, r),
                                                  (size_t)part_count(s, count, r) * sizeof(float),
                                                  received + peers * mine, (size_t)mine * sizeof(float)};
            peers++;
        }
    TESS_TRY(exchange(s, peers, stream, error));
    add_part(s, own, mine, stream);
    for (int i = 0; i < peers; i++) {
        const tess_dist_transfer given = s->list[i];
        s->list[i] = (tess_dist_transfer){given.peer, own, given.receive_bytes,
                                          values + part_first(s, count, given.peer), given.send_bytes};
    }
    return exchange(s, peers, stream, error);
}

tess_status tess_card_sum_run(tess_card_sum *s, tess_stream *stream, tess_error *error)
{
    for (int64_t first = 0; first < s->count; first += s->piece)
        TESS_TRY(run_piece(s, s->values + first, piece_count(s, first), stream, error));
    return TESS_OK;
}
