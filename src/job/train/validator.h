/* validator.h: PSNR of the network on fixed images with fixed noise, while it trains. The network runs as in `denoise`:
 * finished for inference, with folded norms. Of a diffusion network it is minus the loss on maps that it is not trained
 * on (validator_dem.h), so that more is better in any case; of a pipeline the area under the ROC curve (validator_cubes.h). */
#ifndef TESS_JOB_TRAIN_VALIDATOR_H
#define TESS_JOB_TRAIN_VALIDATOR_H

#include "job/common/engine.h"
#include "job/train/validator_cubes.h"
#include "train/config.h"
#include "train/data_validation.h"

typedef struct tess_validator tess_validator; /* owned by the caller: tess_validator_close */

/* `weights` give names and shapes; the values come with each run. */
tess_status tess_validator_open(tess_engine *engine, tess_stop *stop, const tess_train_config *config,
                                tess_weights *weights, tess_validator **out,
                                tess_error *error) TESS_MUST_CHECK;
/* Of a pipeline; the values are those of the state. */
tess_status tess_validator_open_cubes(tess_engine *engine, const tess_cubes_validator_settings *settings,
                                      tess_validator **out, tess_error *error) TESS_MUST_CHECK;
void tess_validator_close(tess_validator *validator);
/* Device memory, as counted, and host memory. */
tess_mem_bytes tess_validator_bytes(const tess_validator *validator);
tess_status tess_validator_prepare(tess_validator *validator, tess_error *error) TESS_MUST_CHECK;
/* Computes the mean PSNR with these weights, also for each level. */
tess_status tess_validator_run(tess_validator *validator, tess_weights *weights, double *psnr,
                               tess_error *error) TESS_MUST_CHECK;
const tess_images *tess_validator_images(const tess_validator *validator);   /* NULL for a pipeline */
const tess_cube_list *tess_validator_cubes(const tess_validator *validator); /* NULL for others */
double tess_validator_precision(const tess_validator *validator); /* of a pipeline: average precision */
int tess_validator_levels(const tess_validator *validator);
double tess_validator_psnr(const tess_validator *validator, int level);

#endif
