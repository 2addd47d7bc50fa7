/* One point of bench stats: phase 1 of min-max, two PCAs and RX, which one pass serves, over cubes that are in the device's
 * memory or come from the host's. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "job/study/bench_stats.h"

enum { LINK_BYTES = 256 << 20, LINK_COPIES = 4, LINK_ROUNDS = 5, LEAST_REPEATS = 2 };

tess_status tess_stats_link(tess_device *device, double *rate, tess_error *error)
{
    tess_block host = {0}, card = {0};
    *rate = 0;
    if (device->host_memory)
        return TESS_OK;
    tess_status status = device->memory->host_alloc(device, &host, LINK_BYTES, error);
    if (status == TESS_OK)
        status = device->memory->alloc(device, &card, TESS_MEM_IO, LINK_BYTES, error);
    if (status == TESS_OK)
        memset(host.data, 1, LINK_BYTES);
    for (int r = 0; r < LINK_ROUNDS && status == TESS_OK; r++) {
        const double start = tess_clock();
        for (int i = 0; i < LINK_COPIES; i++)
            device->memory->copy(device, card.data, host.data, LINK_BYTES, NULL);
        status = device->streams->sync(device, NULL, error);
        const double now = LINK_COPIES * (double)LINK_BYTES / (tess_clock() - start);
        *rate = now > *rate ? now : *rate;
    }
    device->memory->free(device, &card);
    device->memory->host_free(device, &host);
    return status;
}

static tess_status compile(int64_t channels, tess_spectral_plan **plan, tess_error *error)
{
    char json[512];
    tess_json *parsed = NULL;
    tess_pipeline pipeline;
    snprintf(
        json, sizeof json,
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\", \"name\": \"first\", \"components\": %d}, "
        "{\"kind\": \"pca\", \"name\": \"second\", \"components\": %d}, {\"kind\": \"rx\"}]}",
        (int)tess_min_i64(20, channels), (int)tess_max_i64(1, tess_min_i64(10, channels / 2)));
    TESS_TRY(tess_json_parse(json, strlen(json), &parsed, error));
    tess_status status = tess_pipeline_parse(parsed, &pipeline, error);
    tess_json_free(parsed);
    TESS_TRY(status);
    return tess_spectral_compile(&pipeline, (int)channels, NULL, plan, error);
}

/* The first run warms up; then until the settings' seconds are over, but two at least. */
static tess_status time_runs(tess_stats_device *d, const tess_bench_settings *s, tess_statistics *statistics,
                             const tess_pixel_set *set, tess_stats_point *point, tess_error *error)
{
    double times[TESS_BENCH_REPEATS], begin = 0;
    int count = -1;
    while (count < s->repeats && (count < LEAST_REPEATS || tess_clock() - begin < s->seconds)) {
        const double start = tess_clock();
        const clock_t used = clock();
        TESS_TRY(tess_statistics_fit(statistics, set, error));
        const double processor = (double)(clock() - used) / CLOCKS_PER_SEC;
        if (count <= 0 || processor < point->processor_seconds)
            point->processor_seconds = processor;
        if (count >= 0)
            times[count] = tess_clock() - start;
        else
            begin = tess_clock();
        count++;
        TESS_TRY(tess_stop_check(&d->engine.stop, error));
    }
    point->repeats = count;
    point->seconds = tess_bench_median(times, count, &point->spread);
    return TESS_OK;
}

static tess_status measure_plan(tess_stats_device *d, const tess_bench_settings *s, tess_stats_data *data,
                                tess_spectral_plan *plan, tess_stats_point *point, tess_error *error)
{
    const tess_pixel_set set = tess_stats_set(data, point->resident);
    const tess_pixel_stage_settings settings = {.device = d->engine.device,
                                                .memory = d->engine.memory,
                                                .pool = d->engine.host,
                                                .stop = &d->engine.stop};
    const tess_mem_scope scope = tess_engine_scope(&d->engine);
    tess_spectral_state state = {0};
    tess_statistics *statistics = NULL;
    tess_mem_usage before;
    TESS_TRY(tess_statistics_plan(&settings, plan, &set, &point->planned, error));
    point->planned.by[TESS_MEM_HOST] += tess_block_granted(tess_spectral_state_bytes(plan));
    if (!d->engine.separate_memory) {
        point->planned.by[TESS_MEM_IO] += point->planned.by[TESS_MEM_HOST];
        point->planned.by[TESS_MEM_HOST] = 0;
    }
    tess_memory_held(d->engine.memory, scope, &before);
    tess_memory_reset_peak(d->engine.memory);
    tess_status status = tess_spectral_state_create(d->engine.memory, plan, &state, error);
    if (status == TESS_OK)
        status = tess_statistics_create(&settings, &set, &state, &statistics, error);
    if (status == TESS_OK)
        status = time_runs(d, s, statistics, &set, point, error);
    tess_memory_peak(d->engine.memory, scope, &point->counted);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        point->counted.bytes.by[c] -= before.bytes.by[c];
    point->counted.total -= before.total;
    point->passes = plan->passes;
    tess_statistics_destroy(statistics);
    tess_spectral_state_free(&state);
    return status;
}

tess_status tess_stats_place(tess_device *device, tess_stats_data *data, bool resident, tess_block *card,
                             tess_error *error)
{
    data->base = data->block.data;
    if (!resident || device->host_memory)
        return TESS_OK;
    TESS_TRY(device->memory->alloc(device, card, TESS_MEM_IO, tess_stats_bytes(data), error));
    device->memory->copy(device, card->data, data->block.data, tess_stats_bytes(data), NULL);
    data->base = card->data;
    return device->streams->sync(device, NULL, error);
}

tess_status tess_stats_measure(tess_stats_device *d, const tess_bench_settings *s, tess_stats_data *data,
                               tess_stats_point *point, tess_error *error)
{
    tess_device *device = d->engine.device;
    tess_spectral_plan *plan = NULL;
    tess_block card = {0};
    tess_status status = compile(data->load.channels, &plan, error);
    if (status == TESS_OK)
        status = tess_stats_place(device, data, point->resident, &card, error);
    if (status == TESS_OK)
        status = measure_plan(d, s, data, plan, point, error);
    device->memory->free(device, &card);
    tess_spectral_plan_free(plan);
    return status;
}
