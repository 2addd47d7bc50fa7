/* The parts of the record about the input, the plan, and measured time and memory. */
#include "job/reconstruct/reconstruct_record.h"

#include "base/clock.h"
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/record.h"
#include "physics/rays.h"

void tess_record_add_input(tess_json **record, const tess_problem *p)
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

void tess_record_add_plan(tess_json **record, const tess_prior *prior, const tess_workspace *workspace,
                          const tess_budget *budget, const tess_elsewhere *elsewhere)
{
    const tess_cut_plan *choice = &prior->choice;
    const bool volume = prior->model->model.volume; /* otherwise slices are cut */
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
    tess_json_set_double(&plan, "seconds", budget->seconds);
    tess_json_set_bool(&plan, "calibrated", choice->calibrated);
    tess_json_set_string(&plan, "reason", choice->reason);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&budget->planned.bytes, budget->planned.total));
    tess_choice_record(workspace->engine, &plan);
    if (workspace->engine->separate_memory)
        tess_json_set_int(&plan, "host_bytes", (int64_t)budget->planned.bytes.by[TESS_MEM_HOST]);
    if (prior->links && prior->links->words[0])
        tess_json_set_string(&plan, "exchanges", prior->links->words);
    if (prior->links)
        tess_json_set_string(&plan, "data_device", tess_rates_facts(workspace->rates)->name);
    if (workspace->layout.hosted) {
        int64_t slabs, parts;
        tess_rays_cuts(workspace->op, &slabs, &parts);
        tess_json_set_int(&plan, "slabs", slabs);
        tess_json_set_int(&plan, "view_parts", parts);
    }
    if (elsewhere->point.ranks > 0)
        tess_json_set(&plan, "elsewhere", tess_elsewhere_record(elsewhere));
    tess_json_set(record, "plan", plan);
}

/* Adds the device's own figures, and the share of the loop, from first to last iteration, in which it was busy. */
static void add_device(tess_json **measured, const tess_prior *prior, const tess_outcome *outcome,
                       const tess_usage *usage)
{
    const bool beside = prior->links != NULL;
    double busy = 0;
    for (int64_t i = 0; i < outcome->result.iterations; i++)
        busy +=
            (beside ? 0 : outcome->iterations[i].gradient_seconds) + outcome->iterations[i].denoise_seconds;
    if (beside && prior->links->by_nccl)
        tess_json_set_int(measured, "nccl_bytes", (int64_t)prior->links->bytes);
    tess_json_set_int(measured, "driver_bytes", (int64_t)(usage->free_before - usage->least_free));
    tess_json_set_int(measured, "context_bytes", (int64_t)prior->engine->facts.driver_bytes);
    tess_json_set_double(measured, "gpu_busy",
                         outcome->result.seconds > 0 ? busy / outcome->result.seconds : 0);
}

tess_mem_usage tess_record_peak(const tess_engine *engine, const tess_budget *budget,
                                const tess_outcome *outcome)
{
    tess_mem_usage peak;
    tess_memory_peak(engine->memory, tess_engine_scope(engine), &peak);
    tess_mem_usage_raise(&peak, &budget->peak);
    tess_mem_usage_raise(&peak, &outcome->result.peak);
    return peak;
}

void tess_record_add_measured(tess_json **record, const tess_prior *prior, const tess_budget *budget,
                              const tess_outcome *outcome, const tess_usage *usage, double pixels)
{
    const tess_mem_usage peak = tess_record_peak(prior->engine, budget, outcome);
    tess_json *measured = tess_json_object();
    tess_json_set_double(&measured, "seconds", outcome->seconds);
    tess_json_set_double(&measured, "megapixels_per_second",
                         outcome->result.seconds > 0
                             ? 1e-6 * pixels * (double)outcome->result.iterations / outcome->result.seconds
                             : 0);
    tess_json_set_double(&measured, "wall_seconds", tess_clock() - usage->start);
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&peak.bytes, peak.total));
    tess_json_set_int(&measured, "resident_bytes", (int64_t)tess_process_peak());
    tess_json_set_int(&measured, "overhead_bytes", (int64_t)usage->overhead);
    tess_json_set_int(&measured, "loaded_bytes", (int64_t)usage->loaded);
    tess_json_set_int(&measured, "host_bytes", (int64_t)peak.bytes.by[TESS_MEM_HOST]);
    if (prior->engine->separate_memory)
        add_device(&measured, prior, outcome, usage);
    tess_json_set(record, "measured", measured);
}
