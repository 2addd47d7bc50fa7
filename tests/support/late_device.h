/* late_device.h: the CPU as a device with separate memory whose streams do nothing before somebody waits for them. Work then runs as late
 * as the order of streams and events allows, so that a wait that is missing shows in the results: what was copied from is overwritten, or
 * what was copied to is read too early. Streams have no default, unless a test sets one: every call names one. Streams of several threads
 * may wait for each other: one lock is held while work is added or done. */
#ifndef TESS_TESTS_LATE_DEVICE_H
#define TESS_TESTS_LATE_DEVICE_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "device/device.h"

typedef struct late_stream late_stream;

enum { LATE_PACKS = 4 };

/* Work on a stream: an op, packing, a copy, or waiting for another stream. A point in a stream is the number of works before it. */
typedef struct late_work {
    tess_device *device;
    const tess_prepared *op;
    tess_op_buffers buffers;
    tess_repack packs[LATE_PACKS];
    int pack_count;
    void *to;
    const void *from;
    size_t bytes;
    late_stream *other;
    int64_t until;
} late_work;

struct late_stream {
    late_work *list;
    int64_t count, done, room;
};

typedef struct late_event {
    late_stream *stream; /* NULL: never recorded */
    int64_t until;
} late_event;

/* Of the CPU, the same in all such devices. */
static const tess_device_ops *late_cpu_ops;

/* Of this thread: whatever is waited for fails, as after an error of the driver. */
static _Thread_local bool late_is_lost;

/* What NULL stands for. */
static late_stream *late_default;
/* Who waits for something finds all work of the default stream done, as on a fast card. */
static bool late_hurries;

static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. */
static inline void late_drain(late_stream *s, int64_t until)
{
    while (s->done < until) {
        const late_work w = s->list[s->done++];
        if (w.other)
            late_drain(w.other, w.until);
        else if (w.op)
            late_cpu_ops->run(w.device, w.op, &w.buffers, NULL);
        else if (w.pack_count)
            late_cpu_ops->repack(w.device, w.packs, w.pack_count, NULL);
        else
            memcpy(w.to, w.from, w.bytes);
    }
}

static inline void late_hurry(void)
{
    if (late_hurries && late_default)
        late_drain(late_default, late_default->count);
}

static inline late_stream *late_of(tess_stream *stream)
{
    return stream ? (late_stream *)stream : late_default;
}

static inline void late_add(tess_stream *stream, late_work work)
{
    late_stream *s = late_of(stream);
    CHECK(s);
    if (!s)
        return;
    pthread_mutex_lock(&late_lock);
    if (s->count == s->room) {
        s->room = 2 * s->room + 64;
        s->list = realloc(s->list, (size_t)s->room * sizeof *s->list);
    }
    s->list[s->count++] = work;
    pthread_mutex_unlock(&late_lock);
}

static inline void late_run(tess_device *device, const tess_prepared *op, const tess_op_buffers *buffers,
                            tess_stream *stream)
{
    late_add(stream, (late_work){.device = device, .op = op, .buffers = *buffers});
}

static inline void late_repack(tess_device *device, const tess_repack *list, int count, tess_stream *stream)
{
    for (int i = 0; i < count; i += LATE_PACKS) {
        late_work work = {.device = device, .pack_count = count - i < LATE_PACKS ? count - i : LATE_PACKS};
        memcpy(work.packs, list + i, (size_t)work.pack_count * sizeof *list);
        late_add(stream, work);
    }
}

static inline void late_copy(tess_device *device, void *to, const void *from, size_t bytes,
                             tess_stream *stream)
{
    (void)device;
    late_add(stream, (late_work){.to = to, .from = from, .bytes = bytes});
}

static inline tess_status late_create(tess_device *device, tess_stream **out, tess_error *error)
{
    (void)device, (void)error;
    *out = calloc(1, sizeof(late_stream));
    return TESS_OK;
}

static inline void late_destroy(tess_device *device, tess_stream *stream)
{
    late_stream *s = (late_stream *)stream;
    (void)device;
    CHECK(s->done == s->count);
    free(s->list);
    free(s);
}

static inline tess_status late_sync(tess_device *device, tess_stream *stream, tess_error *error)
{
    late_stream *s = late_of(stream);
    (void)device, (void)error;
    pthread_mutex_lock(&late_lock);
    late_drain(s, s->count);
    late_hurry();
    pthread_mutex_unlock(&late_lock);
    return TESS_OK;
}

static inline tess_status late_event_create(tess_device *device, tess_event **out, tess_error *error)
{
    (void)device, (void)error;
    *out = calloc(1, sizeof(late_event));
    return TESS_OK;
}

static inline void late_event_destroy(tess_device *device, tess_event *event)
{
    (void)device;
    free(event);
}

static inline void late_record(tess_device *device, tess_event *event, tess_stream *stream)
{
    late_event *e = (late_event *)event;
    (void)device;
    e->stream = late_of(stream);
    e->until = e->stream->count;
}

static inline void late_wait(tess_device *device, tess_event *event, tess_stream *stream)
{
    const late_event *e = (const late_event *)event;
    (void)device;
    if (e->stream)
        late_add(stream, (late_work){.other = e->stream, .until = e->until});
}

static inline tess_status late_event_sync(tess_device *device, tess_event *event, tess_error *error)
{
    const late_event *e = (const late_event *)event;
    (void)device;
    pthread_mutex_lock(&late_lock);
    if (e->stream)
        late_drain(e->stream, e->until);
    late_hurry();
    pthread_mutex_unlock(&late_lock);
    return late_is_lost ? tess_fail(error, TESS_DEVICE_LOST, "lost") : TESS_OK;
}

/* Half a second for whatever was done between the two. */
static inline double late_elapsed(tess_device *device, tess_event *from, tess_event *to)
{
    const late_event *a = (const late_event *)from, *b = (const late_event *)to;
    (void)device;
    CHECK(a->stream == b->stream && a->until < b->until && b->stream->done >= b->until);
    return 0.5;
}

static tess_device_ops late_ops;
static tess_device_memory late_memory;
static const tess_device_streams late_streams = {.sync = late_sync,
                                                 .create = late_create,
                                                 .destroy = late_destroy,
                                                 .event_create = late_event_create,
                                                 .event_destroy = late_event_destroy,
                                                 .record = late_record,
                                                 .wait = late_wait,
                                                 .event_sync = late_event_sync,
                                                 .elapsed = late_elapsed};

/* Makes the CPU's device a late one. */
static inline void late_device(tess_device *cpu)
{
    late_cpu_ops = cpu->ops;
    late_ops = *cpu->ops;
    late_ops.run = late_run;
    late_ops.repack = late_repack;
    late_memory = *cpu->memory;
    late_memory.copy = late_copy;
    cpu->ops = &late_ops;
    cpu->memory = &late_memory;
    cpu->streams = &late_streams;
    cpu->host_memory = false;
}

#endif
