/* Opens a run: raster and voids, network, sampler, and the batch that fits the limit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/fill/fill_job.h"
#include "tensor/terrain/conditions.h"

/* Guided tiles start here: a third of the signal's energy, so that slopes come from the coarser map and details do not. */
#define GUIDED_GAMMA 0.3

enum { TILE = 128, OVERLAP = 12, SCHEDULE_STEPS = 1000, MOST_BATCH = 64, MOST_BATCH_CPU = 4 };

/* No output may be a file that the job reads; the input alone may be replaced, if that is asked for. */
static tess_status check_outputs(const tess_fill_settings *s, tess_error *error)
{
    const struct {
        const char *setting, *path;
    } outputs[] = {{"output", s->output}, {"deviation", s->deviation}}, inputs[] = {{"mask", s->mask},
                                                                                    {"second", s->second},
                                                                                    {"truth", s->truth},
                                                                                    {"model", s->model},
                                                                                    {"input", s->input}};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        for (size_t k = 0; outputs[i].path && k < sizeof inputs / sizeof inputs[0]; k++) {
            const bool replaced =
                i == 0 && inputs[k].path == s->input && tess_same_target(s->output, s->input);
            if (inputs[k].path && !replaced && tess_raster_names(inputs[k].path, outputs[i].path))
                return tess_fail(error, TESS_BAD_OPTION, "%s: is the %s, or a file of it; name another %s",
                                 outputs[i].path, inputs[k].setting, outputs[i].setting);
        }
    if (s->deviation && tess_raster_names(s->output, s->deviation))
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s: is the output, or a file beside it; name another `deviation`", s->deviation);
    return TESS_OK;
}

static tess_status check_settings(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    job->tile = s->tile > 0 ? s->tile : TILE;
    job->overlap = s->overlap >= 0 ? s->overlap : tess_min_i64(OVERLAP, job->tile / 4);
    job->samples = tess_max_i64(1, s->samples);
    if (job->overlap > job->tile / 2)
        return tess_fail(error, TESS_BAD_OPTION, "`overlap` %lld: at most half of `tile` %lld",
                         (long long)job->overlap, (long long)job->tile);
    if (s->deviation && job->samples < 2)
        return tess_fail(error, TESS_BAD_OPTION, "`deviation`: needs `samples` of 2 or more");
    if (s->schedule && s->sampler != TESS_FILL_DDPM)
        return tess_fail(error, TESS_BAD_OPTION, "`schedule`: only the sampler ddpm has one");
    if (s->eta != 0 && s->sampler != TESS_FILL_DDIM)
        return tess_fail(error, TESS_BAD_OPTION, "`eta`: only the sampler ddim has one");
    return check_outputs(s, error);
}

static tess_status open_truth(tess_fill_job *job, tess_error *error)
{
    const tess_raster_info *map = tess_raster_describe(job->raster);
    TESS_TRY(tess_raster_open(job->engine.memory, job->settings->truth, &(tess_raster_settings){0},
                              &job->truth, error));
    const tess_raster_info *truth = tess_raster_describe(job->truth);
    if (truth->height != map->height || truth->width != map->width)
        return tess_fail(error, TESS_BAD_INPUT, "%s: has %lld x %lld pixels, the map %lld x %lld",
                         job->settings->truth, (long long)truth->width, (long long)truth->height,
                         (long long)map->width, (long long)map->height);
    for (int i = 0; i < 6 && truth->has_transform && map->has_transform; i++)
        if (fabs(truth->transform[i] - map->transform[i]) > 1e-6 * fabs(map->transform[i]) + 1e-9)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: has another transform than the map; bring it to the same grid",
                             job->settings->truth);
    return TESS_OK;
}

bool tess_fill_overrides(const tess_fill_job *job)
{
    const tess_fill_settings *s = job->settings;
    const tess_void_rule *rule = &tess_raster_describe(job->raster)->rule;
    return s->nodata_given && rule->avoid && !(rule->exact && rule->value == rule->avoided);
}

static tess_status open_raster(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    const tess_raster_settings settings = {.band = (int)s->band,
                                           .nodata_is = !s->nodata_given   ? TESS_NODATA_OF_FILE
                                                        : isnan(s->nodata) ? TESS_NODATA_NONE
                                                                           : TESS_NODATA_GIVEN,
                                           .nodata = s->nodata,
                                           .mask = s->mask};
    TESS_TRY(tess_raster_open(job->engine.memory, s->input, &settings, &job->raster, error));
    if (tess_fill_overrides(job) && !isnan(tess_raster_describe(job->raster)->nodata))
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: `nodata` %.9g replaces the nodata value %.9g of the file: pixels of %.9g count as heights",
            s->input, s->nodata, tess_raster_describe(job->raster)->nodata,
            tess_raster_describe(job->raster)->nodata);
    if (s->second)
        TESS_TRY(tess_raster_second(job->engine.memory, s->second, job->raster, &(tess_raster_settings){0},
                                    TESS_BILINEAR, &job->second, error));
    if (s->truth)
        TESS_TRY(open_truth(job, error));
    const tess_fill_map_settings wanted = {.inner = s->voids == TESS_FILL_INNER && !s->mask,
                                           .most_distance = s->most_distance,
                                           .tile = job->tile};
    const tess_status status = tess_fill_map_open(&job->map, job->raster, job->second, job->engine.memory,
                                                  &wanted, &job->engine.stop, error);
    if (status != TESS_OK && status != TESS_INTERRUPTED &&
        strncmp(error->text, s->input, strlen(s->input)) != 0) /* reading names the file itself */
        return tess_fail_prefix(error, status, s->input);
    TESS_TRY(status);
    return tess_fill_list_open(&job->list, &job->map, job->tile, job->overlap, error);
}

/* How the model takes its input, and the calibration of its deviations. */
static tess_status read_metadata(tess_fill_job *job, tess_error *error)
{
    const char *name = job->settings->model, *kind = tess_weights_metadata(job->file, "conditioning"),
               *factor = tess_weights_metadata(job->file, "deviation_factor");
    if (kind && strcmp(kind, "smooth") != 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: its metadata has the conditioning \"%s\"; expected \"smooth\" or none", name,
                         kind);
    job->conditioned = kind != NULL;
    const int64_t channels = kind ? TESS_CONDITIONS + 1 : 2;
    if (job->net.channels != channels)
        return tess_fail(
            error, TESS_BAD_INPUT, "%s: takes %lld channels; expected %lld, %s and the noisy map", name,
            (long long)job->net.channels, (long long)channels, kind ? "the conditions" : "the map");
    if (kind && job->settings->scaling == TESS_FILL_GLOBAL)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`scaling` global: %s scales heights by what a smooth fill misses; use tile", name);
    if (!factor)
        return TESS_OK;
    char *end;
    job->deviation_factor = strtod(factor, &end);
    if (end == factor || *end || !(job->deviation_factor > 0 && job->deviation_factor < 100))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: its metadata has the deviation_factor \"%s\"; expected a number above 0", name,
                         factor);
    return TESS_OK;
}

static tess_status open_network(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    tess_engine *e = &job->engine;
    if (!s->model)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`model`: name the weight file of a diffusion model, .pth or "
                         ".safetensors");
    TESS_TRY(tess_model_find(s->model, job->model_path, sizeof job->model_path, error));
    TESS_TRY(tess_model_open(job->model_path, &job->file, error));
    TESS_TRY(tess_diffusion_recognise(job->file, &job->net, error));
    TESS_TRY(read_metadata(job, error));
    if (job->tile % job->net.grid != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`tile` %lld: must be a multiple of %lld for this model",
                         (long long)job->tile, (long long)job->net.grid);
    TESS_TRY(tess_bound_create(job->net.embedding, e->device, TESS_F32, &job->embedding, error));
    TESS_TRY(tess_bound_create(job->net.step, e->device, e->dtype, &job->step, error));
    if (e->tf32)
        tess_bound_allow_tf32(job->step);
    return TESS_OK;
}

static tess_status make_steps(tess_fill_job *job, tess_error *error)
{
    static const int usual[] = {[TESS_FILL_DPMPP] = 20, [TESS_FILL_DDIM] = 50, [TESS_FILL_DDPM] = 512};
    static const tess_sampler_kind kinds[] = {[TESS_FILL_DPMPP] = TESS_SAMPLER_DPMPP,
                                              [TESS_FILL_DDIM] = TESS_SAMPLER_DDIM,
                                              [TESS_FILL_DDPM] = TESS_SAMPLER_DDPM};
    const tess_fill_settings *s = job->settings;
    const bool ddpm = s->sampler == TESS_FILL_DDPM;
    job->step_count = s->steps > 0 ? s->steps : usual[s->sampler];
    tess_schedule_settings schedule = tess_schedule_default(ddpm ? job->step_count : SCHEDULE_STEPS);
    if (s->schedule)
        TESS_TRY(tess_schedule_parse(s->schedule, &schedule, error));
    TESS_TRY(tess_schedule_make(&schedule, &job->schedule, error));
    if (tess_schedule_warns(&job->schedule, job->warning, sizeof job->warning))
        tess_note(&s->common, TESS_NOTE_WARNING, "%s", job->warning);
    job->steps = (tess_steps_settings){.kind = kinds[s->sampler],
                                       .schedule = &job->schedule,
                                       .count = ddpm ? 0 : job->step_count,
                                       .eta = s->eta};
    return TESS_OK;
}

tess_sampler_settings tess_fill_sampler_settings(const tess_fill_job *job, bool guided, int64_t batch)
{
    tess_sampler_settings settings = {.device = job->engine.device,
                                      .net = &job->net,
                                      .embedding = job->embedding,
                                      .step = job->step,
                                      .steps = job->steps,
                                      .seed = job->settings->common.seed,
                                      .height = job->tile,
                                      .width = job->tile,
                                      .batch = batch};
    settings.steps.start_gamma = guided && !job->conditioned ? GUIDED_GAMMA : 0;
    return settings;
}

tess_raster_target tess_fill_target(const tess_fill_settings *settings)
{
    static const tess_world worlds[] = {[TESS_FILL_NO_WORLD] = TESS_WORLD_NONE,
                                        [TESS_FILL_WORLD] = TESS_WORLD_CENTRE,
                                        [TESS_FILL_WORLD_CORNER] = TESS_WORLD_CORNER};
    return (tess_raster_target){.format = settings->format,
                                .creation = settings->creation,
                                .world = worlds[settings->world],
                                .overwrite = settings->overwrite};
}

static uint64_t held_bytes(const tess_fill_job *job)
{
    const tess_fill_journal_settings journal = {.tiles = job->list.count, .most = 2 * job->tile * job->tile};
    tess_mem_usage held;
    tess_memory_held(job->engine.memory, TESS_MEM_OF_PROCESS, &held);
    return held.total + tess_fill_journal_bytes(&journal);
}

/* While the tiles are put together and the output is written. */
static tess_status write_bytes(const tess_fill_job *job, uint64_t *bytes, tess_error *error)
{
    const tess_raster_target target = tess_fill_target(job->settings);
    tess_raster_bytes output;
    TESS_TRY(tess_raster_output_plan(job->raster, job->settings->output, &target, &output, error));
    const size_t like = job->settings->deviation ? tess_raster_like_bytes(job->raster) : 0,
                 blend = tess_fill_blend_bytes(&job->map, job->tile),
                 compare = job->truth ? tess_fill_compare_bytes(&job->map) : 0,
                 most = blend > compare ? blend : compare;
    *bytes = held_bytes(job) + output.held + like + (most > output.commit ? most : output.commit);
    return TESS_OK;
}

/* Everything that is held while tiles are computed. */
static tess_mem_bytes all_bytes(const tess_fill_job *job, const tess_sampler *sampler, int64_t batch)
{
    tess_device *device = job->engine.device;
    tess_mem_bytes bytes = tess_sampler_bytes(sampler);
    bytes.by[TESS_MEM_WEIGHTS] += device->memory->granted(device, tess_bound_weight_bytes(job->embedding)) +
                                  device->memory->granted(device, tess_bound_weight_bytes(job->step));
    bytes.by[TESS_MEM_HOST] += held_bytes(job) + tess_fill_stage_bytes(job, batch);
    if (!job->engine.separate_memory) {
        bytes.by[TESS_MEM_IO] += bytes.by[TESS_MEM_HOST];
        bytes.by[TESS_MEM_HOST] = 0;
    }
    return bytes;
}

static tess_status plan_batch(tess_fill_job *job, int64_t batch, bool *fits, tess_error *error)
{
    tess_sampler *sampler = NULL;
    const tess_sampler_settings settings = tess_fill_sampler_settings(job, job->list.guided > 0, batch);
    TESS_TRY(tess_sampler_create(&settings, &sampler, error));
    job->batch = batch;
    job->planned = all_bytes(job, sampler, batch);
    uint64_t writing = 0;
    const tess_status status = write_bytes(job, &writing, error);
    job->planned_total = tess_mem_total(&job->planned);
    if (!job->engine.separate_memory && writing > job->planned_total)
        job->planned_total = writing;
    *fits = job->planned_total <= job->limit;
    bool measured = true;
    const double step = tess_rates_plan_seconds(job->engine.rates, tess_sampler_net_plan(sampler), &measured);
    const double items = (double)(job->list.count * job->samples), batches = ceil(items / (double)batch);
    job->planned_seconds = batches * (double)tess_sampler_steps_of(sampler)->count * step;
    job->calibrated = measured;
    tess_sampler_destroy(sampler);
    return status;
}

static tess_status choose_batch(tess_fill_job *job, tess_error *error)
{
    const tess_common *common = &job->settings->common;
    const int64_t items = tess_max_i64(1, job->list.count * job->samples),
                  most = job->engine.separate_memory ? MOST_BATCH : MOST_BATCH_CPU;
    job->limit = common->memory_limit ? common->memory_limit : tess_engine_free_limit(&job->engine);
    int64_t batch = job->settings->batch > 0 ? job->settings->batch : tess_min_i64(items, most);
    for (bool fits = false; !fits;) {
        TESS_TRY(plan_batch(job, batch, &fits, error));
        if (!fits && (batch == 1 || job->settings->batch > 0))
            return tess_fail(
                error, TESS_NO_MEMORY,
                "`memory_limit` of %.0f MiB is too little for batches of %lld tiles: make it %.0f MiB",
                (double)job->limit / 1048576, (long long)batch, ceil((double)job->planned_total / 1048576));
        batch = fits ? batch : batch / 2;
    }
    return TESS_OK;
}

tess_status tess_fill_open(tess_fill_job *job, tess_memory *memory, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    const char *const files[] = {s->input, s->output, s->mask, s->truth, s->second, s->deviation, s->model};
    job->deviation_factor = 1;
    TESS_TRY(tess_engine_open(&job->engine, memory, &s->common, error));
    TESS_TRY(tess_record_apart(&s->common, files, sizeof files / sizeof files[0], error));
    TESS_TRY(check_settings(job, error));
    TESS_TRY(open_raster(job, error));
    TESS_TRY(open_network(job, error));
    TESS_TRY(make_steps(job, error));
    return choose_batch(job, error);
}

void tess_fill_close(tess_fill_job *job)
{
    tess_device *device = job->engine.device;
    tess_fill_journal_close(job->journal, false);
    if (device) {
        device->memory->free(device, &job->embedding_weights);
        device->memory->free(device, &job->step_weights);
    }
    tess_schedule_clear(&job->schedule);
    tess_bound_destroy(job->embedding);
    tess_bound_destroy(job->step);
    tess_diffusion_clear(&job->net);
    tess_weights_close(job->file);
    tess_fill_list_close(&job->list);
    tess_fill_map_close(&job->map);
    tess_raster_close(job->truth);
    tess_raster_close(job->second);
    tess_raster_close(job->raster);
    tess_engine_close(&job->engine);
}
