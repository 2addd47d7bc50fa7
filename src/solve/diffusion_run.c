/* Runs batches through a sampler. Steps are queued in groups, each with an event, so that the host never runs more than
 * TESS_SAMPLER_AHEAD steps ahead of the device: a request to stop ends the work soon, and progress is that of the device. */
#include <math.h>
#include <string.h>

#include "base/stop.h"
#include "solve/diffusion_sampler_impl.h"

/* Waits for the oldest group under way and counts its steps. */
static tess_status pop_group(tess_sampler *s, tess_error *error)
{
    tess_device *device = s->settings.device;
    tess_sampler_group *group = &s->ring[s->ring_first++ % TESS_SAMPLER_RING];
    TESS_TRY(device->streams->event_sync(device, group->done, error));
    if (group->units)
        tess_stop_add(device->stop, group->units);
    return tess_stop_check(device->stop, error);
}

static tess_status push_group(tess_sampler *s, int64_t units, tess_error *error)
{
    tess_device *device = s->settings.device;
    if (s->ring_end - s->ring_first == TESS_SAMPLER_RING)
        TESS_TRY(pop_group(s, error));
    tess_sampler_group *group = &s->ring[s->ring_end++ % TESS_SAMPLER_RING];
    group->units = units;
    group->number = s->batches;
    device->streams->record(device, group->done, s->stream);
    return TESS_OK;
}

static bool finite_values(const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static tess_status check_batch(const tess_sampler *s, int slot, const tess_sampler_batch *b,
                               tess_error *error)
{
    const tess_sampler_settings *set = &s->settings;
    const int64_t pixels = b->n * set->height * set->width;
    if (!s->ready || slot < 0 || slot >= TESS_SAMPLER_SLOTS || s->slots[slot].busy || b->n < 1 ||
        b->n > set->batch)
        return tess_fail(error, TESS_INTERNAL,
                         "slot %d of the sampler is not free, or cannot hold %lld windows", slot,
                         (long long)b->n);
    if ((set->steps.start_gamma > 0) != (b->guess != NULL))
        return tess_fail(error, TESS_INTERNAL, "a first guess and the gamma of its start come together");
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t *item = b->items + i * TESS_DIFFUSE_ITEMS;
        if (item[0] < 0 || item[0] > UINT32_MAX || item[1] < 0 || item[2] < 0 ||
            item[3] < item[2] + set->width || item[3] > INT32_MAX || item[1] > INT32_MAX)
            return tess_fail(error, TESS_INTERNAL,
                             "window %lld at row %lld, column %lld is not inside rows of %lld pixels",
                             (long long)i, (long long)item[1], (long long)item[2], (long long)item[3]);
    }
    if (!finite_values(b->cond, pixels * (set->net->channels - 1)) ||
        (b->guess && !finite_values(b->guess, pixels)))
        return tess_fail(error, TESS_INTERNAL, "a window's conditioning or first guess is not finite");
    return TESS_OK;
}

/* The first values are the batch's, the others of the plan's windows zero, whose masks then say that all is known. */
static void put(tess_sampler_slot *slot, size_t at, const void *values, int64_t count, int64_t all,
                size_t size)
{
    memcpy(slot->host + at, values, (size_t)count * size);
    memset(slot->host + at + (size_t)count * size, 0, (size_t)(all - count) * size);
}

static void upload(tess_sampler *s, tess_sampler_slot *slot, const tess_sampler_batch *b, int64_t windows)
{
    tess_device *device = s->settings.device;
    const tess_sampler_places *at = &s->places;
    const int64_t window = s->settings.height * s->settings.width, pixels = b->n * window,
                  all = windows * window, others = s->settings.net->channels - 1;
    put(slot, at->cond, b->cond, pixels * others, all * others, sizeof(float));
    put(slot, at->known, b->known, pixels * 2, all * 2, sizeof(float));
    if (b->guess)
        put(slot, at->guess, b->guess, pixels, all, sizeof(float));
    put(slot, at->items, b->items, b->n * TESS_DIFFUSE_ITEMS, windows * TESS_DIFFUSE_ITEMS, sizeof(int64_t));
    const struct {
        size_t at, bytes;
    } parts[] = {{at->cond, (size_t)(all * others) * sizeof(float)},
                 {at->known, (size_t)(all * 2) * sizeof(float)},
                 {at->guess, b->guess ? (size_t)all * sizeof(float) : 0},
                 {at->items, (size_t)(windows * TESS_DIFFUSE_ITEMS) * sizeof(int64_t)}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].bytes)
            device->memory->copy(device, (char *)s->io.data + parts[i].at, slot->host + parts[i].at,
                                 parts[i].bytes, s->stream);
}

/* The smallest plan that holds n windows. */
static const tess_sampler_plan *plan_for(const tess_sampler *s, int64_t n)
{
    int i = s->plan_count - 1;
    while (s->plans[i].n < n)
        i--;
    return &s->plans[i];
}

static void begin(tess_sampler *s, const tess_sampler_plan *plan)
{
    tess_device *device = s->settings.device;
    const char *table = s->table.data;
    tess_sampler_run_op(s, plan, TESS_SAMPLER_COND, NULL);
    if (s->settings.steps.start_gamma > 0)
        tess_sampler_run_op(s, plan, TESS_SAMPLER_GUESS, NULL);
    tess_sampler_run_op(s, plan, TESS_SAMPLER_DIFFUSE, table + s->tables.start);
    device->memory->copy(device, (char *)s->io.data + s->places.index, table + s->tables.zero,
                         sizeof(int64_t), s->stream);
}

static tess_status queue_steps(tess_sampler *s, const tess_sampler_plan *plan, int64_t n, tess_error *error)
{
    tess_device *device = s->settings.device;
    int64_t grouped = 0;
    for (int64_t i = 0; i < s->steps.count; i++) {
        TESS_TRY(tess_stop_check(device->stop, error));
        if (plan->graph)
            device->graphs->launch(device, plan->graph, s->stream);
        else /* without graphs the network itself counts, as it runs */
            tess_sampler_run_step(s, plan, n);
        if (++grouped == TESS_SAMPLER_GROUP || i + 1 == s->steps.count) {
            TESS_TRY(push_group(s, plan->graph ? grouped * n : 0, error));
            grouped = 0;
        }
    }
    return TESS_OK;
}

tess_status tess_sampler_submit(tess_sampler *s, int number, const tess_sampler_batch *b, tess_error *error)
{
    tess_device *device = s->settings.device;
    TESS_TRY(check_batch(s, number, b, error));
    tess_sampler_slot *slot = &s->slots[number];
    const tess_sampler_plan *plan = plan_for(s, b->n);
    const size_t bytes = (size_t)(b->n * s->settings.height * s->settings.width) * sizeof(float);
    s->batches++;
    upload(s, slot, b, plan->n);
    begin(s, plan);
    TESS_TRY(queue_steps(s, plan, b->n, error));
    tess_sampler_run_op(s, plan, TESS_SAMPLER_TAKE, NULL);
    device->memory->copy(device, slot->host + s->places.up, (char *)s->io.data + s->places.previous, bytes,
                         s->stream);
    device->streams->record(device, slot->done, s->stream);
    slot->busy = true;
    slot->n = b->n;
    slot->number = s->batches;
    return TESS_OK;
}

static tess_status check_result(const tess_sampler *s, const tess_sampler_slot *slot, const float *values,
                                tess_error *error)
{
    const int64_t window = s->settings.height * s->settings.width;
    const int64_t *items = (const int64_t *)(const void *)(slot->host + s->places.items);
    const bool wide = tess_bound_dtype(s->settings.step) == TESS_F32;
    for (int64_t i = 0; i < slot->n; i++) {
        if (finite_values(values + i * window, window))
            continue;
        const int64_t *item = items + i * TESS_DIFFUSE_ITEMS;
        return tess_fail(error, wide ? TESS_BAD_INPUT : TESS_UNSUPPORTED,
                         "the network's result for the window at row %lld, column %lld is not finite; %s",
                         (long long)item[1], (long long)item[2],
                         wide ? "its weights are damaged, or of another network" : "use `precision` fp32");
    }
    return TESS_OK;
}

tess_status tess_sampler_wait(tess_sampler *s, int number, float *result, tess_error *error)
{
    tess_device *device = s->settings.device;
    if (number < 0 || number >= TESS_SAMPLER_SLOTS || !s->slots[number].busy)
        return tess_fail(error, TESS_INTERNAL, "slot %d of the sampler holds no batch", number);
    tess_sampler_slot *slot = &s->slots[number];
    const float *values = (const float *)(const void *)(slot->host + s->places.up);
    slot->busy = false;
    while (s->ring_first != s->ring_end && s->ring[s->ring_first % TESS_SAMPLER_RING].number <= slot->number)
        TESS_TRY(pop_group(s, error));
    TESS_TRY(device->streams->event_sync(device, slot->done, error));
    TESS_TRY(tess_stop_check(device->stop, error));
    TESS_TRY(check_result(s, slot, values, error));
    memcpy(result, values, (size_t)(slot->n * s->settings.height * s->settings.width) * sizeof *values);
    return TESS_OK;
}

tess_status tess_sampler_run(tess_sampler *s, const tess_sampler_batch *batch, float *result,
                             tess_error *error)
{
    TESS_TRY(tess_sampler_submit(s, 0, batch, error));
    return tess_sampler_wait(s, 0, result, error);
}
