/* noise_scan_parts.h: what noise_scan.c and noise_waves.c share. */
#ifndef TESS_TENSOR_NOISE_SCAN_PARTS_H
#define TESS_TENSOR_NOISE_SCAN_PARTS_H

#include <stdbool.h>

#include "tensor/noise_scan.h"

/* The level of a ray whose line integral is this. */
int tess_scan_level(const tess_scan_noise *noise, double value);
/* Deviations by their logarithm. Bin 0 has all that is nothing beside the highest value. */
int tess_scan_bin(const tess_scan_noise *noise, double deviation);
/* The deviation at this place among the bins. */
double tess_scan_value(const tess_scan_noise *noise, double at);
/* The median of `total` deviations; 0 if it is in bin 0. */
double tess_scan_median(const tess_scan_noise *noise, const uint32_t *bin, double total);
/* What the spectrum of the views says of their noise, the root of its mean variance; INFINITY if it says nothing. */
typedef struct tess_scan_bound {
    double level; /* a standard deviation that it does not exceed */
    double most;  /* the same where chance has made the level lower than it is */
    bool rough;   /* matter may have added to the level */
} tess_scan_bound;
tess_scan_bound tess_scan_find_bound(const tess_scan_noise *noise);
/* Lowers the variances of the levels, negative where there is none, to what explains the bound. Where they are far
 * above it, the highest are lowered, to one value. Returns the largest standard deviation that is left to the views. */
double tess_scan_limit(const tess_scan_noise *noise, const tess_scan_bound *bound,
                       double variance[TESS_SCAN_LEVELS]);

#endif
