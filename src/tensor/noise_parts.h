/* noise_parts.h: declarations shared by noise_fit.c, noise_clip.c, noise_slope.c, noise_photons.c, noise_magnitude.c,
 * noise_encoded.c, noise_places.c, noise_bound.c, noise_steps.c, noise_share.c, noise_shared.c, noise_weave.c and noise_depth.c. */
#ifndef TESS_TENSOR_NOISE_PARTS_H
#define TESS_TENSOR_NOISE_PARTS_H

#include <math.h>

#include "tensor/noise.h"

enum { TESS_NOISE_CLIP_STEPS = 256 };

/* The share of the noise's variance that remains in a patch, by the mean of the patch after clipping. */
typedef struct tess_noise_clip {
    double low, high; /* the limits; infinite where there is none */
    double first, step;
    float kept[TESS_NOISE_CLIP_STEPS]; /* by mean, from `first`; 0: do not use such a patch */
} tess_noise_clip;

/* Finds the limits, at either end, at which many samples lie. Returns false when the channel is not clipped. */
bool tess_noise_find_limits(const tess_noise *noise, int channel, tess_noise_clip *clip);
void tess_noise_clip_for(tess_noise_clip *clip, double sigma);
double tess_noise_kept(const tess_noise_clip *clip, double mean);
/* The share that remains of the variance sigma^2 where the mean after clipping is `mean`. */
double tess_noise_kept_at(const tess_noise_clip *clip, double sigma, double mean);
/* True when many patches touch a limit and vary much less than noise of this level would there: it is texture elsewhere. */
bool tess_noise_limits_refute(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                              double sigma);

/* Keys sort by energy, then by index; the lower half of a key is the index. `other` is scratch of the same
 * size. */
uint64_t tess_noise_key(double energy, int64_t index);
void tess_noise_sort(uint64_t *keys, int64_t count, uint64_t *other);

/* The estimate from the quietest of some patches. */
typedef struct tess_noise_answer {
    double sigma, texture; /* texture: log of low to high energy, -0.63 in pure noise */
    double bands;          /* log of the energies of the two high bands, 0 in pure noise */
    double mean;           /* of the quietest patches */
    double equal;          /* share of neighbours in them that are equal */
    int64_t count;
} tess_noise_answer;

/* Estimates from the patches whose indices are in the lower halves of `keys`. Sorts `keys`. */
tess_noise_answer tess_noise_ask(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                                 uint64_t *keys, int64_t count);

/* The patches of similar brightness, estimated as an image by themselves. */
enum { TESS_NOISE_PARTS = 16 };
#define TESS_NOISE_CALM 0.2 /* largest error of a part with little texture */
typedef struct tess_noise_part {
    double mean, variance, error; /* error: relative to the variance */
    bool near_low; /* so near the lower limit that clipping would remove some of the variance */
} tess_noise_part;

typedef struct tess_noise_line {
    double offset, slope, offset_error, slope_error;
} tess_noise_line;

/* Whether the noise is that of photons (noise_photons.c). `line` is the best one through the parts that are not near
 * a limit. */
typedef struct tess_noise_photons {
    bool found;
    bool possible; /* not much worse than white noise */
    double gain, zero;
} tess_noise_photons;
tess_noise_photons tess_noise_try_photons(double least, const tess_noise_clip *clip,
                                          const tess_noise_part *parts, int count,
                                          const tess_noise_line *line);
/* True when photons are possible and their level is so different that `other` is uncertain. */
bool tess_noise_photons_differ(const tess_noise_photons *photons, double sigma, double other);

/* Whether the law says much more than some part has, with or without texture, away from the limits. A law that was fitted to
 * the parts without texture may rest on the darkest of them. */
bool tess_noise_refuted(const tess_noise_level *level, const tess_noise_clip *clip,
                        const tess_noise_part *parts, int count);
/* What a robust fit minimizes: chi square, but outliers count less, and those above least, as in noise_slope.c. */
double tess_noise_cost(const tess_noise_part *part, double variance);
/* The least cost of white noise that is clipped by `clip`, which may be NULL. */
double tess_noise_white_cost(const tess_noise_clip *clip, const tess_noise_part *parts, int count);
/* The largest number of parts that are fitted together: of the slices near one. */
enum { TESS_NOISE_NEAR = 8, TESS_NOISE_FITTED = (2 * TESS_NOISE_NEAR + 1) * TESS_NOISE_PARTS };
/* Writes the parts that are not near the lower limit and returns their number. */
int tess_noise_far_parts(const tess_noise_part *from, int count, tess_noise_part *to);
tess_noise_line tess_noise_fit_line(const tess_noise_part *parts, int count);
/* Sets read, gain and zero if the line through these parts has a slope. `least`: the least sample. */
bool tess_noise_set_line(const tess_noise_line *fit, const tess_noise_part *parts, int count, double least,
                         tess_noise_level *level);

/* A pattern of 2 x 2 samples (noise_weave.c): how many blocks have an amplitude to keep; adds the 8 rows in `lines`, of
 * which the last is row `rows`; whether there is a pattern that matters beside this noise. */
int64_t tess_noise_weave_blocks(const tess_noise_shape *shape);
void tess_noise_weave_rows(tess_noise *noise, int channel);
bool tess_noise_is_woven(const tess_noise *noise, int channel, double sigma);

/* What is kept of an image or slice to compare it with others. */
typedef struct tess_noise_sketch {
    tess_noise_part parts[TESS_NOISE_PARTS];
    int count;
    bool clipped;
    double low, high, least; /* limits, if clipped; the least sample */
    double sigma;            /* of the image by itself */
    double equal;            /* as in the answer that sigma comes from */
    bool tried;              /* whether the law of an encoded photograph was fitted: */
    double evidence;         /* that it is right, rather than the level; a difference of chi squares */
    tess_noise_level encoded;
} tess_noise_sketch;
/* Fits photon and read noise that was encoded in sRGB (noise_encoded.c), as an alternative to `level`. */
void tess_noise_try_encoded(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                            const tess_noise_level *level, tess_noise_sketch *sketch);
/* Sets the level, and that it is uneven, if it is one of magnitudes around air (noise_magnitude.c). */
bool tess_noise_is_magnitude(const tess_noise *noise, int channel, const tess_noise_sketch *sketch,
                             tess_noise_level *level);
/* Decides between the levels of the channels and their alternatives. */
void tess_noise_choose_law(tess_noise_level *levels, const tess_noise_sketch *sketches, int channels);
/* The value of this point of a curve. */
double tess_noise_knot(int k);
double tess_noise_encoded_at(const tess_noise_level *level, double value);
/* Over the patches of an image. */
double tess_noise_mean_variance(const tess_noise *noise, int channel, const tess_noise_level *level);
/* Replaces the level of a slice by one that it shares with slices near it, if its own is rough and agrees. */
void tess_noise_share(const tess_noise *noise, int64_t slice, int channel, tess_noise_level *level);

/* Fits the variance as a function of brightness, and sets gain, read, zero and sigma when the image shows a
 * gain. Otherwise sets `uneven` and, when that is true, sigma and read. Overwrites noise->order. */
void tess_noise_find_slope(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                           tess_noise_level *level, tess_noise_sketch *sketch);

/* Estimates one channel of the image or slice. */
void tess_noise_find_level(const tess_noise *noise, int channel, tess_noise_level *level,
                           tess_noise_sketch *sketch);

/* One sample of every TESS_NOISE_SPARSE-th patch is kept: of so many of a channel. */
enum { TESS_NOISE_SPARSE = 4 };
static inline int64_t tess_noise_singles(int64_t patches)
{
    return (patches + TESS_NOISE_SPARSE - 1) / TESS_NOISE_SPARSE;
}
/* Equal neighbours in a patch. Makes noise->finest the step of which all differences of the row's neighbours are multiples; of
 * floats, the least difference (noise_steps.c). */
unsigned char tess_noise_count_equal(float x[TESS_NOISE_SIDE][TESS_NOISE_SIDE]);
void tess_noise_find_step(tess_noise *noise, int channel, const float *line);
/* White noise that leaves this share of neighbours equal in values of this step. */
static inline double tess_noise_stirred(double step, double share)
{
    return step / (2 * sqrt(acos(-1)) * share);
}
/* Whether a part of the patch is constant, as at the shore of a lake. */
bool tess_noise_is_partly_flat(const tess_noise *noise, int channel, int64_t patch);
/* After the last row: sets flat_in_part of the channels in which a few patches are so, and most vary everywhere. */
void tess_noise_find_flat(tess_noise *noise);
/* Lowers a level that the values of the samples contradict (noise_bound.c). `equal`: share of equal neighbours in the patches
 * that it comes from. Overwrites noise->order. */
void tess_noise_limit_level(const tess_noise *noise, int channel, double equal, tess_noise_level *level);

/* The grid of places (noise_places.c). */
enum { TESS_NOISE_GRID = 8 };
/* Compares the levels with those of the places of the image. If these differ among themselves, sets `patchy` and sigma.
 * Overwrites noise->order. */
void tess_noise_doubt_places(const tess_noise *noise, tess_noise_level *levels, int channels);

/* What three channels have in common at a place (noise_shared.c): the root of the energy that patches are selected by,
 * those of each channel's high frequencies, and the cosines between these for the pairs 0 1, 0 2 and 1 2. */
typedef struct tess_noise_triple {
    float energy, high[3], cosine[3];
} tess_noise_triple;
/* The patches at every second place of every second row of patches: takes those that end with the newest row. */
void tess_noise_take_triples(tess_noise *noise, int64_t patch_row);
/* The mean correlation of the noise of three channels with these levels, 0 to 1; `most`: of the two that share most.
 * Overwrites noise->order. */
double tess_noise_find_shared(const tess_noise *noise, const tess_noise_level *levels, double *most);

/* For volumes (noise_depth.c): the memory for the levels of the slices, false if it cannot be counted; stores those
 * of the slice that has ended; the result after the last. */
bool tess_noise_slices_bytes(const tess_noise_shape *shape, size_t *bytes);
void tess_noise_place_slices(tess_noise *noise, void *memory);
void tess_noise_end_slice(tess_noise *noise);
void tess_noise_end_volume(const tess_noise *noise, tess_noise_result *result);

#endif
