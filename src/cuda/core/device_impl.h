/* device_impl.h: shared by device.c (the card and its ops), memory.c, streams.c (order of work) and meters.c. */
#ifndef TESS_CUDA_DEVICE_IMPL_H
#define TESS_CUDA_DEVICE_IMPL_H

#include <pthread.h>

#include "cuda/core/measured.h"
#include "cuda/core/rows.h"

typedef struct tess_cuda {
    tess_device device; /* first: a tess_device * is a tess_cuda * */
    int index, capability, threads;
    char name[96];
    uint64_t id, driver_bytes;
    cudaStream_t stream; /* the default stream */
    void *scratch;
    pthread_mutex_t packing; /* protects the scratch */
    tess_cuda_measured *measured;
    pthread_mutex_t lock; /* protects the two below: the first error that could not be returned */
    tess_status kept;
    tess_error kept_error;
} tess_cuda;

static inline tess_cuda *tess_cuda_of(tess_device *device)
{
    return (tess_cuda *)device;
}

static inline cudaStream_t tess_cuda_stream_of(tess_device *device, tess_stream *stream)
{
    return stream ? tess_cuda_stream(stream) : tess_cuda_of(device)->stream;
}

/* Makes the card current in this thread. */
void tess_cuda_enter(tess_device *device);
/* Stores an error for the calls that can return one; only the first is kept. */
void tess_cuda_keep(tess_device *device, cudaError_t result, const char *what);
void tess_cuda_keep_text(tess_device *device, tess_status status, const char *text);
/* Parts of the device's table, in memory.c, streams.c and meters.c. */
extern const tess_device_memory tess_cuda_memory;
extern const tess_device_streams tess_cuda_streams;
extern const tess_device_graphs tess_cuda_graphs;
extern const tess_device_meters tess_cuda_meters;
void tess_cuda_copy(tess_device *device, void *to, const void *from, size_t bytes, tess_stream *stream);

#endif
