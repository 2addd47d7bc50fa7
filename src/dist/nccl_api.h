/* nccl_api.h: the functions in use of NCCL, NVIDIA's library for messages between cards, as a table filled from the library at run
 * time. They are declared here, because they are the same in all versions since 2.7, and the build then does not need NCCL's header;
 * where there is one, nccl_check.c compares. A stream is the one of the device: its handle is the library's. */
#ifndef TESS_DIST_NCCL_API_H
#define TESS_DIST_NCCL_API_H

#include <stddef.h>

#include "base/status.h"
#include "device/device.h"

typedef struct tess_nccl_comm tess_nccl_comm; /* the library's own */
typedef struct tess_nccl_id {
    char internal[128];
} tess_nccl_id;
enum { TESS_NCCL_SUCCESS = 0 };
enum { TESS_NCCL_UINT8 = 1, TESS_NCCL_FLOAT32 = 7, TESS_NCCL_SUM = 0 };

#define TESS_NCCL_FUNCTIONS(X)                                                                               \
    X(int, ncclGetVersion, (int *version))                                                                   \
    X(const char *, ncclGetErrorString, (int result))                                                        \
    X(int, ncclGetUniqueId, (tess_nccl_id * id))                                                             \
    X(int, ncclCommInitRank, (tess_nccl_comm * *comm, int ranks, tess_nccl_id id, int rank))                 \
    X(int, ncclCommDestroy, (tess_nccl_comm * comm))                                                         \
    X(int, ncclCommAbort, (tess_nccl_comm * comm))                                                           \
    X(int, ncclCommGetAsyncError, (tess_nccl_comm * comm, int *result))                                      \
    X(int, ncclGroupStart, (void))                                                                           \
    X(int, ncclGroupEnd, (void))                                                                             \
    X(int, ncclSend,                                                                                         \
      (const void *data, size_t count, int type, int peer, tess_nccl_comm *comm, tess_stream *stream))       \
    X(int, ncclRecv,                                                                                         \
      (void *data, size_t count, int type, int peer, tess_nccl_comm *comm, tess_stream *stream))             \
    X(int, ncclAllReduce,                                                                                    \
      (const void *from, void *to, size_t count, int type, int how, tess_nccl_comm *comm,                    \
       tess_stream *stream))

typedef struct tess_nccl_api {
#define X(result, name, parameters) result(*name) parameters;
    TESS_NCCL_FUNCTIONS(X)
#undef X
    int version; /* 22707: 2.27.7 */
} tess_nccl_api;

/* How the environment wants exchanges between cards: TESSERA_NCCL. */
typedef struct tess_nccl_wish {
    bool off;         /* 0 */
    bool required;    /* 1: an error if NCCL cannot be used */
    bool asked;       /* 1, or a library */
    const char *file; /* of the library */
} tess_nccl_wish;
tess_nccl_wish tess_nccl_wished(void);

/* Opens the library, which stays open. */
tess_status tess_nccl_load(const char *file, tess_nccl_api *api, tess_error *error) TESS_MUST_CHECK;

#endif
