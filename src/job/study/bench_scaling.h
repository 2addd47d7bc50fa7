/* bench_scaling.h: the parts of the study of ranks. One iteration of plug-and-play reconstruction: seconds of the gradient, of the
 * denoiser and of communication, for problems, sizes and numbers of ranks; simulated on a machine of a file, or measured. */
#ifndef TESS_JOB_BENCH_SCALING_H
#define TESS_JOB_BENCH_SCALING_H

#include "job/study/bench.h"
#include "plan/ranks/cluster.h"

/* The network that the study takes for a problem unless one is given. */
const char *tess_scaling_model(const tess_bench_settings *settings, const tess_scale_problem *problem);
/* One point with what it is compared to: the first point of its problem and size. */
typedef struct tess_scaling_line {
    const char *problem_name;
    const tess_scale_problem *problem;
    const tess_scale_point *point, *base;
    double weak_efficiency; /* 0: not known */
} tess_scaling_line;

/* The members that simulated and measured points share. */
void tess_scaling_record(tess_json **record, const tess_scaling_line *line);
tess_status tess_scaling_tell(const tess_bench_settings *settings, tess_json *record,
                              tess_error *error) TESS_MUST_CHECK;

/* Calls `point` for every problem and size that the settings ask for. */
typedef tess_status (*tess_scaling_fn)(void *user, const char *name, const tess_scale_problem *problem,
                                       tess_error *error);
tess_status tess_scaling_each(const tess_bench_settings *settings, tess_scaling_fn point, void *user,
                              tess_error *error) TESS_MUST_CHECK;

tess_status tess_scaling_simulate(const tess_bench_settings *settings, tess_memory *memory,
                                  tess_error *error) TESS_MUST_CHECK;
/* Collective. */
tess_status tess_scaling_measure(const tess_bench_settings *settings, tess_context *context) TESS_MUST_CHECK;

#endif
