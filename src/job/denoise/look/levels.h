/* levels.h: the noise levels of an image, or of each slice of a volume, on the network's scale. */
#ifndef TESS_JOB_DENOISE_LOOK_LEVELS_H
#define TESS_JOB_DENOISE_LOOK_LEVELS_H

#include "job/denoise/denoise.h"

/* Stores the estimate of the look in file->sigma and file->levels, on file->scale. If channels differ much, the
 * bundled model for gray images replaces the model. */
tess_status tess_denoise_use_estimate(tess_engine *engine, const tess_denoise_settings *settings,
                                      tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* Whether noise of this level, that of a channel, was found, and is so weak that the errors of a network which
 * the job itself chose count: run/trust.c. */
bool tess_denoise_is_weak(const tess_denoise_settings *settings, const tess_denoise_file *file, double sigma);
/* The noise levels of a slice on the network's scale; those of the file, if it has one level for all. */
typedef struct tess_denoise_sigmas {
    double all, channel[TESS_NOISE_CHANNELS];
} tess_denoise_sigmas;
void tess_denoise_slice_sigma(const tess_denoise_file *file, int64_t slice, tess_denoise_sigmas *to);
/* Noise levels of one row of pixels by brightness, from the means around their values. */
void tess_denoise_levels_of(const tess_denoise_file *file, int64_t slice, const float *means, float *levels);
/* Whether the network gets a map of levels, from a file or from the estimate. */
bool tess_denoise_has_map(const tess_denoise_file *file);

#endif
