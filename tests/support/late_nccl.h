/* late_nccl.h: NCCL of one rank on a late device (late_device.h): the messages of a group become copies on its stream. */
#ifndef TESS_TESTS_LATE_NCCL_H
#define TESS_TESTS_LATE_NCCL_H

#include "dist/nccl.h"
#include "late_device.h"

static struct {
    late_work sends[128], receives[128]; /* of the group */
    int send_count, receive_count, depth, groups;
    int fails_at; /* this group fails; 0: none */
    int aborted, destroyed;
    tess_stream *stream;
} late_messages;
static char late_comm;

static inline int late_version(int *version)
{
    *version = 22809;
    return 0;
}

static inline const char *late_error(int result)
{
    return result == 2 ? "a cable is cut" : "wrong use";
}

static inline int late_id(tess_nccl_id *id)
{
    memset(id, 1, sizeof *id);
    return 0;
}

static inline int late_join(tess_nccl_comm **comm, int ranks, tess_nccl_id id, int rank)
{
    *comm = (tess_nccl_comm *)&late_comm;
    return ranks == 1 && rank == 0 && id.internal[127] == 1 ? 0 : 5;
}

static inline int late_leave(tess_nccl_comm *comm)
{
    late_messages.destroyed++;
    return comm == (tess_nccl_comm *)&late_comm ? 0 : 5;
}

static inline int late_abort(tess_nccl_comm *comm)
{
    late_messages.aborted++;
    return comm == (tess_nccl_comm *)&late_comm ? 0 : 5;
}

static inline int late_async(tess_nccl_comm *comm, int *result)
{
    (void)comm;
    *result = 0;
    return 0;
}

static inline int late_start(void)
{
    late_messages.send_count = late_messages.receive_count = 0;
    late_messages.depth++;
    return 0;
}

static inline int late_end(void)
{
    bool good = late_messages.send_count == late_messages.receive_count;
    for (int i = 0; i < late_messages.send_count && good; i++) {
        late_work *from = &late_messages.sends[i], *to = &late_messages.receives[i];
        good = from->bytes == to->bytes;
        to->from = from->from;
    }
    late_messages.depth--;
    if (++late_messages.groups == late_messages.fails_at)
        return 2;
    for (int i = 0; i < late_messages.send_count && good; i++)
        late_add(late_messages.stream, late_messages.receives[i]);
    return good && late_messages.depth == 0 ? 0 : 5;
}

static inline int late_send(const void *data, size_t bytes, int type, int peer, tess_nccl_comm *comm,
                            tess_stream *stream)
{
    (void)comm;
    late_messages.stream = stream;
    late_messages.sends[late_messages.send_count++] = (late_work){.from = data, .bytes = bytes};
    return type == TESS_NCCL_UINT8 && peer == 0 && late_messages.depth == 1 ? 0 : 5;
}

static inline int late_receive(void *data, size_t bytes, int type, int peer, tess_nccl_comm *comm,
                               tess_stream *stream)
{
    (void)comm, (void)stream;
    late_messages.receives[late_messages.receive_count++] = (late_work){.to = data, .bytes = bytes};
    return type == TESS_NCCL_UINT8 && peer == 0 && late_messages.depth == 1 ? 0 : 5;
}

/* Of one rank, in place. */
static inline int late_sum(const void *from, void *to, size_t count, int type, int how, tess_nccl_comm *comm,
                           tess_stream *stream)
{
    (void)count, (void)comm, (void)stream;
    return from == to && type == TESS_NCCL_FLOAT32 && how == TESS_NCCL_SUM ? 0 : 5;
}

static const tess_nccl_api late_nccl = {.ncclGetVersion = late_version,
                                        .ncclGetErrorString = late_error,
                                        .ncclGetUniqueId = late_id,
                                        .ncclCommInitRank = late_join,
                                        .ncclCommDestroy = late_leave,
                                        .ncclCommAbort = late_abort,
                                        .ncclCommGetAsyncError = late_async,
                                        .ncclGroupStart = late_start,
                                        .ncclGroupEnd = late_end,
                                        .ncclSend = late_send,
                                        .ncclRecv = late_receive,
                                        .ncclAllReduce = late_sum};

#endif
