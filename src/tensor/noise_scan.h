/* noise_scan.h: estimates the noise of the views of a scan from the views alone.
 *
 * Neighbouring columns of a view, and the same column of neighbouring views, see almost the same matter, so that
 * their second differences are mostly noise. Three of them are taken: along the columns, along the views, and along
 * both; each is an upper bound, because matter adds to it, and the lowest of their medians counts. Line integrals of
 * counts have more noise where more was absorbed, so the samples are divided by their level, and each part has its own
 * estimate. Thin things that are everywhere leave no place that is smooth; there the spectrum of the views shows how much
 * of all this is noise (noise_waves.c). */
#ifndef TESS_TENSOR_NOISE_SCAN_H
#define TESS_TENSOR_NOISE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TESS_SCAN_LEVELS = 12, TESS_SCAN_KINDS = 3, TESS_SCAN_BINS = 1024, TESS_SCAN_SLOPES = 28 };

/* About 270 KB. */
typedef struct tess_scan_noise {
    double highest;                    /* levels are from 0 to this */
    int64_t samples[TESS_SCAN_LEVELS]; /* of each level */
    /* differences by their logarithm */
    uint32_t bin[TESS_SCAN_LEVELS][TESS_SCAN_KINDS][TESS_SCAN_BINS];
    /* the spectrum: amplitudes by the slope that they are beyond, how many of them are independent, as a share, and how
     * much of each level is in it */
    uint32_t wave[TESS_SCAN_SLOPES][TESS_SCAN_BINS];
    double independent, seen[TESS_SCAN_LEVELS];
    int64_t views;
} tess_scan_noise;

/* `highest`: the largest value of all views. */
void tess_scan_noise_begin(tess_scan_noise *noise, double highest);
/* Adds `count` neighbouring columns of one row of a view, with the same columns of the views before and after it; both
 * are NULL if there are fewer than three views. */
void tess_scan_noise_row(tess_scan_noise *noise, const float *before, const float *here, const float *after,
                         int64_t count);
/* Adds the spectrum of one row of all views, or of some that follow each other: views * columns values. `memory` is
 * aligned for double. */
size_t tess_scan_waves_bytes(int64_t views, int64_t columns); /* 0: there are too few */
void tess_scan_noise_waves(tess_scan_noise *noise, const float *values, int64_t views, int64_t columns,
                           void *memory);
/* The standard deviation; negative if there were too few samples. If it grows with the level, this is the root of the
 * mean variance, each ray weighted by its own: streaks come from the rays that have most of the noise. `rough`: matter
 * may have been taken for noise, because the spectrum does not show it alone. */
double tess_scan_noise_end(const tess_scan_noise *noise, bool *rough);

#endif
