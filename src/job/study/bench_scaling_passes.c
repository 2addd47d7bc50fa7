#include "job/study/bench_scaling_passes.h"

#include <math.h>

#include "base/checked.h"
#include "job/common/rank_speeds.h"

/* How fast the ranks of a point are beside each other, as `denoise` would measure it for a long job; NULL: a single one. */
static tess_status find_speeds(const tess_passes_job *job, double **speeds, tess_error *error)
{
    tess_strips strips =
        tess_strips_divide(job->model->bound, tess_net_grid(job->model->model.net, TESS_HEIGHT),
                           job->problem->height, job->ranks);
    TESS_TRY(tess_dist_broadcast(job->engine->dist, 0, &strips, sizeof strips, error));
    const tess_rank_work work = {.model = job->model,
                                 .rows = tess_strips_most(&strips),
                                 .width = job->problem->width,
                                 .ranks = strips.count,
                                 .seconds = INFINITY,
                                 .limit = tess_engine_free_limit(job->engine)};
    return tess_rank_speeds(job->engine, &work, speeds, error);
}

void tess_passes_release(tess_point_passes *p)
{
    for (int i = 0; i < p->count; i++)
        tess_small_free(p->list[i].speeds);
    tess_small_free(p->list);
    tess_small_free(p->seconds);
    *p = (tess_point_passes){.list = NULL};
}

static void find_median(tess_point_passes *p)
{
    const double median = tess_bench_median(p->seconds, p->count, &p->spread);
    for (int i = 0; i < p->count; i++) {
        p->seconds[i] = p->list[i].times.seconds; /* in order again */
        if (fabs(p->seconds[i] - median) < fabs(p->list[p->median].times.seconds - median))
            p->median = i;
    }
}

tess_status tess_passes_measure(const tess_passes_job *job, tess_point_passes *p, tess_error *error)
{
    const int repeats = job->repeats;
    *p = (tess_point_passes){.list = tess_small_alloc((size_t)repeats, sizeof *p->list),
                             .seconds = tess_small_alloc((size_t)repeats, sizeof *p->seconds)};
    tess_status status =
        p->list && p->seconds ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for times");
    status = tess_dist_agree(job->engine->dist, status, error);
    for (int i = 0; i < repeats && status == TESS_OK; i++) {
        tess_divided_pass *pass = &p->list[i];
        p->count = i + 1;
        status = find_speeds(job, &pass->speeds, error);
        const tess_strip_job strips = {.engine = job->engine,
                                       .model = job->model,
                                       .height = job->problem->height,
                                       .width = job->problem->width,
                                       .ranks = job->ranks,
                                       .speeds = pass->speeds,
                                       .warms = i == 0,
                                       .seed = job->seed};
        if (status == TESS_OK)
            status = tess_strip_measure(&strips, &pass->times, error);
        p->seconds[i] = pass->times.seconds;
    }
    if (status == TESS_OK)
        find_median(p);
    return status;
}
