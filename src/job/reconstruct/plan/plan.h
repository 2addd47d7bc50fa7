/* plan.h: plans the memory of a reconstruction: creates the operator, cuts the network's work, and adds
 * up the bytes of all phases with the functions that the run allocates with. */
#ifndef TESS_JOB_RECONSTRUCT_PLAN_PLAN_H
#define TESS_JOB_RECONSTRUCT_PLAN_PLAN_H

#include "job/common/prior.h"
#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/output.h"
#include "job/reconstruct/run/workspace.h"

typedef struct tess_budget {
    tess_mem_usage planned;
    tess_mem_bytes operator_bytes;
    double seconds;
    uint64_t host_limit; /* for this rank, if the operator is on the host beside a card */
    tess_mem_usage peak; /* counted so far, when the counter was reset */
} tess_budget;

/* What is planned: creates the operator and the layout of the workspace, and chooses the prior's cut. */
typedef struct tess_planning {
    const tess_reconstruct_settings *settings;
    const tess_problem *problem;
    const tess_recipe *recipe;
    tess_outputs_held held;
    size_t weight_bytes; /* of a network that is there from the beginning */
    tess_prior *prior;
    tess_workspace *workspace;
    tess_budget *budget;
} tess_planning;

/* Resets the counter's peaks; the peaks so far stay in the budget. */
void tess_budget_keep_peak(tess_budget *budget, const tess_engine *engine);
tess_status tess_reconstruct_plan(const tess_planning *planning, tess_error *error) TESS_MUST_CHECK;

#endif
