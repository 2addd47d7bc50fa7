/* Compares the declarations of nccl_api.h with NCCL's header. Built where there is one; it has no code. */
#include <nccl.h>

#include "dist/nccl_api.h"

_Static_assert(sizeof(tess_nccl_id) == sizeof(ncclUniqueId), "size of the id");
_Static_assert(_Alignof(tess_nccl_id) == _Alignof(ncclUniqueId), "alignment of the id");
_Static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) &&
                   sizeof(ncclRedOp_t) == sizeof(int),
               "enumerations are passed as int");
_Static_assert(sizeof(ncclComm_t) == sizeof(tess_nccl_comm *) &&
                   sizeof(cudaStream_t) == sizeof(tess_stream *),
               "handles are pointers");
_Static_assert((int)ncclSuccess == (int)TESS_NCCL_SUCCESS && (int)ncclSum == (int)TESS_NCCL_SUM &&
                   (int)ncclUint8 == (int)TESS_NCCL_UINT8 && (int)ncclFloat32 == (int)TESS_NCCL_FLOAT32,
               "numbers");

/* A type that is not the header's gives another branch, and the assertion fails. */
#define SAME(name, ...) _Static_assert(_Generic(&name, __VA_ARGS__ : 1, default : 0), #name)
SAME(ncclGetVersion, ncclResult_t (*)(int *));
SAME(ncclGetErrorString, const char *(*)(ncclResult_t));
SAME(ncclGetUniqueId, ncclResult_t (*)(ncclUniqueId *));
SAME(ncclCommInitRank, ncclResult_t (*)(ncclComm_t *, int, ncclUniqueId, int));
SAME(ncclCommDestroy, ncclResult_t (*)(ncclComm_t));
SAME(ncclCommAbort, ncclResult_t (*)(ncclComm_t));
SAME(ncclCommGetAsyncError, ncclResult_t (*)(ncclComm_t, ncclResult_t *));
SAME(ncclGroupStart, ncclResult_t (*)(void));
SAME(ncclGroupEnd, ncclResult_t (*)(void));
SAME(ncclSend, ncclResult_t (*)(const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
SAME(ncclRecv, ncclResult_t (*)(void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
SAME(ncclAllReduce,
     ncclResult_t (*)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t));
