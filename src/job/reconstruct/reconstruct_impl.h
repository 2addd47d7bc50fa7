/* reconstruct_impl.h: the job, for reconstruct.c and plan/describe.c. problem: what is to be solved, and its files; look:
 * range, noise and exposures of the measurements; scan: faults of detectors and what lies beside the image; plan: device, bytes
 * and seconds; run: the iterations, their figures and outputs. */
#ifndef TESS_JOB_RECONSTRUCT_IMPL_H
#define TESS_JOB_RECONSTRUCT_IMPL_H

#include "job/common/beside.h"
#include "job/common/context.h"
#include "job/common/elsewhere.h"
#include "job/reconstruct/reconstruct_record.h"

typedef struct tess_reconstruct_job {
    const tess_reconstruct_settings *settings;
    tess_stop before; /* stops what reads the files before the engine is open */
    tess_engine engine;
    tess_beside beside;    /* computes all but the network, if ranks have cards */
    tess_card_links links; /* of these cards */
    tess_problem problem;
    tess_parts parts;
    tess_recipe recipe;
    tess_outputs outputs;
    tess_prior prior;
    tess_workspace workspace;
    tess_budget budget;
    tess_start start;
    tess_outcome outcome;
    tess_usage usage;
    tess_elsewhere elsewhere; /* if the settings have a machine */
} tess_reconstruct_job;

/* Collective. Finds out everything but the plan: problem, recipe, device, network, and how ranks share the image. */
tess_status tess_reconstruct_describe(tess_reconstruct_job *job, tess_context *context, bool will_run,
                                      tess_error *error) TESS_MUST_CHECK;
/* After the plan: what the ranks of another machine would take, if the settings have one. */
tess_status tess_reconstruct_elsewhere(tess_reconstruct_job *job, tess_error *error) TESS_MUST_CHECK;

#endif
