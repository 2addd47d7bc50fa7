/* Phase 2 of bench stats: epochs of the autoencoder that cuvis.ai's stress tests train: min-max, four linear layers over 20, 10 and
 * 20 channels, and the mean squared difference from their input. Its steps are those of `train`: one pass and one update, each a
 * captured graph where the device has them, while the next batch is prepared. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "job/study/bench_stats.h"
#include "model/spectral/network.h"
#include "plan/training.h"
#include "train/config.h"
#include "train/feed.h"
#include "train/schedule.h"

enum { MOST_PARTS = 64, LEAST_REPEATS = 2, DEPTH = 2 };

/* Cubes of the host's memory, in their order. */
typedef struct memory_source {
    tess_source source; /* first */
    const tess_stats_data *data;
} memory_source;

typedef struct epochs {
    tess_stats_device *device;
    const tess_stats_data *data;
    tess_stats_point *point;
    tess_train_config config; /* optimizer and schedule alone */
    tess_train_state state;
    tess_spectral_plan *plan;
    tess_spectral_state fitted;
    tess_net *net;
    tess_training *training;
    tess_training_choice choice;
    memory_source source;
    tess_data_queue *queue; /* NULL: cubes are where the device computes */
    tess_feed feed;
    tess_batch held[MOST_PARTS + 1];
    int holds;
    bool fed; /* the first part of the next step is on its way */
} epochs;

static const float *cube_at(const tess_stats_data *d, const void *base, int64_t number)
{
    const int64_t cube = number % d->load.samples % d->distinct;
    return (const float *)base + cube * d->load.side * d->load.side * d->load.channels;
}

static size_t source_bytes(const tess_source *source, int workers)
{
    (void)source, (void)workers;
    return 0;
}

static tess_status source_begin(tess_source *source, int workers, tess_error *error)
{
    (void)source, (void)workers, (void)error;
    return TESS_OK;
}

static tess_status source_draw(tess_source *source, const tess_sample *sample,
                               void *const arrays[TESS_DATA_ARRAYS], tess_error *error)
{
    const tess_stats_data *d = ((memory_source *)source)->data;
    (void)error;
    memcpy(arrays[0], cube_at(d, d->block.data, sample->step * d->load.batch + sample->index),
           tess_stats_bytes(d) / (size_t)d->distinct);
    return TESS_OK;
}

static void source_close(tess_source *source)
{
    (void)source;
}

static const tess_source_table memory_table = {.name = "memory",
                                               .bytes = source_bytes,
                                               .begin = source_begin,
                                               .draw = source_draw,
                                               .close = source_close};

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

/* Phase 1, whose time is another record's. */
static tess_status fit(epochs *e, tess_stats_data *data, tess_error *error)
{
    tess_engine *engine = &e->device->engine;
    const tess_pixel_set set = tess_stats_set(data, e->point->resident);
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

static tess_status plan_step(epochs *e, const tess_precision *precision, tess_error *error)
{
    tess_engine *engine = &e->device->engine;
    const tess_stats_load *l = &e->data->load;
    bool trained[TESS_PIPELINE_NODES] = {false}, masks = false;
    uint64_t least = 0;
    for (int i = 0; i < e->plan->pipeline.count; i++)
        trained[i] = tess_node_trainable(&e->plan->pipeline.nodes[i]);
    TESS_TRY(tess_spectral_trainer(e->plan, trained, &e->net, &masks, error));
    const tess_training_request request = {.settings = {.dtype = precision->dtype,
                                                        .n = l->batch,
                                                        .h = l->side,
                                                        .w = l->side,
                                                        .optimize = tess_train_config_optimize(&e->config),
                                                        .tf32 = precision->tf32,
                                                        .pair_gradients = true},
                                           .recompute_auto = true,
                                           .limit = tess_engine_free_limit(engine) / 10 * 9};
    TESS_TRY(tess_plan_training(e->net, engine->device, engine->rates, &request, &e->choice, &e->training,
                                &least, error));
    e->point->planned = tess_training_bytes(e->training);
    return tess_training_prepare(e->training, error);
}

static tess_status set_values(epochs *e, tess_error *error)
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

static tess_status open_queue(epochs *e, tess_error *error)
{
    const tess_stats_load *l = &e->data->load;
    tess_engine *engine = &e->device->engine;
    e->source =
        (memory_source){.source = {.table = &memory_table,
                                   .arrays = 1,
                                   .role = {TESS_DATA_INPUT},
                                   .array = {tess_tensor_2d(TESS_F32, 1, l->side, l->side, l->channels)},
                                   .items = l->samples},
                        .data = e->data};
    if (e->point->resident)
        return TESS_OK;
    const tess_data_settings settings = {.source = &e->source.source,
                                         .device = engine->device,
                                         .stop = &engine->stop,
                                         .batch = l->batch,
                                         .parts = e->choice.micro_batches,
                                         .depth = e->choice.micro_batches + DEPTH,
                                         .workers = engine->device->host_memory ? 1 : 0};
    TESS_TRY(tess_feed_open(&e->feed, engine->device, e->training, &e->source.source, 0, error));
    return tess_data_open(&settings, &e->queue, error);
}

/* Part `part` of the batch of a step becomes the input. Neighbours are copied together. */
static tess_status feed(epochs *e, int64_t step, int part, tess_error *error)
{
    if (e->queue) {
        tess_batch *batch = &e->held[e->holds];
        TESS_TRY(tess_data_take(e->queue, batch, error));
        e->holds++;
        tess_feed_batch(&e->feed, batch);
        return TESS_OK;
    }
    tess_device *device = e->device->engine.device;
    const tess_stats_data *d = e->data;
    const size_t bytes = tess_stats_bytes(d) / (size_t)d->distinct;
    const int64_t count = d->load.batch / e->choice.micro_batches,
                  first = step * d->load.batch + part * count;
    tess_tensor tensor;
    char *to = tess_training_input(e->training, 0, &tensor);
    for (int64_t i = 0, run; i < count; i += run) {
        const char *from = (const char *)cube_at(d, d->base, first + i);
        for (run = 1; i + run < count; run++)
            if ((const char *)cube_at(d, d->base, first + i + run) != from + (size_t)run * bytes)
                break;
        device->memory->copy(device, to + (size_t)i * bytes, from, (size_t)run * bytes, NULL);
    }
    return TESS_OK;
}

static tess_status step(epochs *e, tess_error *error)
{
    double control[TESS_CONTROLS];
    const int64_t number = e->state.step;
    tess_train_control(&e->config, &e->state, control);
    tess_training_control(e->training, control, NULL);
    for (int m = 0; m < e->choice.micro_batches; m++) {
        if (!e->fed)
            TESS_TRY(feed(e, number, m, error));
        e->fed = false;
        tess_training_pass(e->training, m, NULL);
    }
    tess_training_update(e->training, NULL);
    TESS_TRY(feed(e, number + 1, 0, error));
    e->fed = true;
    TESS_TRY(tess_training_result(e->training, NULL, &e->state.loss, &e->state.norm, error));
    for (int i = 0; i < e->holds; i++)
        tess_data_release(e->queue, &e->held[i]);
    e->holds = 0;
    const bool finite = isfinite(e->state.loss) && isfinite(e->state.norm);
    if (!tess_train_state_advance(&e->state, control[TESS_CONTROL_LOSS_SCALE] != 1, finite))
        return tess_fail(error, TESS_INTERNAL, "the loss of step %lld is %g", (long long)number,
                         e->state.loss);
    return tess_stop_check(&e->device->engine.stop, error);
}

/* The first epoch warms up; then until the settings' seconds are over, but two at least. */
static tess_status time_epochs(epochs *e, const tess_bench_settings *s, tess_error *error)
{
    double times[TESS_BENCH_REPEATS], begin = 0;
    tess_stats_point *point = e->point;
    int count = -1;
    point->steps = tess_ceil_div(e->data->load.samples, e->data->load.batch);
    while (count < s->repeats && (count < LEAST_REPEATS || tess_clock() - begin < s->seconds)) {
        const double start = tess_clock();
        const clock_t used = clock();
        for (int64_t i = 0; i < point->steps; i++)
            TESS_TRY(step(e, error));
        const double processor = (double)(clock() - used) / CLOCKS_PER_SEC;
        if (count <= 0 || processor < point->processor_seconds)
            point->processor_seconds = processor;
        if (count >= 0)
            times[count] = tess_clock() - start;
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

static tess_status measure(epochs *e, const tess_bench_settings *s, tess_stats_data *data,
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
    TESS_TRY(open_queue(e, error));
    tess_train_state_init(&e->state, &e->config, precision->dtype == TESS_F16);
    return time_epochs(e, s, error);
}

tess_status tess_stats_train(tess_stats_device *d, const tess_bench_settings *s, tess_stats_data *data,
                             const tess_precision *precision, tess_stats_point *point, tess_error *error)
{
    tess_device *device = d->engine.device;
    tess_block card = {0};
    epochs *e = tess_small_alloc(1, sizeof *e);
    if (!e)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a training");
    *e = (epochs){.device = d,
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
    tess_data_close(e->queue);
    tess_feed_close(&e->feed);
    tess_training_destroy(e->training);
    tess_net_destroy(e->net);
    tess_spectral_state_free(&e->fitted);
    tess_spectral_plan_free(e->plan);
    device->memory->free(device, &card);
    tess_small_free(e);
    return status;
}
