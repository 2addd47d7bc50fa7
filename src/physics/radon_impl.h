/* radon_impl.h: parts of the Radon transform that radon_ranks.c uses too. */
#ifndef TESS_PHYSICS_RADON_IMPL_H
#define TESS_PHYSICS_RADON_IMPL_H

#include "physics/radon.h"

/* TESS_RAY2_NUMBERS of each view. */
void tess_radon_fill_table(const tess_radon_settings *settings, int64_t columns, double *table);
tess_op_rays tess_radon_rays(const tess_radon_settings *settings);
/* The first half of the inverse: filters the views into rows at the beginning of the scratch, `pitch` values apart. */
const float *tess_radon_filter(tess_operator *radon, const void *measurement, void *scratch, int64_t *pitch,
                               tess_stream *stream);

#endif
