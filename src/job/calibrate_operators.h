/* calibrate_operators.h: how long the operators of reconstruction take on this device, for plans. */
#ifndef TESS_JOB_CALIBRATE_OPERATORS_H
#define TESS_JOB_CALIBRATE_OPERATORS_H

#include "job/engine.h"

/* Times the Radon transform and the blurs at a usual size and sets their rates. */
tess_status tess_calibrate_operators(tess_engine *engine, tess_error *error) TESS_MUST_CHECK;

#endif
