/* The run: blocks, measurements, solver, files. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/reconstruct/reconstruct.h"

/* Of the noise of the measurements against the prior's; the usual choice of half-quadratic splitting. */
static const double WEIGHT = 0.23;

static tess_status take(tess_reconstruct_job *job, tess_block *block, size_t bytes, tess_error *error)
{
    tess_device *device = job->engine.device;
    return job->hosted ? device->host_alloc(device, block, bytes, error)
                       : device->alloc(device, block, TESS_MEM_WORKSPACE, bytes, error);
}

void tess_reconstruct_drop(tess_reconstruct_job *job, tess_block *block)
{
    tess_device *device = job->engine.device;
    if (job->hosted)
        device->host_free(device, block);
    else
        device->free(device, block);
}

static void look_at_memory(tess_reconstruct_job *job)
{
    tess_device_facts facts;
    job->engine.device->facts(job->engine.device, &facts);
    if (facts.memory_free < job->least_free)
        job->least_free = facts.memory_free;
}

/* Libraries are open and their handles made since there is an operator; what that holds is counted. */
static void begin_memory(tess_reconstruct_job *job)
{
    tess_mem_usage held;
    tess_memory_reset_peak(job->engine.memory);
    tess_memory_held(job->engine.memory, tess_engine_scope(&job->engine), &held);
    job->least_free = UINT64_MAX;
    look_at_memory(job);
    job->free_before = job->least_free + held.total;
}

static tess_status take_blocks(tess_reconstruct_job *job, tess_error *error)
{
    tess_device *device = job->engine.device;
    const size_t vector = tess_vector_bytes(&job->op->image);
    TESS_TRY(tess_block_alloc(job->engine.memory, &job->io, TESS_MEM_HOST,
                              tess_reconstruct_carve_io(job, NULL), error));
    (void)tess_reconstruct_carve_io(job, job->io.data);
    const size_t images = (size_t)job->vector_count * vector;
    TESS_TRY(take(job, &job->solver, images + job->residual_bytes, error));
    for (int i = 0; i < job->vector_count; i++)
        job->vectors[i] = (char *)job->solver.data + (size_t)i * vector;
    TESS_TRY(take(job, &job->measurement, tess_reconstruct_measurement_bytes(job), error));
    TESS_TRY(device->alloc(device, &job->work, TESS_MEM_WORKSPACE, job->term_bytes, error));
    TESS_TRY(tess_data_term_open(&job->term, job->op, job->measurement.data,
                                 (char *)job->solver.data + images, job->work.data, error));
    job->scratch = tess_reconstruct_scratch_apart(job->op)
                       ? (char *)job->measurement.data + tess_vector_bytes(&job->op->measurement)
                       : job->term.scratch;
    return TESS_OK;
}

tess_status tess_reconstruct_tell(tess_reconstruct_job *job, int64_t done, tess_error *error)
{
    tess_stop *stop = &job->engine.stop;
    const int64_t pixels = tess_problem_rows(&job->problem) * job->problem.width;
    tess_stop_add(stop, done * pixels - stop->done); /* the denoiser's windows counted most of them */
    return tess_stop_check(stop, error);
}

static tess_status monitor(void *user, const tess_pnp_facts *facts, tess_error *error)
{
    tess_reconstruct_job *job = user;
    tess_iteration *it = &job->iterations[facts->iteration];
    *it = (tess_iteration){.gradient_seconds = facts->gradient_seconds,
                           .denoise_seconds = facts->denoise_seconds,
                           .step = facts->step,
                           .sigma = facts->sigma,
                           .change = facts->change,
                           .ssim = NAN,
                           .gradient_peak_bytes = facts->gradient_peak_bytes,
                           .denoise_peak_bytes = facts->denoise_peak_bytes};
    job->seconds += facts->gradient_seconds + facts->denoise_seconds;
    /* SSIM of a volume takes as long as an iteration: once, at the end. */
    double *ssim = job->problem.depth > 1 ? NULL : &it->ssim;
    TESS_TRY(tess_reconstruct_quality(job, facts->x, &it->psnr, ssim, error));
    look_at_memory(job);
    if (!tess_stop_wanted(&job->engine.stop))
        job->done = facts->iteration + 1;
    return tess_reconstruct_tell(job, facts->iteration + 1, error);
}

static tess_status solve(tess_reconstruct_job *job, tess_error *error)
{
    const tess_recipe *recipe = &job->recipe;
    const double most = job->settings->max_seconds; /* the start counts; an iteration there will be */
    const tess_pnp_settings settings = {.iterations = recipe->iterations,
                                        .max_seconds = most > 0 ? fmax(most - job->seconds, 1e-9) : 0,
                                        .tolerance = job->settings->tolerance,
                                        .step = recipe->step > 0        ? recipe->step
                                                : job->norm_squared > 0 ? 0.99 / job->norm_squared
                                                                        : 0,
                                        .norm_squared = job->norm_squared,
                                        .sigma = recipe->sigma,
                                        .last_sigma = recipe->last_sigma,
                                        .relax = recipe->relax,
                                        .inner = recipe->inner,
                                        .weight = WEIGHT * recipe->noise * recipe->noise,
                                        .low = job->problem.low,
                                        .high = job->problem.high,
                                        .scope = tess_engine_scope(&job->engine),
                                        .denoise = tess_prior_denoise,
                                        .denoise_user = &job->prior,
                                        .monitor = monitor,
                                        .monitor_user = job};
    TESS_TRY(tess_engine_load(&job->engine, error));
    job->loaded = tess_process_resident();
    TESS_TRY(tess_prior_open(&job->prior, error));
    look_at_memory(job);
    TESS_TRY(tess_pnp(&job->term, &settings, job->vectors, &job->result, error));
    tess_prior_close(&job->prior);
    tess_engine_unload(&job->engine);
    return tess_reconstruct_quality(job, job->vectors[0], &job->psnr, &job->ssim, error);
}

tess_status tess_reconstruct_run(tess_reconstruct_job *job, tess_error *error)
{
    job->iterations = tess_small_alloc((size_t)job->recipe.iterations, sizeof *job->iterations);
    if (!job->iterations)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the record of %lld iterations",
                         (long long)job->recipe.iterations);
    begin_memory(job);
    TESS_TRY(tess_reconstruct_open_outputs(job, error));
    TESS_TRY(take_blocks(job, error));
    look_at_memory(job);
    if (job->truth && job->problem.synthetic)
        TESS_TRY(tess_problem_truth(job, error));
    TESS_TRY(tess_problem_measure(job, error));
    TESS_TRY(tess_stop_check(&job->engine.stop, error));
    TESS_TRY(tess_problem_find_range(job, error));
    if (job->truth && !job->problem.synthetic) /* in units of the range */
        TESS_TRY(tess_problem_truth(job, error));
    if (job->settings->save_measurement)
        TESS_TRY(tess_reconstruct_save_measurement(job, error));
    const double start = tess_clock();
    tess_stop_begin(&job->engine.stop,
                    job->recipe.iterations * tess_problem_rows(&job->problem) * job->problem.width);
    TESS_TRY(tess_reconstruct_begin(job, error));
    job->seconds = tess_clock() - start;
    TESS_TRY(solve(job, error));
    TESS_TRY(tess_stop_check(&job->engine.stop, error)); /* what was left early is not kept */
    TESS_TRY(tess_reconstruct_write(job, error));
    tess_stop_end(&job->engine.stop);
    return TESS_OK;
}
