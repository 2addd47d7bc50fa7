/* detect_open.c: opens a run: the lists of cubes, the pipeline, the device; everything that can be refused before a cube is
 * read is refused here. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "io/image.h"
#include "job/common/choice.h"
#include "job/common/cube_marks.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/common/same_files.h"
#include "job/detect/detect_job.h"
#include "model/spectral/state_file.h"

enum { JSON_MOST = 1 << 20 };

bool tess_detect_has_suffix(const char *path, const char *suffix)
{
    const size_t length = strlen(path), end = strlen(suffix);
    return length > end && strcasecmp(path + length - end, suffix) == 0;
}

bool tess_detect_is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static tess_status check_settings(const tess_detect_settings *s, tess_error *error)
{
    const char *outputs[] = {s->output, s->mask_out, s->overlay, s->detections, s->save};
    const char *inputs[] = {s->input, s->fit, s->truth, s->pipeline};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        for (size_t k = 0; outputs[i] && k < sizeof inputs / sizeof *inputs; k++)
            if (inputs[k] && tess_image_same_target(outputs[i], inputs[k]))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is read and written; name another output",
                                 outputs[i]);
        for (size_t k = 0; outputs[i] && k < i; k++)
            if (outputs[k] && tess_image_same_target(outputs[i], outputs[k]))
                return tess_fail(error, TESS_BAD_OPTION, "%s: two outputs have this name", outputs[i]);
    }
    const bool folder = tess_detect_is_folder(s->input);
    if (!folder && !tess_detect_has_suffix(s->output, ".npy") && !tess_detect_has_suffix(s->output, ".tif") &&
        !tess_detect_has_suffix(s->output, ".tiff"))
        return tess_fail(error, TESS_BAD_OPTION, "%s: scores are written as .npy or .tif", s->output);
    if (s->detections && !tess_detect_has_suffix(s->detections, ".csv") &&
        !tess_detect_has_suffix(s->detections, ".geojson"))
        return tess_fail(error, TESS_BAD_OPTION, "`detections` %s: use a name that ends in .csv or .geojson",
                         s->detections);
    if (s->save && !tess_detect_has_suffix(s->save, ".safetensors"))
        return tess_fail(error, TESS_BAD_OPTION, "`save` %s: use a name that ends in .safetensors", s->save);
    if (s->overlay && !tess_detect_has_suffix(s->overlay, ".png"))
        return tess_fail(error, TESS_BAD_OPTION, "`overlay` %s: use a name that ends in .png", s->overlay);
    return TESS_OK;
}

static tess_status read_graph(const char *path, tess_pipeline *pipeline, tess_error *error)
{
    FILE *file = NULL;
    TESS_TRY(tess_file_open(path, &file, error));
    char *text = tess_small_alloc(JSON_MOST + 1, 1);
    const size_t length = text ? fread(text, 1, JSON_MOST + 1, file) : 0;
    fclose(file);
    tess_json *json = NULL;
    tess_status status =
        !text ? tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline")
        : length > JSON_MOST
            ? tess_fail(error, TESS_BAD_INPUT, "has more than %d bytes; it is no pipeline", JSON_MOST)
            : tess_json_parse(text, length, &json, error);
    if (status == TESS_OK)
        status = tess_pipeline_parse(json, pipeline, error);
    tess_json_free(json);
    tess_small_free(text);
    return status;
}

/* Bands that are known to be others. */
static tess_status check_wavelengths(const char *one, const double *of_one, const char *other,
                                     const double *of_other, int bands, tess_error *error)
{
    for (int i = 0; of_one && of_other && i < bands; i++)
        if (fabs(of_one[i] - of_other[i]) > 0.5)
            return tess_fail(error, TESS_BAD_INPUT, "band %d of %s is at %g nm, that of %s at %g nm", i + 1,
                             one, of_one[i], other, of_other[i]);
    return TESS_OK;
}

static tess_status open_pipeline(tess_detect_job *job, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    const tess_cube_list *list = &job->input.list;
    const char *name = s->pipeline ? s->pipeline : "rx";
    tess_pipeline pipeline;
    if (tess_detect_has_suffix(name, ".safetensors")) {
        TESS_TRY(tess_spectral_load(job->engine.memory, name, &job->plan, &job->state, error));
        if (job->plan->bands != list->bands)
            return tess_fail(error, TESS_BAD_INPUT, "%s: was fitted to %d bands, and %s has %d", name,
                             job->plan->bands, list->entries[0].path, list->bands);
        if (s->fit)
            return tess_fail(error, TESS_BAD_OPTION, "`fit`: %s is fitted already", name);
        return check_wavelengths(name, job->plan->wavelengths, list->entries[0].path, list->wavelengths,
                                 list->bands, error);
    }
    if (tess_detect_has_suffix(name, ".json")) {
        const tess_status status = read_graph(name, &pipeline, error);
        if (status != TESS_OK)
            return tess_fail_prefix(error, status, name);
    } else
        TESS_TRY(tess_pipeline_named(name, &pipeline, error));
    TESS_TRY(tess_spectral_compile(&pipeline, list->bands, list->wavelengths, &job->plan, error));
    job->fits = job->plan->passes > 0;
    return tess_spectral_state_create(job->engine.memory, job->plan, &job->state, error);
}

/* What the decisions are needed for must have a decider. */
static tess_status check_decider(tess_detect_job *job, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    const bool one = job->input.list.images == 1;
    job->decides = tess_pipeline_decider(&job->plan->pipeline) >= 0;
    if (!job->decides && (s->mask_out || s->overlay || s->detections))
        return tess_fail(error, TESS_BAD_OPTION,
                         "`%s`: the pipeline decides nothing; add a node such as quantile or false_alarm",
                         s->mask_out  ? "mask_out"
                         : s->overlay ? "overlay"
                                      : "detections");
    if (!one && (s->mask_out || s->overlay))
        return tess_fail(error, TESS_BAD_OPTION, "`%s`: is for one image, and there are %lld",
                         s->mask_out ? "mask_out" : "overlay", (long long)job->input.list.images);
    return TESS_OK;
}

static tess_status join_sizes(tess_detect_job *job, tess_error *error)
{
    const int64_t own = job->input.set.images, other = job->fits_other ? job->other.set.images : 0;
    job->sizes = tess_small_alloc((size_t)(own + other), sizeof *job->sizes);
    if (!job->sizes)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of cubes");
    memcpy(job->sizes, job->input.image, (size_t)own * sizeof *job->sizes);
    if (other)
        memcpy(job->sizes + own, job->other.image, (size_t)other * sizeof *job->sizes);
    job->all = (tess_pixel_set){.images = own + other, .bands = job->input.set.bands, .image = job->sizes};
    return TESS_OK;
}

static tess_status check_files(const tess_detect_job *job, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    const char *files[] = {s->input,    s->output,  s->pipeline,   s->fit, s->truth,
                           s->mask_out, s->overlay, s->detections, s->save};
    TESS_TRY(tess_record_apart(&s->common, files, sizeof files / sizeof *files, error));
    return check_settings(s, error);
}

/* The cubes may be those of a folder. */
static tess_status check_cubes(const tess_common *common, const tess_pixel_cubes *cubes, tess_error *error)
{
    for (int64_t i = 0; i < cubes->list.count; i++) {
        const char *const path = cubes->list.entries[i].path;
        TESS_TRY(tess_record_apart(common, &path, 1, error));
    }
    return TESS_OK;
}

/* Bands that a header calls bad count like others: those of other files, and fitted pipelines, may have all. */
static void note_bad_bands(const tess_common *common, const tess_pixel_cubes *cubes)
{
    int64_t files = 0, first = -1;
    for (int64_t i = cubes->list.count - 1; i >= 0; i--)
        if (cubes->list.entries[i].info.bad_bands > 0)
            files++, first = i;
    if (files == 0)
        return;
    char others[64] = "";
    if (files > 1)
        snprintf(others, sizeof others, ", and %lld more file(s) have such bands", (long long)files - 1);
    tess_note(
        common, TESS_NOTE_WARNING,
        "%s: its header marks %d of %d bands as bad (bbl), and they are used%s; to leave them out, save "
        "the others alone (gdal_translate -b)",
        cubes->list.entries[first].path, cubes->list.entries[first].info.bad_bands, cubes->list.bands,
        others);
}

/* Arrays of other programs often have the bands first; then the first axis is much shorter than the others. */
static void note_order(const tess_detect_settings *s, const tess_pixel_cubes *cubes)
{
    if (s->axes && strcasecmp(s->axes, "auto") != 0)
        return;
    for (int64_t i = 0; i < cubes->list.count; i++) {
        const tess_cube_info *info = &cubes->list.entries[i].info;
        const char *const path = cubes->list.entries[i].path;
        if (!tess_detect_has_suffix(path, ".npy") || info->count > 1 || info->height < 2 ||
            2 * info->height > info->width || 2 * info->height > info->bands)
            continue;
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%s: is taken as %lld x %lld pixels with %d bands; if its first axis is that of the bands, "
                  "give `axes` CHW; HWC confirms this order",
                  path, (long long)info->height, (long long)info->width, info->bands);
        return;
    }
}

static const char keep_marks[] = "with `nodata` nan they are spectra",
                  drop_zeros[] = "`nodata` 0 leaves out all pixels with a 0";

static tess_status open_cubes(tess_detect_job *job, tess_memory *memory, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    const tess_cube_settings settings = {.axes = s->axes,
                                         .memory = memory,
                                         .stop = &job->engine.stop,
                                         .find_marks = !s->nodata_given,
                                         .nodata_given = s->nodata_given && !isnan(s->nodata),
                                         .nodata = s->nodata};
    TESS_TRY(tess_pixel_cubes_open(s->input, &settings, &job->input, error));
    TESS_TRY(check_cubes(&s->common, &job->input, error));
    note_bad_bands(&s->common, &job->input);
    note_order(s, &job->input);
    tess_marks_note(&s->common, &job->input, keep_marks, drop_zeros);
    TESS_TRY(open_pipeline(job, error));
    TESS_TRY(check_decider(job, error));
    TESS_TRY(tess_detect_check_files(job, error));
    if (s->fit && job->fits) {
        job->fits_other = true;
        TESS_TRY(tess_pixel_cubes_open(s->fit, &settings, &job->other, error));
        TESS_TRY(check_cubes(&s->common, &job->other, error));
        note_bad_bands(&s->common, &job->other);
        tess_marks_note(&s->common, &job->other, keep_marks, drop_zeros);
        if (job->other.list.bands != job->input.list.bands)
            return tess_fail(error, TESS_BAD_INPUT, "%s has %d bands, and %s has %d",
                             job->other.list.entries[0].path, job->other.list.bands,
                             job->input.list.entries[0].path, job->input.list.bands);
        TESS_TRY(check_wavelengths(job->other.list.entries[0].path, job->other.list.wavelengths,
                                   job->input.list.entries[0].path, job->input.list.wavelengths,
                                   job->input.list.bands, error));
    }
    return join_sizes(job, error);
}

/* Of the files, the sizes of all images and the parameters: ranks that differ in these would wait for each other for ever, or make a
 * result that belongs to no input. */
static uint64_t hash_of(const tess_detect_job *job)
{
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    for (int64_t i = 0; i < job->all.images; i++) {
        const tess_pixel_image *image = &job->sizes[i];
        const int64_t facts[] = {image->height,     image->width,  image->dtype,
                                 image->has_nodata, image->masked, job->all.bands};
        tess_xxh64_add(&sum, facts, sizeof facts);
    }
    const tess_cube_list *const lists[] = {&job->input.list, &job->other.list};
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < lists[k]->count; i++)
            tess_same_file_of(&sum, lists[k]->entries[i].path, i, lists[k]->count);
    tess_same_file(&sum, job->settings->pipeline); /* a name has no file */
    const int shape[] = {job->plan->passes, job->plan->taps, job->plan->pipeline.count};
    tess_xxh64_add(&sum, shape, sizeof shape);
    if (job->state.block.data) /* some pipelines have no parameters */
        tess_xxh64_add(&sum, job->state.block.data, tess_spectral_state_bytes(job->plan));
    return tess_xxh64_end(&sum);
}

tess_status tess_detect_open(tess_detect_job *job, tess_context *context, tess_error *error)
{
    const tess_common *common = &job->settings->common;
    tess_memory *memory = &context->memory;
    tess_dist *dist = context->dist;
    tess_curve_begin(&job->curve, &job->truth_memory);
    TESS_TRY(tess_dist_agree(dist, check_files(job, error), error));
    TESS_TRY(tess_choice_open_ranks(&job->engine, dist, memory, common, error));
    TESS_TRY(tess_dist_agree(dist, open_cubes(job, memory, error), error));
    if (dist->size > 1)
        TESS_TRY(tess_engine_same_inputs(&job->engine, hash_of(job), error));
    TESS_TRY(tess_detect_choose(job, error));
    return tess_detect_make_plan(job, error);
}

void tess_detect_close(tess_detect_job *job)
{
    if (job->spool)
        fclose(job->spool);
    tess_temp_remove(job->spool_temp);
    tess_objects_free(job->objects);
    tess_curve_free(&job->curve);
    tess_block_free(&job->piece);
    tess_block_free(&job->decider);
    tess_statistics_destroy(job->statistics);
    tess_spectral_state_free(&job->state);
    tess_spectral_plan_free(job->plan);
    tess_pixel_cubes_close(&job->input);
    tess_pixel_cubes_close(&job->other);
    tess_small_free(job->sizes);
    tess_registry_close(job->host_device);
    tess_engine_close(&job->engine);
}
