#include "net/neighbours.h"

#include "base/mem.h"

enum { TRANSFERS = 2 };

tess_status tess_neighbours_open(tess_neighbours *n, tess_dist *dist, int above, int below, tess_error *error)
{
    *n = (tess_neighbours){.above = above, .below = below};
    return tess_dist_exchange_create(dist, TRANSFERS, &n->exchange, error);
}

void tess_neighbours_close(tess_neighbours *n)
{
    tess_dist_exchange_destroy(n->exchange);
    n->exchange = NULL;
}

/* A strip sends as many rows as it receives: see tess_plan_set_margins. */
static void begin(void *user, const tess_exchange *e, tess_stream *stream)
{
    (void)stream; /* the device computes in host memory, where work is done when its call returns */
    tess_neighbours *n = user;
    tess_dist_transfer list[TRANSFERS];
    int count = 0;
    if (n->status != TESS_OK)
        return;
    if (e->above)
        list[count++] = (tess_dist_transfer){.peer = n->above,
                                             .send = tess_exchange_row(e, 0),
                                             .send_bytes = tess_exchange_bytes(e, e->above),
                                             .receive = tess_exchange_row(e, -e->above),
                                             .receive_bytes = tess_exchange_bytes(e, e->above)};
    if (e->below)
        list[count++] = (tess_dist_transfer){.peer = n->below,
                                             .send = tess_exchange_row(e, tess_exchange_own(e) - e->below),
                                             .send_bytes = tess_exchange_bytes(e, e->below),
                                             .receive = tess_exchange_row(e, tess_exchange_own(e)),
                                             .receive_bytes = tess_exchange_bytes(e, e->below)};
    n->status = tess_dist_exchange_begin(n->exchange, list, count, &n->error);
}

static void end(void *user, const tess_exchange *e, tess_stream *stream)
{
    (void)e, (void)stream;
    tess_neighbours *n = user;
    if (n->status == TESS_OK)
        n->status = tess_dist_exchange_end(n->exchange, &n->error);
}

const tess_exchanger tess_neighbours_exchanger = {begin, end};
