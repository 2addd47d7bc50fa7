/* calibrate_operators.h: measures how fast the operators of reconstruction run on this device, for plans. */
#ifndef TESS_JOB_CALIBRATE_OPERATORS_H
#define TESS_JOB_CALIBRATE_OPERATORS_H

#include "job/common/engine.h"

/* Times the Radon transform, blurs and cone beams at usual sizes and stores their rates. */
tess_status tess_calibrate_operators(tess_engine *engine, tess_error *error) TESS_MUST_CHECK;

#endif
