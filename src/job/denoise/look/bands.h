/* bands.h: images of more bands than one estimate of noise takes. */
#ifndef TESS_JOB_DENOISE_LOOK_BANDS_H
#define TESS_JOB_DENOISE_LOOK_BANDS_H

#include "job/denoise/denoise.h"

/* Whether the file's noise is estimated in several passes. */
bool tess_denoise_has_many_bands(const tess_denoise_file *file);
/* Estimates the noise of all bands: fills file->look.noise and file->band_sigma, in units of the look; NaN where nothing
 * can be said. After the look. */
tess_status tess_denoise_look_at_bands(tess_engine *engine, const tess_denoise_settings *settings,
                                       tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* The noise level of a band on the network's scale, from those of its slice. */
double tess_denoise_band_sigma(const tess_denoise_file *file, const double *channel, int64_t band);

#endif
