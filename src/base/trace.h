/* trace.h: records what a context does and when: spans (a piece of work on one thread), figures (loss, PSNR), for a
 * timeline, and for others to look at while a job runs.
 *
 * A context that records has a tess_trace in its memory counter (tess_memory.trace), which reaches every device and
 * file; everywhere else the pointer is NULL, and a span costs one branch. All memory is allocated at creation: spans
 * take the next place of one array, and those beyond its end are counted and left out. Spans nest, because a thread
 * ends what it began last. */
#ifndef TESS_BASE_TRACE_H
#define TESS_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

typedef struct tess_trace tess_trace;

typedef enum tess_trace_kind {
    TESS_TRACE_JOB,
    TESS_TRACE_OP,     /* computed before the span ends */
    TESS_TRACE_LAUNCH, /* handed to a device that computes later */
    TESS_TRACE_LOOP,   /* a helper thread's part of an op */
    TESS_TRACE_BATCH,  /* windows, a training pass */
    TESS_TRACE_READ,
    TESS_TRACE_WRITE,
    TESS_TRACE_UPLOAD,
    TESS_TRACE_DOWNLOAD,
    TESS_TRACE_EXCHANGE,
    TESS_TRACE_WAIT,
    TESS_TRACE_PLAN,
    TESS_TRACE_DEVICE, /* measured by the device itself, on a track of its own */
    TESS_TRACE_FIGURE, /* not a span: a value at a point in time */
    TESS_TRACE_KINDS
} tess_trace_kind;

typedef enum tess_figure { TESS_FIGURE_LOSS, TESS_FIGURE_PSNR, TESS_FIGURES } tess_figure;

/* `most` spans are kept; 0: none, only figures. `profile`: records get the times of layers. NULL: no memory. The calling
 * thread's track is the first. */
tess_trace *tess_trace_create(int64_t most, bool profile);
bool tess_trace_profiles(const tess_trace *trace); /* accepts NULL */
void tess_trace_destroy(tess_trace *trace);        /* accepts NULL; no thread may use it any more */

/* Any thread. `name` and `detail` are copied; detail may be NULL. */
void tess_trace_add(tess_trace *trace, tess_trace_kind kind, const char *name, const char *detail,
                    double start, double end);
/* The same on a track of its own, for what a device measured. */
void tess_trace_add_device(tess_trace *trace, const char *name, double start, double end);
static inline double tess_trace_begin(const tess_trace *trace)
{
    return trace ? tess_clock() : 0;
}
static inline void tess_trace_end(tess_trace *trace, tess_trace_kind kind, const char *name, double start)
{
    if (trace)
        tess_trace_add(trace, kind, name, NULL, start, tess_clock());
}
/* To be called by a thread before it ends: a later thread may use its track. */
void tess_trace_leave(void);

/* The name of the ops that this thread runs from now on, a layer's; NULL: the name of their kind. Not copied. */
void tess_trace_label(const char *name);
const char *tess_trace_labelled(void);

/* Between these calls, profiles do not count: rates are being measured. */
void tess_trace_hush(tess_trace *trace, bool hushed);
bool tess_trace_hushed(const tess_trace *trace);

void tess_trace_set_figure(tess_trace *trace, tess_figure figure, double value); /* accepts NULL */
double tess_trace_figure(const tess_trace *trace, tess_figure figure);           /* NaN: not known */

int64_t tess_trace_count(const tess_trace *trace);    /* spans and figures that are kept */
int64_t tess_trace_left_out(const tess_trace *trace); /* those that are not */
double tess_trace_epoch(const tess_trace *trace);     /* seconds since 1970 of its creation */
/* The events of this process in the trace event format of Chrome and Perfetto, separated by commas, as process `rank`
 * and `shift` seconds later than they were recorded. Released with tess_small_free; NULL: no memory. */
char *tess_trace_text(const tess_trace *trace, int rank, double shift, size_t *bytes);

#endif
