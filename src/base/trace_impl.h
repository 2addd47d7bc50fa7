/* trace_impl.h: the struct of a trace, for trace.c (recording) and trace_text.c. */
#ifndef TESS_BASE_TRACE_IMPL_H
#define TESS_BASE_TRACE_IMPL_H

#include <pthread.h>

#include "base/trace.h"

enum { TRACE_NAME = 96, TRACE_NAMES = 4096, TRACE_TRACKS = 1024, TRACE_DEVICE = TRACE_TRACKS };

typedef struct trace_span {
    int64_t start, duration; /* ns since the creation; a figure: its value's bits */
    uint16_t name, detail;   /* 0: none */
    uint16_t track;
    uint8_t kind;
} trace_span;

struct tess_trace {
    uint64_t serial; /* so that a thread notices that its track is of another trace */
    bool profile;
    double start, epoch;
    int64_t most, next; /* next: atomic; beyond `most` it counts what is left out */
    int64_t untracked;  /* atomic: spans of threads beyond TRACE_TRACKS */
    trace_span *spans;
    double figures[TESS_FIGURES]; /* protected by the mutex */
    int hushed;                   /* atomic */
    pthread_mutex_t mutex;        /* protects the following members */
    bool used[TRACE_TRACKS];
    int tracks;
    char names[TRACE_NAMES][TRACE_NAME]; /* a hash table; entry 0 is empty */
    int name_count;
};

#endif
