/* halo.h: the halo that --halo auto takes. */
#ifndef TESS_MODEL_HALO_H
#define TESS_MODEL_HALO_H

#include "net/weights.h"

/* In pixels; *seen tells whether these very weights were part of the study (otherwise the answer is doubled).
 */
int64_t tess_halo_auto(tess_weights *weights, const char *architecture, bool *seen);

#endif
