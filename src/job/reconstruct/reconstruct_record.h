/* reconstruct_record.h: the parts of the record of a reconstruction. */
#ifndef TESS_JOB_RECONSTRUCT_RECORD_H
#define TESS_JOB_RECONSTRUCT_RECORD_H

#include "base/json.h"
#include "job/common/elsewhere.h"
#include "job/reconstruct/plan/plan.h"
#include "job/reconstruct/reconstruct_ranks.h"
#include "job/reconstruct/run/begin.h"
#include "job/reconstruct/run/run.h"

/* Add "input" and "plan". */
void tess_record_add_input(tess_json **record, const tess_problem *problem);
void tess_record_add_plan(tess_json **record, const tess_prior *prior, const tess_workspace *workspace,
                          const tess_budget *budget, const tess_elsewhere *elsewhere);
/* The largest memory that was counted. */
tess_mem_usage tess_record_peak(const tess_engine *engine, const tess_budget *budget,
                                const tess_outcome *outcome);
/* Adds "measured"; `pixels`: of the image. */
void tess_record_add_measured(tess_json **record, const tess_prior *prior, const tess_budget *budget,
                              const tess_outcome *outcome, const tess_usage *usage, double pixels);

/* Data of "reconstruct". `outcome` and `start` are NULL for a plan. */
typedef struct tess_record_own {
    const char *preset;
    const tess_problem *problem;
    const tess_recipe *recipe;
    const tess_operator *op;
    const tess_engine_model *model;
    const tess_parts *parts;
    const tess_start *start;
    const tess_outcome *outcome;
} tess_record_own;
void tess_record_add_own(tess_json **record, const tess_record_own *own);

/* Sets nothing if the value is not known, and 999 dB if there is no error. */
void tess_record_set_known(tess_json **object, const char *key, double value);

#endif
