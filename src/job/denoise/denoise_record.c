/* The record of a denoise job. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/record.h"
#include "job/denoise/denoise.h"
#include "job/denoise/ranks/strips.h"

/* Of a file that may be the largest: one that can be processed before one that failed after its plan. */
static int standing(const tess_denoise_file *file)
{
    return tess_denoise_todo(file) ? 2 : file->choice.rows.tiles > 0;
}

const tess_denoise_file *tess_denoise_largest(const tess_denoise_job *job)
{
    const tess_denoise_file *most = &job->files[0];
    for (int64_t i = 1; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        const int more = standing(file) - standing(most);
        if (more > 0 ||
            (more == 0 && file->info.height * file->info.width > most->info.height * most->info.width))
            most = file;
    }
    return most;
}

static void add_input(tess_json **record, const tess_denoise_job *job)
{
    int64_t depth = 0, height = 0, width = 0, channels = 0;
    for (int64_t i = 0; i < job->count; i++) {
        const tess_image_info *info = &job->files[i].info;
        depth = info->depth > depth ? info->depth : depth;
        height = info->height > height ? info->height : height;
        width = info->width > width ? info->width : width;
        channels = info->channels > channels ? info->channels : channels;
    }
    tess_json *input = tess_json_object();
    if (depth)
        tess_json_set_int(&input, "depth", depth);
    tess_json_set_int(&input, "height", height);
    tess_json_set_int(&input, "width", width);
    tess_json_set_int(&input, "channels", channels);
    tess_json_set_int(&input, "files", job->count);
    tess_json_set(record, "input", input);
}

static void add_plan(tess_json **record, const tess_denoise_job *job)
{
    const tess_denoise_file *file = tess_denoise_largest(job);
    const tess_cut_plan *choice = &file->choice;
    if (!choice->rows.tiles || !choice->cols.tiles) /* no file could be planned */
        return;
    tess_json *plan = tess_json_object(), *tile = tess_json_array();
    if (job->volumes && choice->depth.tiles)
        tess_json_append_int(&tile, tess_axis_largest_tile(&choice->depth));
    tess_json_append_int(&tile, tess_axis_largest_tile(&choice->rows));
    tess_json_append_int(&tile, tess_axis_largest_tile(&choice->cols));
    tess_json_set(&plan, "tile", tile);
    tess_json_set_int(&plan, "tiles", choice->depth.tiles * choice->rows.tiles * choice->cols.tiles);
    tess_json_set_int(&plan, "halo", choice->halo);
    tess_json_set_int(&plan, "batch", choice->batch);
    tess_json_set_double(&plan, "seconds", job->planned_seconds);
    tess_json_set_bool(&plan, "calibrated", choice->calibrated);
    const char *before = job->replanned[0] ? job->replanned : job->shared; /* never both */
    char reason[sizeof job->shared + sizeof choice->reason + 2];
    snprintf(reason, sizeof reason, "%s%s%s", before, before[0] && choice->reason[0] ? "; " : "",
             choice->reason);
    tess_json_set_string(&plan, "reason", reason);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&job->planned, job->planned_total));
    tess_choice_record(&job->engine, &plan);
    if (job->engine.separate_memory)
        tess_json_set_int(&plan, "host_bytes", (int64_t)job->host_bytes);
    if (job->links.words[0] && !job->strips.tiles)
        tess_json_set_string(&plan, "exchanges", job->links.words);
    if (job->elsewhere.point.ranks > 0)
        tess_json_set(&plan, "elsewhere", tess_elsewhere_record(&job->elsewhere));
    tess_json_set(record, "plan", plan);
}

/* Of the largest window. */
static void add_arena(tess_json **record, const tess_denoise_job *job)
{
    const tess_denoise_file *file = tess_denoise_largest(job);
    const tess_cut_plan *choice = &file->choice;
    if (!file->model || !choice->rows.tiles || job->volumes || job->engine.dist->size > 1)
        return;
    const tess_plan_shape shape = {.n = choice->batch,
                                   .h = tess_axis_largest_window(&choice->rows),
                                   .w = tess_axis_largest_window(&choice->cols)};
    tess_record_arena(record, file->model->bound, shape);
}

/* Adds the device's own figures and how busy it was. */
static void add_device(tess_json **measured, const tess_denoise_job *job, const tess_mem_usage *peak)
{
    const tess_queue_figures *figures = &job->figures;
    const uint64_t grown = job->baseline > figures->least_free ? job->baseline - figures->least_free : 0;
    tess_json_set_int(measured, "rows_bytes", (int64_t)peak->bytes.by[TESS_MEM_HOST]);
    tess_json_set_int(measured, "driver_bytes", (int64_t)grown);
    tess_json_set_int(measured, "context_bytes", (int64_t)job->engine.facts.driver_bytes);
    if (job->links.by_nccl && !job->strips.tiles)
        tess_json_set_int(measured, "nccl_bytes", (int64_t)job->links.bytes);
    tess_json_set_double(measured, "gpu_busy", figures->busy);
    tess_json_set_int(measured, "shapes", figures->shapes);
    tess_json_set_double(measured, "shape_seconds", figures->shape_seconds);
    tess_json_set_double(measured, "shape_mean_seconds", figures->shape_mean_seconds);
}

double tess_denoise_seconds(const tess_denoise_job *job)
{
    double seconds = 0;
    for (int64_t i = 0; i < job->count; i++)
        if (tess_denoise_todo(&job->files[i]))
            seconds += job->files[i].seconds;
    /* In a queue files overlap, so their seconds are shares of the device's time. */
    return job->engine.separate_memory && !job->volumes ? job->figures.seconds : seconds;
}

static void add_measured(tess_json **record, const tess_denoise_job *job)
{
    const double seconds = job->seconds;
    const tess_mem_usage peak = job->peak;
    double pixels = 0;
    for (int64_t i = 0; i < job->count; i++)
        if (tess_denoise_todo(&job->files[i]))
            pixels += (double)tess_denoise_rows(&job->files[i].info) * (double)job->files[i].info.width;
    tess_json *measured = tess_json_object();
    tess_json_set_double(&measured, "seconds", seconds);
    tess_json_set_double(&measured, "megapixels_per_second", seconds > 0 ? 1e-6 * pixels / seconds : 0);
    tess_json_set_double(&measured, "wall_seconds", tess_clock() - job->start);
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&peak.bytes, peak.total));
    tess_json_set_int(&measured, "resident_bytes", (int64_t)job->resident);
    tess_json_set_int(&measured, "overhead_bytes", (int64_t)job->overhead);
    tess_json_set_int(&measured, "loaded_bytes", (int64_t)job->loaded);
    tess_json_set_int(&measured, "host_bytes", (int64_t)job->host_bytes);
    if (job->engine.separate_memory)
        add_device(&measured, job, &peak);
    tess_json_set(record, "measured", measured);
}

static void set_finite(tess_json **object, const char *key, double value)
{
    if (!isnan(value))
        tess_json_set_double(object, key, isinf(value) ? 999 : value);
}

/* The mean over images of each image's figure. */
static void add_quality(tess_json **record, const tess_denoise_job *job)
{
    double psnr = 0, ssim = 0;
    int64_t psnr_count = 0, ssim_count = 0;
    for (int64_t i = 0; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        if (file->status != TESS_OK)
            continue;
        if (!isnan(file->psnr))
            psnr += file->psnr, psnr_count++;
        if (!isnan(file->ssim))
            ssim += file->ssim, ssim_count++;
    }
    if (psnr_count == 0)
        return;
    tess_json *quality = tess_json_object();
    set_finite(&quality, "psnr_db", psnr / (double)psnr_count);
    if (ssim_count)
        set_finite(&quality, "ssim", ssim / (double)ssim_count);
    tess_json_set(record, "quality", quality);
}

/* Adds the settings that change the result and are not in the files' entries. */
static void add_settings(tess_json **denoise, const tess_denoise_job *job)
{
    const tess_denoise_settings *s = job->settings;
    bool dithers = s->dither;
    for (int64_t i = 0; i < job->count; i++)
        dithers = dithers || job->files[i].dithers;
    tess_json_set_double(denoise, "strength", s->strength);
    tess_json_set_double(denoise, "add_noise", s->add_noise);
    if (s->add_noise > 0 || dithers)
        tess_json_set_int(denoise, "seed", (int64_t)s->common.seed);
    if (s->dither)
        tess_json_set_bool(denoise, "dither", true);
}

/* Which rows each rank has, of blocks also which columns, and its memory. */
static void add_strips(tess_json **entry, const tess_denoise_job *job, bool ran)
{
    const bool blocks = tess_denoise_in_blocks(job);
    tess_json *ranks = tess_json_array();
    for (int64_t i = 0; i < job->strips.count; i++) {
        const tess_blocks_part part = tess_denoise_part_of(job, i);
        tess_json *one = tess_json_object();
        tess_json_set_int(&one, "rank", i);
        tess_json_set_int(&one, "first_row", part.row);
        tess_json_set_int(&one, "rows", part.rows);
        if (blocks) {
            tess_json_set_int(&one, "first_column", part.column);
            tess_json_set_int(&one, "columns", part.columns);
        }
        if (tess_level_rows_given(&part.levels))
            tess_json_set(&one, "level_rows", tess_record_level_rows(&part.levels));
        if (job->ranks[i].speed > 0 && !job->strips.tiles)
            tess_json_set_double(&one, "speed", job->ranks[i].speed);
        tess_json_set_int(&one, "planned_bytes", (int64_t)job->ranks[i].planned);
        if (ran)
            tess_json_set_int(&one, "measured_bytes", (int64_t)job->ranks[i].measured);
        tess_json_append(&ranks, one);
    }
    tess_json_set(entry, job->strips.tiles ? "rows_of_tiles" : blocks ? "blocks" : "strips", ranks);
    tess_json_set_int(entry, "idle_ranks", job->engine.dist->size - job->strips.count);
}

static void add_files(tess_json **record, const tess_denoise_job *job, bool ran)
{
    tess_json *denoise = tess_json_object(), *files = tess_json_array();
    const tess_denoise_file *most = tess_denoise_largest(job);
    int64_t skipped = 0;
    if (most->model) {
        tess_json_set_string(&denoise, "model", most->model->path);
        tess_json_set_string(&denoise, "architecture", most->model->model.architecture);
        tess_json_set_int(&denoise, "parameters", most->model->model.parameters);
        if (!most->model->model.noise_map && job->settings->sigma >= 0)
            tess_json_set_bool(&denoise, "sigma_ignored", true);
    }
    add_settings(&denoise, job);
    for (int64_t i = 0; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        tess_json *entry = tess_json_object();
        tess_json_set_string(&entry, "name", file->name);
        if (file->skipped) {
            tess_json_set_bool(&entry, "skipped", true);
            tess_json_append(&files, entry);
            skipped++;
            continue;
        }
        tess_json_set_int(&entry, "height", file->info.height);
        tess_json_set_int(&entry, "width", file->info.width);
        tess_denoise_record_samples(&entry, job->settings, file);
        tess_json_set_double(&entry, "seconds", file->seconds);
        if (job->strips.count)
            add_strips(&entry, job, ran);
        else if (job->engine.dist->size > 1)
            tess_json_set_int(&entry, "rank", file->rank);
        set_finite(&entry, "psnr_db", file->psnr);
        set_finite(&entry, "ssim", file->ssim);
        if (file->status != TESS_OK)
            tess_json_set_string(&entry, "error", file->error);
        tess_json_append(&files, entry);
    }
    tess_json_set(&denoise, "files", files);
    if (job->settings->skip_existing)
        tess_json_set_int(&denoise, "skipped", skipped);
    tess_json_set(record, "denoise", denoise);
}

tess_json *tess_denoise_record(const tess_denoise_job *job, bool ran)
{
    tess_json *record = tess_record_begin(ran ? "denoise" : "plan", &job->engine);
    if (!ran)
        tess_json_set_string(&record, "verb", "denoise");
    if (job->interrupted)
        tess_json_set_bool(&record, "interrupted", true);
    add_input(&record, job);
    if (job->count == 1) {
        const tess_denoise_file *file = &job->files[0];
        const tess_record_path paths[] = {
            {"input", file->input}, {"output", file->output}, {"truth", file->truth}};
        tess_record_paths(&record, paths, sizeof paths / sizeof paths[0]);
    }
    add_plan(&record, job);
    if (ran)
        add_measured(&record, job);
    else
        add_arena(&record, job);
    add_quality(&record, job);
    add_files(&record, job, ran);
    return record;
}
