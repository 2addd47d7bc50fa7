/* context.h: the context, which tessera.h declares as opaque. */
#ifndef TESS_JOB_CONTEXT_H
#define TESS_JOB_CONTEXT_H

#include "base/memory.h"
#include "base/status.h"
#include "dist/dist.h"
#include "tessera_ranks.h"

struct tess_context {
    tess_memory memory; /* counts what its devices and files hold */
    tess_error error;
    tess_dist *dist; /* the ranks that it has joined, or &alone */
    tess_dist alone;
    int rank; /* also if joining has failed */
    tess_lost_fn lost;
};

/* Fails if there are several ranks: `verb` cannot share its work. */
tess_status tess_context_alone(tess_context *context, const char *verb) TESS_MUST_CHECK;
/* Collective: zeros for a job on every rank, for the caller to release; or NULL on every rank, and the status says why. A job is
 * large, and its engine must not move. */
void *tess_context_job(tess_context *context, size_t bytes, tess_status *status);

#endif
