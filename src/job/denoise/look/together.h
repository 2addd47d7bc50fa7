/* together.h: whether the channels of a colour image are denoised together, or one by one. */
#ifndef TESS_JOB_DENOISE_LOOK_TOGETHER_H
#define TESS_JOB_DENOISE_LOOK_TOGETHER_H

#include "job/denoise/denoise.h"

/* Whether the file has three equal channels. Reads up to the first pixel that has a colour. */
tess_status tess_denoise_find_equal(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;
/* If the channels share their noise, the bundled model for gray images replaces that for colours, which would leave
 * such noise; a model that was named stays, with a note. */
tess_status tess_denoise_choose_together(tess_engine *engine, const tess_denoise_settings *settings,
                                         tess_denoise_file *file, tess_error *error) TESS_MUST_CHECK;

#endif
