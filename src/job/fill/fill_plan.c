/* Plans a run: its bytes, its seconds, and the batch that fits the limit. */
#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "job/common/choice.h"
#include "job/fill/fill_job.h"
#include "plan/limit.h"

enum { MOST_BATCH = 64, MOST_BATCH_CPU = 4 };

/* Samples of tiles of a rank. */
static int64_t share_of(const tess_fill_job *job)
{
    return tess_ceil_div(job->list.count * job->samples, job->engine.dist->size);
}

/* The same of the largest group: groups follow each other. */
static int64_t largest_share(const tess_fill_job *job)
{
    int64_t most = 0;
    for (int level = 0; level < job->map.count; level++)
        for (int guided = 0; guided < 2; guided++) {
            int64_t first;
            const int64_t end = tess_fill_list_group(&job->list, level, guided, &first);
            most = tess_max_i64(most, end - first);
        }
    return tess_ceil_div(most * job->samples, job->engine.dist->size);
}

static uint64_t held_bytes(const tess_fill_job *job)
{
    const tess_fill_journal_settings journal = {.tiles = job->list.count, .most = 2 * job->tile * job->tile};
    const tess_fill_level *map = &job->map.levels[0];
    tess_mem_usage held;
    tess_memory_held(job->engine.memory, TESS_MEM_OF_PROCESS, &held);
    return held.total + tess_fill_journal_bytes(&journal) +
           (job->map.count > 0 ? 0 : tess_fill_map_bytes(map->height, map->width));
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

static tess_status plan_bytes(tess_fill_job *job, const tess_sampler *sampler, int64_t batch,
                              tess_error *error)
{
    uint64_t writing = 0;
    TESS_TRY(write_bytes(job, &writing, error));
    job->batch = batch;
    job->planned = all_bytes(job, sampler, batch);
    job->planned_total = tess_mem_total(&job->planned);
    if (job->engine.separate_memory) {
        tess_memory_plan(job->engine.memory, TESS_MEM_OF_DEVICE, job->planned_total);
        return TESS_OK;
    }
    /* The network is gone when the output is written. Each category has its own peak, as it is measured. */
    if (writing > job->planned_total)
        job->planned_total = writing;
    if (writing > job->planned.by[TESS_MEM_IO])
        job->planned.by[TESS_MEM_IO] = writing;
    tess_memory_plan(job->engine.memory, TESS_MEM_OF_PROCESS, job->planned_total);
    return TESS_OK;
}

static tess_status plan_batch(tess_fill_job *job, int64_t batch, bool *fits, tess_error *error)
{
    tess_sampler *sampler = NULL;
    const tess_sampler_settings settings = tess_fill_sampler_settings(job, job->list.guided > 0, batch);
    TESS_TRY(tess_sampler_create(&settings, &sampler, error));
    const tess_status status = plan_bytes(job, sampler, batch, error);
    *fits = job->planned_total <= job->limit;
    bool measured = true;
    const double step = tess_rates_plan_seconds(job->engine.rates, tess_sampler_net_plan(sampler), &measured);
    const double items = (double)share_of(job), batches = ceil(items / (double)batch);
    job->planned_seconds = batches * (double)tess_sampler_steps_of(sampler)->count * step;
    job->calibrated = measured;
    tess_sampler_destroy(sampler);
    return status;
}

/* In each batch the tiles go to the device once and come back once. */
tess_status tess_fill_list_work(const tess_fill_job *job, tess_work *work, tess_error *error)
{
    const double items = (double)(job->list.count * job->samples);
    const int64_t batch = tess_max_i64(
        1, job->settings->batch > 0 ? job->settings->batch : tess_min_i64(MOST_BATCH_CPU, (int64_t)items));
    const tess_sampler_settings settings = tess_fill_sampler_settings(job, job->list.guided > 0, batch);
    tess_work_phase *phase = tess_work_begin(work, "fill", "tiles");
    tess_sampler *sampler = NULL;
    TESS_TRY(tess_sampler_create(&settings, &sampler, error));
    const double steps = (double)tess_sampler_steps_of(sampler)->count;
    tess_work_add_net(work, phase, job->engine.rates, tess_sampler_net_plan(sampler),
                      steps * items / (double)batch);
    tess_sampler_destroy(sampler);
    phase->up = items * (double)(job->tile * job->tile * job->net.channels) * (double)sizeof(float);
    phase->down = items * (double)(job->tile * job->tile) * (double)sizeof(float);
    phase->pieces = phase->copies = ceil(items / (double)batch);
    phase->copies_overlap = true;
    work->shapes = items > 0 ? 1 : 0;
    work->weight_bytes = items > 0 ? 4 * (double)job->net.parameters : 0;
    work->card_precision = tess_choice_card_precision(job->settings->common.precision, "F16");
    return TESS_OK;
}

/* `least`: before the map is read, when its voids may need more. */
static tess_status over_limit(const tess_fill_job *job, bool least, tess_error *error)
{
    const uint64_t asked = job->settings->common.memory_limit;
    const tess_fill_level *map = &job->map.levels[0];
    char head[96], what[96];
    if (asked)
        snprintf(head, sizeof head, "`memory_limit` %s is", tess_size_words(asked).text);
    else
        snprintf(head, sizeof head, "%.1fM of free memory are",
                 floor(10 * (double)job->limit / 1048576) / 10);
    if (least)
        snprintf(what, sizeof what, "a map of %lld x %lld pixels and tiles of %lld", (long long)map->width,
                 (long long)map->height, (long long)job->tile);
    else
        snprintf(what, sizeof what, "batches of %lld tile%s of this map", (long long)job->batch,
                 job->batch == 1 ? "" : "s");
    return tess_fail(error, TESS_OVER_LIMIT, "%s too little for %s: %s%s%s", head, what,
                     asked ? "`memory_limit` " : "", tess_size_enough(job->planned_total).text,
                     least   ? " or more is needed"
                     : asked ? " would do"
                             : " are needed");
}

tess_status tess_fill_plan_least(tess_fill_job *job, tess_error *error)
{
    const tess_common *common = &job->settings->common;
    const tess_raster_info *info = tess_raster_describe(job->raster);
    bool fits;
    job->limit = common->memory_limit ? common->memory_limit : tess_engine_free_limit(&job->engine);
    job->map.levels[0].height = info->height;
    job->map.levels[0].width = info->width;
    TESS_TRY(plan_batch(job, tess_max_i64(1, job->settings->batch), &fits, error));
    return fits ? TESS_OK : over_limit(job, true, error);
}

tess_status tess_fill_plan(tess_fill_job *job, tess_error *error)
{
    const int64_t items = tess_max_i64(1, largest_share(job)),
                  most = job->engine.separate_memory ? MOST_BATCH : MOST_BATCH_CPU;
    int64_t batch = job->settings->batch > 0 ? job->settings->batch : tess_min_i64(items, most);
    for (bool fits = false; !fits; batch /= 2) {
        TESS_TRY(plan_batch(job, batch, &fits, error));
        if (!fits && (batch == 1 || job->settings->batch > 0))
            return over_limit(job, false, error);
    }
    return TESS_OK;
}
