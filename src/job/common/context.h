/* context.h: what tessera.h hides. */
#ifndef TESS_JOB_CONTEXT_H
#define TESS_JOB_CONTEXT_H

#include "base/status.h"

struct tess_context {
    tess_error error;
};

#endif
