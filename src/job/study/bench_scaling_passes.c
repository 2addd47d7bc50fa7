#include "job/study/bench_scaling_passes.h"

#include <math.h>
#include <string.h>

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
    tess_small_free(p->copies);
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

/* What a pass showed changes the speeds; those that are given stay. */
static void learn(double *speeds, const double *found, int ranks, bool first)
{
    for (int r = 0; r < ranks; r++)
        speeds[r] = first ? found[r] : (speeds[r] + found[r]) / 2;
}

static tess_strip_job strips_of(const tess_passes_job *job, const double *speeds, bool alone)
{
    return (tess_strip_job){.engine = job->engine,
                            .model = job->model,
                            .height = job->problem->height,
                            .width = job->problem->width,
                            .ranks = job->ranks,
                            .speeds = speeds,
                            .alone = alone,
                            .seed = job->seed};
}

/* `pass` NULL: it warms up. */
static tess_status run_pass(const tess_passes_job *job, tess_divided_pass *pass, double *speeds,
                            double *found, tess_error *error)
{
    const int size = job->engine->dist->size;
    const tess_strip_job strips = strips_of(job, speeds, false);
    tess_strip_times ignored;
    if (pass && speeds) {
        pass->speeds = tess_small_alloc((size_t)size, sizeof *speeds);
        TESS_TRY(tess_dist_agree(
            job->engine->dist,
            pass->speeds ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for speeds"), error));
        memcpy(pass->speeds, speeds, (size_t)size * sizeof *speeds);
    }
    TESS_TRY(tess_strip_measure(&strips, pass ? &pass->times : &ignored, found, error));
    if (speeds && !tess_rank_speeds_given())
        learn(speeds, found, size, !pass);
    return TESS_OK;
}

static tess_status run_copies(const tess_passes_job *job, tess_point_passes *p, double *found,
                              tess_error *error)
{
    const tess_strip_job copies = strips_of(job, NULL, true);
    tess_strip_times times;
    TESS_TRY(tess_strip_measure(&copies, &times, found, error));
    p->copies[p->copy_count++] = times.together;
    return TESS_OK;
}

/* How many copies come before a pass. */
static int copies_before(const tess_passes_job *job, int pass)
{
    return pass * (job->copies + 1) / job->repeats;
}

static tess_status run_passes(const tess_passes_job *job, tess_point_passes *p, double *speeds, double *found,
                              tess_error *error)
{
    for (int i = 0; i < job->repeats; i++) {
        const bool copies = i > 0 && copies_before(job, i) > p->copy_count;
        if (copies)
            TESS_TRY(run_copies(job, p, found, error));
        if (copies || i == 0)
            TESS_TRY(run_pass(job, NULL, speeds, found, error));
        TESS_TRY(run_pass(job, &p->list[i], speeds, found, error));
        p->seconds[i] = p->list[i].times.seconds;
    }
    return TESS_OK;
}

tess_status tess_passes_measure(const tess_passes_job *job, tess_point_passes *p, tess_error *error)
{
    const int repeats = job->repeats;
    double *speeds = NULL, *found = tess_small_alloc((size_t)job->engine->dist->size, sizeof *found);
    *p = (tess_point_passes){.list = tess_small_alloc((size_t)repeats, sizeof *p->list),
                             .seconds = tess_small_alloc((size_t)repeats, sizeof *p->seconds),
                             .copies = tess_small_alloc((size_t)job->copies + 1, sizeof *p->copies),
                             .count = repeats};
    tess_status status = p->list && p->seconds && p->copies && found
                             ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for times");
    if (!p->list)
        p->count = 0;
    status = tess_dist_agree(job->engine->dist, status, error);
    if (status == TESS_OK)
        status = find_speeds(job, &speeds, error);
    if (status == TESS_OK)
        status = run_passes(job, p, speeds, found, error);
    tess_small_free(speeds);
    tess_small_free(found);
    if (status == TESS_OK)
        find_median(p);
    return status;
}
