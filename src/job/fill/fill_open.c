/* Opens a run: rasters, network, sampler, and at last the voids, for which the whole map is read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/choice.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/fill/fill_job.h"
#include "tensor/terrain/conditions.h"

/* Guided tiles start here: a third of the signal's energy, so that slopes come from the coarser map and details do not. */
#define GUIDED_GAMMA 0.3

enum { TILE = 128, OVERLAP = 12, SCHEDULE_STEPS = 1000 };

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
    TESS_TRY(tess_raster_open(job->engine.memory, job->settings->truth,
                              &(tess_raster_settings){.stop = &job->engine.stop}, &job->truth, error));
    const tess_raster_info *truth = tess_raster_describe(job->truth);
    if (truth->height != map->height || truth->width != map->width)
        return tess_fail(error, TESS_BAD_INPUT, "%s: has %lld x %lld pixels, the map %lld x %lld",
                         job->settings->truth, (long long)truth->width, (long long)truth->height,
                         (long long)map->width, (long long)map->height);
    if (truth->has_transform && map->has_transform &&
        !(tess_raster_shift(map, truth->transform) < TESS_RASTER_SAME_PLACE))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: is of another place: its transform is not the map's, by %.3g pixels; bring it "
                         "to the same grid",
                         job->settings->truth, tess_raster_shift(map, truth->transform));
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
                                           .mask = s->mask,
                                           .stop = &job->engine.stop};
    TESS_TRY(tess_raster_open(job->engine.memory, s->input, &settings, &job->raster, error));
    if (tess_fill_overrides(job) && !isnan(tess_raster_describe(job->raster)->nodata))
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: `nodata` %.9g replaces the nodata value %.9g of the file: pixels of %.9g count as heights",
            s->input, s->nodata, tess_raster_describe(job->raster)->nodata,
            tess_raster_describe(job->raster)->nodata);
    if (s->second)
        TESS_TRY(tess_raster_second(job->engine.memory, s->second, job->raster,
                                    &(tess_raster_settings){.stop = &job->engine.stop}, TESS_BILINEAR,
                                    &job->second, error));
    if (s->truth)
        TESS_TRY(open_truth(job, error));
    return TESS_OK;
}

/* Reads the whole maps: everything that can fail without that has been tried before. */
static tess_status open_map(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    const tess_fill_map_settings wanted = {.inner = s->voids == TESS_FILL_INNER && !s->mask,
                                           .declared_only = s->nodata_given && isnan(s->nodata),
                                           .most_distance = s->most_distance,
                                           .tile = job->tile};
    tess_memory *memory = job->engine.memory;
    tess_stop *stop = &job->engine.stop;
    if (job->second)
        TESS_TRY(tess_fill_look_at(job->second, memory, stop, &job->second_look, error));
    if (job->truth)
        TESS_TRY(tess_fill_look_at(job->truth, memory, stop, &job->truth_look, error));
    const tess_status status =
        tess_fill_map_open(&job->map, job->raster, job->second, memory, &wanted, stop, error);
    if (status != TESS_OK && status != TESS_INTERRUPTED &&
        strncmp(error->text, s->input, strlen(s->input)) != 0) /* reading names the file itself */
        return tess_fail_prefix(error, status, s->input);
    TESS_TRY(status);
    tess_fill_note_doubts(job);
    return tess_fill_list_open(&job->list, &job->map, job->tile, job->overlap, error);
}

/* How the model takes its input, and the calibration of its deviations. */
static tess_status read_metadata(tess_fill_job *job, tess_error *error)
{
    const char *name = job->model, *kind = tess_weights_metadata(job->file, "conditioning"),
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

static tess_status bind_network(tess_fill_job *job, tess_error *error)
{
    const tess_engine *e = &job->engine;
    tess_bound_destroy(job->embedding);
    tess_bound_destroy(job->step);
    job->embedding = job->step = NULL;
    TESS_TRY(tess_bound_create(job->net.embedding, e->device, TESS_F32, &job->embedding, error));
    TESS_TRY(tess_bound_create(job->net.step, e->device, e->dtype, &job->step, error));
    if (e->tf32)
        tess_bound_allow_tf32(job->step);
    return TESS_OK;
}

static tess_status open_network(tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    job->model = s->model ? s->model : "dem-fill";
    TESS_TRY(tess_model_find(job->model, job->model_path, sizeof job->model_path, error));
    TESS_TRY(tess_model_open(job->model_path, &job->file, error));
    TESS_TRY(tess_diffusion_recognise(job->file, &job->net, error));
    TESS_TRY(read_metadata(job, error));
    if (job->tile % job->net.grid != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`tile` %lld: must be a multiple of %lld for this model",
                         (long long)job->tile, (long long)job->net.grid);
    return bind_network(job, error);
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

/* Finds now what would fail only after the last tile. */
static tess_status try_outputs(const tess_fill_job *job, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    tess_raster_output *deviation = NULL;
    if (s->deviation) {
        TESS_TRY(tess_raster_like(job->raster, s->deviation, "standard deviation", &deviation, error));
        tess_raster_output_abandon(deviation);
    }
    return tess_fill_journal_check(s->output, s->resume, error);
}

/* Decides on the device when the voids are known, which nothing before depends on. */
static tess_status choose(tess_fill_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    const bool undecided = job->engine.choice.undecided;
    const tess_device *before = job->engine.device;
    if (tess_choice_wants_work(&job->engine)) {
        tess_work work = {0};
        tess_status status = tess_dist_agree(dist, tess_fill_list_work(job, &work, error), error);
        if (status == TESS_OK)
            status = tess_choice_settle(&job->engine, &job->settings->common, &work, error);
        tess_work_clear(&work);
        TESS_TRY(status);
    }
    tess_status status = job->engine.device != before ? bind_network(job, error) : TESS_OK;
    if (status == TESS_OK && undecided)
        status = tess_fill_plan_least(job, error);
    return tess_dist_agree(dist, status, error);
}

static tess_status open_all(tess_fill_job *job, bool plan_only, tess_error *error)
{
    const tess_fill_settings *s = job->settings;
    const char *const files[] = {s->input, s->output, s->mask, s->truth, s->second, s->deviation, s->model};
    TESS_TRY(tess_record_apart(&s->common, files, sizeof files / sizeof files[0], error));
    TESS_TRY(check_settings(job, error));
    TESS_TRY(open_raster(job, error));
    TESS_TRY(open_network(job, error));
    TESS_TRY(make_steps(job, error));
    /* Before the map is read. Where the device is not decided yet, the CPU's least counts, which is a little more
     * than a card's. */
    TESS_TRY(tess_fill_plan_least(job, error));
    if (!plan_only && job->engine.dist->rank == 0)
        TESS_TRY(try_outputs(job, error));
    return open_map(job, error);
}

/* Rank 0's batch is that of all ranks, which plan with the least memory of all. */
static tess_status plan(tess_fill_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    const int64_t items = job->list.count * job->samples;
    TESS_TRY(tess_engine_share_limit(&job->engine, &job->limit, error));
    TESS_TRY(tess_dist_agree(dist, tess_fill_plan(job, error), error));
    if (job->list.count < dist->size && dist->size > 1)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%d ranks share %lld tile(s): %lld of them have nothing to do", dist->size,
                  (long long)job->list.count, (long long)(dist->size - job->list.count));
    return items > 0 ? tess_dist_broadcast(dist, 0, &job->batch, sizeof job->batch, error) : TESS_OK;
}

tess_status tess_fill_open(tess_fill_job *job, tess_context *context, bool plan_only, tess_error *error)
{
    tess_dist *dist = context->dist;
    job->deviation_factor = 1;
    TESS_TRY(tess_choice_open_ranks(&job->engine, dist, &context->memory, &job->settings->common, error));
    TESS_TRY(tess_dist_agree(dist, open_all(job, plan_only, error), error));
    TESS_TRY(tess_engine_same_inputs(&job->engine, tess_fill_fingerprint(job, false), error));
    TESS_TRY(choose(job, error));
    return plan(job, error);
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
