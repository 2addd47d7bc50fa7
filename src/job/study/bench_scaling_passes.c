#include "job/study/bench_scaling_passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/rank_speeds.h"

/* No further passes after so many seconds. */
static const double ENOUGH = 20;
enum { LEAST_PASSES = 2 };

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
    for (int i = 0; i < p->count; i++) {
        tess_small_free(p->list[i].speeds);
        tess_small_free(p->list[i].of_stage);
        tess_small_free(p->list[i].times.of_stage);
    }
    tess_small_free(p->warm.of_stage);
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

/* The first pass, and the one after copies, warms up: the next one is divided and predicted by what it showed. */
static tess_status warm_up(const tess_passes_job *job, tess_point_passes *p, double *speeds, double *found,
                           tess_error *error)
{
    const tess_strip_job strips = strips_of(job, speeds, false);
    tess_small_free(p->warm.of_stage);
    p->warm.of_stage = NULL;
    TESS_TRY(tess_strip_measure(&strips, &p->warm, found, error));
    if (speeds && !tess_rank_speeds_given())
        learn(speeds, found, job->engine->dist->size, true);
    return TESS_OK;
}

static double *copy_of(const double *values, size_t count)
{
    double *copy = values ? tess_small_alloc(count, sizeof *copy) : NULL;
    if (copy)
        memcpy(copy, values, count * sizeof *copy);
    return copy;
}

static tess_status run_pass(const tess_passes_job *job, tess_divided_pass *pass, const tess_strip_times *last,
                            double *speeds, double *found, tess_error *error)
{
    const int size = job->engine->dist->size;
    const tess_strip_job strips = strips_of(job, speeds, false);
    pass->speeds = copy_of(speeds, (size_t)size);
    pass->of_stage = copy_of(last->of_stage, (size_t)size * ((size_t)last->stages + 1));
    pass->stages = last->stages;
    const bool copied = (pass->speeds || !speeds) && (pass->of_stage || !last->of_stage);
    TESS_TRY(tess_dist_agree(job->engine->dist,
                             copied ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for speeds"),
                             error));
    TESS_TRY(tess_strip_measure(&strips, &pass->times, found, error));
    if (speeds && !tess_rank_speeds_given())
        learn(speeds, found, size, false);
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
    double all = 0;
    for (int i = 0; i < job->repeats; i++) {
        p->count = i + 1; /* also where it fails: what is there must be released */
        const bool copies = i > 0 && copies_before(job, i) > p->copy_count;
        if (copies)
            TESS_TRY(run_copies(job, p, found, error));
        if (copies || (i == 0 && !job->warm))
            TESS_TRY(warm_up(job, p, speeds, found, error));
        const tess_strip_times *last = copies || i == 0 ? &p->warm : &p->list[i - 1].times;
        TESS_TRY(run_pass(job, &p->list[i], last, speeds, found, error));
        p->seconds[i] = p->list[i].times.seconds;
        all += p->seconds[i];
        if (i + 1 >= LEAST_PASSES && all > ENOUGH && job->copies == 0)
            break;
    }
    return TESS_OK;
}

tess_status tess_passes_measure(const tess_passes_job *job, tess_point_passes *p, tess_error *error)
{
    const int repeats = job->repeats;
    double *speeds = NULL, *found = tess_small_alloc((size_t)job->engine->dist->size, sizeof *found);
    *p = (tess_point_passes){.list = tess_small_alloc((size_t)repeats, sizeof *p->list),
                             .seconds = tess_small_alloc((size_t)repeats, sizeof *p->seconds),
                             .copies = tess_small_alloc((size_t)job->copies + 1, sizeof *p->copies)};
    tess_status status = p->list && p->seconds && p->copies && found
                             ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for times");
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

/* Of the denoiser. */
static double seconds_of(const tess_scale_point *point)
{
    return point->denoiser + point->denoiser_communication;
}

static int by_seconds(const void *a, const void *b)
{
    const double x = seconds_of(a), y = seconds_of(b);
    return (x > y) - (x < y);
}

/* The median over the passes; by_stage: from the times of stages, else from rates and speeds. */
static tess_status predict(const tess_point_passes *p, const tess_passes_job *job, tess_scale_setup setup,
                           bool by_stage, tess_scale_point *median, tess_error *error)
{
    tess_scale_point *points = tess_small_alloc((size_t)p->count, sizeof *points);
    tess_status status = points ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for predictions");
    for (int i = 0; i < p->count && status == TESS_OK; i++) {
        const tess_divided_pass *pass = &p->list[i];
        setup.strips = &pass->times.strips;
        setup.pace = (tess_pace){
            .of_rank = pass->speeds, .of_stage = by_stage ? pass->of_stage : NULL, .stages = pass->stages};
        status = tess_scale_ours(&setup, job->problem, job->ranks, &points[i], error);
    }
    if (status == TESS_OK) {
        qsort(points, (size_t)p->count, sizeof *points, by_seconds);
        *median = points[p->count / 2];
    }
    tess_small_free(points);
    return status;
}

tess_status tess_passes_predict(const tess_point_passes *p, const tess_passes_job *job,
                                const tess_scale_setup *setup, tess_passes_prediction *prediction,
                                tess_error *error)
{
    tess_scale_point by_rates;
    TESS_TRY(predict(p, job, *setup, true, &prediction->by_stage, error));
    TESS_TRY(predict(p, job, *setup, false, &by_rates, error));
    prediction->seconds = seconds_of(&prediction->by_stage);
    prediction->seconds_by_rates = seconds_of(&by_rates);
    return TESS_OK;
}
