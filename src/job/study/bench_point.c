/* One point of a study: plan, allocate, capture, and report what it used. */
#include "job/study/bench_point.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/process.h"
#include "base/rng.h"

enum { PIECE = 1 << 18 };

tess_cut tess_bench_cut(int64_t count, int64_t height, int64_t width, int64_t batch)
{
    const tess_axis rows = tess_axis_cut(height, 0, 0, height),
                    cols = tess_axis_cut(count * width, width, 0, width);
    return tess_cut_image(&rows, &cols, batch);
}

static size_t granted(tess_device *device, size_t bytes)
{
    return device->memory->granted(device, bytes);
}

static tess_status plan_windows(tess_bench_point *p, tess_error *error)
{
    const tess_windows_settings settings = {
        .device = p->device, .keep = (int)tess_cut_shapes(&p->work->cut), .graphs = true, .run_first = true};
    TESS_TRY(tess_windows_create(&settings, &p->windows, error));
    return tess_windows_needed(p->windows, p->study->model->bound, &p->work->cut, &p->needs, error);
}

static uint64_t io_bytes(const tess_bench_point *p)
{
    uint64_t in = granted(p->device, p->needs.input), out = granted(p->device, p->needs.output);
    return p->work->transfer ? TESS_BENCH_SLOTS * (in + out) : in;
}

static tess_status alloc_host(tess_bench_point *p, tess_error *error)
{
    for (int i = 0; i < TESS_BENCH_SLOTS && p->work->transfer; i++) {
        TESS_TRY(p->device->memory->host_alloc(p->device, &p->host_in[i], p->needs.input, error));
        TESS_TRY(p->device->memory->host_alloc(p->device, &p->host_out[i], p->needs.output, error));
    }
    return TESS_OK;
}

static tess_status alloc_device(tess_bench_point *p, tess_error *error)
{
    tess_device *d = p->device;
    TESS_TRY(tess_windows_alloc(p->windows, p->needs.arena, p->needs.workspace, error));
    for (int i = 0; i < (p->work->transfer ? TESS_BENCH_SLOTS : 1); i++)
        TESS_TRY(d->memory->alloc(d, &p->in[i], TESS_MEM_IO, p->needs.input, error));
    for (int i = 0; i < TESS_BENCH_SLOTS && p->work->transfer; i++)
        TESS_TRY(d->memory->alloc(d, &p->out[i], TESS_MEM_IO, p->needs.output, error));
    for (int i = 0; i < TESS_BENCH_SLOTS; i++) {
        TESS_TRY(d->streams->event_create(d, &p->uploaded[i], error));
        TESS_TRY(d->streams->event_create(d, &p->taken[i], error));
        TESS_TRY(d->streams->event_create(d, &p->computed[i], error));
        TESS_TRY(d->streams->event_create(d, &p->downloaded[i], error));
    }
    for (int i = 0; i <= p->repeats; i++)
        TESS_TRY(d->streams->event_create(d, &p->marks[i], error));
    return TESS_OK;
}

/* Fills with random pixels, because zeros can be faster than data; fp32, as network inputs are in every precision. */
static tess_status fill(tess_bench_point *p, tess_block *block, size_t bytes, tess_error *error)
{
    const size_t most = PIECE * sizeof(float);
    float *values = tess_small_alloc(PIECE, sizeof *values);
    if (!values)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for random pixels");
    tess_rng_uniform((tess_rng_key){p->study->settings->common.seed, 0, 1}, 0, PIECE, values);
    tess_status status = TESS_OK;
    for (size_t at = 0, step; at < bytes && status == TESS_OK; at += step) {
        step = bytes - at < most ? bytes - at : most;
        p->device->memory->copy(p->device, (char *)block->data + at, values, step, p->study->compute);
        status = p->device->streams->sync(p->device, p->study->compute, error);
    }
    tess_small_free(values);
    return status;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tess_bench_median(double *times, int64_t count, double *spread)
{
    qsort(times, (size_t)count, sizeof *times, compare);
    const double median = 0.5 * (times[(count - 1) / 2] + times[count / 2]);
    *spread = (times[count - 1] - times[0]) / median;
    return median;
}

uint64_t tess_bench_used(tess_device *device)
{
    if (device->host_memory)
        return tess_process_resident();
    tess_device_facts facts;
    device->facts(device, &facts);
    return facts.memory_total - facts.memory_free;
}

static tess_status measure(tess_bench_point *p, tess_bench_result *r, tess_error *error)
{
    TESS_TRY(plan_windows(p, error));
    r->planned.by[TESS_MEM_WEIGHTS] = granted(p->device, tess_bound_weight_bytes(p->study->model->bound));
    r->planned.by[TESS_MEM_ACTIVATIONS] = granted(p->device, p->needs.arena);
    r->planned.by[TESS_MEM_WORKSPACE] = granted(p->device, p->needs.workspace);
    r->planned.by[TESS_MEM_IO] = io_bytes(p);
    tess_memory_reset_peak(p->device->counter);
    TESS_TRY(alloc_host(p, error));
    TESS_TRY(alloc_device(p, error));
    for (int i = 0; i < TESS_BENCH_SLOTS; i++) {
        if (p->in[i].data)
            TESS_TRY(fill(p, &p->in[i], p->needs.input, error));
        if (p->host_in[i].data)
            TESS_TRY(fill(p, &p->host_in[i], p->needs.input, error));
    }
    const tess_window_net net = tess_bench_net(p);
    TESS_TRY(tess_windows_prepare(p->windows, &net, &p->work->cut, error));
    TESS_TRY(tess_bench_time(p, error));
    /* The scope is the device even on the CPU: the block that stands for pinned memory is not counted. */
    tess_memory_peak(p->device->counter, TESS_MEM_OF_DEVICE, &r->counted);
    uint64_t used = tess_bench_used(p->device);
    used -= p->device->host_memory ? r->counted.bytes.by[TESS_MEM_HOST] : 0;
    r->driver_bytes = used > p->study->base ? used - p->study->base : 0;
    r->flop = p->needs.operations;
    r->seconds = tess_bench_median(p->times, p->repeats, &r->spread);
    return TESS_OK;
}

static void drop_event(tess_device *device, tess_event *event)
{
    if (event)
        device->streams->event_destroy(device, event);
}

static void clear(tess_bench_point *p)
{
    tess_device *d = p->device;
    tess_windows_destroy(p->windows);
    for (int i = 0; i < TESS_BENCH_SLOTS; i++) {
        d->memory->free(d, &p->in[i]);
        d->memory->free(d, &p->out[i]);
        d->memory->host_free(d, &p->host_in[i]);
        d->memory->host_free(d, &p->host_out[i]);
        drop_event(d, p->uploaded[i]);
        drop_event(d, p->taken[i]);
        drop_event(d, p->computed[i]);
        drop_event(d, p->downloaded[i]);
    }
    for (int i = 0; p->marks && i <= p->repeats; i++)
        drop_event(d, p->marks[i]);
    tess_small_free(p->marks);
    tess_small_free(p->times);
    tess_small_free(p);
}

static tess_bench_point *begin(tess_study *study, const tess_bench_work *work, int repeats)
{
    tess_bench_point *p = tess_small_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->study = study;
    p->device = study->engine.device;
    p->work = work;
    p->repeats = repeats;
    p->marks = tess_small_alloc((size_t)repeats + 1, sizeof *p->marks);
    p->times = tess_small_alloc((size_t)repeats, sizeof *p->times);
    if (p->marks && p->times)
        return p;
    clear(p);
    return NULL;
}

tess_status tess_bench_measure(tess_study *study, const tess_bench_work *work, int repeats,
                               tess_bench_result *result, tess_error *error)
{
    *result = (tess_bench_result){0};
    tess_bench_point *p = begin(study, work, repeats);
    if (!p)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a point of the study");
    tess_status status = measure(p, result, error);
    clear(p);
    return status;
}

tess_status tess_bench_io_bytes(tess_study *study, const tess_bench_work *work, uint64_t *bytes,
                                tess_error *error)
{
    tess_bench_point *p = begin(study, work, 1);
    if (!p)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a point of the study");
    tess_status status = plan_windows(p, error);
    *bytes = io_bytes(p);
    clear(p);
    return status;
}

tess_status tess_bench_settle(tess_study *study, tess_error *error)
{
    tess_engine_unload(&study->engine);
    study->base = tess_bench_used(study->engine.device);
    return tess_engine_load(&study->engine, error);
}
