/* stage_impl.h: the ops of a stage, for stage*.c. */
#ifndef TESS_TRAIN_STATISTICS_STAGE_IMPL_H
#define TESS_TRAIN_STATISTICS_STAGE_IMPL_H

#include "train/statistics/stage.h"

tess_op tess_pixel_import_op(tess_dtype dtype, int64_t pixels, int channels);
tess_op tess_pixel_moments_op(int64_t pixels, int channels, bool covariance, bool masked);
tess_op tess_pixel_score_op(int64_t pixels, int channels, int rank);
/* Brings the rows into samples[turn]. */
tess_status tess_pixel_stage_fetch(tess_pixel_stage *stage, const tess_pixel_set *set, int64_t image,
                                   tess_pixel_rows now, tess_pixel_rows next,
                                   tess_error *error) TESS_MUST_CHECK;

tess_op tess_pixel_local_op(int64_t rows, int64_t width, int channels, int inner, int outer, double eps,
                            bool masked);

#endif
