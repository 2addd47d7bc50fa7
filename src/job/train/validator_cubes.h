/* validator_cubes.h: how well a pipeline finds the anomalies of cubes that it is not trained on: area under the ROC curve and average
 * precision, of all pixels of the folder together, as `detect --truth`. */
#ifndef TESS_JOB_TRAIN_VALIDATOR_CUBES_H
#define TESS_JOB_TRAIN_VALIDATOR_CUBES_H

#include "job/common/cube_marks.h"
#include "train/statistics/curve.h"
#include "train/statistics/statistics.h"

#define TESS_TRAIN_KEEP_MARKS "with data.marks_are_values true they are spectra"
#define TESS_TRAIN_DROP_ZEROS "declare 0 as nodata in the files to leave them out"

typedef struct tess_cubes_validator
    tess_cubes_validator; /* owned by the caller: tess_cubes_validator_close */

typedef struct tess_cubes_validator_settings {
    tess_pixel_stage_settings stage;
    const char *folder;
    const tess_common *common;  /* for notes */
    bool marks_are_values;      /* as in the configuration */
    tess_spectral_state *state; /* read by each run; outlives this */
} tess_cubes_validator_settings;

/* On failure there is nothing to close. Refuses a cube without a mask, and other bands than those of the state. */
tess_status tess_cubes_validator_open(const tess_cubes_validator_settings *settings,
                                      tess_cubes_validator **out, tess_error *error) TESS_MUST_CHECK;
void tess_cubes_validator_close(tess_cubes_validator *validator);
tess_mem_bytes tess_cubes_validator_bytes(const tess_cubes_validator *validator);
tess_status tess_cubes_validator_prepare(tess_cubes_validator *validator, tess_error *error) TESS_MUST_CHECK;
/* Scores all cubes with the state of now. */
tess_status tess_cubes_validator_run(tess_cubes_validator *validator, tess_curve_result *result,
                                     tess_error *error) TESS_MUST_CHECK;
const tess_cube_list *tess_cubes_validator_list(const tess_cubes_validator *validator);

#endif
