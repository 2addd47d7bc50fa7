/* The record of a reconstruction. */
#include <math.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/record.h"
#include "job/reconstruct/reconstruct.h"
#include "physics/rays.h"

static void set_known(tess_json **object, const char *key, double value)
{
    if (!isnan(value))
        tess_json_set_double(object, key, isinf(value) ? 999 : value);
}

static void add_input(tess_json **record, const tess_problem *p)
{
    tess_json *input = tess_json_object();
    if (p->depth > 1)
        tess_json_set_int(&input, "depth", p->depth);
    tess_json_set_int(&input, "height", p->height);
    tess_json_set_int(&input, "width", p->width);
    tess_json_set_int(&input, "channels", p->channels);
    tess_json_set_int(&input, "files", 1);
    tess_json_set(record, "input", input);
}

static void add_plan(tess_json **record, const tess_reconstruct_job *job)
{
    const tess_cut_plan *choice = &job->prior.choice;
    const bool volume = job->prior.model->model.volume; /* else a slice is what is cut */
    tess_json *plan = tess_json_object(), *tile = tess_json_array();
    if (volume)
        tess_json_append_int(&tile, tess_axis_largest_tile(&choice->depth));
    tess_json_append_int(&tile, tess_axis_largest_tile(&choice->rows));
    tess_json_append_int(&tile, tess_axis_largest_tile(&choice->cols));
    tess_json_set(&plan, "tile", tile);
    tess_json_set_int(&plan, "tiles",
                      (volume ? choice->depth.tiles : 1) * choice->rows.tiles * choice->cols.tiles);
    tess_json_set_int(&plan, "halo", choice->halo);
    if (volume)
        tess_json_set_int(&plan, "halo_depth", choice->halo_depth);
    tess_json_set_int(&plan, "batch", choice->batch);
    tess_json_set_double(&plan, "seconds", job->planned_seconds);
    tess_json_set_bool(&plan, "calibrated", choice->calibrated);
    tess_json_set_string(&plan, "reason", choice->reason);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&job->planned.bytes, job->planned.total));
    if (job->engine.apart)
        tess_json_set_int(&plan, "host_bytes", (int64_t)job->planned.bytes.by[TESS_MEM_HOST]);
    if (job->hosted) {
        int64_t slabs, parts;
        tess_rays_cuts(job->op, &slabs, &parts);
        tess_json_set_int(&plan, "slabs", slabs);
        tess_json_set_int(&plan, "view_parts", parts);
    }
    tess_json_set(record, "plan", plan);
}

/* What the device itself says; and the share of the loop, from first to last iteration, that it was at work. */
static void add_device(tess_json **measured, const tess_reconstruct_job *job)
{
    double busy = 0;
    for (int64_t i = 0; i < job->result.iterations; i++)
        busy += job->iterations[i].gradient_seconds + job->iterations[i].denoise_seconds;
    tess_json_set_int(measured, "driver_bytes", (int64_t)(job->free_before - job->least_free));
    tess_json_set_int(measured, "context_bytes", (int64_t)job->engine.facts.driver_bytes);
    tess_json_set_double(measured, "gpu_busy", job->result.seconds > 0 ? busy / job->result.seconds : 0);
}

static void add_measured(tess_json **record, const tess_reconstruct_job *job)
{
    const double pixels =
        (double)(tess_problem_rows(&job->problem) * job->problem.width * job->result.iterations);
    tess_mem_usage peak;
    tess_memory_peak(job->engine.memory, tess_engine_scope(&job->engine), &peak);
    tess_mem_usage_raise(&peak, &job->peak);
    tess_mem_usage_raise(&peak, &job->result.peak);
    tess_json *measured = tess_json_object();
    tess_json_set_double(&measured, "seconds", job->seconds);
    tess_json_set_double(&measured, "megapixels_per_second",
                         job->result.seconds > 0 ? 1e-6 * pixels / job->result.seconds : 0);
    tess_json_set_double(&measured, "wall_seconds", tess_clock() - job->start);
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&peak.bytes, peak.total));
    tess_json_set_int(&measured, "resident_bytes", (int64_t)tess_process_peak());
    tess_json_set_int(&measured, "overhead_bytes", (int64_t)job->overhead);
    tess_json_set_int(&measured, "loaded_bytes", (int64_t)job->loaded);
    tess_json_set_int(&measured, "host_bytes", (int64_t)peak.bytes.by[TESS_MEM_HOST]);
    if (job->engine.apart)
        add_device(&measured, job);
    tess_json_set(record, "measured", measured);
}

/* The way towards the data: as many steps of conjugate gradients as are asked, unless the operator knows better. */
static bool exact(const tess_reconstruct_job *job)
{
    return job->recipe.inner > 0 && tess_data_term_exact(job->op);
}

/* A relaxation is told in steps too. */
static bool has_step(const tess_reconstruct_job *job)
{
    return job->recipe.inner == 0 || job->recipe.relax > 0;
}

static tess_json *iterations_of(const tess_reconstruct_job *job)
{
    tess_json *list = tess_json_array();
    for (int64_t i = 0; i < job->result.iterations; i++) {
        const tess_iteration *it = &job->iterations[i];
        tess_json *entry = tess_json_object();
        set_known(&entry, "psnr_db", it->psnr);
        set_known(&entry, "ssim", it->ssim);
        tess_json_set_double(&entry, "gradient_seconds", it->gradient_seconds);
        tess_json_set_double(&entry, "denoise_seconds", it->denoise_seconds);
        tess_json_set_int(&entry, "gradient_peak_bytes", (int64_t)it->gradient_peak_bytes);
        tess_json_set_int(&entry, "denoise_peak_bytes", (int64_t)it->denoise_peak_bytes);
        if (has_step(job))
            tess_json_set_double(&entry, "step", it->step);
        tess_json_set_double(&entry, "sigma", it->sigma);
        set_known(&entry, "change", it->change);
        tess_json_append(&list, entry);
    }
    return list;
}

/* A plan does not look at measurements. */
static bool noise_to_come(const tess_reconstruct_job *job, bool ran)
{
    const tess_problem *p = &job->problem;
    return !ran && !p->synthetic && p->physics == TESS_PHYSICS_BLUR &&
           job->recipe.noise_from == TESS_NOISE_FROM_DEFAULT;
}

/* What was taken for granted of measured data: a wrong guess gives a plausible, wrong picture. */
static void add_taken(tess_json **own, const tess_reconstruct_job *job, bool ran)
{
    static const char *const centres[] = {"middle", "given", "opposite views", "centre of mass"};
    static const char *const ranges[] = {"default", "given", "type", "data"};
    static const char *const noises[] = {"default", "given", "estimate"};
    const tess_problem *p = &job->problem;
    if (p->synthetic)
        return;
    tess_json_set_string(own, "noise_from",
                         noise_to_come(job, ran) ? "estimate" : noises[job->recipe.noise_from]);
    if (p->physics == TESS_PHYSICS_RADON) {
        tess_json_set_int(own, "columns", p->columns);
        tess_json_set_double(own, "centre", p->centre);
        tess_json_set_string(own, "centre_from", centres[p->centre_from]);
        if (p->centre_from == TESS_CENTRE_PAIRS)
            tess_json_set_int(own, "centre_pairs", p->centre_pairs);
        tess_json_set_double(own, "spacing", p->spacing);
    }
    if (p->counts && ran)
        tess_json_set_int(own, "starved", job->starved);
    tess_json_set_string(own, "range_from", ranges[p->range_from]);
    if (p->range_from == TESS_RANGE_FROM_DATA && !ran)
        return;
    tess_json *range = tess_json_array();
    tess_json_append_double(&range, p->low * p->unit + p->offset);
    tess_json_append_double(&range, p->high * p->unit + p->offset);
    tess_json_set(own, "range", range);
}

static void add_own(tess_json **record, const tess_reconstruct_job *job, bool ran)
{
    static const char *const inits[] = {"zero", "adjoint", "filtered", "cg", "mean"};
    static const char *const ends[] = {"iterations", "tolerance", "seconds"};
    const tess_problem *p = &job->problem;
    const tess_recipe *r = &job->recipe;
    const tess_engine_model *model = job->prior.model;
    const int64_t done = job->result.iterations;
    tess_json *own = tess_json_object();
    tess_json_set_string(&own, "problem", p->name);
    tess_json_set_string(&own, "operator", job->op->name);
    tess_json_set_int(&own, p->physics == TESS_PHYSICS_BLUR ? "operators" : "angles", p->count);
    if (p->physics == TESS_PHYSICS_BLUR)
        tess_json_set_string(&own, "boundary", p->unknown ? "unknown" : "circular");
    tess_json_set_string(&own, "preset", job->settings->preset ? job->settings->preset : "default");
    tess_json_set_string(&own, "model", model->path);
    tess_json_set_string(&own, "architecture", model->model.architecture);
    tess_json_set_int(&own, "parameters", model->model.parameters);
    if (p->depth > 1)
        tess_json_set_string(&own, "prior", model->model.volume ? "volume" : "slices");
    if (tess_weights_flat(model->file))
        tess_json_set_string(&own, "inflation", r->inflation == TESS_INFLATE_LEVEL ? "level" : "halves");
    tess_json_set_string(&own, "init", inits[r->init]);
    if (!noise_to_come(job, ran))
        tess_json_set_double(&own, "noise", r->noise * tess_problem_measured_unit(p));
    add_taken(&own, job, ran);
    tess_json_set_double(&own, "sigma", r->sigma);
    tess_json_set_double(&own, "last_sigma", done > 0 ? job->iterations[done - 1].sigma : r->last_sigma);
    tess_json_set_double(&own, "relax", r->relax);
    tess_json_set_string(&own, "data_step",
                         r->inner == 0 ? "gradient"
                         : exact(job)  ? "minimum"
                                       : "conjugate gradients");
    tess_json_set_int(&own, "inner", exact(job) ? 0 : r->inner);
    if (!ran) {
        tess_json_set_int(&own, "iterations_most", r->iterations);
        tess_json_set(record, "reconstruct", own);
        return;
    }
    tess_json_set_string(&own, "stopped", job->interrupted ? "interrupted" : ends[job->result.end]);
    if (has_step(job))
        tess_json_set_double(&own, "step", job->result.step);
    tess_json_set_int(&own, "step_halvings", job->result.halvings);
    if (job->norm_squared > 0)
        tess_json_set_double(&own, "norm_squared", job->norm_squared);
    tess_json_set_int(&own, "power_iterations", job->power_iterations);
    tess_json_set_int(&own, "cg_iterations", job->cg_iterations);
    if (job->baseline)
        tess_json_set_string(&own, "baseline", job->baseline);
    set_known(&own, "baseline_psnr_db", job->baseline_psnr);
    tess_json_set(&own, "iterations", iterations_of(job));
    tess_json_set(record, "reconstruct", own);
}

tess_json *tess_reconstruct_record(const tess_reconstruct_job *job, bool ran)
{
    tess_json *record = tess_record_begin(ran ? "reconstruct" : "plan", &job->engine);
    if (!ran)
        tess_json_set_string(&record, "verb", "reconstruct");
    add_input(&record, &job->problem);
    add_plan(&record, job);
    if (ran)
        add_measured(&record, job);
    if (ran && !isnan(job->psnr)) {
        tess_json *quality = tess_json_object();
        set_known(&quality, "psnr_db", job->psnr);
        set_known(&quality, "ssim", job->ssim);
        tess_json_set(&record, "quality", quality);
    }
    add_own(&record, job, ran);
    if (job->interrupted)
        tess_json_set_bool(&record, "interrupted", true);
    return record;
}
