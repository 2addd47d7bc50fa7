#include "net/relay.h"

tess_status tess_relay_open(tess_relay *r, tess_device *device, size_t bytes, tess_error *error)
{
    *r = (tess_relay){.device = device};
    TESS_TRY(device->memory->host_alloc(device, &r->pinned, bytes, error));
    TESS_TRY(device->streams->create(device, &r->copies, error));
    TESS_TRY(device->streams->event_create(device, &r->ready, error));
    TESS_TRY(device->streams->event_create(device, &r->sent, error));
    return device->streams->event_create(device, &r->arrived, error);
}

void tess_relay_close(tess_relay *r)
{
    tess_device *device = r->device;
    if (!device)
        return;
    tess_event *const events[] = {r->ready, r->sent, r->arrived};
    if (r->copies)
        (void)!device->streams->sync(device, r->copies,
                                     NULL); /* errors show where the results are waited for */
    for (int i = 0; i < 3; i++)
        if (events[i])
            device->streams->event_destroy(device, events[i]);
    if (r->copies)
        device->streams->destroy(device, r->copies);
    device->memory->host_free(device, &r->pinned);
    r->device = NULL;
}

/* Where the messages of the exchange are in pinned memory: sent and received, one neighbour after another. */
static size_t place(const tess_relay *r, tess_dist_transfer placed[TESS_EXCHANGE_SIDES])
{
    char *at = r->pinned.data;
    for (int i = 0; i < r->count; i++) {
        placed[i] = r->list[i];
        placed[i].send = at;
        placed[i].receive = at + r->list[i].send_bytes;
        at += r->list[i].send_bytes + r->list[i].receive_bytes;
    }
    return (size_t)(at - (char *)r->pinned.data);
}

/* The pinned bytes are free: the last exchange has ended, and its copy to the device, which may still read them, precedes this one
 * in the same stream, on which the end of this exchange waits before it receives anything. */
tess_status tess_relay_begin(tess_relay *r, const tess_dist_transfer *list, int count, tess_stream *stream,
                             tess_error *error)
{
    tess_device *device = r->device;
    tess_dist_transfer placed[TESS_EXCHANGE_SIDES];
    for (int i = 0; i < count; i++)
        r->list[i] = list[i];
    r->count = count;
    if (place(r, placed) > r->pinned.bytes)
        return tess_fail(error, TESS_INTERNAL, "rows of neighbours need more pinned memory than was planned");
    device->streams->record(device, r->ready, stream);
    device->streams->wait(device, r->ready, r->copies);
    for (int i = 0; i < count; i++)
        device->memory->copy(device, (void *)(size_t)placed[i].send, list[i].send, list[i].send_bytes,
                             r->copies);
    device->streams->record(device, r->sent, r->copies);
    return TESS_OK;
}

tess_status tess_relay_end(tess_relay *r, tess_dist_exchange *exchange, tess_stream *stream,
                           tess_status *copied, tess_error *error)
{
    tess_device *device = r->device;
    tess_dist_transfer placed[TESS_EXCHANGE_SIDES];
    (void)place(r, placed);
    *copied = device->streams->event_sync(device, r->sent, error);
    TESS_TRY(tess_dist_exchange_begin(exchange, placed, r->count, error));
    TESS_TRY(tess_dist_exchange_end(exchange, error));
    for (int i = 0; i < r->count; i++)
        device->memory->copy(device, r->list[i].receive, placed[i].receive, placed[i].receive_bytes,
                             r->copies);
    device->streams->record(device, r->arrived, r->copies);
    device->streams->wait(device, r->arrived, stream);
    return TESS_OK;
}
