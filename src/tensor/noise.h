/* noise.h: estimates the level of white Gaussian noise from the image alone. Rows are given from top to bottom,
 * so the image need not be in memory.
 *
 * Patches of 8 x 8 samples are taken from a grid over the image, for each channel separately, and transformed
 * by the DCT. The low and the high frequencies of white noise are independent. So the patches with the least
 * energy in the low frequencies have the least texture, and selecting them does not bias the energy of their
 * high frequencies, which is the estimate (Ponomarenko et al., "An automatic approach to lossy compression of
 * AVIRIS images", 2007, select in this way). The remaining texture shows in the ratios between bands and
 * between stricter and looser selections; a short linear formula, fitted on other photographs, removes it
 * (noise_fit.c).
 *
 * Where values are clipped, by the file's type or by the sensor, noise is smaller: patches are corrected by the
 * moments of a clipped Gaussian, and left out where most samples are clipped. Photon noise is stronger where
 * the image is brighter, and then the quietest patches of the whole image are its darkest. So the patches are
 * also divided by brightness into parts of equal size, and each part is estimated. Where the parts show a
 * slope, the variance is read^2 + gain * (value - zero) (noise_slope.c).
 *
 * A pattern that repeats every 2 samples, such as the colours of a raw sensor or a checker, has the frequencies of
 * noise, but only one coefficient's worth of them. So the estimate is made a second time without those; if the noise is
 * then found to be much less, the pattern is none of it. A pattern without that coefficient shows by its phase, which is
 * the same everywhere (noise_weave.c).
 *
 * Three channels may share their noise: gray stored as colours, film grain, JPEG files with fewer colour samples. Networks for
 * colours were trained on independent noise, so that share is measured, too (noise_shared.c).
 *
 * Each slice of a volume is estimated as an image by itself (noise_depth.c, noise_share.c). */
#ifndef TESS_TENSOR_NOISE_H
#define TESS_TENSOR_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TESS_NOISE_SIDE = 8, TESS_NOISE_CHANNELS = 16, TESS_NOISE_PATCHES = 200000, TESS_NOISE_KNOTS = 33 };

typedef enum tess_noise_confidence {
    TESS_NOISE_UNKNOWN, /* no patch could be used: sigma is 0 and means nothing */
    TESS_NOISE_ROUGH,   /* few patches, or texture everywhere, or mostly clipped or constant, or uneven */
    TESS_NOISE_SURE
} tess_noise_confidence;

typedef struct tess_noise_shape {
    int64_t height, width;
    int64_t depth;  /* slices of a volume, one after another; 0 or 1 for an image */
    int channels;   /* at most TESS_NOISE_CHANNELS */
    double quantum; /* the difference of two integers that follow each other; 0: floats, or unknown */
} tess_noise_shape;

/* One patch of one channel: the mean of its samples, and the root mean square of the DCT coefficients in each
 * band. Roots, because the squares may not fit a float. */
typedef struct tess_noise_patch {
    float mean, low, middle, high;
} tess_noise_patch;

/* The least or largest value so far, and how many samples have it: many when values are clipped. */
typedef struct tess_noise_limit {
    float value;
    int64_t count;
} tess_noise_limit;

/* The amplitudes of a pattern of 2 x 2 samples in neighbouring blocks (noise_weave.c): sums over the pairs. */
typedef struct tess_noise_weave {
    double product, square;
    int64_t pairs;
} tess_noise_weave;

/* Standard deviations on the scale of the values. Every number is finite. */
typedef struct tess_noise_level {
    double sigma; /* root mean square over the image */
    /* variance(x) = read^2 + gain * max(x - zero, 0). When no slope is found, gain is 0 and read is sigma. */
    double read, gain, zero;
    bool encoded; /* instead: photons, encoded in sRGB (noise_encoded.c); gain is 0, read is sigma */
    float curve[TESS_NOISE_KNOTS]; /* of encoded noise: the standard deviation at the values (i / 32)^2 */
    bool magnitude; /* of magnitudes around air (noise_magnitude.c), which is less there; also uneven */
    bool uneven; /* parts of different brightness disagree, or texture may have made the slope between them */
    bool
        patchy; /* the level differs between places: sigma is the root mean square over them (noise_places.c) */
    bool mosaic; /* a pattern of 2 x 2 samples was left out, as far as it could be told from the noise */
    tess_noise_confidence confidence;
    int64_t patches; /* patches that the estimate could select from */
} tess_noise_level;

/* What is known of the present image or slice, and the levels of the slices before it. */
typedef struct tess_noise {
    tess_noise_shape shape;
    int64_t step, most; /* distance between patches; most patches of a channel */
    int64_t rows;       /* of this image or slice, seen so far */
    int64_t count[TESS_NOISE_CHANNELS];
    tess_noise_limit least[TESS_NOISE_CHANNELS], largest[TESS_NOISE_CHANNELS];
    int64_t samples[TESS_NOISE_CHANNELS]; /* samples that are not holes */
    double finest[TESS_NOISE_CHANNELS];   /* step between values; infinite: all are equal */
    tess_noise_weave weave[TESS_NOISE_CHANNELS];
    float *above; /* the amplitudes of the blocks in the last 8 rows, channel by channel */
    float *lines; /* the last 8 rows, channel by channel */
    tess_noise_patch *patches;
    struct tess_noise_triple *triples; /* of three channels, else NULL: what they share at a place */
    int64_t triple_count, triple_most;
    double shared;           /* sum over the slices before this one that have noise */
    int64_t shared_count;    /* of these slices */
    tess_noise_patch *plain; /* the same patches without a pattern of 2 x 2 samples */
    unsigned char *places;   /* of the patches: the field of a grid over the image in which each lies */
    unsigned char *equal;    /* of the patches: pairs of equal neighbours (noise_bound.c) */
    bool flat_in_part[TESS_NOISE_CHANNELS]; /* a few patches are: they are left out (noise_steps.c) */
    float *singles;                         /* samples of some patches */
    uint64_t *order;                        /* scratch for sorting, of size 2 * most */
    int64_t slice;                          /* of a volume: the present one */
    tess_noise_level *slices; /* of a volume, else NULL: the levels of each slice, channel by channel */
    struct tess_noise_sketch *sketches; /* the same, of what the slices' levels come from */
} tess_noise;

typedef struct tess_noise_result {
    tess_noise_level channel[TESS_NOISE_CHANNELS];
    double sigma;                     /* root mean square over the channels that gave an estimate */
    tess_noise_confidence confidence; /* the lowest of theirs; UNKNOWN only if no channel gave one */
    double
        shared; /* of three channels: the mean correlation of their noise, 0 to 1; else 0. The mean over slices. */
    /* of an image: that of the two that share most. If the level of one channel is estimated too low, only this shows it. */
    double most_shared;
    /* For a volume, else NULL: the levels of each slice, channel by channel, in the memory of the tess_noise. A slice
     * whose level is rough may share that of slices near it (noise_share.c), and one without data has the mean of the
     * others. `channel` is then the mean over the slices. */
    const tess_noise_level *slices;
} tess_noise_result;

/* Size of `memory`, which must be aligned for double. Returns 0 when no estimate is possible: the image is
 * smaller than a patch, or has more than TESS_NOISE_CHANNELS channels. */
size_t tess_noise_bytes(const tess_noise_shape *shape);
void tess_noise_begin(tess_noise *noise, const tess_noise_shape *shape, void *memory);
/* Adds one row of width * channels values. `valid` has one byte for each value, 0 for a hole. With NULL, only
 * NaN and infinite values are holes. */
void tess_noise_row(tess_noise *noise, const float *values, const unsigned char *valid);
/* Estimates from all rows; overwrites scratch memory of `noise`. */
void tess_noise_end(const tess_noise *noise, tess_noise_result *result);

/* The standard deviation of the noise at this value. */
double tess_noise_at(const tess_noise_level *level, double value);

/* The log ratios that the formula uses (see noise_fit.c), for the study that fits it. */
enum { TESS_NOISE_FEATURES = 6 };
double tess_noise_features(const tess_noise *noise, int channel, double features[TESS_NOISE_FEATURES]);

#endif
