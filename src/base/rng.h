/* rng.h: random numbers that depend on where they are used, not on when: Philox4x32-10 (Salmon et al., SC 2011)
 * with the seed as key and (item, step, element) as counter. Every tile, thread or rank that needs the noise of
 * a pixel computes the same value. */
#ifndef TESS_BASE_RNG_H
#define TESS_BASE_RNG_H

#include "base/philox.h"

typedef struct tess_rng_key {
    uint64_t seed;
    uint32_t item, step;
} tess_rng_key;

/* Standard normal values of elements [first, first+count), by Box-Muller in fp32. Two elements share one draw. */
void tess_rng_normal(tess_rng_key key, int64_t first, int64_t count, float *values);
/* Uniform in [0,1). */
void tess_rng_uniform(tess_rng_key key, int64_t first, int64_t count, float *values);

#endif
