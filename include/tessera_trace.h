/* tessera_trace.h: where the time of a job goes, and where a job stands while it runs; docs/tracing.md. */
#ifndef TESSERA_TRACE_H
#define TESSERA_TRACE_H

#include "tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_trace_settings {
    size_t size;        /* of this struct */
    bool spans;         /* record spans, for tess_context_trace_write */
    int64_t most_spans; /* 0: 262144 in each process; later ones are counted and left out */
    bool profile;       /* records of jobs on the CPU get "profile", the most expensive layers */
} tess_trace_settings;

#define tess_trace_settings_init(settings) tess_trace_settings_fill((settings), sizeof *(settings))
TESS_API void tess_trace_settings_fill(tess_trace_settings *settings, size_t size);

/* Records what this context does from now on, until it is destroyed. At most once, before its first job or device. */
TESS_API tess_status tess_context_trace(tess_context *context,
                                        const tess_trace_settings *settings) TESS_MUST_CHECK;
/* Collective. Writes what was recorded so far, of all ranks, as a trace for Perfetto or Chrome. No job may run. The file
 * appears when it is complete. */
TESS_API tess_status tess_context_trace_write(tess_context *context, const char *path) TESS_MUST_CHECK;

/* Where the context's job stands. The figures are recorded after tess_context_trace only. */
typedef struct tess_job_state {
    size_t size; /* of this struct */
    uint64_t held_bytes, peak_bytes,
        planned_bytes;    /* of the device that computes; planned 0: not known yet */
    double loss, psnr_db; /* the latest ones; NaN: none */
} tess_job_state;

#define tess_job_state_init(state) tess_job_state_fill((state), sizeof *(state))
TESS_API void tess_job_state_fill(tess_job_state *state, size_t size);
/* The only function of a context that another thread may call while a job runs; the context must stay. */
TESS_API void tess_context_state(const tess_context *context, tess_job_state *state);

#ifdef __cplusplus
}
#endif
#endif
