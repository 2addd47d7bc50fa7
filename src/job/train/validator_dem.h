/* validator_dem.h: how well a diffusion network predicts noise in voids of maps that it is not trained on: fixed crops, voids, noise
 * and noise levels, the same in every run. The network runs as in `fill`. */
#ifndef TESS_JOB_TRAIN_VALIDATOR_DEM_H
#define TESS_JOB_TRAIN_VALIDATOR_DEM_H

#include "job/common/engine.h"
#include "train/config.h"
#include "train/data_images.h"

enum { TESS_DEM_VALIDATOR_LEVELS = 3 };

typedef struct tess_dem_validator tess_dem_validator; /* owned by the caller: tess_dem_validator_close */

/* `weights` give names and shapes; the values come with each run. On failure there is nothing to close. */
tess_status tess_dem_validator_open(tess_engine *engine, tess_stop *stop, const tess_train_config *config,
                                    tess_weights *weights, tess_dem_validator **out,
                                    tess_error *error) TESS_MUST_CHECK;
void tess_dem_validator_close(tess_dem_validator *validator);
/* Device memory, as counted, and host memory. */
tess_mem_bytes tess_dem_validator_bytes(const tess_dem_validator *validator);
tess_status tess_dem_validator_prepare(tess_dem_validator *validator, tess_error *error) TESS_MUST_CHECK;
/* Computes the mean over voids and levels of the mean squared error of the noise. */
tess_status tess_dem_validator_run(tess_dem_validator *validator, tess_weights *weights, double *loss,
                                   tess_error *error) TESS_MUST_CHECK;
const tess_images *tess_dem_validator_images(const tess_dem_validator *validator);
double tess_dem_validator_loss(const tess_dem_validator *validator, int level);

#endif
