/* stage_impl.h: the ops of a stage, for stage*.c. */
#ifndef TESS_TRAIN_STATISTICS_STAGE_IMPL_H
#define TESS_TRAIN_STATISTICS_STAGE_IMPL_H

#include "train/statistics/stage.h"

tess_op tess_pixel_import_op(tess_dtype dtype, int64_t pixels, int channels);
tess_op tess_pixel_moments_op(int64_t pixels, int channels, bool covariance, bool masked);
tess_op tess_pixel_score_op(int64_t pixels, int channels, int rank);
tess_op tess_pixel_local_op(int64_t rows, int64_t width, int channels, int inner, int outer, double eps,
                            bool masked);
/* Finds or prepares an op, and runs it. */
tess_status tess_pixel_stage_run(tess_pixel_stage *stage, const tess_op *op, tess_op_buffers buffers,
                                 tess_error *error) TESS_MUST_CHECK;
/* Where the device has what is at `host`; copied to `block` if its memory is separate. */
const void *tess_pixel_stage_send(tess_pixel_stage *stage, const void *host, tess_block *block, size_t bytes);

#endif
