/* Exchanges between ranks: what is sent and received at once, while a rank computes. */
#include <string.h>

#include "base/mem.h"
#include "base/trace.h"
#include "dist/ops.h"

/* LASTING: sends that may outlive the end of their exchange. */
enum { LASTING = 2 };

struct tess_dist_exchange {
    const tess_dist_ops *ops;
    tess_dist *dist;
    bool under_way;
    tess_dist_requests requests;
    tess_dist_requests sends[LASTING]; /* of the last exchanges that were begun as lasting ones */
    int turn;
};

static bool make_requests(const tess_dist *dist, int most, tess_dist_requests *requests)
{
    *requests =
        (tess_dist_requests){.most = most, .memory = tess_small_alloc(dist->ops->request_bytes(most) + 1, 1)};
    return requests->memory != NULL;
}

tess_status tess_dist_exchange_create(tess_dist *dist, int most, tess_dist_exchange **out, tess_error *error)
{
    tess_dist_exchange *exchange = tess_small_alloc(1, sizeof *exchange);
    bool made = exchange != NULL;
    if (made) {
        *exchange = (tess_dist_exchange){.ops = dist->ops, .dist = dist};
        made = make_requests(dist, most, &exchange->requests);
        for (int i = 0; i < LASTING; i++)
            made = make_requests(dist, most, &exchange->sends[i]) && made;
    }
    if (!made) {
        tess_dist_exchange_destroy(exchange);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d transfers between ranks", most);
    }
    *out = exchange;
    return TESS_OK;
}

void tess_dist_exchange_destroy(tess_dist_exchange *exchange)
{
    if (!exchange)
        return;
    if (exchange->under_way)
        (void)!tess_dist_exchange_end(exchange, NULL);
    (void)!tess_dist_exchange_settle(exchange, NULL);
    tess_small_free(exchange->requests.memory);
    for (int i = 0; i < LASTING; i++)
        tess_small_free(exchange->sends[i].memory);
    tess_small_free(exchange);
}

static tess_status take(tess_dist_exchange *exchange, const tess_dist_transfer *list, int count,
                        tess_error *error)
{
    if (exchange->under_way || count > exchange->requests.most)
        return tess_fail(error, TESS_INTERNAL, "an exchange of %d transfers, made for %d%s", count,
                         exchange->requests.most, exchange->under_way ? ", is under way already" : "");
    exchange->under_way = true;
    for (int i = 0; i < count; i++)
        exchange->dist->sent += list[i].peer == exchange->dist->rank ? 0 : list[i].send_bytes;
    return TESS_OK;
}

tess_status tess_dist_exchange_begin(tess_dist_exchange *exchange, const tess_dist_transfer *list, int count,
                                     tess_error *error)
{
    TESS_TRY(take(exchange, list, count, error));
    return exchange->ops->begin(&exchange->requests, list, count, error);
}

/* Waits for sends that were begun as lasting ones. */
static tess_status end_sends(tess_dist_exchange *exchange, int turn, tess_error *error)
{
    tess_dist_requests *sends = &exchange->sends[turn];
    if (!sends->memory || sends->started == 0)
        return TESS_OK;
    const double start = tess_trace_begin(exchange->dist->trace);
    return tess_dist_timed(exchange->dist, "wait for ranks", start, exchange->ops->end(sends, error));
}

tess_status tess_dist_exchange_turn(tess_dist_exchange *exchange, int *turn, tess_error *error)
{
    *turn = exchange->turn = (exchange->turn + 1) % LASTING;
    return end_sends(exchange, exchange->turn, error);
}

tess_status tess_dist_exchange_begin_lasting(tess_dist_exchange *exchange, const tess_dist_transfer *list,
                                             int count, tess_error *error)
{
    TESS_TRY(take(exchange, list, count, error));
    for (int i = 0; i < count; i++) {
        tess_dist_transfer received = list[i];
        received.send_bytes = 0;
        TESS_TRY(exchange->ops->begin(&exchange->requests, &received, 1, error));
    }
    for (int i = 0; i < count; i++) {
        tess_dist_transfer sent = list[i];
        sent.receive_bytes = 0;
        TESS_TRY(exchange->ops->begin(&exchange->sends[exchange->turn], &sent, 1, error));
    }
    return TESS_OK;
}

tess_status tess_dist_exchange_settle(tess_dist_exchange *exchange, tess_error *error)
{
    tess_status status = TESS_OK;
    for (int i = 0; i < LASTING; i++) {
        const tess_status sent = end_sends(exchange, i, error);
        status = status == TESS_OK ? sent : status;
    }
    return status;
}

tess_status tess_dist_exchange_poll(tess_dist_exchange *exchange, tess_error *error)
{
    return exchange->under_way ? exchange->ops->poll(&exchange->requests, error) : TESS_OK;
}

tess_status tess_dist_exchange_end(tess_dist_exchange *exchange, tess_error *error)
{
    if (!exchange->under_way)
        return tess_fail(error, TESS_INTERNAL, "an exchange was ended that had not begun");
    exchange->under_way = false;
    const double start = tess_trace_begin(exchange->dist->trace);
    const tess_status status = exchange->ops->end(&exchange->requests, error);
    return tess_dist_timed(exchange->dist, "wait for ranks", start, status);
}
