/* Exchanges between ranks: what is sent and received at once, while a rank computes. Each message goes one of two ways, which both ranks
 * know from its size: through shared memory (mailbox.h) or through the library. */
#include <sched.h>

#include "base/help.h"
#include "base/mem.h"
#include "base/trace.h"
#include "dist/assist.h"
#include "dist/mailbox.h"
#include "dist/ops.h"

/* SPINS: looks at the mailboxes before others may have the core; then the library is also called. */
enum { SPINS = 256 };

/* Half of a transfer, through shared memory, that is not done. */
typedef struct letter {
    int peer;
    const void *send; /* or: */
    void *receive;
    size_t bytes;
} letter;

struct tess_dist_exchange {
    const tess_dist_ops *ops;
    tess_dist *dist;
    bool under_way;
    tess_dist_requests requests;
    tess_mailboxes *boxes; /* NULL: it is not near, or there are none */
    letter *letters;       /* two for each transfer */
    int waiting;           /* of them */
};

tess_status tess_dist_exchange_create(tess_dist *dist, int most, tess_dist_exchange **out, tess_error *error)
{
    tess_dist_exchange *exchange = tess_small_alloc(1, sizeof *exchange);
    if (exchange)
        *exchange = (tess_dist_exchange){
            .ops = dist->ops,
            .dist = dist,
            .requests = {.most = most, .memory = tess_small_alloc(dist->ops->request_bytes(most) + 1, 1)}};
    if (!exchange || !exchange->requests.memory) {
        tess_dist_exchange_destroy(exchange);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d transfers between ranks", most);
    }
    *out = exchange;
    return TESS_OK;
}

tess_status tess_dist_exchange_create_near(tess_dist *dist, int most, tess_dist_exchange **out,
                                           tess_error *error)
{
    TESS_TRY(tess_dist_exchange_create(dist, most, out, error));
    (*out)->letters = tess_small_alloc((size_t)most * 2, sizeof(letter));
    if (!(*out)->letters) {
        tess_dist_exchange_destroy(*out);
        *out = NULL;
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d transfers between ranks", most);
    }
    if (tess_mailboxes_take(dist->mailboxes, most))
        (*out)->boxes = dist->mailboxes;
    return TESS_OK;
}

void tess_dist_exchange_destroy(tess_dist_exchange *exchange)
{
    if (!exchange)
        return;
    if (exchange->under_way)
        (void)!tess_dist_exchange_end(exchange, NULL);
    if (exchange->boxes)
        tess_mailboxes_leave(exchange->boxes);
    tess_small_free(exchange->letters);
    tess_small_free(exchange->requests.memory);
    tess_small_free(exchange);
}

/* Moves on what goes through shared memory. The order of the letters to one peer is kept: there is one in each direction. */
static void move_letters(tess_dist_exchange *exchange)
{
    int left = 0;
    for (int i = 0; i < exchange->waiting; i++) {
        const letter *l = &exchange->letters[i];
        const bool done = l->send ? tess_mailboxes_post(exchange->boxes, l->peer, l->send, l->bytes)
                                  : tess_mailboxes_fetch(exchange->boxes, l->peer, l->receive, l->bytes);
        if (!done)
            exchange->letters[left++] = *l;
    }
    exchange->waiting = left;
}

/* Takes what goes through shared memory out of a transfer. */
static void take_letters(tess_dist_exchange *exchange, tess_dist_transfer *transfer)
{
    if (tess_mailboxes_carry(exchange->boxes, transfer->peer, transfer->send_bytes)) {
        exchange->letters[exchange->waiting++] =
            (letter){.peer = transfer->peer, .send = transfer->send, .bytes = transfer->send_bytes};
        transfer->send_bytes = 0;
    }
    if (tess_mailboxes_carry(exchange->boxes, transfer->peer, transfer->receive_bytes)) {
        exchange->letters[exchange->waiting++] =
            (letter){.peer = transfer->peer, .receive = transfer->receive, .bytes = transfer->receive_bytes};
        transfer->receive_bytes = 0;
    }
}

tess_status tess_dist_exchange_begin(tess_dist_exchange *exchange, const tess_dist_transfer *list, int count,
                                     tess_error *error)
{
    if (exchange->under_way || count > exchange->requests.most)
        return tess_fail(error, TESS_INTERNAL, "an exchange of %d transfers, made for %d%s", count,
                         exchange->requests.most, exchange->under_way ? ", is under way already" : "");
    exchange->under_way = true;
    for (int i = 0; i < count; i++)
        exchange->dist->sent += list[i].peer == exchange->dist->rank ? 0 : list[i].send_bytes;
    if (!exchange->boxes)
        return exchange->ops->begin(&exchange->requests, list, count, error);
    for (int i = 0; i < count; i++) {
        tess_dist_transfer rest = list[i];
        take_letters(exchange, &rest);
        if (rest.send_bytes || rest.receive_bytes)
            TESS_TRY(exchange->ops->begin(&exchange->requests, &rest, 1, error));
    }
    move_letters(exchange);
    return TESS_OK;
}

tess_status tess_dist_exchange_poll(tess_dist_exchange *exchange, tess_error *error)
{
    if (!exchange->under_way)
        return TESS_OK;
    move_letters(exchange);
    return exchange->ops->poll(&exchange->requests, error);
}

/* Whether something is still to come; what the library has to bring is waited for here only if this rank can help meanwhile. */
static bool waits(const tess_dist_exchange *exchange)
{
    return exchange->waiting > 0 || (exchange->requests.started > 0 && tess_help_ready(exchange->dist->help));
}

/* The library is called now and then: others may wait for what it still has to send. */
static tess_status wait_and_help(tess_dist_exchange *exchange, tess_error *error)
{
    for (int spins = 1; waits(exchange); spins++) {
        move_letters(exchange);
        if (!waits(exchange))
            break;
        const bool helped = tess_assist_once(exchange->dist);
        if (exchange->waiting == 0 || helped || spins % SPINS == 0)
            TESS_TRY(exchange->ops->poll(&exchange->requests, error));
        if (!helped && spins % SPINS == 0)
            sched_yield();
    }
    return TESS_OK;
}

tess_status tess_dist_exchange_end(tess_dist_exchange *exchange, tess_error *error)
{
    if (!exchange->under_way)
        return tess_fail(error, TESS_INTERNAL, "an exchange was ended that had not begun");
    exchange->under_way = false;
    const double start = tess_trace_begin(exchange->dist->trace);
    const tess_status moved = wait_and_help(exchange, error);
    const tess_status status = exchange->ops->end(&exchange->requests, moved == TESS_OK ? error : NULL);
    return tess_dist_timed(exchange->dist, "wait for ranks", start, moved == TESS_OK ? status : moved);
}
