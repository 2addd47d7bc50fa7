/* What goes from the host to a step and back: its numbers, the keys of its dropouts, loss and norm. All of it is in pinned
 * memory that only this step uses until its result is taken, so that the next step can be queued meanwhile. */
#include <math.h>
#include <string.h>

#include "net/training/training_impl.h"

static size_t key_count(const tess_training *t)
{
    return t->keys < 0 ? 0 : 2 * (size_t)t->settings.n * (size_t)t->settings.micro_batches;
}

static size_t step_bytes(const tess_training *t)
{
    return 2 * CONTROL_VALUES * sizeof(double) + key_count(t) * sizeof(int64_t);
}

size_t tess_training_exchange_bytes(const tess_training *t)
{
    return tess_block_granted(TESS_STEPS_QUEUED * step_bytes(t));
}

tess_status tess_training_exchange_prepare(tess_training *t, tess_error *error)
{
    tess_device *device = t->device;
    TESS_TRY(device->memory->host_alloc(device, &t->pinned, TESS_STEPS_QUEUED * step_bytes(t), error));
    for (int i = 0; i < TESS_STEPS_QUEUED; i++) {
        tess_step_exchange *x = &t->exchange[i];
        x->control = (double *)t->pinned.data + (size_t)i * step_bytes(t) / sizeof(double);
        x->results = x->control + CONTROL_VALUES;
        x->keys = t->keys < 0 ? NULL : (int64_t *)(void *)(x->results + CONTROL_VALUES);
        TESS_TRY(device->streams->event_create(device, &x->ended, error));
    }
    return device->streams->create(device, &t->side, error);
}

void tess_training_exchange_free(tess_training *t)
{
    for (int i = 0; i < TESS_STEPS_QUEUED; i++)
        if (t->exchange[i].ended)
            t->device->streams->event_destroy(t->device, t->exchange[i].ended);
    if (t->side)
        t->device->streams->destroy(t->device, t->side);
    t->device->memory->host_free(t->device, &t->pinned);
}

/* Of the step that is being queued. */
static tess_step_exchange *current(tess_training *t)
{
    return &t->exchange[t->ended % TESS_STEPS_QUEUED];
}

void tess_training_control(tess_training *t, const double *control, tess_stream *stream)
{
    tess_step_exchange *x = current(t);
    memset(x->control, 0, CONTROL_VALUES * sizeof *x->control);
    memcpy(x->control, control, TESS_CONTROLS * sizeof *x->control);
    t->device->memory->copy(t->device, t->data[TESS_IN_CONTROL], x->control,
                            CONTROL_VALUES * sizeof *x->control, stream);
    x->loss_scale = control[TESS_CONTROL_LOSS_SCALE];
    x->step = (int64_t)control[TESS_CONTROL_STEP];
}

/* The place of each image in the whole batch, so that the division into micro-batches does not change a result. */
void tess_training_set_keys(tess_training *t, int index, tess_stream *stream)
{
    const tess_step_exchange *x = current(t);
    const int64_t n = t->settings.n;
    tess_tensor tensor;
    void *to = tess_training_data(t, t->keys, &tensor);
    if (!to)
        return;
    int64_t *keys = x->keys + 2 * n * index;
    for (int64_t i = 0; i < n; i++) {
        keys[2 * i] = t->settings.first + index * n + i;
        keys[2 * i + 1] = x->step;
    }
    t->device->memory->copy(t->device, to, keys, 2 * (size_t)n * sizeof *keys, stream);
}

void tess_training_end(tess_training *t, tess_stream *stream)
{
    const tess_step_exchange *x = current(t);
    t->device->memory->copy(t->device, x->results, t->data[TESS_IN_CONTROL],
                            CONTROL_VALUES * sizeof *x->results, stream);
    t->device->streams->record(t->device, x->ended, stream);
    t->ended++;
}

int tess_training_queued(const tess_training *t)
{
    return (int)(t->ended - t->taken);
}

tess_status tess_training_result(tess_training *t, tess_stream *stream, double *loss, double *norm,
                                 tess_error *error)
{
    if (tess_training_queued(t) == 0)
        tess_training_end(t, stream);
    const bool only = tess_training_queued(t) == 1;
    const tess_step_exchange *x = &t->exchange[t->taken++ % TESS_STEPS_QUEUED];
    /* By the side stream: waiting for a stream polls, for an event sleeps, and waking up may take longer than a small step. */
    if (!only)
        t->device->streams->wait(t->device, x->ended, t->side);
    TESS_TRY(t->device->streams->sync(t->device, only ? stream : t->side, error));
    *loss = x->results[LOSS_AT];
    double squares = 0;
    for (int g = 0; g < t->update.count; g++)
        squares += x->results[NORM_AT + g];
    *norm = sqrt(squares) / x->loss_scale;
    return TESS_OK;
}
