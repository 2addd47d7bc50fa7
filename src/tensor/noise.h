/* noise.h: how much white Gaussian noise an image has, estimated from the image alone. Rows come from top to bottom, so
 * that the image need not be held.
 *
 * Patches of 8 x 8 samples are taken from a grid over the image, each channel by itself, and put through the DCT. The
 * low and the high frequencies of white noise are independent. So the patches with the least energy in the low
 * frequencies have the least texture, and choosing them does not bias the energy of their high frequencies, which is the
 * estimate (Ponomarenko et al., "An automatic approach to lossy compression of AVIRIS images", 2007, select so). What
 * texture is left shows in the ratios between bands and between stricter and laxer choices; a short linear formula,
 * fitted on other photographs, takes it out (noise_fit.c).
 *
 * Where values are clipped, at the end of the file's type or by the sensor, noise is smaller: patches are corrected by the moments of a clipped
 * Gaussian, and left out where most is clipped. Photon noise is
 * stronger where the image is brighter, and the quietest patches of the whole image then are its darkest. So the estimate
 * is also made for parts of equal numbers of patches, by brightness; where these show a slope, the variance is
 * read^2 + gain * (value - zero) (noise_slope.c). */
#ifndef TESS_TENSOR_NOISE_H
#define TESS_TENSOR_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TESS_NOISE_SIDE = 8, TESS_NOISE_CHANNELS = 16, TESS_NOISE_PATCHES = 200000, TESS_NOISE_PARTS = 16 };

typedef enum tess_noise_confidence {
    TESS_NOISE_UNKNOWN, /* no patch could be used: sigma is 0 and means nothing */
    TESS_NOISE_ROUGH,   /* few patches, or texture everywhere, or mostly clipped or constant, or uneven */
    TESS_NOISE_SURE
} tess_noise_confidence;

typedef struct tess_noise_shape {
    int64_t height, width;
    int64_t depth; /* slices of a volume, one after another; 0 or 1 for an image */
    int channels;  /* at most TESS_NOISE_CHANNELS */
} tess_noise_shape;

/* Of one patch of one channel: the mean of its samples, and root mean squares of DCT coefficients by band, whose squares
 * need not fit a float. */
typedef struct tess_noise_patch {
    float mean, low, middle, high;
} tess_noise_patch;

/* The least or largest value so far, and how many samples have it: many, where values are clipped. */
typedef struct tess_noise_limit {
    float value;
    int64_t count;
} tess_noise_limit;

typedef struct tess_noise {
    tess_noise_shape shape;
    int64_t step, most; /* between patches; patches of a channel at most */
    int64_t rows;       /* seen so far */
    int64_t count[TESS_NOISE_CHANNELS];
    tess_noise_limit least[TESS_NOISE_CHANNELS], largest[TESS_NOISE_CHANNELS];
    int64_t samples[TESS_NOISE_CHANNELS]; /* without holes */
    /* Of a volume: patches of a channel up to the end of each part of its depth. */
    int64_t ends[TESS_NOISE_CHANNELS][TESS_NOISE_PARTS];
    float *lines; /* the last 8 rows, channel by channel */
    tess_noise_patch *patches;
    uint64_t *order; /* for sorting: twice `most` */
} tess_noise;

/* Standard deviations on the scale of the values. Every number is finite. */
typedef struct tess_noise_level {
    double sigma; /* root mean square over the image */
    /* variance(x) = read^2 + gain * max(x - zero, 0); gain is 0 and read is sigma where no slope shows. */
    double read, gain, zero;
    bool uneven; /* levels of brightness disagree, and not as a gain would make them */
    tess_noise_confidence confidence;
    int64_t patches; /* that the estimate had to choose from */
} tess_noise_level;

typedef struct tess_noise_result {
    tess_noise_level channel[TESS_NOISE_CHANNELS];
    double sigma;                     /* root mean square over the channels that gave an estimate */
    tess_noise_confidence confidence; /* the least of theirs; UNKNOWN only if no channel gave one */
    /* Of a volume whose slices differ: the level of each part of its depth; 0 parts: they do not. */
    int parts;
    double part_sigma[TESS_NOISE_PARTS];
} tess_noise_result;

/* What `memory` must have: aligned for double. 0 when there will be no answer: the image is smaller than a patch, or has
 * more than TESS_NOISE_CHANNELS channels. */
size_t tess_noise_bytes(const tess_noise_shape *shape);
void tess_noise_begin(tess_noise *noise, const tess_noise_shape *shape, void *memory);
/* One row of width * channels values. `valid` has a byte for each, 0 for a hole; NULL: none but NaN and infinity. */
void tess_noise_row(tess_noise *noise, const float *values, const unsigned char *valid);
void tess_noise_end(const tess_noise *noise, tess_noise_result *result);

/* Of a slice of a volume that has `depth` of them, where there are parts. */
double tess_noise_of_slice(const tess_noise_result *result, int64_t slice, int64_t depth);
/* Of a value: the standard deviation of its noise. */
double tess_noise_at(const tess_noise_level *level, double value);

/* The statistics behind the formula, for the study that fits it: log ratios, see noise_fit.c. */
enum { TESS_NOISE_FEATURES = 6 };
double tess_noise_features(const tess_noise *noise, int channel, double features[TESS_NOISE_FEATURES]);

#endif
