/* Phase 2 of bench stats: epochs of the autoencoder that cuvis.ai's stress tests train: min-max, four linear layers over 20, 10 and
 * 20 channels, and the mean squared difference from their input. Its steps are those of `train`: one pass and one update, each a
 * captured graph where the device has them, while the next batch is prepared. An epoch is timed over the cubes, and as `train` does it,
 * which condenses such cubes first: then a run of five epochs, as in the guide, with the condensing, and an epoch has a fifth of it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/trace.h"
#include "job/study/bench_stats_epochs.h"

enum { LEAST_REPEATS = 2, EPOCHS = 5 };

static tess_status compile(int64_t channels, tess_spectral_plan **plan, tess_error *error)
{
    char json[640];
    tess_json *parsed = NULL;
    tess_pipeline pipeline;
    snprintf(
        json, sizeof json,
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"linear\", \"name\": \"a\", \"channels\": 20}, "
        "{\"kind\": \"linear\", \"name\": \"b\", \"channels\": 10, \"seed\": 1}, "
        "{\"kind\": \"linear\", \"name\": \"c\", \"channels\": 20, \"seed\": 2}, "
        "{\"kind\": \"linear\", \"name\": \"d\", \"channels\": %d, \"seed\": 3}, "
        "{\"kind\": \"mse\", \"target\": \"minmax\"}, {\"kind\": \"residual\", \"target\": \"minmax\"}]}",
        (int)channels);
    TESS_TRY(tess_json_parse(json, strlen(json), &parsed, error));
    const tess_status status = tess_pipeline_parse(parsed, &pipeline, error);
    tess_json_free(parsed);
    TESS_TRY(status);
    return tess_spectral_compile(&pipeline, (int)channels, NULL, plan, error);
}

static tess_pixel_stage_settings stage_of(tess_engine *engine)
{
    return (tess_pixel_stage_settings){
        .device = engine->device, .memory = engine->memory, .pool = engine->host, .stop = &engine->stop};
}

/* Phase 1, whose time is another record's; always in the same blocks: layers of fewer directions than channels have no directions of
 * their own in the rest, so that rounding decides where their training starts. */
static tess_status fit(tess_stats_epochs *e, tess_stats_data *data, tess_error *error)
{
    tess_engine *engine = &e->device->engine;
    const tess_pixel_set set = tess_stats_set(data, false);
    const tess_pixel_stage_settings stage = {
        .device = engine->device, .memory = engine->memory, .pool = engine->host, .stop = &engine->stop};
    tess_statistics *statistics = NULL;
    TESS_TRY(compile(data->load.channels, &e->plan, error));
    TESS_TRY(tess_spectral_state_create(engine->memory, e->plan, &e->fitted, error));
    tess_status status = tess_statistics_create(&stage, &set, &e->fitted, &statistics, error);
    if (status == TESS_OK)
        status = tess_statistics_fit(statistics, &set, error);
    tess_statistics_destroy(statistics);
    return status;
}

static tess_status plan_step(tess_stats_epochs *e, const tess_precision *precision, tess_error *error)
{
    tess_engine *engine = &e->device->engine;
    const tess_tensor sample = tess_stats_sample(e);
    bool trained[TESS_PIPELINE_NODES] = {false}, masks = false;
    uint64_t least = 0;
    for (int i = 0; i < e->plan->pipeline.count; i++)
        trained[i] = tess_node_trainable(&e->plan->pipeline.nodes[i]);
    TESS_TRY(tess_spectral_trainer(e->plan, trained, &e->net, &masks, error));
    const tess_training_request request = {.settings = {.dtype = precision->dtype,
                                                        .n = e->data->load.batch,
                                                        .h = sample.h,
                                                        .w = sample.w,
                                                        .optimize = tess_train_config_optimize(&e->config),
                                                        .tf32 = precision->tf32,
                                                        .pair_gradients = true},
                                           .recompute_auto = true,
                                           .limit = tess_engine_free_limit(engine) / 10 * 9};
    TESS_TRY(tess_plan_training(e->net, engine->device, engine->rates, &request, &e->choice, &e->training,
                                &least, error));
    e->overlap = engine->separate_memory && !tess_trace_profiles(engine->memory->trace) &&
                 tess_steps_overlap(precision->dtype, e->choice.micro_batches);
    e->point->planned = tess_training_bytes(e->training);
    return tess_training_prepare(e->training, error);
}

static tess_status set_values(tess_stats_epochs *e, tess_error *error)
{
    const tess_parameters *parameters = tess_training_parameters(e->training);
    int64_t most = 1;
    for (int i = 0; i < parameters->count; i++)
        most = tess_max_i64(most, parameters->list[i].elements);
    float *values = tess_small_alloc((size_t)most, sizeof *values);
    double *work = tess_small_alloc(tess_spectral_network_workspace(e->plan), sizeof *work);
    tess_status status =
        values && work ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the parameters");
    for (int i = 0; i < parameters->count && status == TESS_OK; i++) {
        const tess_parameter *one = &parameters->list[i];
        status = tess_spectral_get(&e->fitted, one, values, work, error);
        if (status == TESS_OK)
            status = tess_training_set(e->training, one->running ? TESS_STATE_RUNNING : TESS_STATE_PARAMETERS,
                                       one->offset, one->elements, values, error);
    }
    tess_small_free(values);
    tess_small_free(work);
    return status;
}

/* One epoch over the cubes, or a run of condensed ones. */
static tess_status run_once(tess_stats_epochs *e, tess_stats_data *data, tess_error *error)
{
    tess_engine *engine = &e->device->engine;
    tess_stats_point *point = e->point;
    const int64_t steps = point->condensed ? EPOCHS * point->steps : point->steps;
    if (point->condensed) {
        const tess_pixel_set set = tess_stats_cubes(data, point->resident);
        const tess_pixel_stage_settings stage = stage_of(engine);
        const double start = tess_clock();
        TESS_TRY(tess_condense(&stage, &set, &e->path, e->condensed.data, error));
        const double seconds = tess_clock() - start;
        if (point->condense_seconds <= 0 || seconds < point->condense_seconds)
            point->condense_seconds = seconds;
    }
    if (!e->steps.queue)
        TESS_TRY(tess_stats_open_queue(e, error));
    for (int64_t i = 0; i < steps; i++)
        TESS_TRY(tess_stats_step(e, i + 1 == steps, error));
    if (point->condensed)
        tess_stats_close_queue(e);
    return TESS_OK;
}

/* The first run warms up; then until the settings' seconds are over, but two at least. */
static tess_status time_epochs(tess_stats_epochs *e, const tess_bench_settings *s, tess_stats_data *data,
                               tess_error *error)
{
    double times[TESS_BENCH_REPEATS], begin = 0;
    tess_stats_point *point = e->point;
    const int each = point->condensed ? EPOCHS : 1;
    int count = -1;
    point->steps = tess_ceil_div(data->load.samples, data->load.batch);
    while (count < s->repeats && (count < LEAST_REPEATS || tess_clock() - begin < s->seconds)) {
        const double start = tess_clock();
        const clock_t used = clock();
        TESS_TRY(run_once(e, data, error));
        const double processor = (double)(clock() - used) / CLOCKS_PER_SEC / each;
        if (count <= 0 || processor < point->processor_seconds)
            point->processor_seconds = processor;
        if (count >= 0)
            times[count] = (tess_clock() - start) / each;
        else
            begin = tess_clock();
        count++;
    }
    point->repeats = count;
    point->loss = e->state.loss;
    point->micro_batches = e->choice.micro_batches;
    point->seconds = tess_bench_median(times, count, &point->spread);
    return TESS_OK;
}

/* The way of pixels to the network, and room for those that stand for cubes. */
static tess_status open_condensing(tess_stats_epochs *e, tess_error *error)
{
    tess_memory *memory = e->device->engine.memory;
    const tess_stats_load *l = &e->data->load;
    const int at = tess_spectral_network_at(e->plan);
    const size_t values = tess_path_values(e->plan, at),
                 pixels = (size_t)(l->samples * tess_condensed_pixels((int)l->channels) * l->channels);
    if (!e->point->condensed)
        return TESS_OK;
    TESS_TRY(tess_block_alloc(memory, &e->work, TESS_MEM_HOST,
                              (values + tess_spectral_fold_workspace(e->plan)) * sizeof(double), error));
    tess_path_make(&e->fitted, at, e->work.data, (double *)e->work.data + values, &e->path);
    return tess_block_alloc(memory, &e->condensed, TESS_MEM_HOST, pixels * sizeof(float), error);
}

static tess_status measure(tess_stats_epochs *e, const tess_bench_settings *s, tess_stats_data *data,
                           const tess_precision *precision, tess_error *error)
{
    tess_engine *engine = &e->device->engine;
    const tess_mem_scope scope = tess_engine_scope(engine);
    tess_mem_usage before, after;
    TESS_TRY(fit(e, data, error));
    tess_memory_held(engine->memory, scope, &before);
    TESS_TRY(plan_step(e, precision, error));
    tess_memory_held(engine->memory, scope, &after);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
        e->point->counted.bytes.by[c] = after.bytes.by[c] - before.bytes.by[c];
    e->point->counted.total = after.total - before.total;
    TESS_TRY(set_values(e, error));
    TESS_TRY(open_condensing(e, error));
    tess_train_state_init(&e->state, &e->config, precision->dtype == TESS_F16);
    return time_epochs(e, s, data, error);
}

tess_status tess_stats_train(tess_stats_device *d, const tess_bench_settings *s, tess_stats_data *data,
                             const tess_precision *precision, tess_stats_point *point, tess_error *error)
{
    tess_device *device = d->engine.device;
    tess_block card = {0};
    tess_stats_epochs *e = tess_small_alloc(1, sizeof *e);
    if (!e)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a training");
    *e = (tess_stats_epochs){.device = d,
                             .data = data,
                             .point = point,
                             .config = {.optimizer = {.kind = TESS_ADAMW,
                                                      .rate = 1e-3,
                                                      .betas = {0.9, 0.999},
                                                      .epsilon = 1e-8,
                                                      .weight_decay = 0.01,
                                                      .clip = 1},
                                        .schedule = {.kind = TESS_RATE_CONSTANT}}};
    point->precision = precision->name;
    tess_status status = tess_stats_place(device, data, point->resident, &card, error);
    if (status == TESS_OK)
        status = measure(e, s, data, precision, error);
    tess_stats_close_queue(e);
    tess_block_free(&e->condensed);
    tess_block_free(&e->work);
    tess_training_destroy(e->training);
    tess_net_destroy(e->net);
    tess_spectral_state_free(&e->fitted);
    tess_spectral_plan_free(e->plan);
    device->memory->free(device, &card);
    tess_small_free(e);
    return status;
}
