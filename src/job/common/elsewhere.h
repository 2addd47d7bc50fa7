/* elsewhere.h: what a job would take with so many ranks on the machine of a file. Nothing is run; a machine file says what its figures
 * were checked against. */
#ifndef TESS_JOB_ELSEWHERE_H
#define TESS_JOB_ELSEWHERE_H

#include "base/json.h"
#include "job/common/engine.h"
#include "plan/ranks/cluster.h"

typedef struct tess_elsewhere_request {
    const char *machine; /* the file; NULL: nothing is asked for */
    int64_t ranks;
    const char *model; /* as tess_model_open takes it */
    const char *precision;
    const tess_inflation *inflation; /* makes a 3-D network of the model; NULL: as it is */
    tess_scale_problem problem;
    double times; /* images of this size, or iterations */
} tess_elsewhere_request;

typedef struct tess_elsewhere {
    char machine[96], checked[256];
    const char *precision;
    tess_scale_point point; /* of one image, the denoiser alone; or of one iteration */
    bool iterates;
    int64_t reach;   /* of blurs with an unknown boundary, in rows; -1: there are none */
    double one_rank; /* seconds of one rank */
    double times;
    tess_scale_losses losses;
    bool fits;
} tess_elsewhere;

tess_status tess_elsewhere_check(const char *machine, int64_t ranks, bool plan_only,
                                 tess_error *error) TESS_MUST_CHECK;
tess_status tess_elsewhere_predict(const tess_elsewhere_request *request, tess_elsewhere *out,
                                   tess_error *error) TESS_MUST_CHECK;
tess_json *tess_elsewhere_record(const tess_elsewhere *elsewhere);

#endif
