/* device.h: the interface to every device that computes. A backend is a leaf: it fills this table, no other
 * room includes it, and the registry finds it. A solver that needs more gets a new op description, not a new
 * entry here.
 *
 * There are two phases. query, prepare and pack may allocate and fail; run allocates nothing, never blocks,
 * and reports errors later. Streams order work. NULL is the device's own stream; the CPU has only that one,
 * and its run returns when the work is done. The next sync returns an asynchronous error as TESS_DEVICE_LOST,
 * and a request to stop as TESS_INTERRUPTED; work since the last sync may then be incomplete. */
#ifndef TESS_DEVICE_DEVICE_H
#define TESS_DEVICE_DEVICE_H

#include "base/mem.h"
#include "base/status.h"
#include "op/op.h"

typedef struct tess_device tess_device;
typedef struct tess_stream tess_stream;
typedef struct tess_event tess_event;
typedef struct tess_graph tess_graph;   /* work captured from a stream, to be replayed */
typedef struct tess_meter tess_meter;   /* a measurement that has begun */
typedef struct tess_kernel tess_kernel; /* an implementation of some ops: device/kernel.h */
/* An op bound to a kernel; owned by the caller, who calls release. */
typedef struct tess_prepared tess_prepared;

typedef struct tess_device_options {
    int threads;         /* CPU; 0 = all */
    int index;           /* number of the card */
    bool in_turn;        /* an index beyond the last card starts again at the first */
    tess_memory *memory; /* counts the device's blocks; required, and outlives the device */
    tess_stop *stop;     /* may end work on the device early, outlives the device; NULL: never */
    const char *isa;     /* CPU kernels: NULL = best here, or "reference", "neon", "sse", "avx2", "avx512" */
    bool as_host;        /* CPU: beside a card; all of its blocks are counted as TESS_MEM_HOST */
} tess_device_options;

/* What an op needs on this device. Planning and execution call the same function for it. */
typedef struct tess_op_needs {
    size_t workspace;
    size_t weights; /* packed, bias included */
    /* Most that a library allocates for the prepared op; counted as workspace when the op is prepared. */
    size_t held;
    /* A window repeats the results of the whole only if it starts at a multiple of this (Winograd). */
    int block;
    /* The output must not lie over an input, even over one that is read only at the position that is written. */
    bool apart;
    /* The kernel calls the `arrival` of its buffers itself, after computing what needs no late rows. */
    bool waits;
} tess_op_needs;

typedef struct tess_device_facts {
    char name[96]; /* e.g. "Neoverse-V1, neon+bf16" */
    uint64_t id;   /* which card it is, in all processes of the host; 0: the host's processors */
    uint64_t memory_total, memory_free;
    uint64_t driver_bytes; /* memory of the card used by context and libraries after open */
    int threads;
    bool bf16;        /* has fast bf16 matrix instructions */
    int bf16_columns; /* bf16 kernels compute this many columns of a row at a time; 0 stands for 1 */
    bool fp16;        /* computes in fp16 by default */
    /* Rates per second for planning without calibration, of direct sums on typical layers. */
    double flops, bytes;
} tess_device_facts;

/* Allocation and copies. */
typedef struct tess_device_memory {
    /* The size that a block of `bytes` is counted as; planning and allocation share it. */
    size_t (*granted)(tess_device *, size_t bytes);
    tess_status (*alloc)(tess_device *, tess_block *, tess_mem_category, size_t bytes, tess_error *);
    void (*free)(tess_device *, tess_block *);
    /* Pinned; counted as TESS_MEM_HOST. */
    tess_status (*host_alloc)(tess_device *, tess_block *, size_t bytes, tess_error *);
    void (*host_free)(tess_device *, tess_block *);
    /* Copies between any two of host, pinned and device memory, in the order of the stream. */
    void (*copy)(tess_device *, void *to, const void *from, size_t bytes, tess_stream *);
} tess_device_memory;

/* Streams and events. */
typedef struct tess_device_streams {
    tess_status (*sync)(tess_device *, tess_stream *, tess_error *);
    /* CPU: returns NULL, its only stream. */
    tess_status (*create)(tess_device *, tess_stream **, tess_error *);
    void (*destroy)(tess_device *, tess_stream *);
    tess_status (*event_create)(tess_device *, tess_event **, tess_error *);
    void (*event_destroy)(tess_device *, tess_event *);
    void (*record)(tess_device *, tess_event *, tess_stream *);
    /* Makes the stream wait. An event that was never recorded counts as complete. */
    void (*wait)(tess_device *, tess_event *, tess_stream *);
    tess_status (*event_sync)(tess_device *, tess_event *, tess_error *); /* makes the caller wait */
    /* Seconds; both events must be complete. */
    double (*elapsed)(tess_device *, tess_event *from, tess_event *to);
} tess_device_streams;

/* Captures the work that is run on the stream between begin and end into a graph, without doing it. */
typedef struct tess_device_graphs {
    tess_status (*begin)(tess_device *, tess_stream *, tess_error *);
    tess_status (*end)(tess_device *, tess_stream *, tess_graph **, tess_error *);
    void (*launch)(tess_device *, tess_graph *, tess_stream *);
    void (*release)(tess_device *, tess_graph *);
} tess_device_graphs;

/* One parameter to pack, from row-major fp32 values in the device's memory. */
typedef struct tess_repack {
    const tess_op *op;
    int param;
    /* The values are those of the convolution whose input gradient this op is (as FLIP turns them); only devices with
     * `packs_turned` accept it, for at most nine taps. */
    bool turned;
    const float *values;
    void *packed;
} tess_repack;

/* What a device measured of itself between two points in time. */
typedef struct tess_meter_reading {
    bool has_busy, has_joules; /* false: not known */
    double busy;               /* share of the time in which it computed, for any process */
    double joules;             /* that the whole card took */
} tess_meter_reading;

typedef struct tess_device_meters {
    /* Returns NULL if nothing can be measured. Work in progress is not waited for. */
    tess_meter *(*begin)(tess_device *);
    void (*end)(tess_device *, tess_meter *, tess_meter_reading *); /* and releases the meter */
} tess_device_meters;

/* The ops. Devices with a list of kernels use the functions of device/kernel.h for the first five entries. */
typedef struct tess_device_ops {
    /* Returns TESS_UNSUPPORTED with the reason if the device cannot do the op. */
    tess_status (*query)(tess_device *, const tess_op *, tess_op_needs *, tess_error *);
    tess_status (*prepare)(tess_device *, const tess_op *, tess_prepared **, tess_error *);
    /* Packs rows [first, first+count) of a parameter's first dimension, given as row-major fp32. */
    void (*pack)(tess_device *, const tess_op *, int param, int64_t first, int64_t count, const float *values,
                 void *packed);
    /* Packs whole parameters, in the order of the stream: training changes the values at every step. The list is
     * read before the call returns. */
    void (*repack)(tess_device *, const tess_repack *list, int count, tess_stream *);
    /* Packing this many bytes at once is worth the memory that weights take before they are used; 0: it is not. */
    size_t repack_bytes;
    bool packs_turned;
    void (*run)(tess_device *, const tess_prepared *, const tess_op_buffers *, tess_stream *);
    void (*release)(tess_device *, tess_prepared *);
    const tess_kernel *const *kernels; /* in order of preference, NULL-terminated */
    /* Returns the kernel that was measured to be the fastest for this op, or NULL. The entry may be NULL. */
    const tess_kernel *(*prefers)(tess_device *, const tess_op *);
    /* Measures the kernels that can do ops of this class and stores the fastest in the cache. `scratch` is
     * device memory that is overwritten. NULL: the device has no choice to make. */
    tess_status (*tune)(tess_device *, const tess_op *, void *scratch, size_t bytes, tess_error *);
} tess_device_ops;

struct tess_device {
    const char *kind;     /* "cpu", "cuda" */
    bool host_memory;     /* the device's memory is the host's: no copies needed */
    tess_memory *counter; /* counts its memory; this and `stop` are set by tess_registry_open */
    tess_stop *stop;
    void *owner; /* the library's handle if tess_device_open opened the device, else NULL */
    void (*destroy)(tess_device *);
    void (*facts)(tess_device *, tess_device_facts *);
    const tess_device_memory *memory;
    const tess_device_streams *streams;
    const tess_device_graphs *graphs; /* NULL: this device has no graphs */
    const tess_device_meters *meters; /* NULL: this device measures nothing */
    const tess_device_ops *ops;
    struct tess_traced *traced; /* device/traced.h; NULL: nothing is recorded */
    struct tess_help *help;     /* CPU: ranks of this host help each other (base/help.h); NULL: they do not */
};

static inline tess_meter *tess_meter_begin(tess_device *device)
{
    return device->meters ? device->meters->begin(device) : NULL;
}

/* Accepts the NULL of a device that measures nothing. */
static inline tess_meter_reading tess_meter_end(tess_device *device, tess_meter *meter)
{
    tess_meter_reading reading = {0};
    if (meter)
        device->meters->end(device, meter, &reading);
    return reading;
}

typedef struct tess_driver {
    const char *kind;
    tess_status (*open)(const tess_device_options *, tess_device **, tess_error *);
} tess_driver;

/* `kind` "auto" opens the first driver that works. */
tess_status tess_registry_open(const char *kind, const tess_device_options *options, tess_device **out,
                               tess_error *error) TESS_MUST_CHECK;
void tess_registry_close(tess_device *device);
/* The drivers of this build, NULL-terminated. */
const tess_driver *const *tess_device_drivers(void);

#endif
