/* One point of bench dem: batches follow each other through the sampler's two slots, as those of `fill` do, with upload and
 * download; the time between the ends of two batches counts. On a card the next batch is always queued before the one before
 * it ends, so that the host's work shows only if it is the bottleneck. */
#include <math.h>

#include "base/clock.h"
#include "job/study/bench_dem.h"
#include "plan/limit.h"

static const double WARM_SECONDS = 0.3;
enum { MOST_REPEATS = 1 << 16, SCHEDULE_STEPS = 1000 };

tess_mem_scope tess_dem_scope(const tess_dem_study *dem)
{
    return dem->study.engine.device->host_memory ? TESS_MEM_OF_PROCESS : TESS_MEM_OF_DEVICE;
}

tess_status tess_dem_load(tess_dem_study *dem, tess_error *error)
{
    tess_device *device = dem->study.engine.device;
    const struct {
        const tess_bound *bound;
        tess_block *block;
    } all[] = {{dem->embedding, &dem->embedding_weights}, {dem->step, &dem->step_weights}};
    for (int i = 0; i < 2; i++) {
        TESS_TRY(device->memory->alloc(device, all[i].block, TESS_MEM_WEIGHTS,
                                       tess_bound_weight_bytes(all[i].bound), error));
        TESS_TRY(tess_bound_load(all[i].bound, dem->file, all[i].block->data, error));
    }
    return device->streams->sync(device, NULL, error);
}

void tess_dem_unload(tess_dem_study *dem)
{
    tess_device *device = dem->study.engine.device;
    device->memory->free(device, &dem->embedding_weights);
    device->memory->free(device, &dem->step_weights);
}

static tess_status create(const tess_dem_study *dem, const tess_dem_point *point, tess_sampler **out,
                          tess_error *error)
{
    const tess_bench_settings *s = dem->study.settings;
    const bool ddpm = point->kind == TESS_SAMPLER_DDPM;
    const tess_schedule_settings wanted = tess_schedule_default(ddpm ? s->steps : SCHEDULE_STEPS);
    tess_diffusion_schedule schedule = {0};
    *out = NULL;
    TESS_TRY(tess_schedule_make(&wanted, &schedule, error));
    const tess_sampler_settings settings = {
        .device = dem->study.engine.device,
        .net = &dem->net,
        .embedding = dem->embedding,
        .step = dem->step,
        .steps = {.kind = point->kind, .schedule = &schedule, .count = ddpm ? 0 : s->steps},
        .seed = s->common.seed,
        .height = s->tile,
        .width = s->tile,
        .batch = point->batch,
        .one_size = true};
    const tess_status status = tess_sampler_create(&settings, out, error);
    tess_schedule_clear(&schedule);
    return status;
}

static tess_status prepare(const tess_dem_study *dem, tess_sampler *sampler, tess_error *error)
{
    return tess_sampler_prepare(sampler, dem->embedding_weights.data, dem->step_weights.data, error);
}

static tess_sampler_batch tiles_of(const tess_dem_study *dem, int64_t count)
{
    tess_sampler_batch tiles = dem->tiles;
    tiles.n = count;
    return tiles;
}

static tess_mem_bytes planned_bytes(const tess_dem_study *dem, const tess_sampler *sampler)
{
    tess_device *device = dem->study.engine.device;
    tess_mem_bytes bytes = tess_sampler_bytes(sampler);
    bytes.by[TESS_MEM_WEIGHTS] += device->memory->granted(device, tess_bound_weight_bytes(dem->embedding)) +
                                  device->memory->granted(device, tess_bound_weight_bytes(dem->step));
    return bytes;
}

static tess_status plan_bytes(const tess_dem_study *dem, const tess_sampler *sampler, tess_dem_point *point,
                              tess_error *error)
{
    point->result.planned = planned_bytes(dem, sampler);
    const uint64_t limit = dem->study.settings->common.memory_limit,
                   needed = tess_mem_total(&point->result.planned);
    if (limit == 0 || needed <= limit)
        return TESS_OK;
    return tess_fail(error, TESS_OVER_LIMIT,
                     "`memory_limit` %s is too little for batches of %lld tiles: `memory_limit` %s would do",
                     tess_size_words(limit).text, (long long)point->batch, tess_size_enough(needed).text);
}

/* Plans twice: the device may choose other kernels once they are measured. */
tess_status tess_dem_warm(tess_dem_study *dem, tess_dem_point *point, tess_error *error)
{
    const tess_engine *engine = &dem->study.engine;
    tess_device_facts facts;
    tess_sampler *sampler = NULL;
    TESS_TRY(create(dem, point, &sampler, error));
    engine->device->facts(engine->device, &facts);
    const tess_rates_budget budget = {TESS_BENCH_CALIBRATION, facts.memory_free / 10 * 9, false};
    tess_status status = plan_bytes(dem, sampler, point, error);
    if (status == TESS_OK)
        status = tess_rates_tune(engine->rates, tess_sampler_net_plan(sampler), budget, error);
    if (status == TESS_OK)
        status = tess_rates_measure(engine->rates, tess_sampler_net_plan(sampler), budget, error);
    tess_sampler_destroy(sampler);
    TESS_TRY(status);
    TESS_TRY(create(dem, point, &sampler, error));
    const tess_sampler_batch tiles = tiles_of(dem, point->batch);
    status = prepare(dem, sampler, error);
    if (status == TESS_OK)
        status = tess_sampler_run(sampler, &tiles, dem->result, error);
    tess_sampler_destroy(sampler);
    return status;
}

/* Fills `times` and says how many. */
static tess_status time_batches(tess_dem_study *dem, tess_sampler *sampler, tess_dem_point *point,
                                double *times, tess_error *error)
{
    const tess_bench_settings *s = dem->study.settings;
    tess_device *device = dem->study.engine.device;
    const int64_t ahead = device->host_memory ? 0 : 1; /* batches that are queued while one is waited for */
    const double warm = device->host_memory ? 0 : WARM_SECONDS, start = tess_clock();
    const tess_sampler_batch tiles = tiles_of(dem, point->batch);
    tess_meter *meter = NULL;
    double first = 0, last = 0;
    tess_status status = TESS_OK;
    int64_t i = 0, count = -1; /* -1: warming up */
    for (bool more = true; more && status == TESS_OK; i++) {
        status = tess_sampler_submit(sampler, (int)(i % TESS_SAMPLER_SLOTS), &tiles, error);
        if (status != TESS_OK || i < ahead)
            continue;
        status = tess_sampler_wait(sampler, (int)((i - ahead) % TESS_SAMPLER_SLOTS), dem->result, error);
        const double now = tess_clock();
        if (count >= 0)
            times[count++] = now - last;
        last = now;
        if (count < 0 && now - start >= warm) {
            count = 0;
            meter = tess_meter_begin(device);
            first = last = tess_clock();
        }
        more = count < s->repeats || (last - first < s->seconds && count < MOST_REPEATS);
    }
    point->reading = tess_meter_end(device, meter);
    point->repeats = count;
    if (status == TESS_OK && ahead > 0)
        status = tess_sampler_wait(sampler, (int)((i - 1) % TESS_SAMPLER_SLOTS), dem->result, error);
    return status;
}

static void count_bytes(const tess_dem_study *dem, tess_bench_result *r)
{
    const uint64_t used = tess_bench_used(dem->study.engine.device);
    tess_memory_peak(dem->study.engine.memory, tess_dem_scope(dem), &r->counted);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        r->counted.bytes.by[c] -= dem->held.bytes.by[c];
    r->counted.total -= dem->held.total;
    r->driver_bytes = used > dem->study.base ? used - dem->study.base : 0;
}

static tess_status measure(tess_dem_study *dem, tess_sampler *sampler, tess_dem_point *point, double *times,
                           tess_error *error)
{
    tess_bench_result *r = &point->result;
    const tess_engine *engine = &dem->study.engine;
    bool measured = true;
    TESS_TRY(plan_bytes(dem, sampler, point, error));
    point->planned_seconds =
        (double)tess_sampler_steps_of(sampler)->count *
        tess_rates_plan_seconds(engine->rates, tess_sampler_net_plan(sampler), &measured);
    point->calibrated = measured;
    r->flop = tess_sampler_flops(sampler, point->batch);
    tess_memory_reset_peak(engine->memory);
    TESS_TRY(prepare(dem, sampler, error));
    TESS_TRY(time_batches(dem, sampler, point, times, error));
    count_bytes(dem, r);
    r->seconds = tess_bench_median(times, point->repeats, &r->spread);
    return TESS_OK;
}

tess_status tess_dem_measure(tess_dem_study *dem, tess_dem_point *point, tess_error *error)
{
    tess_sampler *sampler = NULL;
    TESS_TRY(create(dem, point, &sampler, error));
    double *times = tess_small_alloc(MOST_REPEATS, sizeof *times);
    const tess_status status = times ? measure(dem, sampler, point, times, error)
                                     : tess_fail(error, TESS_NO_MEMORY, "no memory for a point of the study");
    tess_small_free(times);
    tess_sampler_destroy(sampler);
    return status;
}
