/* The memory, tables and graphs of a sampler. */
#include <string.h>

#include "base/checked.h"
#include "solve/diffusion_sampler_impl.h"

static tess_status allocate(tess_sampler *s, tess_error *error)
{
    tess_device *device = s->settings.device;
    const tess_device_memory *memory = device->memory;
    TESS_TRY(memory->alloc(device, &s->arena, TESS_MEM_ACTIVATIONS, s->arena_bytes, error));
    if (s->workspace_bytes)
        TESS_TRY(memory->alloc(device, &s->workspace, TESS_MEM_WORKSPACE, s->workspace_bytes, error));
    TESS_TRY(memory->alloc(device, &s->table, TESS_MEM_WEIGHTS, s->tables.all, error));
    TESS_TRY(memory->alloc(device, &s->io, TESS_MEM_IO, s->places.all, error));
    TESS_TRY(memory->host_alloc(device, &s->host, TESS_SAMPLER_SLOTS * s->slot_bytes, error));
    TESS_TRY(device->streams->create(device, &s->stream, error));
    for (int i = 0; i < TESS_SAMPLER_SLOTS; i++) {
        s->slots[i].host = (char *)s->host.data + (size_t)i * s->slot_bytes;
        TESS_TRY(device->streams->event_create(device, &s->slots[i].done, error));
    }
    for (int i = 0; i < TESS_SAMPLER_RING; i++)
        TESS_TRY(device->streams->event_create(device, &s->ring[i].done, error));
    return TESS_OK;
}

/* The scales and shifts of noise levels [first, first + count), through the network of embeddings. */
static tess_status embed(tess_sampler *s, const void *weights, int64_t first, int64_t count, float *levels,
                         tess_error *error)
{
    tess_device *device = s->settings.device;
    const tess_diffusion_net *net = s->settings.net;
    size_t in_at, out_at;
    const tess_tensor in = tess_net_plan_input(s->embedding, &in_at),
                      out = tess_net_plan_output(s->embedding, &out_at);
    char *arena = s->arena.data, *rows = (char *)s->table.data + s->tables.rows;
    for (int64_t i = 0; i < count; i++) {
        tess_diffusion_level(s->steps.gammas[first + i], net->levels, levels + i * net->levels);
        device->memory->copy(device, arena + in_at + (size_t)(i * in.stride_n) * sizeof(float),
                             levels + i * net->levels, (size_t)net->levels * sizeof(float), s->stream);
    }
    tess_net_plan_run(s->embedding, arena, s->workspace.data, weights, s->stream);
    for (int64_t i = 0; i < count; i++)
        device->memory->copy(device, rows + (size_t)((first + i) * net->table) * sizeof(float),
                             arena + out_at + (size_t)(i * out.stride_n) * sizeof(float),
                             (size_t)net->table * sizeof(float), s->stream);
    return device->streams->sync(device, s->stream, error); /* `levels` is overwritten by the next call */
}

static tess_status fill_tables(tess_sampler *s, const void *weights, tess_error *error)
{
    tess_device *device = s->settings.device;
    char *table = s->table.data;
    size_t at;
    const int64_t together = tess_net_plan_input(s->embedding, &at).n;
    const size_t row = TESS_DIFFUSE_CONTROLS * sizeof(double);
    const int64_t zero = 0;
    device->memory->copy(device, table + s->tables.controls, s->steps.rows, (size_t)s->steps.count * row,
                         s->stream);
    device->memory->copy(device, table + s->tables.start, s->steps.start, row, s->stream);
    device->memory->copy(device, table + s->tables.zero, &zero, sizeof zero, s->stream);
    TESS_TRY(device->streams->sync(device, s->stream, error));
    float *levels = tess_small_alloc((size_t)(together * s->settings.net->levels), sizeof *levels);
    if (!levels)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld noise levels", (long long)together);
    tess_status status = tess_net_plan_prepare(s->embedding, error);
    for (int64_t first = 0; status == TESS_OK && first < s->steps.count; first += together)
        status = embed(s, weights, first, tess_min_i64(together, s->steps.count - first), levels, error);
    tess_small_free(levels);
    return status;
}

void tess_sampler_run_op(const tess_sampler *s, const tess_sampler_plan *plan, tess_sampler_op which,
                         const void *control)
{
    tess_device *device = s->settings.device;
    char *arena = s->arena.data, *io = s->io.data, *table = s->table.data;
    const tess_sampler_places *at = &s->places;
    tess_op_buffers b = {.workspace = s->workspace.data};
    switch (which) {
    case TESS_SAMPLER_ROW:
        b.in[0] = table + s->tables.rows, b.in[1] = io + at->index, b.out[0] = arena + plan->vector_at;
        break;
    case TESS_SAMPLER_CONTROL:
        b.in[0] = table + s->tables.controls, b.in[1] = io + at->index, b.out[0] = io + at->control;
        break;
    case TESS_SAMPLER_DIFFUSE:
        b.in[0] = arena + plan->output_at, b.in[1] = io + at->known;
        b.in[2] = control, b.in[3] = io + at->items;
        b.out[0] = arena + plan->y_at, b.out[1] = io + at->previous, b.out[2] = io + at->index;
        break;
    case TESS_SAMPLER_COND:
        b.in[0] = io + at->cond, b.out[0] = arena + plan->input_at;
        break;
    case TESS_SAMPLER_GUESS:
        b.in[0] = io + at->guess, b.out[0] = arena + plan->y_at;
        break;
    case TESS_SAMPLER_TAKE:
        b.in[0] = arena + plan->y_at, b.out[0] = io + at->previous;
        break;
    case TESS_SAMPLER_OPS:
        return;
    }
    device->ops->run(device, plan->prepared[which], &b, s->stream);
}

void tess_sampler_run_step(const tess_sampler *s, const tess_sampler_plan *plan, int64_t units)
{
    tess_sampler_run_op(s, plan, TESS_SAMPLER_ROW, NULL);
    tess_sampler_run_op(s, plan, TESS_SAMPLER_CONTROL, NULL);
    tess_net_plan_run_counted(plan->net, s->arena.data, s->workspace.data, s->step_weights, s->stream, units);
    tess_sampler_run_op(s, plan, TESS_SAMPLER_DIFFUSE, (char *)s->io.data + s->places.control);
}

/* A step runs once before it is captured: kernels may load on first use, which a capture forbids. */
static tess_status capture(tess_sampler *s, tess_sampler_plan *plan, tess_error *error)
{
    tess_device *device = s->settings.device;
    tess_sampler_run_step(s, plan, 0);
    TESS_TRY(device->streams->sync(device, s->stream, error));
    TESS_TRY(device->graphs->begin(device, s->stream, error));
    tess_sampler_run_step(s, plan, 0);
    return device->graphs->end(device, s->stream, &plan->graph, error);
}

tess_status tess_sampler_prepare(tess_sampler *s, const void *embedding_weights, const void *step_weights,
                                 tess_error *error)
{
    tess_device *device = s->settings.device;
    if (s->arena.data)
        return tess_fail(error, TESS_INTERNAL, "a sampler is prepared once");
    s->step_weights = step_weights;
    TESS_TRY(allocate(s, error));
    TESS_TRY(device->streams->sync(device, NULL, error)); /* the weights may have been packed just now */
    TESS_TRY(fill_tables(s, embedding_weights, error));
    for (int i = 0; i < s->plan_count; i++) {
        tess_sampler_plan *plan = &s->plans[i];
        TESS_TRY(tess_net_plan_prepare(plan->net, error));
        for (int k = 0; k < TESS_SAMPLER_OPS; k++)
            TESS_TRY(device->ops->prepare(device, &plan->ops[k], &plan->prepared[k], error));
        if (device->graphs)
            TESS_TRY(capture(s, plan, error));
    }
    s->ready = true;
    return TESS_OK;
}

static void destroy_plan(tess_device *device, tess_sampler_plan *plan)
{
    if (plan->graph)
        device->graphs->release(device, plan->graph);
    for (int k = 0; k < TESS_SAMPLER_OPS; k++)
        if (plan->prepared[k])
            device->ops->release(device, plan->prepared[k]);
    tess_net_plan_destroy(plan->net);
}

void tess_sampler_destroy(tess_sampler *s)
{
    if (!s)
        return;
    tess_device *device = s->settings.device;
    tess_error ignored; /* whoever needed the results has seen the error */
    if (s->arena.data)
        (void)!device->streams->sync(device, s->stream, &ignored);
    for (int i = 0; i < s->plan_count; i++)
        destroy_plan(device, &s->plans[i]);
    tess_net_plan_destroy(s->embedding);
    for (int i = 0; i < TESS_SAMPLER_SLOTS; i++)
        if (s->slots[i].done)
            device->streams->event_destroy(device, s->slots[i].done);
    for (int i = 0; i < TESS_SAMPLER_RING; i++)
        if (s->ring[i].done)
            device->streams->event_destroy(device, s->ring[i].done);
    if (s->stream)
        device->streams->destroy(device, s->stream);
    device->memory->host_free(device, &s->host);
    device->memory->free(device, &s->io);
    device->memory->free(device, &s->table);
    device->memory->free(device, &s->workspace);
    device->memory->free(device, &s->arena);
    tess_steps_clear(&s->steps);
    tess_small_free(s);
}
