#include <math.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/record.h"
#include "job/fill/fill_job.h"

static tess_json *plan_record(const tess_fill_job *job)
{
    tess_json *plan = tess_json_object(), *tile = tess_json_array();
    tess_json_append_int(&tile, job->tile);
    tess_json_append_int(&tile, job->tile);
    tess_json_set(&plan, "tile", tile);
    tess_json_set_int(&plan, "overlap", job->overlap);
    tess_json_set_int(&plan, "batch", job->batch);
    tess_json_set_double(&plan, "seconds", job->planned_seconds);
    tess_json_set_bool(&plan, "calibrated", job->calibrated);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&job->planned, job->planned_total));
    tess_choice_record(&job->engine, &plan);
    if (job->engine.separate_memory)
        tess_json_set_int(&plan, "host_bytes", (int64_t)job->planned.by[TESS_MEM_HOST]);
    return plan;
}

/* What made a pixel void. NaN and infinity always do. */
static tess_json *rule_record(const tess_fill_job *job)
{
    const tess_raster_info *info = tess_raster_describe(job->raster);
    tess_json *rule = tess_json_array();
    if (info->mask_file)
        tess_json_append(&rule, tess_json_string("mask file"));
    if (job->settings->nodata_given)
        tess_json_append(&rule, tess_json_string(tess_fill_overrides(job)
                                                     ? "given nodata value, not that of the file"
                                                     : "given nodata value"));
    else if (info->has_nodata && info->rule.exact)
        tess_json_append(&rule, tess_json_string("nodata value of the file"));
    if (info->mask_band || info->alpha)
        tess_json_append(&rule, tess_json_string(info->alpha ? "alpha band" : "mask band"));
    if (info->rule.usual || tess_json_length(rule) == 0)
        tess_json_append(&rule, tess_json_string("usual nodata values"));
    if (info->sampled > 0)
        tess_json_append(&rule, tess_json_string("outliers"));
    return rule;
}

static tess_json *voids_record(const tess_fill_map *map)
{
    tess_json *voids = tess_json_object(), *classes = tess_json_object();
    const int64_t filled = tess_bitmap_count(&map->levels[0].wanted);
    tess_json_set_int(&voids, "pixels", map->void_pixels);
    tess_json_set_int(&voids, "filled_pixels", filled);
    tess_json_set_int(&voids, "left_at_edge", map->outer_pixels);
    tess_json_set_int(&voids, "left_too_far", map->far_pixels);
    tess_json_set_int(&voids, "left_outside_mask", map->kept_pixels);
    if (map->second)
        tess_json_set_int(&voids, "left_without_second", map->second_pixels);
    tess_json_set_int(&voids, "count", map->summary.count);
    if (filled > 0 && isfinite(map->summary.widest.width))
        tess_json_set_double(&voids, "widest_px", map->summary.widest.width);
    for (int i = 0; i < TESS_VOID_CLASSES; i++)
        tess_json_set_int(&classes, tess_void_class_name((tess_void_class)i), map->summary.class_pixels[i]);
    tess_json_set(&voids, "pixels_by_width", classes);
    return voids;
}

static tess_json *fill_record(const tess_fill_job *job, bool ran)
{
    static const char *const samplers[] = {
        [TESS_FILL_DPMPP] = "dpmpp", [TESS_FILL_DDIM] = "ddim", [TESS_FILL_DDPM] = "ddpm"};
    tess_json *fill = tess_json_object();
    tess_json *voids = voids_record(&job->map);
    tess_json_set(&voids, "rule", rule_record(job));
    tess_fill_marks_record(job, &voids);
    tess_json_set(&fill, "voids", voids);
    tess_json_set_int(&fill, "tiles", job->list.count);
    tess_json_set_int(&fill, "placed_tiles", job->list.placed);
    tess_json_set_int(&fill, "guided_tiles", job->list.guided);
    tess_json_set_int(&fill, "levels", job->map.count);
    tess_json_set_string(&fill, "sampler", samplers[job->settings->sampler]);
    tess_json_set_int(&fill, "steps", job->step_count);
    tess_json_set_int(&fill, "samples", job->samples);
    tess_json_set_string(&fill, "model", job->model);
    tess_json_set_int(&fill, "parameters", job->net.parameters);
    if (job->warning[0])
        tess_json_set_string(&fill, "warning", job->warning);
    if (!ran)
        return fill;
    tess_json_set_int(&fill, "resumed_tiles", job->resumed);
    const tess_engine_figures *f = &job->figures;
    if (f->seconds > 0) {
        tess_json_set_double(&fill, "tile_steps_per_second", (double)f->units / f->seconds);
        tess_json_set_double(&fill, "tflops", 1e-12 * f->operations / f->seconds);
    }
    if (job->seams.pixels > 0 && job->seams.elsewhere > 0)
        tess_json_set_double(&fill, "seam_ratio", job->seams.at / job->seams.elsewhere);
    if (job->notes[0])
        tess_json_set_string(&fill, "notes", job->notes);
    return fill;
}

static void set_errors(tess_json **to, const tess_terrain_errors *errors)
{
    tess_json_set_int(to, "pixels", errors->pixels);
    if (errors->pixels == 0)
        return;
    tess_json_set_double(to, "rmse", errors->rmse);
    tess_json_set_double(to, "mae", errors->mae);
    tess_json_set_double(to, "bias", errors->bias);
    if (isfinite(errors->slope_rmse))
        tess_json_set_double(to, "slope_rmse_degrees", errors->slope_rmse);
}

static tess_json *quality_record(const tess_fill_quality *quality)
{
    tess_json *record = tess_json_object(), *classes = tess_json_object();
    set_errors(&record, &quality->all);
    if (quality->whole && isfinite(quality->psnr))
        tess_json_set_double(&record, "psnr_db", quality->psnr);
    if (quality->whole && isfinite(quality->ms_ssim))
        tess_json_set_double(&record, "ms_ssim", quality->ms_ssim);
    for (int i = 0; quality->whole && i < TESS_VOID_CLASSES; i++) {
        tess_json *one = tess_json_object();
        set_errors(&one, &quality->classes[i]);
        tess_json_set(&classes, tess_void_class_name((tess_void_class)i), one);
    }
    tess_json_set(&record, "by_width", classes);
    return record;
}

tess_json *tess_fill_record(const tess_fill_job *job, bool ran)
{
    tess_json *record = tess_record_begin("fill", &job->engine), *input = tess_json_object();
    tess_json_set_int(&input, "height", job->map.levels[0].height);
    tess_json_set_int(&input, "width", job->map.levels[0].width);
    tess_json_set_int(&input, "channels", 1);
    tess_json_set_int(&input, "files", 1);
    tess_json_set(&record, "input", input);
    const tess_fill_settings *s = job->settings;
    const tess_record_path paths[] = {
        {"input", s->input}, {"output", s->output}, {"deviation", s->deviation}, {"truth", s->truth}};
    tess_record_paths(&record, paths, sizeof paths / sizeof paths[0]);
    tess_json_set(&record, "plan", plan_record(job));
    if (ran) {
        const tess_engine_figures *figures = &job->figures;
        tess_json *measured = tess_json_object();
        const double pixels = (double)(job->map.levels[0].height * job->map.levels[0].width);
        tess_json_set_double(&measured, "seconds", figures->seconds);
        tess_json_set_double(&measured, "wall_seconds", tess_clock() - job->begin);
        tess_json_set_double(&measured, "megapixels_per_second", 1e-6 * pixels / (tess_clock() - job->begin));
        tess_json_set(&measured, "peak_bytes", tess_record_bytes(&figures->peak.bytes, figures->peak.total));
        tess_json_set_int(&measured, "resident_bytes", (int64_t)figures->resident);
        tess_json_set_int(&measured, "overhead_bytes", (int64_t)figures->overhead);
        tess_record_meter(&measured, &job->reading);
        tess_json_set(&record, "measured", measured);
    }
    if (job->quality.given)
        tess_json_set(&record, "quality", quality_record(&job->quality));
    tess_json_set(&record, "fill", fill_record(job, ran));
    return record;
}
