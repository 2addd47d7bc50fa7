/* calibrate_operators.h: how long the operators of reconstruction take on this device, for plans. */
#ifndef TESS_JOB_CALIBRATE_OPERATORS_H
#define TESS_JOB_CALIBRATE_OPERATORS_H

#include "job/common/engine.h"

/* Times the Radon transform, the blurs and cone beams at usual sizes and sets their rates. */
tess_status tess_calibrate_operators(tess_engine *engine, tess_error *error) TESS_MUST_CHECK;

#endif
