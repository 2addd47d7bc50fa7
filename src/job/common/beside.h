/* beside.h: the host's processors as a second device, beside the card of an engine: for what ranks that have cards still compute on the
 * CPU. All of its memory is counted as the host's, so that the engine's totals stay those of the card. */
#ifndef TESS_JOB_BESIDE_H
#define TESS_JOB_BESIDE_H

#include "job/common/engine.h"

typedef struct tess_beside {
    tess_device *device; /* owned; NULL: not opened */
    tess_rates *rates;   /* owned */
} tess_beside;

/* It has the engine's threads, memory and stop. Close it also if this fails. */
tess_status tess_beside_open(tess_beside *beside, tess_engine *engine, tess_error *error) TESS_MUST_CHECK;
/* Before the engine. Accepts one that was never opened and is all zero. */
void tess_beside_close(tess_beside *beside);

#endif
