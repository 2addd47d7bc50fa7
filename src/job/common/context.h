/* context.h: the context, which tessera.h declares as opaque. */
#ifndef TESS_JOB_CONTEXT_H
#define TESS_JOB_CONTEXT_H

#include "base/memory.h"
#include "base/status.h"

struct tess_context {
    tess_memory memory; /* counts what its devices and files hold */
    tess_error error;
};

#endif
