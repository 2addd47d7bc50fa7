/* power.h: |A|^2, the largest eigenvalue of A^T A, by the power method: from a normal random vector, z = <x, A^T A x>
 * / |x|^2, x = A^T A x / |A^T A x|, until z converges. */
#ifndef TESS_SOLVE_POWER_H
#define TESS_SOLVE_POWER_H

#include "solve/data_term.h"

typedef struct tess_power_settings {
    int64_t iterations;
    double absolute, relative; /* stops when z changed by less than either; 0: not checked */
    uint64_t seed;
    tess_tick tick;
} tess_power_settings;

typedef struct tess_power_result {
    double norm_squared;
    int64_t iterations;
} tess_power_result;

/* `vectors`: memory for two images; overwritten. */
tess_status tess_power(const tess_data_term *term, const tess_power_settings *settings,
                       void *const vectors[2], tess_power_result *result, tess_error *error) TESS_MUST_CHECK;
/* Fills an image with random numbers of mean 0 and deviation 1, the same for any number of ranks. */
tess_status tess_power_start(const tess_data_term *term, uint64_t seed, void *image,
                             tess_error *error) TESS_MUST_CHECK;

#endif
