#include "device/traced.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/trace.h"
#include "device/kernel.h"
#include "device/stopwatch.h"

enum { MOST_ROWS = 2048 }; /* layers beyond are not in the profile */

typedef struct tess_traced {
    tess_trace *trace;
    /* the device's own tables, and those that call them */
    const tess_device_ops *own_ops;
    const tess_device_memory *own_memory;
    const tess_device_streams *own_streams;
    const tess_device_graphs *own_graphs;
    tess_device_ops ops;
    tess_device_memory memory;
    tess_device_streams streams;
    tess_device_graphs graphs;
    tess_stopwatch *watch; /* NULL: the clock of the host times ops, or nobody wants to know */
    pthread_mutex_t mutex; /* protects the rows and the stopwatch */
    int count;
    uint16_t place[2 * MOST_ROWS]; /* a hash table: 1 + the number of a row */
    tess_profile_row rows[MOST_ROWS];
} tess_traced;

static uint32_t hash_of(const char *name, tess_op_kind kind)
{
    uint32_t hash = 2166136261u ^ (uint32_t)kind;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % (2 * MOST_ROWS);
}

/* The row of a layer; NULL: there is no place for another one. */
static tess_profile_row *row_of(tess_traced *t, const char *label, const tess_op *op)
{
    char name[TESS_PROFILE_NAME];
    snprintf(name, sizeof name, "%s", label);
    uint32_t at = hash_of(name, op->kind);
    for (; t->place[at]; at = (at + 1) % (2 * MOST_ROWS)) {
        tess_profile_row *row = &t->rows[t->place[at] - 1];
        if (row->op.kind == op->kind && strcmp(row->name, name) == 0)
            return row;
    }
    if (t->count == MOST_ROWS)
        return NULL;
    tess_profile_row *row = &t->rows[t->count++];
    t->place[at] = (uint16_t)t->count;
    memcpy(row->name, name, sizeof name);
    row->op = *op;
    return row;
}

/* Counts an op and returns its layer's row, or NULL. */
static tess_profile_row *count_op(tess_traced *t, const char *name, const tess_op *op, double seconds)
{
    tess_profile_row *row = row_of(t, name, op);
    if (row) {
        row->calls++;
        row->seconds += seconds;
        row->flops += tess_op_flops(op);
        row->bytes += tess_op_traffic(op);
    }
    return row;
}

/* Between two events. The lock is held meanwhile, since the device only queues the op. */
static void run_watched(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                        tess_stream *stream, const char *name)
{
    tess_traced *t = device->traced;
    pthread_mutex_lock(&t->mutex);
    tess_profile_row *row = count_op(t, name, tess_prepared_op(prepared), 0);
    const int slot = row ? tess_stopwatch_begin(t->watch, stream) : 0;
    t->own_ops->run(device, prepared, buffers, stream);
    if (row)
        tess_stopwatch_end(t->watch, slot, stream, &row->seconds);
    pthread_mutex_unlock(&t->mutex);
}

static void traced_run(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                       tess_stream *stream)
{
    tess_traced *t = device->traced;
    const tess_op *op = tess_prepared_op(prepared);
    const char *kind = tess_op_kind_name(op->kind), *label = tess_trace_labelled(),
               *name = label ? label : kind;
    tess_trace_label(name); /* for the helper threads */
    const double start = tess_clock();
    const bool counts = !tess_trace_hushed(t->trace);
    if (t->watch && counts)
        run_watched(device, prepared, buffers, stream, name);
    else
        t->own_ops->run(device, prepared, buffers, stream);
    const double end = tess_clock();
    tess_trace_label(label);
    tess_trace_add(t->trace, device->host_memory ? TESS_TRACE_OP : TESS_TRACE_LAUNCH, name, kind, start, end);
    if (!device->host_memory || !counts)
        return;
    pthread_mutex_lock(&t->mutex);
    count_op(t, name, op, end - start);
    pthread_mutex_unlock(&t->mutex);
}

static void traced_repack(tess_device *device, const tess_repack *list, int count, tess_stream *stream)
{
    tess_traced *t = device->traced;
    const double start = tess_clock();
    t->own_ops->repack(device, list, count, stream);
    tess_trace_end(t->trace, device->host_memory ? TESS_TRACE_OP : TESS_TRACE_LAUNCH, "pack weights", start);
}

static void traced_copy(tess_device *device, void *to, const void *from, size_t bytes, tess_stream *stream)
{
    tess_traced *t = device->traced;
    const double start = tess_clock();
    t->own_memory->copy(device, to, from, bytes, stream);
    tess_trace_end(t->trace, TESS_TRACE_LAUNCH, "copy", start);
}

static tess_status traced_sync(tess_device *device, tess_stream *stream, tess_error *error)
{
    tess_traced *t = device->traced;
    const double start = tess_clock();
    const tess_status status = t->own_streams->sync(device, stream, error);
    tess_trace_end(t->trace, TESS_TRACE_WAIT, "wait for the device", start);
    return status;
}

static tess_status traced_event_sync(tess_device *device, tess_event *event, tess_error *error)
{
    tess_traced *t = device->traced;
    const double start = tess_clock();
    const tess_status status = t->own_streams->event_sync(device, event, error);
    tess_trace_end(t->trace, TESS_TRACE_WAIT, "wait for the device", start);
    return status;
}

static void traced_launch(tess_device *device, tess_graph *graph, tess_stream *stream)
{
    tess_traced *t = device->traced;
    const double start = tess_clock();
    t->own_graphs->launch(device, graph, stream);
    tess_trace_end(t->trace, TESS_TRACE_LAUNCH, "launch a graph", start);
}

tess_status tess_device_record(tess_device *device, tess_error *error)
{
    tess_trace *trace = device->counter->trace;
    if (!trace)
        return TESS_OK;
    tess_traced *t = tess_small_alloc(1, sizeof *t);
    if (!t)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to record what the device does");
    pthread_mutex_init(&t->mutex, NULL);
    t->trace = trace;
    t->own_ops = device->ops;
    t->ops = *device->ops;
    t->ops.run = traced_run;
    t->ops.repack = traced_repack;
    device->ops = &t->ops;
    device->traced = t;
    if (device->host_memory)
        return TESS_OK; /* copies and waits take no time of their own there */
    if (tess_trace_profiles(trace))
        TESS_TRY(tess_stopwatch_create(device, &t->watch, error)); /* the caller closes the device */
    t->own_memory = device->memory;
    t->memory = *device->memory;
    t->memory.copy = traced_copy;
    device->memory = &t->memory;
    t->own_streams = device->streams;
    t->streams = *device->streams;
    t->streams.sync = traced_sync;
    t->streams.event_sync = traced_event_sync;
    device->streams = &t->streams;
    if (device->graphs) {
        t->own_graphs = device->graphs;
        t->graphs = *device->graphs;
        t->graphs.launch = traced_launch;
        device->graphs = t->watch ? NULL : &t->graphs;
    }
    return TESS_OK;
}

void tess_device_record_end(tess_device *device)
{
    tess_traced *t = device->traced;
    if (!t)
        return;
    device->ops = t->own_ops;
    device->memory = t->own_memory ? t->own_memory : device->memory;
    device->streams = t->own_streams ? t->own_streams : device->streams;
    device->graphs = t->own_graphs ? t->own_graphs : device->graphs;
    device->traced = NULL;
    tess_stopwatch_destroy(t->watch);
    pthread_mutex_destroy(&t->mutex);
    tess_small_free(t);
}

int tess_device_profile(const tess_device *device, const tess_profile_row **rows)
{
    tess_traced *t = device->traced;
    if (t && t->watch) {
        pthread_mutex_lock(&t->mutex);
        tess_stopwatch_settle(t->watch);
        pthread_mutex_unlock(&t->mutex);
    }
    *rows = t ? t->rows : NULL;
    return t ? t->count : 0;
}
