/* relay.h: exchanges of a device with separate memory, whose messages pass through pinned memory of the host.
 *
 * A stream of its own copies what is sent to the host as soon as the network has computed it, and what has arrived back to the device,
 * while the network goes on with what needs neither. The messages themselves are sent and received when the network asks for the end
 * of the exchange: what it computes meanwhile is queued by then, so that waiting for the copy leaves the device no gap. One exchange
 * is under way at a time. */
#ifndef TESS_NET_RELAY_H
#define TESS_NET_RELAY_H

#include "dist/dist.h"
#include "net/exchange.h"

typedef struct tess_relay {
    tess_device *device;
    tess_block pinned;
    tess_stream *copies;
    tess_event *ready;                            /* the network has computed what is sent */
    tess_event *sent;                             /* that is in pinned memory */
    tess_event *arrived;                          /* what was received is in the device's memory */
    tess_dist_transfer list[TESS_EXCHANGE_SIDES]; /* of the exchange under way, in the device's memory */
    int count;
} tess_relay;

/* `bytes`: tess_net_plan_exchange_bytes of the largest plan. On failure, close it all the same. */
tess_status tess_relay_open(tess_relay *relay, tess_device *device, size_t bytes,
                            tess_error *error) TESS_MUST_CHECK;
void tess_relay_close(tess_relay *relay); /* waits for its copies; accepts one that was never opened */

/* Starts to copy what the list sends, after the work that is queued on `stream`. */
tess_status tess_relay_begin(tess_relay *relay, const tess_dist_transfer *list, int count,
                             tess_stream *stream, tess_error *error) TESS_MUST_CHECK;
/* Exchanges messages, and makes `stream` wait for the copy of what was received. *copied is the status of the device: an error there
 * does not keep the neighbours waiting. */
tess_status tess_relay_end(tess_relay *relay, tess_dist_exchange *exchange, tess_stream *stream,
                           tess_status *copied, tess_error *error) TESS_MUST_CHECK;

#endif
