/* data_dem.h: windows of elevation maps with voids cut into them, for diffusion models that fill voids.
 *
 * A sample: a crop of a random map, in one of eight positions, at one of the scales (reduced by whole numbers, means of
 * pixels), in every tenth sample upside down; a void (tensor/terrain/void_maker.h); the conditions that `fill` gives a model
 * (tensor/terrain/conditions.h), in every tenth sample with a guess from the crop reduced by 4 and a void that may cover all of it,
 * as for the tiles inside of wide voids; noise at a level gamma. Heights need no other scaling: the conditions do not depend on it.
 *
 * Pixels that have no value in the map are void for the network and do not count in the loss. A crop with many of them, or one
 * that is mostly level (sea), is drawn again. Weights of the loss fall with the square root of the void's area, so that wide
 * voids do not decide everything.
 *
 * Noise levels are uniform in the logarithm of the signal-to-noise ratio, as the steps of samplers are. The schedule of the
 * published models would spend 2 % of the samples on the last sixth of that range, where the details of y appear, which is 0.2
 * in the mean. The levels of a step are spread evenly.
 *
 * With `repeats`, a crop with its void makes so many samples in a row, each in another position, with another noise and level:
 * crop, void and conditions take most of the time. The positions of a group are four turns before mirrored ones.
 *
 * Arrays: the network's input, the vector of its noise level, the noise (its target), the weights of the loss. */
#ifndef TESS_TRAIN_DATA_DEM_H
#define TESS_TRAIN_DATA_DEM_H

#include "train/data.h"
#include "train/data_images.h"

enum { TESS_DEM_SCALES = 8, TESS_DEM_POSITIONS = 8 };
enum { TESS_DEM_INPUT, TESS_DEM_LEVEL, TESS_DEM_NOISE, TESS_DEM_WEIGHT }; /* the arrays */

typedef struct tess_dem_settings {
    tess_images_settings images; /* folders, names to exclude, budget, memory; the rest is set here */
    int64_t crop;
    int scales;
    double scale[TESS_DEM_SCALES], share[TESS_DEM_SCALES]; /* scales are 1, 1/2, 1/3, ... */
    int64_t levels;  /* values of the network's vector: tess_diffusion_level */
    int64_t repeats; /* samples of a crop with its void, at most TESS_DEM_POSITIONS; 0 is 1 */
} tess_dem_settings;

/* What is not drawn, for validation: such samples are upright, at full size, and have no guess. */
typedef struct tess_dem_fixed {
    int64_t map;
    const double *gammas; /* of the sample and of those after it, which differ in nothing else */
} tess_dem_fixed;

tess_status tess_dem_open(const tess_dem_settings *settings, tess_source **out,
                          tess_error *error) TESS_MUST_CHECK;
/* The source's draw; `fixed` may be NULL. */
tess_status tess_dem_draw(tess_source *source, const tess_sample *sample, const tess_dem_fixed *fixed,
                          void *const arrays[TESS_DATA_ARRAYS], tess_error *error) TESS_MUST_CHECK;

#endif
