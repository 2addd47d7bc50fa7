#include "dist/nccl.h"

#include <stdio.h>

#include "base/mem.h"
#include "dist/guard.h"

enum { PEERS = 8 }; /* of a block in a grid, and those that are connected at once */

struct tess_nccl {
    tess_nccl_api api;
    tess_dist *dist;
    tess_device *device;
    tess_nccl_comm *comm;
    tess_stream *stream;  /* of messages */
    tess_event *ready;    /* what is sent has been computed */
    tess_event *arrived;  /* the exchange is done */
    uint64_t free_before; /* bytes of the card */
    uint64_t bytes;
    bool failed;
};

static tess_status check(tess_nccl *n, int code, const char *call, tess_error *error)
{
    if (code == TESS_NCCL_SUCCESS)
        return TESS_OK;
    n->failed = true;
    return tess_fail(error, TESS_DEVICE_LOST, "%s failed: %s", call, n->api.ncclGetErrorString(code));
}

/* The library takes memory by itself; the device's count of free bytes shows how much. */
static void count_bytes(tess_nccl *n)
{
    tess_device_facts facts;
    if (n->device->host_memory)
        return;
    n->device->facts(n->device, &facts);
    const uint64_t bytes = n->free_before > facts.memory_free ? n->free_before - facts.memory_free : 0;
    n->bytes = bytes > n->bytes ? bytes : n->bytes;
}

static tess_status alloc(tess_nccl *n, tess_error *error)
{
    const tess_device_streams *streams = n->device->streams;
    tess_device_facts facts;
    TESS_TRY(streams->create(n->device, &n->stream, error));
    TESS_TRY(streams->event_create(n->device, &n->ready, error));
    TESS_TRY(streams->event_create(n->device, &n->arrived, error));
    n->device->facts(n->device, &facts);
    n->free_before = facts.memory_free;
    return TESS_OK;
}

/* The device is current in this thread: alloc has just used it. */
static tess_status join(tess_nccl *n, const tess_nccl_id *id, tess_error *error)
{
    return check(n, n->api.ncclCommInitRank(&n->comm, n->dist->size, *id, n->dist->rank), "ncclCommInitRank",
                 error);
}

/* Transfers of a group go on together, in both directions. */
static tess_status queue_group(tess_nccl *n, const tess_dist_transfer *list, int count, tess_error *error)
{
    const tess_nccl_api *api = &n->api;
    tess_status status = check(n, api->ncclGroupStart(), "ncclGroupStart", error);
    if (status != TESS_OK)
        return status;
    for (int i = 0; i < count && status == TESS_OK; i++) {
        const tess_dist_transfer *t = &list[i];
        if (t->send_bytes)
            status =
                check(n, api->ncclSend(t->send, t->send_bytes, TESS_NCCL_UINT8, t->peer, n->comm, n->stream),
                      "ncclSend", error);
        if (t->receive_bytes && status == TESS_OK)
            status = check(
                n, api->ncclRecv(t->receive, t->receive_bytes, TESS_NCCL_UINT8, t->peer, n->comm, n->stream),
                "ncclRecv", error);
    }
    const int ended = api->ncclGroupEnd(); /* a group that was begun is ended */
    return status != TESS_OK ? status : check(n, ended, "ncclGroupEnd", error);
}

tess_status tess_nccl_begin(tess_nccl *n, const tess_dist_transfer *list, int count, tess_stream *stream,
                            tess_error *error)
{
    const tess_device_streams *streams = n->device->streams;
    streams->record(n->device, n->ready, stream);
    streams->wait(n->device, n->ready, n->stream);
    for (int i = 0; i < count; i++)
        n->dist->sent += list[i].peer == n->dist->rank ? 0 : list[i].send_bytes;
    TESS_TRY(queue_group(n, list, count, error));
    streams->record(n->device, n->arrived, n->stream);
    return TESS_OK;
}

tess_status tess_nccl_end(tess_nccl *n, tess_stream *stream, tess_error *error)
{
    int result = TESS_NCCL_SUCCESS;
    n->device->streams->wait(n->device, n->arrived, stream);
    TESS_TRY(check(n, n->api.ncclCommGetAsyncError(n->comm, &result), "ncclCommGetAsyncError", error));
    return check(n, result, "an exchange by NCCL", error);
}

tess_status tess_nccl_sum_f32(tess_nccl *n, float *values, int64_t count, tess_stream *stream,
                              tess_error *error)
{
    return check(n,
                 n->api.ncclAllReduce(values, values, (size_t)count, TESS_NCCL_FLOAT32, TESS_NCCL_SUM,
                                      n->comm, stream),
                 "ncclAllReduce", error);
}

/* Exchanges a byte with each of these ranks, which do the same, and waits for it. */
static tess_status touch(tess_nccl *n, char *at, const int *peers, int count, tess_error *error)
{
    tess_dist_transfer list[PEERS];
    for (int i = 0; i < count; i++, at += 2)
        list[i] = (tess_dist_transfer){peers[i], at, 1, at + 1, 1};
    TESS_TRY(tess_nccl_begin(n, list, count, n->stream, error));
    TESS_TRY(tess_nccl_end(n, n->stream, error));
    return n->device->streams->sync(n->device, n->stream, error);
}

static tess_status connect(tess_nccl *n, tess_error *error)
{
    const int size = n->dist->size, rank = n->dist->rank, others = size > 1 ? size - 1 : 1;
    tess_device *device = n->device;
    tess_block bytes;
    int peers[PEERS] = {(rank + 1) % size, (rank + size - 1) % size}, count = 2;
    if (others <= PEERS)
        for (count = 0; count < others; count++)
            peers[count] = (rank + count + 1) % size;
    TESS_TRY(device->memory->alloc(device, &bytes, TESS_MEM_IO, (size_t)2 * PEERS, error));
    const tess_status status = touch(n, bytes.data, peers, count, error);
    device->memory->free(device, &bytes);
    count_bytes(n);
    return status;
}

/* The library waits for ever for a rank that has failed before it could reach the others. */
static double join_seconds(void)
{
    return 8 * tess_guard_silence();
}

static void end_join(void *user)
{
    char text[160];
    snprintf(
        text, sizeof text,
        "NCCL has not connected the cards of the ranks within %.0f seconds; TESSERA_NCCL=0 does without it",
        join_seconds());
    tess_dist_lose(user, text);
}

static tess_status open_all(tess_nccl *n, tess_error *error)
{
    tess_dist *dist = n->dist;
    tess_nccl_id id = {{0}};
    tess_status status = alloc(n, error);
    if (status == TESS_OK && dist->rank == 0)
        status = check(n, n->api.ncclGetUniqueId(&id), "ncclGetUniqueId", error);
    TESS_TRY(tess_dist_agree(dist, status, error));
    TESS_TRY(tess_dist_broadcast(dist, 0, &id, sizeof id, error));
    TESS_TRY(tess_dist_agree(dist, join(n, &id, error), error));
    return tess_dist_agree(dist, connect(n, error), error);
}

tess_status tess_nccl_open(tess_dist *dist, tess_device *device, const tess_nccl_api *api, tess_nccl **out,
                           tess_error *error)
{
    tess_nccl *n = *out = tess_small_alloc(1, sizeof *n);
    TESS_TRY(tess_dist_agree(
        dist, n ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for messages between cards"), error));
    *n = (tess_nccl){.api = *api, .dist = dist, .device = device};
    tess_guard *guard = dist->size > 1 ? tess_guard_begin(join_seconds(), end_join, dist) : NULL;
    const tess_status status = open_all(n, error);
    tess_guard_end(guard);
    if (status == TESS_OK)
        return TESS_OK;
    n->failed = true; /* here or on another rank */
    tess_nccl_close(n);
    *out = NULL;
    return status;
}

void tess_nccl_close(tess_nccl *n)
{
    if (!n)
        return;
    tess_device *device = n->device;
    const tess_device_streams *streams = device->streams;
    if (n->comm && !n->failed)
        n->failed = streams->sync(device, n->stream, NULL) == TESS_DEVICE_LOST;
    if (n->comm) /* its messages may wait for ranks that are not there: abort ends them */
        (void)(n->failed ? n->api.ncclCommAbort : n->api.ncclCommDestroy)(n->comm);
    if (n->stream)
        (void)!streams->sync(device, n->stream, NULL); /* errors show where the results are waited for */
    if (n->ready)
        streams->event_destroy(device, n->ready);
    if (n->arrived)
        streams->event_destroy(device, n->arrived);
    if (n->stream)
        streams->destroy(device, n->stream);
    tess_small_free(n);
}

uint64_t tess_nccl_bytes(const tess_nccl *n)
{
    return n ? n->bytes : 0;
}
