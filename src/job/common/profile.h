/* profile.h: the most expensive layers of a job, for its record. */
#ifndef TESS_JOB_PROFILE_H
#define TESS_JOB_PROFILE_H

#include "base/json.h"
#include "job/common/engine.h"

/* Adds "profile" if the context was asked for it and the engine has run something. */
void tess_record_profile(tess_json **record, const tess_engine *engine);

#endif
