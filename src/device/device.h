/* device.h: the one interface to what computes. A backend is a leaf: it fills this table, nothing includes
 * it, and the registry finds it. Anything more that a solver wants is a new op description, not a new entry
 * here.
 *
 * Two phases: query, prepare and pack may allocate and fail; run allocates nothing, never blocks, and hardly
 * fails. Streams order work: NULL is the device's own; on the CPU there is only that one and run returns when
 * the work is done. An asynchronous error surfaces at the next sync: TESS_DEVICE_LOST. So does a request to stop,
 * TESS_INTERRUPTED: what was run since the sync before may then be half done. */
#ifndef TESS_DEVICE_DEVICE_H
#define TESS_DEVICE_DEVICE_H

#include "base/mem.h"
#include "base/status.h"
#include "op/op.h"

typedef struct tess_device tess_device;
typedef struct tess_stream tess_stream;
typedef struct tess_event tess_event;
typedef struct tess_graph tess_graph;       /* work captured from a stream, to be replayed */
typedef struct tess_kernel tess_kernel;     /* one way of doing some ops: device/kernel.h */
typedef struct tess_prepared tess_prepared; /* an op bound to its kernel; owned by the caller: release */

typedef struct tess_device_options {
    int threads;         /* CPU; 0 = all */
    int index;           /* which card */
    tess_memory *memory; /* where the device counts its blocks; required, and outlives the device */
    tess_stop *stop;     /* may end what runs there early, and outlives the device; NULL: nothing does */
    const char *isa;     /* CPU kernels: NULL = best here, or "reference", "neon", "sse", "avx2", "avx512" */
} tess_device_options;

/* What an op will need on this device: the size function that planning and execution share. */
typedef struct tess_op_needs {
    size_t workspace;
    size_t weights; /* packed, bias included */
    size_t
        held; /* what a library takes for the prepared op, at most; counted as workspace when it is prepared */
    int block; /* results repeat only for windows that start at multiples of this (Winograd blocks) */
} tess_op_needs;

typedef struct tess_device_facts {
    char name[96]; /* e.g. "Neoverse-V1, neon+bf16" */
    uint64_t memory_total, memory_free;
    uint64_t driver_bytes; /* what context and libraries took of the card when it was opened */
    int threads;
    bool bf16; /* fast bf16 matrix instructions */
    bool fp16; /* computes in fp16, and does so by default */
    double flops,
        bytes; /* a second, for plans without calibration: of direct sums, as the usual layers reach them */
} tess_device_facts;

/* Memory of the device, and pinned memory of the host. */
typedef struct tess_device_memory {
    /* What a block of `bytes` will be counted as: planning and allocation share it. */
    size_t (*granted)(tess_device *, size_t bytes);
    tess_status (*alloc)(tess_device *, tess_block *, tess_mem_category, size_t bytes, tess_error *);
    void (*free)(tess_device *, tess_block *);
    /* Pinned; counted as TESS_MEM_HOST. */
    tess_status (*host_alloc)(tess_device *, tess_block *, size_t bytes, tess_error *);
    void (*host_free)(tess_device *, tess_block *);
    /* Between any two of host, pinned and device memory, in the order of the stream. */
    void (*copy)(tess_device *, void *to, const void *from, size_t bytes, tess_stream *);
} tess_device_memory;

/* The order of work. */
typedef struct tess_device_streams {
    tess_status (*sync)(tess_device *, tess_stream *, tess_error *);
    tess_status (*create)(tess_device *, tess_stream **, tess_error *); /* CPU: NULL, its only one */
    void (*destroy)(tess_device *, tess_stream *);
    tess_status (*event_create)(tess_device *, tess_event **, tess_error *);
    void (*event_destroy)(tess_device *, tess_event *);
    void (*record)(tess_device *, tess_event *, tess_stream *);
    void (*wait)(tess_device *, tess_event *,
                 tess_stream *); /* the stream waits; an event never recorded is over */
    tess_status (*event_sync)(tess_device *, tess_event *, tess_error *); /* the caller waits */
    double (*elapsed)(tess_device *, tess_event *from, tess_event *to);   /* seconds; both are over */
} tess_device_streams;

/* What is run on the stream between begin and end becomes a graph instead. */
typedef struct tess_device_graphs {
    tess_status (*begin)(tess_device *, tess_stream *, tess_error *);
    tess_status (*end)(tess_device *, tess_stream *, tess_graph **, tess_error *);
    void (*launch)(tess_device *, tess_graph *, tess_stream *);
    void (*release)(tess_device *, tess_graph *);
} tess_device_graphs;

/* What it computes. The first five are those of device/kernel.h for every device with a list of kernels. */
typedef struct tess_device_ops {
    /* TESS_UNSUPPORTED, with the reason, when the device cannot do the op. */
    tess_status (*query)(tess_device *, const tess_op *, tess_op_needs *, tess_error *);
    tess_status (*prepare)(tess_device *, const tess_op *, tess_prepared **, tess_error *);
    /* Rows [first, first+count) of a parameter's first dimension, row-major fp32, into packed form. */
    void (*pack)(tess_device *, const tess_op *, int param, int64_t first, int64_t count, const float *values,
                 void *packed);
    void (*run)(tess_device *, const tess_prepared *, const tess_op_buffers *, tess_stream *);
    void (*release)(tess_device *, tess_prepared *);
    const tess_kernel *const *kernels; /* in the order of preference, ended by NULL */
    /* What was measured to be the best of them for this op, or NULL; the entry may be NULL too. */
    const tess_kernel *(*prefers)(tess_device *, const tess_op *);
    /* Measures the kernels that could do ops of this class and keeps the best in the cache; NULL: there is no choice. `scratch` is
     * memory of the device that may be written. */
    tess_status (*tune)(tess_device *, const tess_op *, void *scratch, size_t bytes, tess_error *);
} tess_device_ops;

struct tess_device {
    const char *kind;     /* "cpu", "cuda" */
    bool host_memory;     /* its memory is the host's: nothing needs to be copied there */
    tess_memory *counter; /* of its memory, as opened, like `stop`; both set by tess_registry_open */
    tess_stop *stop;
    void *owner; /* the library's handle, where the device was opened by tess_device_open; else NULL */
    void (*destroy)(tess_device *);
    void (*facts)(tess_device *, tess_device_facts *);
    const tess_device_memory *memory;
    const tess_device_streams *streams;
    const tess_device_graphs *graphs; /* NULL: this device needs none */
    const tess_device_ops *ops;
};

typedef struct tess_driver {
    const char *kind;
    tess_status (*open)(const tess_device_options *, tess_device **, tess_error *);
} tess_driver;

/* `kind` "auto" takes the first that opens. */
tess_status tess_registry_open(const char *kind, const tess_device_options *options, tess_device **out,
                               tess_error *error) TESS_MUST_CHECK;
void tess_registry_close(tess_device *device);
/* The drivers of this build, NULL-terminated. */
const tess_driver *const *tess_device_drivers(void);

#endif
