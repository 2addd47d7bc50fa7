/* stage_impl.h: the ops of a stage, for stage*.c. */
#ifndef TESS_TRAIN_STATISTICS_STAGE_IMPL_H
#define TESS_TRAIN_STATISTICS_STAGE_IMPL_H

#include "train/statistics/stage.h"

tess_op tess_pixel_import_op(tess_dtype dtype, int64_t pixels, int channels);
tess_op tess_pixel_moments_op(int64_t pixels, int channels, bool covariance, bool masked);
/* Of images of as many pixels, with covariance, a vector each. */
tess_op tess_pixel_moments_each_op(int64_t images, int64_t pixels, int channels);
tess_op tess_pixel_score_op(int64_t pixels, int channels, int rank);
tess_op tess_pixel_local_op(int64_t rows, int64_t width, int channels, int inner, int outer, double eps,
                            bool masked);
/* Finds or prepares an op, and runs it. */
tess_status tess_pixel_stage_run(tess_pixel_stage *stage, const tess_op *op, tess_op_buffers buffers,
                                 tess_error *error) TESS_MUST_CHECK;
/* stage_join.c: adds the images behind a block in place that is a whole image, as far as they follow it in memory. */
void tess_pixel_stage_join(tess_pixel_stage *stage);
/* Makes *workspace as large as the moments of the longest runs of such images need. */
tess_status tess_pixel_ask_joined(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                  const tess_pixel_set *set, size_t *workspace,
                                  tess_error *error) TESS_MUST_CHECK;
/* Where the device has what is at `host`; copied to `block` if its memory is separate. */
const void *tess_pixel_stage_send(tess_pixel_stage *stage, const void *host, tess_block *block, size_t bytes);

#endif
