/* statistics.h: phase 1 of a pipeline: fitting its parameters from the pixels of a set in as few passes as its plan has
 * (model/spectral/compile.h), and scoring images with them.
 *
 * If the settings have several ranks, fitting, calibrating and scoring are collective: each rank reads a part of the blocks,
 * all get the same parameters, with the bits that one rank would get, and rank 0's sink gets all scores. */
#ifndef TESS_TRAIN_STATISTICS_STATISTICS_H
#define TESS_TRAIN_STATISTICS_STATISTICS_H

#include "train/statistics/stage.h"

typedef struct tess_statistics tess_statistics; /* owned by the caller: tess_statistics_destroy */

/* Bytes that will be held, the state's not included. */
tess_status tess_statistics_plan(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                 const tess_pixel_set *set, tess_mem_bytes *bytes,
                                 tess_error *error) TESS_MUST_CHECK;
/* Everything that is needed for images up to the largest of `set`. `state` is fitted by tess_statistics_fit, or was loaded;
 * it is changed by images whose nodes are fitted for each. All arguments outlive the object. */
tess_status tess_statistics_create(const tess_pixel_stage_settings *settings, const tess_pixel_set *set,
                                   tess_spectral_state *state, tess_statistics **out,
                                   tess_error *error) TESS_MUST_CHECK;
void tess_statistics_destroy(tess_statistics *statistics);

/* The state was changed from outside: scores are computed with its parameters of now. */
void tess_statistics_renew(tess_statistics *statistics);

/* How often each image is read, in phase 1 and to score it. */
int tess_statistics_fit_readings(const tess_spectral_plan *plan);
int tess_statistics_score_readings(const tess_spectral_plan *plan);

/* Phase 1. `set` must not have larger images than the set of create. */
tess_status tess_statistics_fit(tess_statistics *statistics, const tess_pixel_set *set,
                                tess_error *error) TESS_MUST_CHECK;

/* Finds the threshold of a false_alarm node again, for a state whose other parameters gradients changed. */
tess_status tess_statistics_calibrate(tess_statistics *statistics, const tess_pixel_set *set,
                                      tess_error *error) TESS_MUST_CHECK;

/* Receives the scores of an image, rows in order. */
typedef tess_status (*tess_score_sink)(void *user, int64_t image, int64_t first_row, int64_t rows,
                                       const float *scores, tess_error *error);
/* Scores images [image, end), one after another; logits if the pipeline has score_to_logit. */
tess_status tess_statistics_score(tess_statistics *statistics, const tess_pixel_set *set, int64_t image,
                                  int64_t end, tess_score_sink sink, void *user,
                                  tess_error *error) TESS_MUST_CHECK;

typedef struct tess_statistics_report {
    int64_t bytes_read; /* of samples, so far */
    int64_t pixels;     /* that had a part in the first pass of phase 1 */
    int rank;           /* rows of the last factor */
    /* Seconds so far of reading, of paths on the host for so many values of pixels, and of solving for parameters and
     * factors so many times. */
    double read_seconds, path_seconds, path_values, solve_seconds, solves;
} tess_statistics_report;
tess_statistics_report tess_statistics_facts(tess_statistics *statistics);

/* What phase 1, or scoring all images of a set, will do, for predictions. */
typedef struct tess_statistics_work {
    void *user;
    void (*op)(void *user, const tess_op *op,
               double runs);     /* an op on a block; the last one counts as a part */
    double blocks, bytes_read;   /* of samples, which also go up */
    double bytes_up, bytes_down; /* to a device with separate memory, and from it */
    double path_values, solves;  /* as of tess_statistics_report */
    double scored;               /* pixels that are given to a sink; of phase 1 its own */
} tess_statistics_work;
/* Adds to `work`. The rank of factors is taken as full. */
void tess_statistics_list(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                          const tess_pixel_set *set, bool fit, tess_statistics_work *work);

#endif
