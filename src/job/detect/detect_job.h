/* detect_job.h: one run of `detect`. */
#ifndef TESS_JOB_DETECT_JOB_H
#define TESS_JOB_DETECT_JOB_H

#include "base/temp.h"
#include "job/common/context.h"
#include "job/common/engine.h"
#include "job/detect/detect_objects.h"
#include "tessera_detect.h"
#include "train/statistics/cubes.h"
#include "train/statistics/curve.h"
#include "train/statistics/statistics.h"

typedef struct tess_detect_job {
    const tess_detect_settings *settings;
    tess_engine engine;
    tess_pixel_cubes input, other; /* other: of `fit` */
    bool fits_other, fits;         /* phase 1 reads `other`; there is a phase 1 */
    tess_spectral_plan *plan;
    tess_spectral_state state;
    tess_pixel_image *sizes; /* of all images of both lists */
    tess_pixel_set all;      /* only their sizes */
    /* of phase 1, and of the scores: their devices may differ */
    tess_pixel_stage_settings fit_stage, stage;
    tess_device *host_device; /* the CPU, if one of the phases is computed on a card; else NULL */
    tess_statistics *statistics;
    tess_statistics_report fitted; /* of a phase 1 with another device than the scores */

    /* the plan */
    tess_mem_bytes planned;
    uint64_t planned_total, limit;

    /* while it runs */
    tess_temp *spool_temp; /* the scores of all images, to be read again */
    FILE *spool;
    tess_block piece;   /* scores, then marks of the truth, then decisions, then samples for the overlay */
    tess_block decider; /* workspace of a decider */
    int64_t piece_pixels;
    tess_memory truth_memory; /* what the metrics hold: depends on the number of anomalies */
    tess_curve curve;
    tess_confusion confusion;
    bool decides;
    tess_objects *objects;

    /* results */
    double begin, fit_seconds, score_seconds, decide_seconds;
    double sink_seconds; /* the part of score_seconds in which scores are written and compared */
    double threshold;    /* of the last image */
    int64_t anomalies, pixels, without_score;
    size_t overhead;
    tess_engine_figures figures; /* of all ranks; units: bytes read */
} tess_detect_job;

/* Collective, as all that ranks share: lists, pipeline, device and plan. */
tess_status tess_detect_open(tess_detect_job *job, tess_context *context, tess_error *error) TESS_MUST_CHECK;
/* detect_choose.c: decides on the device of each phase, and predicts seconds. */
tess_status tess_detect_choose(tess_detect_job *job, tess_error *error) TESS_MUST_CHECK;
/* Predicted seconds of the phases on their devices; *calibrated: all rates were measured. */
double tess_detect_predicted(const tess_detect_job *job, bool *calibrated);
/* Learns rates from a run that is done. Its blocks must be free again. */
void tess_detect_learn(tess_detect_job *job, double wall);
tess_status tess_detect_make_plan(tess_detect_job *job, tess_error *error) TESS_MUST_CHECK;
/* Names of outputs, and the masks of the truth. */
tess_status tess_detect_check_files(tess_detect_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_detect_run(tess_detect_job *job, tess_error *error) TESS_MUST_CHECK;
void tess_detect_close(tess_detect_job *job);
tess_json *tess_detect_record(const tess_detect_job *job, bool ran);

/* Where the scores of a file are written. The caller frees it. NULL: no memory. */
char *tess_detect_target(const tess_detect_job *job, int64_t file);
/* Pixels before an image in the spool. */
int64_t tess_detect_offset(const tess_detect_job *job, int64_t image);
tess_status tess_detect_spool_read(tess_detect_job *job, int64_t first, int64_t count, float *scores,
                                   tess_error *error) TESS_MUST_CHECK;
/* The truth of a file; NULL if none is wanted. */
tess_status tess_detect_truth_open(tess_detect_job *job, int64_t file, tess_cube_mask **out,
                                   tess_error *error) TESS_MUST_CHECK;
bool tess_detect_rates(const tess_detect_job *job); /* there is a truth */
/* Thresholds, decisions, figures and files, from the spool. */
tess_status tess_detect_decide(tess_detect_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_detect_list(const tess_detect_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_detect_overlay(tess_detect_job *job, tess_error *error) TESS_MUST_CHECK;
bool tess_detect_is_folder(const char *path);
bool tess_detect_has_suffix(const char *path, const char *suffix);

#endif
