#include "device/stopwatch.h"

#include "base/mem.h"

enum { SLOTS = 1024 }; /* enough that a busy device is rarely waited for */

typedef struct slot {
    tess_event *from, *to;
    double *sum; /* NULL: nothing to add */
} slot;

struct tess_stopwatch {
    tess_device *device;
    const tess_device_streams *streams;
    int next; /* slots are taken in turn */
    slot slots[SLOTS];
};

tess_status tess_stopwatch_create(tess_device *device, tess_stopwatch **out, tess_error *error)
{
    tess_stopwatch *w = *out = tess_small_alloc(1, sizeof *w);
    if (!w)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to time what the device does");
    *w = (tess_stopwatch){.device = device, .streams = device->streams};
    tess_status status = TESS_OK;
    for (int i = 0; i < SLOTS && status == TESS_OK; i++) {
        status = w->streams->event_create(device, &w->slots[i].from, error);
        if (status == TESS_OK)
            status = w->streams->event_create(device, &w->slots[i].to, error);
    }
    if (status == TESS_OK)
        return TESS_OK;
    tess_stopwatch_destroy(w);
    *out = NULL;
    return status;
}

void tess_stopwatch_destroy(tess_stopwatch *w)
{
    if (!w)
        return;
    for (int i = 0; i < SLOTS; i++) {
        if (w->slots[i].from)
            w->streams->event_destroy(w->device, w->slots[i].from);
        if (w->slots[i].to)
            w->streams->event_destroy(w->device, w->slots[i].to);
    }
    tess_small_free(w);
}

/* If the device fails, the time is lost; the job learns of the failure where it waits for its results. */
static void settle(tess_stopwatch *w, slot *s)
{
    if (s->sum && w->streams->event_sync(w->device, s->to, NULL) == TESS_OK)
        *s->sum += w->streams->elapsed(w->device, s->from, s->to);
    s->sum = NULL;
}

int tess_stopwatch_begin(tess_stopwatch *w, tess_stream *stream)
{
    const int at = w->next;
    w->next = (at + 1) % SLOTS;
    settle(w, &w->slots[at]);
    w->streams->record(w->device, w->slots[at].from, stream);
    return at;
}

void tess_stopwatch_end(tess_stopwatch *w, int at, tess_stream *stream, double *sum)
{
    w->streams->record(w->device, w->slots[at].to, stream);
    w->slots[at].sum = sum;
}

void tess_stopwatch_settle(tess_stopwatch *w)
{
    for (int i = 0; i < SLOTS; i++)
        settle(w, &w->slots[(w->next + i) % SLOTS]);
}
