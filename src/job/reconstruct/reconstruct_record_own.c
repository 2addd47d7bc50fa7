/* The part of the record that only reconstructions have: the problem, the recipe, and the iterations. */
#include <math.h>

#include "job/reconstruct/look/scan.h"
#include "job/reconstruct/problem/data.h"
#include "job/reconstruct/reconstruct_record.h"

void tess_record_set_known(tess_json **object, const char *key, double value)
{
    if (!isnan(value))
        tess_json_set_double(object, key, isinf(value) ? 999 : value);
}

/* The data step is conjugate gradients, as many as requested, unless the operator has an exact solution. */
static bool exact(const tess_record_own *about)
{
    return about->recipe->inner > 0 && tess_data_term_exact(about->op);
}

/* A relaxation is also defined in steps. */
static bool has_step(const tess_recipe *recipe)
{
    return recipe->inner == 0 || recipe->relax > 0;
}

static tess_json *iterations_of(const tess_outcome *outcome, bool steps)
{
    tess_json *list = tess_json_array();
    for (int64_t i = 0; i < outcome->result.iterations; i++) {
        const tess_iteration *it = &outcome->iterations[i];
        tess_json *entry = tess_json_object();
        tess_record_set_known(&entry, "psnr_db", it->psnr);
        tess_record_set_known(&entry, "ssim", it->ssim);
        tess_json_set_double(&entry, "gradient_seconds", it->gradient_seconds);
        tess_json_set_double(&entry, "denoise_seconds", it->denoise_seconds);
        tess_json_set_int(&entry, "gradient_peak_bytes", (int64_t)it->gradient_peak_bytes);
        tess_json_set_int(&entry, "denoise_peak_bytes", (int64_t)it->denoise_peak_bytes);
        if (steps)
            tess_json_set_double(&entry, "step", it->step);
        tess_json_set_double(&entry, "sigma", it->sigma);
        tess_record_set_known(&entry, "change", it->change);
        tess_json_append(&list, entry);
    }
    return list;
}

/* A plan does not read measurements. */
static bool noise_to_come(const tess_record_own *about)
{
    return !about->outcome && tess_problem_noise_unknown(about->problem, about->recipe);
}

/* Matter outside of the image; a volume has three sides. */
static void add_outside(tess_json **own, const tess_problem *p)
{
    tess_json_set_double(own, "outside_share", p->outside);
    if (p->physics != TESS_PHYSICS_CONE)
        return;
    tess_json *volume = tess_json_array();
    for (int i = 0; i < 3; i++)
        tess_json_append_int(&volume, p->needed[i]);
    tess_json_set(own, tess_problem_enlarged(p) ? "enlarged_to" : "volume_needed", volume);
}

/* Adds how many values of blurs are left out, by reason. */
static void add_contradiction(tess_json **own, const tess_problem *p)
{
    tess_json *blurs = tess_json_array();
    for (int64_t i = 0; i < p->count; i++)
        if (p->contradicts[i])
            tess_json_append_int(&blurs, i);
    tess_json_set_double(own, "contradiction", p->contradiction);
    tess_json_set(own, "contradicting", blurs);
}

static void add_masked(tess_json **own, const tess_problem *p)
{
    static const char *const names[TESS_HIDDEN_REASONS] = {[TESS_HIDDEN_MISSING] = "missing",
                                                           [TESS_HIDDEN_BRIGHT] = "bright",
                                                           [TESS_HIDDEN_DARK] = "dark",
                                                           [TESS_HIDDEN_FRAME] = "frame"};
    tess_json *masked = tess_json_object();
    for (int i = 0; i < TESS_HIDDEN_REASONS; i++)
        if (p->hidden.count[i])
            tess_json_set_int(&masked, names[i], p->hidden.count[i]);
    tess_json_set(own, "masked", masked);
}

/* Adds how the network takes the channels, by the names of denoise. */
static void add_channels(tess_json **own, const tess_record_own *about)
{
    const tess_problem *p = about->problem;
    if (p->channels > 1)
        tess_json_set_string(own, "channels", about->model->model.channels > 1 ? "together" : "one by one");
    if (p->channels == TESS_TOGETHER_COLOURS && p->physics == TESS_PHYSICS_BLUR && !p->synthetic &&
        !p->as_published)
        tess_json_set_double(own, "noise_correlation", p->colours.correlation);
    if (p->colours.equal)
        tess_json_set_bool(own, "equal_channels", true);
}

static void add_sinogram(tess_json **own, const tess_problem *p)
{
    static const char *const centres[] = {"middle", "given", "opposite views", "centre of mass",
                                          "spectrum of the views"};
    tess_json_set_int(own, "columns", p->columns);
    tess_json_set_double(own, "centre", p->centre);
    tess_json_set_string(own, "centre_from", centres[p->centre_from]);
    if (p->centre_from == TESS_CENTRE_PAIRS)
        tess_json_set_int(own, "centre_pairs", p->centre_pairs);
    if (p->centre_from == TESS_CENTRE_MASS || p->centre_from == TESS_CENTRE_SPECTRUM)
        tess_json_set_double(own, "centre_within", p->centre_within);
    tess_json_set_double(own, "spacing", p->spacing);
    if (p->margin[1])
        tess_json_set_int(own, "enlarged_to", p->width + 2 * p->margin[1]);
}

/* Adds the assumptions about measured data: a wrong one gives a plausible but wrong picture. */
static void add_taken(tess_json **own, const tess_record_own *about)
{
    static const char *const ranges[] = {"default", "given", "type", "data"};
    static const char *const noises[] = {"default", "given", "estimate"};
    const tess_problem *p = about->problem;
    const bool ran = about->outcome != NULL;
    if (p->synthetic)
        return;
    tess_json_set_string(own, "noise_from",
                         noise_to_come(about)         ? "estimate"
                         : about->recipe->least_noise ? "range"
                                                      : noises[about->recipe->noise_from]);
    if (about->recipe->noise_from == TESS_NOISE_FROM_DATA && about->recipe->given_noise > 0)
        tess_json_set_double(own, "given_noise", about->recipe->given_noise * p->unit);
    if (p->noise_estimate >= 0) {
        tess_json_set_double(own, "noise_estimate", p->noise_estimate * tess_problem_measured_unit(p));
        tess_json_set_string(own, "noise_confidence", p->noise_rough ? "rough" : "sure");
    }
    if (p->physics == TESS_PHYSICS_RADON)
        add_sinogram(own, p);
    if (p->detector_grid) {
        tess_json *detector = tess_json_array();
        tess_json_append_int(&detector, p->rows);
        tess_json_append_int(&detector, p->columns);
        tess_json_set(own, "resampled_to", detector);
    }
    if (p->outside > 0)
        add_outside(own, p);
    if (ran && p->background != 0)
        tess_json_set_double(own, "background", p->background * tess_problem_measured_unit(p));
    if (ran && tess_problem_truncated(p))
        tess_json_set_double(own, "edge_share", fmax(p->edge, p->edge_rows));
    if (p->dead_count)
        tess_json_set_int(own, "dead_pixels", p->dead_count);
    if (p->outliers)
        tess_json_set_int(own, "outliers", p->outliers);
    if (p->hidden.blurs)
        add_masked(own, p);
    if (p->contradiction > 0)
        add_contradiction(own, p);
    if (p->dark_outside)
        tess_json_set_bool(own, "black_outside", true);
    if (p->zinger_count)
        tess_json_set_int(own, "zingers", p->zinger_count);
    if (ran && about->outcome->rings > 0)
        tess_json_set_double(own, "rings", about->outcome->rings * tess_problem_measured_unit(p));
    if (ran && about->outcome->settled > 0)
        tess_json_set_double(own, "settled", about->outcome->settled * p->unit);
    if (ran && about->outcome->misfit > 0)
        tess_json_set_double(own, "misfit", about->outcome->misfit);
    if (ran && about->outcome->rim > 0)
        tess_json_set_double(own, "rim_share", about->outcome->rim);
    if (ran && about->outcome->raised > 0)
        tess_json_set_double(own, "raised_noise", about->outcome->raised * p->unit);
    if (p->lost_count) {
        tess_json *lost = tess_json_array();
        for (int64_t i = 0; i < p->lost_count; i++)
            tess_json_append_int(&lost, p->lost[i]);
        tess_json_set(own, "lost_views", lost);
    }
    if (p->counts && ran) {
        tess_json_set_int(own, "starved", p->starved);
        tess_json_set_double(own, "starved_share", tess_problem_starved_share(p));
        if (p->count_unit > 0)
            tess_json_set_double(own, "count_unit", p->count_unit);
    }
    tess_json_set_string(own, "range_from", ranges[p->range_from]);
    if (p->range_from == TESS_RANGE_FROM_DATA && !ran)
        return;
    tess_json *range = tess_json_array();
    tess_json_append_double(&range, p->low * p->unit + p->offset);
    tess_json_append_double(&range, p->high * p->unit + p->offset);
    if (p->above > 0)
        tess_json_set_double(own, "brightest", tess_problem_top(p) * p->unit + p->offset);
    tess_json_set(own, "range", range);
}

static void add_outcome(tess_json **own, const tess_record_own *about)
{
    static const char *const ends[] = {"iterations", "tolerance", "seconds", "rings"};
    const tess_outcome *outcome = about->outcome;
    const tess_start *start = about->start;
    const bool steps = has_step(about->recipe);
    tess_json_set_string(own, "stopped", outcome->interrupted ? "interrupted" : ends[outcome->result.end]);
    if (steps)
        tess_json_set_double(own, "step", outcome->result.step);
    tess_json_set_int(own, "step_halvings", outcome->result.halvings);
    if (start->norm_squared > 0)
        tess_json_set_double(own, "norm_squared", start->norm_squared);
    tess_json_set_int(own, "power_iterations", start->power_iterations);
    tess_json_set_int(own, "cg_iterations", start->cg_iterations);
    if (start->baseline)
        tess_json_set_string(own, "baseline", start->baseline);
    tess_record_set_known(own, "baseline_psnr_db", start->baseline_psnr);
    tess_json_set(own, "iterations", iterations_of(outcome, steps));
}

/* Adds a number for each blur, if there are any. */
static void add_of_blurs(tess_json **own, const char *key, const tess_problem *p, const double *values)
{
    if (!values)
        return;
    tess_json *list = tess_json_array();
    for (int64_t i = 0; i < p->count; i++)
        tess_json_append_double(&list, values[i]);
    tess_json_set(own, key, list);
}

void tess_record_add_own(tess_json **record, const tess_record_own *about)
{
    static const char *const inits[] = {"zero", "adjoint", "filtered", "cg", "mean"};
    const tess_problem *p = about->problem;
    const tess_recipe *r = about->recipe;
    const tess_engine_model *model = about->model;
    const tess_outcome *outcome = about->outcome;
    const int64_t done = outcome ? outcome->result.iterations : 0;
    tess_json *own = tess_json_object();
    tess_json_set_string(&own, "problem", p->name);
    tess_json_set_string(&own, "operator", about->op->name);
    tess_json_set_int(&own, p->physics == TESS_PHYSICS_BLUR ? "operators" : "angles", p->count);
    if (p->physics == TESS_PHYSICS_BLUR)
        tess_json_set_string(&own, "boundary", p->unknown ? "unknown" : "circular");
    tess_json_set_string(&own, "preset", about->preset ? about->preset : "default");
    tess_json_set_string(&own, "model", model->path);
    tess_json_set_string(&own, "architecture", model->model.architecture);
    tess_json_set_int(&own, "parameters", model->model.parameters);
    if (p->depth > 1)
        tess_json_set_string(&own, "prior", model->model.volume ? "volume" : "slices");
    if (tess_weights_flat(model->file))
        tess_json_set_string(&own, "inflation", r->inflation == TESS_INFLATE_LEVEL ? "level" : "halves");
    tess_json_set_string(&own, "init", inits[r->init]);
    if (!noise_to_come(about))
        tess_json_set_double(&own, "noise", r->noise * tess_problem_measured_unit(p));
    add_of_blurs(&own, "weights", p, p->weights);
    add_of_blurs(&own, "gains", p, p->gains);
    add_channels(&own, about);
    add_taken(&own, about);
    tess_json_set_double(&own, "sigma", r->sigma);
    tess_json_set_double(&own, "last_sigma", done > 0 ? outcome->iterations[done - 1].sigma : r->last_sigma);
    tess_json_set_double(&own, "relax", r->relax);
    tess_json_set_string(&own, "data_step",
                         r->inner == 0  ? "gradient"
                         : exact(about) ? "minimum"
                                        : "conjugate gradients");
    tess_json_set_int(&own, "inner", exact(about) ? 0 : r->inner);
    tess_parts_record(about->parts, p, &own);
    if (!outcome) {
        tess_json_set_int(&own, "iterations_most", r->iterations);
        tess_json_set(record, "reconstruct", own);
        return;
    }
    add_outcome(&own, about);
    tess_json_set(record, "reconstruct", own);
}
