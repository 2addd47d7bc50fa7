/* Uses compiler builtins for atomic members, as base/memory.c. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/trace_impl.h"

/* The track of this thread in the trace that it recorded in last. */
static _Thread_local struct {
    tess_trace *trace;
    uint64_t serial;
    int track; /* -1: there was no track left */
} own;
static _Thread_local const char *label;

/* Takes the first track that no running thread uses, so that threads that come and go share a few. */
static int take_track(tess_trace *trace)
{
    int track = 0;
    pthread_mutex_lock(&trace->mutex);
    while (track < TRACE_TRACKS && trace->used[track])
        track++;
    if (track < TRACE_TRACKS) {
        trace->used[track] = true;
        trace->tracks = track + 1 > trace->tracks ? track + 1 : trace->tracks;
    }
    pthread_mutex_unlock(&trace->mutex);
    own.trace = trace;
    own.serial = trace->serial;
    own.track = track < TRACE_TRACKS ? track : -1;
    return own.track;
}

static int track_of(tess_trace *trace)
{
    return own.trace == trace && own.serial == trace->serial ? own.track : take_track(trace);
}

void tess_trace_leave(void)
{
    tess_trace *trace = own.trace;
    if (!trace)
        return;
    pthread_mutex_lock(&trace->mutex);
    if (own.track >= 0)
        trace->used[own.track] = false;
    pthread_mutex_unlock(&trace->mutex);
    own.trace = NULL;
}

tess_trace *tess_trace_create(int64_t most, bool profile)
{
    static uint64_t serials;
    struct timespec now;
    tess_trace *trace = tess_small_alloc(1, sizeof *trace);
    trace_span *spans = most > 0 ? tess_small_alloc((size_t)most, sizeof *spans) : NULL;
    if (!trace || (most > 0 && !spans)) {
        tess_small_free(trace);
        tess_small_free(spans);
        return NULL;
    }
    trace->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
    trace->spans = spans;
    trace->profile = profile;
    trace->most = most > 0 ? most : 0;
    for (int i = 0; i < TESS_FIGURES; i++)
        trace->figures[i] = NAN;
    pthread_mutex_init(&trace->mutex, NULL);
    clock_gettime(CLOCK_REALTIME, &now);
    trace->epoch = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    trace->start = tess_clock();
    (void)take_track(trace);
    return trace;
}

void tess_trace_destroy(tess_trace *trace)
{
    if (!trace)
        return;
    if (own.trace == trace)
        own.trace = NULL;
    pthread_mutex_destroy(&trace->mutex);
    tess_small_free(trace->spans);
    tess_small_free(trace);
}

/* The number of a name; 0 when there is none, or no place for another one. */
static uint16_t name_of(tess_trace *trace, const char *text)
{
    if (!text || !*text)
        return 0;
    char cut[TRACE_NAME];
    uint32_t hash = 2166136261u, length = 0;
    for (; text[length] && length < TRACE_NAME - 1; length++) {
        cut[length] = text[length];
        hash = (hash ^ (unsigned char)text[length]) * 16777619u;
    }
    cut[length] = '\0';
    pthread_mutex_lock(&trace->mutex);
    uint32_t at = hash % TRACE_NAMES;
    for (; at == 0 || (trace->names[at][0] && strcmp(trace->names[at], cut) != 0);
         at = (at + 1) % TRACE_NAMES)
        ;
    if (!trace->names[at][0] && trace->name_count < TRACE_NAMES / 2) {
        memcpy(trace->names[at], cut, length + 1);
        trace->name_count++;
    }
    const bool there = trace->names[at][0] != '\0';
    pthread_mutex_unlock(&trace->mutex);
    return there ? (uint16_t)at : 0;
}

static int64_t ns_at(const tess_trace *trace, double clock)
{
    return clock > trace->start ? (int64_t)((clock - trace->start) * 1e9) : 0;
}

/* A place in the array; NULL: it is full. The spans of helper threads take at most half of it, since a machine with many
 * cores has many of them. */
static trace_span *take_place(tess_trace *trace, tess_trace_kind kind)
{
    if (kind == TESS_TRACE_LOOP && __atomic_load_n(&trace->next, __ATOMIC_RELAXED) >= trace->most / 2) {
        __atomic_add_fetch(&trace->untracked, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    const int64_t place = __atomic_fetch_add(&trace->next, 1, __ATOMIC_RELAXED);
    return place < trace->most ? &trace->spans[place] : NULL;
}

static void add(tess_trace *trace, tess_trace_kind kind, const char *name, const char *detail, int track,
                double start, double end)
{
    trace_span *span = track >= 0 ? take_place(trace, kind) : NULL;
    if (track < 0)
        __atomic_add_fetch(&trace->untracked, 1, __ATOMIC_RELAXED);
    if (!span)
        return;
    const int64_t from = ns_at(trace, start), to = ns_at(trace, end);
    *span = (trace_span){.start = from,
                         .duration = to > from ? to - from : 0,
                         .name = name_of(trace, name),
                         .detail = name_of(trace, detail),
                         .track = (uint16_t)track,
                         .kind = (uint8_t)kind};
}

void tess_trace_add(tess_trace *trace, tess_trace_kind kind, const char *name, const char *detail,
                    double start, double end)
{
    if (trace->most > 0)
        add(trace, kind, name, detail, track_of(trace), start, end);
}

void tess_trace_add_device(tess_trace *trace, const char *name, double start, double end)
{
    if (trace->most > 0)
        add(trace, TESS_TRACE_DEVICE, name, NULL, TRACE_DEVICE, start, end);
}

bool tess_trace_profiles(const tess_trace *trace)
{
    return trace && trace->profile;
}

void tess_trace_label(const char *name)
{
    label = name;
}

const char *tess_trace_labelled(void)
{
    return label;
}

void tess_trace_hush(tess_trace *trace, bool hushed)
{
    if (trace)
        __atomic_add_fetch(&trace->hushed, hushed ? 1 : -1, __ATOMIC_RELAXED);
}

bool tess_trace_hushed(const tess_trace *trace)
{
    return __atomic_load_n(&trace->hushed, __ATOMIC_RELAXED) > 0;
}

void tess_trace_set_figure(tess_trace *trace, tess_figure figure, double value)
{
    static const char *const names[TESS_FIGURES] = {
        [TESS_FIGURE_LOSS] = "loss", [TESS_FIGURE_PSNR] = "psnr_db"};
    if (!trace)
        return;
    pthread_mutex_lock(&trace->mutex);
    trace->figures[figure] = value;
    pthread_mutex_unlock(&trace->mutex);
    if (trace->most == 0 || !isfinite(value))
        return;
    const uint16_t name = name_of(trace, names[figure]);
    trace_span *span = take_place(trace, TESS_TRACE_FIGURE);
    if (!span)
        return;
    *span =
        (trace_span){.start = ns_at(trace, tess_clock()), .name = name, .kind = (uint8_t)TESS_TRACE_FIGURE};
    memcpy(&span->duration, &value, sizeof value);
}

double tess_trace_figure(const tess_trace *trace, tess_figure figure)
{
    if (!trace)
        return NAN;
    tess_trace *locked = (tess_trace *)trace;
    pthread_mutex_lock(&locked->mutex);
    const double value = trace->figures[figure];
    pthread_mutex_unlock(&locked->mutex);
    return value;
}

int64_t tess_trace_count(const tess_trace *trace)
{
    const int64_t next = __atomic_load_n(&trace->next, __ATOMIC_RELAXED);
    return next < trace->most ? next : trace->most;
}

int64_t tess_trace_left_out(const tess_trace *trace)
{
    const int64_t next = __atomic_load_n(&trace->next, __ATOMIC_RELAXED);
    return (next > trace->most ? next - trace->most : 0) +
           __atomic_load_n(&trace->untracked, __ATOMIC_RELAXED);
}

double tess_trace_epoch(const tess_trace *trace)
{
    return trace->epoch;
}
