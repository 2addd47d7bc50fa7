/* One point of a study: plan, allocate, capture; and what it took. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/process.h"
#include "base/rng.h"
#include "job/study/bench_point.h"

enum { PIECE = 1 << 18 };

bool tess_bench_add(tess_bench_work *work, tess_plan_shape shape, int64_t times)
{
    for (int i = 0; i < work->count; i++) {
        const tess_plan_shape *s = &work->shapes[i].shape;
        if (s->n == shape.n && s->h == shape.h && s->w == shape.w) {
            work->shapes[i].times += times;
            return true;
        }
    }
    if (work->count == TESS_BENCH_SHAPES)
        return false;
    work->shapes[work->count].shape = shape;
    work->shapes[work->count++].times = times;
    return true;
}

static size_t granted(tess_device *device, size_t bytes)
{
    return device->granted(device, bytes);
}

static tess_status plan_shapes(tess_bench_point *p, tess_error *error)
{
    for (int i = 0; i < p->work->count; i++) {
        tess_bench_prepared *s = &p->shapes[i];
        TESS_TRY(tess_net_plan_create(p->study->model->bound, p->work->shapes[i].shape, &s->plan, error));
        s->in = tess_net_plan_input(s->plan, &s->in_at);
        s->out = tess_net_plan_output(s->plan, &s->out_at);
        if (!tess_tensor_bytes(&s->in, &s->in_bytes) || !tess_tensor_bytes(&s->out, &s->out_bytes))
            return tess_fail(error, TESS_BAD_OPTION, "the image is too large to be planned");
        p->in_bytes = s->in_bytes > p->in_bytes ? s->in_bytes : p->in_bytes;
        p->out_bytes = s->out_bytes > p->out_bytes ? s->out_bytes : p->out_bytes;
        size_t arena = tess_net_plan_arena_bytes(s->plan), work = tess_net_plan_workspace_bytes(s->plan);
        p->arena_bytes = arena > p->arena_bytes ? arena : p->arena_bytes;
        p->workspace_bytes = work > p->workspace_bytes ? work : p->workspace_bytes;
    }
    return TESS_OK;
}

static uint64_t io_bytes(const tess_bench_point *p)
{
    uint64_t in = granted(p->device, p->in_bytes), out = granted(p->device, p->out_bytes);
    return p->work->transfer ? TESS_BENCH_SLOTS * (in + out) : in;
}

static tess_status alloc_host(tess_bench_point *p, tess_error *error)
{
    for (int i = 0; i < TESS_BENCH_SLOTS && p->work->transfer; i++) {
        TESS_TRY(p->device->host_alloc(p->device, &p->host_in[i], p->in_bytes, error));
        TESS_TRY(p->device->host_alloc(p->device, &p->host_out[i], p->out_bytes, error));
    }
    return TESS_OK;
}

static tess_status alloc_device(tess_bench_point *p, tess_error *error)
{
    tess_device *d = p->device;
    TESS_TRY(d->alloc(d, &p->arena, TESS_MEM_ACTIVATIONS, p->arena_bytes, error));
    TESS_TRY(d->alloc(d, &p->workspace, TESS_MEM_WORKSPACE, p->workspace_bytes, error));
    for (int i = 0; i < (p->work->transfer ? TESS_BENCH_SLOTS : 1); i++)
        TESS_TRY(d->alloc(d, &p->in[i], TESS_MEM_IO, p->in_bytes, error));
    for (int i = 0; i < TESS_BENCH_SLOTS && p->work->transfer; i++)
        TESS_TRY(d->alloc(d, &p->out[i], TESS_MEM_IO, p->out_bytes, error));
    for (int i = 0; i < TESS_BENCH_SLOTS; i++) {
        TESS_TRY(d->event_create(d, &p->uploaded[i], error));
        TESS_TRY(d->event_create(d, &p->taken[i], error));
        TESS_TRY(d->event_create(d, &p->computed[i], error));
        TESS_TRY(d->event_create(d, &p->downloaded[i], error));
    }
    for (int i = 0; i <= p->repeats; i++)
        TESS_TRY(d->event_create(d, &p->marks[i], error));
    return TESS_OK;
}

static void random_pixels(uint64_t seed, tess_dtype dtype, float values[PIECE], uint16_t halves[PIECE])
{
    tess_rng_uniform((tess_rng_key){seed, 0, 1}, 0, PIECE, values);
    for (int i = 0; i < PIECE; i++)
        halves[i] = dtype == TESS_F16 ? tess_float_to_half(values[i]) : tess_float_to_bf16(values[i]);
}

/* Random pixels: zeros can be faster than data. */
static tess_status fill(tess_bench_point *p, tess_block *block, size_t bytes, tess_error *error)
{
    const tess_dtype dtype = p->shapes[0].in.dtype;
    const size_t size = tess_dtype_size(dtype);
    float *values = tess_small_alloc(PIECE, sizeof *values);
    uint16_t *halves = tess_small_alloc(PIECE, sizeof *halves);
    tess_status status =
        values && halves ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for random pixels");
    if (status == TESS_OK)
        random_pixels(p->study->settings->common.seed, dtype, values, halves);
    for (size_t at = 0, step; at < bytes && status == TESS_OK; at += step) {
        step = bytes - at < PIECE * size ? bytes - at : PIECE * size;
        p->device->copy(p->device, (char *)block->data + at,
                        size == 2 ? (const void *)halves : (const void *)values, step, p->study->compute);
        status = p->device->sync(p->device, p->study->compute, error);
    }
    tess_small_free(values);
    tess_small_free(halves);
    return status;
}

/* Run once before it is captured: a first run may load kernels, which a capture does not allow. */
static tess_status bind_shapes(tess_bench_point *p, tess_error *error)
{
    tess_device *d = p->device;
    tess_stream *stream = p->study->compute;
    for (int i = 0; i < p->work->count; i++) {
        tess_bench_prepared *s = &p->shapes[i];
        TESS_TRY(tess_net_plan_prepare(s->plan, error));
        d->copy(d, (char *)p->arena.data + s->in_at, p->in[0].data, s->in_bytes, stream);
        tess_net_plan_run(s->plan, p->arena.data, p->workspace.data, p->study->model->weights.data, stream);
        TESS_TRY(d->sync(d, stream, error));
        if (!d->capture_begin)
            continue;
        TESS_TRY(d->capture_begin(d, stream, error));
        tess_net_plan_run(s->plan, p->arena.data, p->workspace.data, p->study->model->weights.data, stream);
        TESS_TRY(d->capture_end(d, stream, &s->graph, error));
    }
    return TESS_OK;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static uint64_t used_bytes(tess_device *device)
{
    if (device->host_memory)
        return tess_process_resident();
    tess_device_facts facts;
    device->facts(device, &facts);
    return facts.memory_total - facts.memory_free;
}

static tess_status measure(tess_bench_point *p, tess_bench_result *r, tess_error *error)
{
    TESS_TRY(plan_shapes(p, error));
    r->planned.by[TESS_MEM_WEIGHTS] = granted(p->device, tess_bound_weight_bytes(p->study->model->bound));
    r->planned.by[TESS_MEM_ACTIVATIONS] = granted(p->device, p->arena_bytes);
    r->planned.by[TESS_MEM_WORKSPACE] = granted(p->device, p->workspace_bytes);
    r->planned.by[TESS_MEM_IO] = io_bytes(p);
    tess_memory_reset_peak(p->device->memory);
    TESS_TRY(alloc_host(p, error));
    TESS_TRY(alloc_device(p, error));
    for (int i = 0; i < TESS_BENCH_SLOTS; i++) {
        if (p->in[i].data)
            TESS_TRY(fill(p, &p->in[i], p->in_bytes, error));
        if (p->host_in[i].data)
            TESS_TRY(fill(p, &p->host_in[i], p->in_bytes, error));
    }
    TESS_TRY(bind_shapes(p, error));
    TESS_TRY(tess_bench_time(p, error));
    /* Also where the device computes in the host's memory, what stands for pinned memory is not the device's. */
    tess_memory_peak(p->device->memory, TESS_MEM_OF_DEVICE, &r->counted);
    uint64_t used = used_bytes(p->device);
    used -= p->device->host_memory ? r->counted.bytes.by[TESS_MEM_HOST] : 0;
    r->driver_bytes = used > p->study->base ? used - p->study->base : 0;
    for (int i = 0; i < p->work->count; i++)
        for (int k = 0; k < tess_net_plan_op_count(p->shapes[i].plan); k++)
            r->flop +=
                (double)p->work->shapes[i].times * tess_op_flops(tess_net_plan_op(p->shapes[i].plan, k));
    qsort(p->times, (size_t)p->repeats, sizeof *p->times, compare);
    r->seconds = 0.5 * (p->times[(p->repeats - 1) / 2] + p->times[p->repeats / 2]);
    r->spread = (p->times[p->repeats - 1] - p->times[0]) / r->seconds;
    return TESS_OK;
}

static void drop_event(tess_device *device, tess_event *event)
{
    if (event)
        device->event_destroy(device, event);
}

static void clear(tess_bench_point *p)
{
    tess_device *d = p->device;
    for (int i = 0; i < p->work->count; i++) {
        if (p->shapes[i].graph)
            d->graph_release(d, p->shapes[i].graph);
        tess_net_plan_destroy(p->shapes[i].plan);
    }
    d->free(d, &p->arena);
    d->free(d, &p->workspace);
    for (int i = 0; i < TESS_BENCH_SLOTS; i++) {
        d->free(d, &p->in[i]);
        d->free(d, &p->out[i]);
        d->host_free(d, &p->host_in[i]);
        d->host_free(d, &p->host_out[i]);
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
    tess_bench_point *p =
        tess_small_alloc(1, sizeof *p); /* too large for a thread's stack to be taken for granted */
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
    tess_status status = plan_shapes(p, error);
    *bytes = io_bytes(p);
    clear(p);
    return status;
}

tess_status tess_bench_settle(tess_study *study, tess_error *error)
{
    tess_engine_unload(&study->engine);
    study->base = used_bytes(study->engine.device);
    return tess_engine_load(&study->engine, error);
}
