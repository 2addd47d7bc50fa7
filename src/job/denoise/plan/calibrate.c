/* Measures the device after a job, so that the next plan predicts better. */
#include "base/checked.h"
#include "base/clock.h"
#include "job/common/choice.h"
#include "job/denoise/denoise.h"

enum { TUNED = 5 }; /* sizes, each half of the one before */

typedef tess_status (*rates_fn)(tess_rates *, const tess_net_plan *, tess_rates_budget, tess_error *);

static tess_status with_plan(const tess_denoise_job *job, const tess_denoise_file *file,
                             tess_plan_shape shape, rates_fn measure, tess_rates_budget budget)
{
    tess_net_plan *plan = NULL;
    tess_status status = tess_net_plan_create(file->model->bound, shape, &plan, NULL);
    if (status == TESS_OK)
        status = measure(job->engine.rates, plan, budget, NULL);
    tess_net_plan_destroy(plan);
    return status;
}

/* A job that is much faster than planned shows that the rates were measured while the machine was busy. A slower job
 * only shows that the machine is busy now. */
static bool faster_than_planned(const tess_denoise_job *job)
{
    double seconds = 0;
    for (int64_t i = 0; i < job->count; i++)
        seconds += job->files[i].seconds;
    return job->planned_seconds > 1.25 * seconds && seconds > 0.1;
}

/* Errors are ignored: the job is done, and without rates only the
 * seconds of the next plan are less exact. */
void tess_denoise_calibrate(tess_denoise_job *job)
{
    const tess_denoise_file *file = tess_denoise_largest(job);
    if (!tess_denoise_todo(file) || !file->model || job->volumes)
        return;
    if (job->figures.shape_mean_seconds > 0)
        tess_rates_set(job->engine.rates, TESS_COST_SHAPE, job->figures.shape_mean_seconds, 1e-18);
    const tess_choice_run run = {"denoise", job->wall, tess_denoise_seconds(job), job->planned_seconds,
                                 file->choice.calibrated};
    tess_choice_learn(&job->engine, &run);
    const tess_cut_plan *choice = &file->choice;
    const int64_t grid = tess_net_grid(file->model->model.net, TESS_HEIGHT);
    const tess_plan_shape largest = {choice->batch, tess_axis_largest_window(&choice->rows),
                                     tess_axis_largest_window(&choice->cols)};
    const double start = tess_clock(), seconds = tess_choice_measure_seconds(job->wall);
    /* Stays within the job's planned bytes: its blocks are free again, the weights are not. */
    tess_rates_budget budget = {seconds, job->planned_total - job->planned.by[TESS_MEM_WEIGHTS],
                                faster_than_planned(job)};
    tess_status status = TESS_OK;
    /* Also measures smaller sizes, for smaller images and tiles of later jobs. */
    for (int i = 0; i < TUNED && status == TESS_OK && job->engine.device->ops->tune; i++) {
        const tess_plan_shape shape = {largest.n, tess_round_up(largest.h >> i / 2, grid),
                                       tess_round_up(largest.w >> (i + 1) / 2, grid)};
        status = with_plan(job, file, shape, tess_rates_tune, budget);
        budget.seconds = seconds - (tess_clock() - start);
    }
    if (status == TESS_OK)
        status = with_plan(job, file, (tess_plan_shape){1, grid, grid}, tess_rates_measure, budget);
    budget.seconds = seconds - (tess_clock() - start);
    if (status == TESS_OK)
        status = tess_rates_measure_run(job->engine.rates, file->model->bound, grid,
                                        file->model->weights.data, budget, NULL);
    (void)status;
}
