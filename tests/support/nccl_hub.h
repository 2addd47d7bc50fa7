/* nccl_hub.h: NCCL for ranks that are threads of one process (rank_threads.h) and share one card, which NCCL itself refuses. A communicator of
 * one rank, which is this process, carries the messages of all threads: thread 0 sends and receives them together, after all streams that
 * they come from, and all streams that they go to wait for it. So one card runs the exchanges of many, but for the way between cards. */
#ifndef TESS_TESTS_NCCL_HUB_H
#define TESS_TESTS_NCCL_HUB_H

#include "dist/nccl.h"
#include "rank_threads.h"

typedef struct hub_message {
    const void *send; /* NULL: it is received */
    void *receive;
    size_t bytes;
    int peer;
} hub_message;

typedef struct hub_thread {
    hub_message list[MOST_RANK_TRANSFERS];
    int count;
    tess_stream *stream;
    tess_event *before; /* what this thread sends is there, and what it receives may be written */
} hub_thread;

static struct {
    tess_nccl_api self; /* of one rank */
    tess_nccl_comm *comm;
    tess_device *device;
    tess_event *after;
    hub_thread threads[MOST_RANK_THREADS];
    int64_t sent; /* messages */
} hub;

static inline int hub_version(int *version)
{
    return hub.self.ncclGetVersion(version);
}

static inline const char *hub_error(int result)
{
    return hub.self.ncclGetErrorString(result);
}

static inline int hub_id(tess_nccl_id *id)
{
    memset(id, 7, sizeof *id);
    return 0;
}

/* The id arrives by value. */
static inline int hub_join(tess_nccl_comm **comm, int ranks, tess_nccl_id id, int rank)
{
    tess_nccl_id mine;
    (void)hub_id(&mine);
    *comm = hub.comm;
    return ranks == rank_threads.size && rank == rank_of_thread && memcmp(&id, &mine, sizeof id) == 0 ? 0 : 5;
}

static inline int hub_leave(tess_nccl_comm *comm)
{
    return comm == hub.comm ? 0 : 5;
}

static inline int hub_async(tess_nccl_comm *comm, int *result)
{
    return hub.self.ncclCommGetAsyncError(comm, result);
}

static inline int hub_start(void)
{
    hub.threads[rank_of_thread].count = 0;
    return 0;
}

static inline int hub_add(hub_message message, int type, tess_stream *stream)
{
    hub_thread *mine = &hub.threads[rank_of_thread];
    if (type != TESS_NCCL_UINT8 || mine->count == MOST_RANK_TRANSFERS)
        return 5;
    mine->stream = stream;
    mine->list[mine->count++] = message;
    return 0;
}

static inline int hub_send(const void *data, size_t bytes, int type, int peer, tess_nccl_comm *comm,
                           tess_stream *stream)
{
    (void)comm;
    return hub_add((hub_message){.send = data, .bytes = bytes, .peer = peer}, type, stream);
}

static inline int hub_receive(void *data, size_t bytes, int type, int peer, tess_nccl_comm *comm,
                              tess_stream *stream)
{
    (void)comm;
    return hub_add((hub_message){.receive = data, .bytes = bytes, .peer = peer}, type, stream);
}

/* Where the n-th message from `sender` goes that `receiver` gets. */
static inline const hub_message *hub_place(int sender, int receiver, int n)
{
    for (int i = 0; i < hub.threads[receiver].count; i++) {
        const hub_message *m = &hub.threads[receiver].list[i];
        if (!m->send && m->peer == sender && n-- == 0)
            return m;
    }
    return NULL;
}

static inline int hub_pass_on(tess_stream *stream)
{
    int result = hub.self.ncclGroupStart();
    for (int r = 0; r < rank_threads.size; r++) {
        int sent[MOST_RANK_THREADS] = {0};
        for (int i = 0; i < hub.threads[r].count && result == 0; i++) {
            const hub_message *m = &hub.threads[r].list[i], *to;
            if (!m->send)
                continue;
            to = hub_place(r, m->peer, sent[m->peer]++);
            if (!to || to->bytes != m->bytes)
                result = 5;
            if (result == 0)
                result = hub.self.ncclSend(m->send, m->bytes, TESS_NCCL_UINT8, 0, hub.comm, stream);
            if (result == 0)
                result = hub.self.ncclRecv(to->receive, to->bytes, TESS_NCCL_UINT8, 0, hub.comm, stream);
            hub.sent++;
        }
    }
    const int ended = hub.self.ncclGroupEnd();
    return result ? result : ended;
}

static inline int hub_end(void)
{
    static int result; /* of thread 0; the second barrier passes it on */
    const tess_device_streams *streams = hub.device->streams;
    hub_thread *mine = &hub.threads[rank_of_thread];
    streams->record(hub.device, mine->before, mine->stream);
    pthread_barrier_wait(&rank_threads.meet);
    if (rank_of_thread == 0) {
        for (int r = 1; r < rank_threads.size; r++)
            streams->wait(hub.device, hub.threads[r].before, mine->stream);
        result = hub_pass_on(mine->stream);
        streams->record(hub.device, hub.after, mine->stream);
    }
    pthread_barrier_wait(&rank_threads.meet);
    const int of_all = result;
    if (rank_of_thread > 0)
        streams->wait(hub.device, hub.after, mine->stream);
    pthread_barrier_wait(&rank_threads.meet);
    return of_all;
}

static inline int hub_sum(const void *from, void *to, size_t count, int type, int how, tess_nccl_comm *comm,
                          tess_stream *stream)
{
    return hub.self.ncclAllReduce(from, to, count, type, how, comm, stream);
}

static const tess_nccl_api hub_api = {.ncclGetVersion = hub_version,
                                      .ncclGetErrorString = hub_error,
                                      .ncclGetUniqueId = hub_id,
                                      .ncclCommInitRank = hub_join,
                                      .ncclCommDestroy = hub_leave,
                                      .ncclCommAbort = hub_leave,
                                      .ncclCommGetAsyncError = hub_async,
                                      .ncclGroupStart = hub_start,
                                      .ncclGroupEnd = hub_end,
                                      .ncclSend = hub_send,
                                      .ncclRecv = hub_receive,
                                      .ncclAllReduce = hub_sum};

/* `device` makes the events, and is closed after the hub. */
static inline void hub_open(const tess_nccl_api *self, tess_device *device)
{
    tess_nccl_id id;
    tess_error error;
    tess_device_facts facts;
    hub.self = *self;
    hub.device = device;
    device->facts(device, &facts); /* makes it current in this thread */
    CHECK(self->ncclGetUniqueId(&id) == 0);
    CHECK(self->ncclCommInitRank(&hub.comm, 1, id, 0) == 0);
    CHECK(device->streams->event_create(device, &hub.after, &error) == TESS_OK);
    for (int r = 0; r < MOST_RANK_THREADS; r++)
        CHECK(device->streams->event_create(device, &hub.threads[r].before, &error) == TESS_OK);
}

static inline void hub_close(void)
{
    CHECK(hub.self.ncclCommDestroy(hub.comm) == 0);
    hub.device->streams->event_destroy(hub.device, hub.after);
    for (int r = 0; r < MOST_RANK_THREADS; r++)
        hub.device->streams->event_destroy(hub.device, hub.threads[r].before);
}

#endif
