/* decide.h: the threshold of a decider for one image, from the image's scores. A pixel is an anomaly if its score is not
 * below. */
#ifndef TESS_TRAIN_STATISTICS_DECIDE_H
#define TESS_TRAIN_STATISTICS_DECIDE_H

#include "model/spectral/state.h"

/* The scores of an image, as tess_statistics_score gave them, read in pieces and several times. */
typedef struct tess_score_reader {
    int64_t count;
    void *user;
    tess_status (*read)(void *user, int64_t first, int64_t count, float *scores, tess_error *error);
} tess_score_reader;

/* Bytes of memory that tess_decide_threshold needs. */
size_t tess_decide_bytes(void);
/* INFINITY: no pixel of the image is an anomaly. The pipeline must have a decider. */
tess_status tess_decide_threshold(const tess_spectral_state *state, const tess_score_reader *scores,
                                  void *memory, double *threshold, tess_error *error) TESS_MUST_CHECK;

#endif
