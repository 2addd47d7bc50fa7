#include "net/neighbours.h"

#include "base/mem.h"

tess_status tess_neighbours_open(tess_neighbours *n, tess_dist *dist, int columns, tess_error *error)
{
    *n = (tess_neighbours){.rank = dist->rank, .columns = columns};
    return tess_dist_exchange_create_near(dist, columns > 1 ? TESS_EXCHANGE_SIDES : 2, &n->exchange, error);
}

tess_status tess_neighbours_relay(tess_neighbours *n, tess_device *device, size_t bytes, tess_error *error)
{
    return tess_relay_open(&n->relay, device, bytes, error);
}

void tess_neighbours_close(tess_neighbours *n)
{
    tess_relay_close(&n->relay);
    tess_dist_exchange_destroy(n->exchange);
    n->exchange = NULL;
}

/* A part sends as many rows as it receives: see tess_plan_set_margins. */
static int list_rows(const tess_neighbours *n, const tess_exchange *e, tess_dist_transfer *list)
{
    int count = 0;
    if (e->above)
        list[count++] = (tess_dist_transfer){.peer = n->rank - n->columns,
                                             .send = tess_exchange_row(e, 0),
                                             .send_bytes = tess_exchange_bytes(e, e->above),
                                             .receive = tess_exchange_row(e, -e->above),
                                             .receive_bytes = tess_exchange_bytes(e, e->above)};
    if (e->below)
        list[count++] = (tess_dist_transfer){.peer = n->rank + n->columns,
                                             .send = tess_exchange_row(e, tess_exchange_own(e) - e->below),
                                             .send_bytes = tess_exchange_bytes(e, e->below),
                                             .receive = tess_exchange_row(e, tess_exchange_own(e)),
                                             .receive_bytes = tess_exchange_bytes(e, e->below)};
    return count;
}

static int list_sides(const tess_neighbours *n, const tess_exchange *e, tess_dist_transfer *list)
{
    tess_exchange_side sides[TESS_EXCHANGE_SIDES];
    const int count = tess_exchange_sides(e, sides);
    char *packed = e->packed;
    for (int i = 0; i < count; i++)
        list[i] = (tess_dist_transfer){.peer = n->rank + sides[i].down * n->columns + sides[i].across,
                                       .send = packed + sides[i].sent,
                                       .send_bytes = sides[i].bytes,
                                       .receive = packed + sides[i].received,
                                       .receive_bytes = sides[i].bytes};
    return count;
}

/* Keeps the first error. */
static void keep(tess_neighbours *n, tess_status status, const tess_error *error)
{
    if (status == TESS_OK || n->status != TESS_OK)
        return;
    n->status = status;
    n->error = *error;
}

static void begin(void *user, const tess_exchange *e, tess_stream *stream)
{
    tess_neighbours *n = user;
    tess_dist_transfer list[TESS_EXCHANGE_SIDES];
    tess_error error;
    if (n->lost)
        return;
    const int count = (tess_exchange_in_block(e) ? list_sides : list_rows)(n, e, list);
    const tess_status status = n->nccl           ? tess_nccl_begin(n->nccl, list, count, stream, &error)
                               : n->relay.device ? tess_relay_begin(&n->relay, list, count, stream, &error)
                                                 : tess_dist_exchange_begin(n->exchange, list, count, &error);
    n->lost = status != TESS_OK;
    keep(n, status, &error);
}

static void end(void *user, const tess_exchange *e, tess_stream *stream)
{
    (void)e;
    tess_neighbours *n = user;
    tess_error error;
    tess_status copied = TESS_OK;
    if (n->lost)
        return;
    const tess_status status = n->nccl ? tess_nccl_end(n->nccl, stream, &error)
                               : n->relay.device
                                   ? tess_relay_end(&n->relay, n->exchange, stream, &copied, &error)
                                   : tess_dist_exchange_end(n->exchange, &error);
    n->lost = status != TESS_OK;
    keep(n, status != TESS_OK ? status : copied, &error);
}

const tess_exchanger tess_neighbours_exchanger = {begin, end};
