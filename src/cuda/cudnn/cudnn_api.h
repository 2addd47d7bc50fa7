/* cudnn_api.h: cuDNN's functions as a table, filled from the library at run time, and a bag that creates and
 * owns its descriptors (private to cudnn*.c).
 *
 * The backend interface is a long sequence of "create, set, set, finalize", each of which can fail. The bag
 * stores the first failure and ignores all calls after it, so that a graph reads as a description and is
 * checked once. */
#ifndef TESS_CUDA_CUDNN_API_H
#define TESS_CUDA_CUDNN_API_H

#include <cudnn_graph.h>

#include "cuda/cudnn/cudnn.h"

#define TESS_CUDNN_FUNCTIONS(X)                                                                              \
    X(cudnnCreate)                                                                                           \
    X(cudnnDestroy)                                                                                          \
    X(cudnnSetStream)                                                                                        \
    X(cudnnGetVersion)                                                                                       \
    X(cudnnGetErrorString)                                                                                   \
    X(cudnnBackendCreateDescriptor)                                                                          \
    X(cudnnBackendDestroyDescriptor)                                                                         \
    X(cudnnBackendFinalize)                                                                                  \
    X(cudnnBackendSetAttribute)                                                                              \
    X(cudnnBackendGetAttribute)                                                                              \
    X(cudnnBackendExecute)

typedef struct tess_cudnn_api {
#define X(name) __typeof__(&name) name;
    TESS_CUDNN_FUNCTIONS(X)
#undef X
} tess_cudnn_api;

enum { TESS_CUDNN_CHANNELS = 4096 }; /* most channels; size of `zeros` */

typedef struct tess_cudnn_bag {
    const tess_cudnn_api *api;
    cudnnBackendDescriptor_t *items;
    int count, room;
    cudnnStatus_t failed; /* the first failure */
    const char *doing;    /* the call that failed */
} tess_cudnn_bag;

struct tess_cudnn {
    void *library;
    tess_cudnn_api api;
    cudnnHandle_t handle;
    char version[32];
    tess_cudnn_bag kernels; /* kernel caches, see cudnn_engine.c */
    uint64_t *kernel_keys;
    void *zeros; /* on the card: the bias of ops without one */
};

/* TESS_OK, or the matching status with "cuDNN: WHAT: REASON". */
tess_status tess_cudnn_check(const tess_cudnn_api *api, cudnnStatus_t result, const char *what,
                             tess_error *error);

/* NULL after a failure. */
cudnnBackendDescriptor_t tess_cudnn_make(tess_cudnn_bag *bag, cudnnBackendDescriptorType_t type);
void tess_cudnn_set(tess_cudnn_bag *bag, cudnnBackendDescriptor_t item, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *values);
void tess_cudnn_seal(tess_cudnn_bag *bag, cudnnBackendDescriptor_t item, const char *doing);
/* Returns the number of values read, at most `room`; 0 if there are none, which is not a failure of the bag. */
int tess_cudnn_get(tess_cudnn_bag *bag, cudnnBackendDescriptor_t item, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int room, void *values);
tess_status tess_cudnn_bag_check(const tess_cudnn_bag *bag, tess_error *error);
/* Destroys the descriptors from index `count` on, newest first. */
void tess_cudnn_bag_cut(tess_cudnn_bag *bag, int count);
void tess_cudnn_bag_free(tess_cudnn_bag *bag);

/* cudnn_bias.cu: fp32 values rounded to `dtype` (F16 or BF16). */
cudaError_t tess_cudnn_round(const float *from, void *to, int64_t count, tess_dtype dtype,
                             cudaStream_t stream);

#endif
