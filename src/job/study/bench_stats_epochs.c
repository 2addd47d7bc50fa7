/* The steps of phase 2 of bench stats, as `train` does them. Batches come through its queue, or, of cubes that are where the device
 * computes, by copies there. */
#include "job/study/bench_stats_epochs.h"

#include <math.h>
#include <string.h>

static size_t cube_bytes(const tess_stats_data *d)
{
    return tess_stats_bytes(d) / (size_t)d->distinct;
}

static const char *cube_at(const tess_stats_data *d, int64_t number)
{
    return d->base + (size_t)(number % d->load.samples % d->distinct) * cube_bytes(d);
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
    const tess_stats_source *m = (const tess_stats_source *)source;
    const tess_stats_load *l = &m->data->load;
    size_t bytes = 0;
    if (!tess_tensor_bytes(&source->array[0], &bytes))
        return tess_fail(error, TESS_OVER_LIMIT, "a sample is too large");
    for (int64_t k = 0; k <= sample->more; k++) {
        const int64_t number = (sample->step * l->batch + sample->index + k) % l->samples % m->distinct;
        memcpy((char *)arrays[0] + (size_t)k * bytes, (const char *)m->base + (size_t)number * bytes, bytes);
    }
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

tess_tensor tess_stats_sample(const tess_stats_epochs *e)
{
    const tess_stats_load *l = &e->data->load;
    return e->point->condensed
               ? tess_tensor_2d(TESS_F32, 1, 1, tess_condensed_pixels((int)l->channels), l->channels)
               : tess_tensor_2d(TESS_F32, 1, l->side, l->side, l->channels);
}

tess_status tess_stats_open_queue(tess_stats_epochs *e, tess_error *error)
{
    const tess_stats_load *l = &e->data->load;
    tess_engine *engine = &e->device->engine;
    const bool condensed = e->point->condensed;
    e->source = (tess_stats_source){.source = {.table = &memory_table,
                                               .arrays = 1,
                                               .role = {TESS_DATA_INPUT},
                                               .array = {tess_stats_sample(e)},
                                               .items = l->samples,
                                               .copies = condensed},
                                    .data = e->data,
                                    .base = condensed ? e->condensed.data : e->data->block.data,
                                    .distinct = condensed ? l->samples : e->data->distinct};
    e->steps = (tess_steps){.training = e->training, .feed = &e->feed, .fed = e->steps.fed};
    if (e->point->resident && !condensed)
        return TESS_OK;
    const tess_data_settings settings = {.source = &e->source.source,
                                         .device = engine->device,
                                         .stop = &engine->stop,
                                         .batch = l->batch,
                                         .parts = e->choice.micro_batches,
                                         .first_step = e->state.step,
                                         .depth = tess_steps_depth(e->overlap, e->choice.micro_batches),
                                         .workers = engine->device->host_memory ? 1 : 0};
    TESS_TRY(tess_feed_open(&e->feed, engine->device, e->training, &e->source.source, 0, error));
    return tess_data_open(&settings, &e->steps.queue, error);
}

void tess_stats_close_queue(tess_stats_epochs *e)
{
    tess_steps_stop(&e->steps);
    tess_data_close(e->steps.queue);
    tess_feed_close(&e->feed);
    e->steps.queue = NULL;
}

/* Part `part` of the batch of a step becomes the input. Neighbours are copied together. */
static tess_status feed(tess_stats_epochs *e, int64_t step, int part, tess_error *error)
{
    if (e->steps.queue)
        return tess_steps_feed(&e->steps, error);
    tess_device *device = e->device->engine.device;
    const tess_stats_data *d = e->data;
    const size_t bytes = cube_bytes(d);
    const int64_t count = d->load.batch / e->choice.micro_batches,
                  first = step * d->load.batch + part * count;
    tess_tensor tensor;
    char *to = tess_training_input(e->training, 0, &tensor);
    for (int64_t i = 0, run; i < count; i += run) {
        const char *from = cube_at(d, first + i);
        for (run = 1; i + run < count; run++)
            if (cube_at(d, first + i + run) != from + (size_t)run * bytes)
                break;
        device->memory->copy(device, to + (size_t)i * bytes, from, (size_t)run * bytes, NULL);
    }
    return TESS_OK;
}

static tess_status queue_step(tess_stats_epochs *e, const tess_train_state *state, tess_error *error)
{
    double control[TESS_CONTROLS];
    tess_train_control(&e->config, state, control);
    tess_training_control(e->training, control, NULL);
    for (int m = 0; m < e->choice.micro_batches; m++) {
        if (!e->steps.fed)
            TESS_TRY(feed(e, state->step, m, error));
        e->steps.fed = false;
        tess_training_pass(e->training, m, NULL);
    }
    tess_training_update(e->training, NULL);
    tess_training_end(e->training, NULL);
    return TESS_OK;
}

tess_status tess_stats_step(tess_stats_epochs *e, bool last, tess_error *error)
{
    const int64_t number = e->state.step;
    const bool scaled = e->state.loss_scale != 1;
    tess_train_state next = e->state;
    (void)tess_train_state_advance(&next, scaled, true);
    if (!tess_training_queued(e->training))
        TESS_TRY(queue_step(e, &e->state, error));
    TESS_TRY(feed(e, number + 1, 0, error));
    e->steps.fed = true;
    if (e->overlap && !last)
        TESS_TRY(queue_step(e, &next, error));
    TESS_TRY(tess_steps_result(&e->steps, number, &e->state.loss, &e->state.norm, error));
    const bool finite = isfinite(e->state.loss) && isfinite(e->state.norm);
    if (!tess_train_state_advance(&e->state, scaled, finite))
        return tess_fail(error, TESS_INTERNAL, "the loss of step %lld is %g", (long long)number,
                         e->state.loss);
    return tess_stop_check(&e->device->engine.stop, error);
}
