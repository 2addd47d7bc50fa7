/* Lifetimes and offsets. A convolution with a residual that nobody reads afterwards writes over it, so a
 * residual block needs two tensors, not three. */
#include "net/plan.h"

#include "base/checked.h"
#include "base/stop.h"
#include "net/bound_impl.h"
#include "tensor/arena.h"

typedef struct planned_op {
    tess_op op;
    const tess_layer *layer;
    tess_value in; /* the layer's, or that of the upsampling it takes along */
    int layer_index;
    tess_prepared *prepared;
} planned_op;

struct tess_net_plan {
    const tess_bound *bound;
    tess_plan_shape shape;
    planned_op *ops;
    int op_count;
    size_t *offset; /* of each value, in the arena */
    size_t arena_bytes, workspace_bytes, lower_bound;
};

/* One storage for each root value; values that share one point to the same. */
typedef struct placing {
    tess_lifetime *storage;
    int *storage_of, *order;
    int count;
} placing;

static int storage_of(const tess_net_plan *plan, const placing *place, tess_value value)
{
    return place->storage_of[tess_net_value(plan->bound->net, value)->root];
}

static void extend(tess_lifetime *storage, int step)
{
    if (storage->first < 0)
        storage->first = step;
    storage->last = step;
}

static void extend_lifetimes(const tess_net_plan *plan, placing *place)
{
    for (int s = 0; s < place->count; s++)
        place->storage[s].first = place->storage[s].last = -1;
    extend(&place->storage[storage_of(plan, place, tess_net_input_value(plan->bound->net))], 0);
    for (int i = 0; i < plan->op_count; i++) {
        const tess_layer *layer = plan->ops[i].layer;
        extend(&place->storage[storage_of(plan, place, plan->ops[i].in)], i);
        for (int r = 0; r < layer->residuals; r++)
            extend(&place->storage[storage_of(plan, place, layer->residual[r])], i);
        if (layer->map >= 0)
            extend(&place->storage[storage_of(plan, place, layer->map)], i);
        extend(&place->storage[storage_of(plan, place, layer->out)], i);
    }
    extend(&place->storage[storage_of(plan, place, tess_net_output_value(plan->bound->net))], plan->op_count);
}

static bool dense(const tess_net *net, tess_value value)
{
    const tess_value_info *info = tess_net_value(net, value);
    return info->root == value && info->channels > 0;
}

/* Gives the output of op `step` the storage of a residual that ends there. */
static void write_in_place(const tess_net_plan *plan, placing *place, int step)
{
    const tess_net *net = plan->bound->net;
    const tess_layer *layer = plan->ops[step].layer;
    for (int r = 0; r < layer->residuals; r++) {
        tess_value from = layer->residual[r];
        int old = storage_of(plan, place, from), own = place->storage_of[layer->out];
        bool same = dense(net, from) && dense(net, layer->out) &&
                    tess_net_value(net, from)->channels == tess_net_value(net, layer->out)->channels &&
                    tess_value_dtype(net, from, plan->bound->dtype) ==
                        tess_value_dtype(net, layer->out, plan->bound->dtype);
        if (!same || old == own || place->storage[old].last != step ||
            storage_of(plan, place, plan->ops[step].in) == old)
            continue;
        for (int v = 0; v < tess_net_value_count(net); v++)
            if (place->storage_of[v] == own)
                place->storage_of[v] = old;
        place->storage[old].last = place->storage[own].last;
        place->storage[own].bytes = 0;
        return;
    }
}

static tess_status place_values(tess_net_plan *plan, placing *place, tess_error *error)
{
    const tess_net *net = plan->bound->net;
    const int values = tess_net_value_count(net);
    for (int v = 0; v < values; v++) {
        const tess_value_info *info = tess_net_value(net, v);
        place->storage_of[v] = v;
        tess_tensor whole = tess_tensor_3d(tess_value_dtype(net, v, plan->bound->dtype), plan->shape.n,
                                           plan->shape.d >> info->down_d, plan->shape.h >> info->down,
                                           plan->shape.w >> info->down, info->channels);
        if (!tess_tensor_bytes(&whole, &place->storage[v].bytes))
            return tess_fail(error, TESS_OVER_LIMIT,
                             "an image of %lld x %lld is too large for one window; use --tile",
                             (long long)plan->shape.h, (long long)plan->shape.w);
    }
    place->count = values;
    extend_lifetimes(plan, place);
    if (plan->shape.mode == TESS_INFER)
        for (int step = 0; step < plan->op_count; step++)
            write_in_place(plan, place, step);
    for (int v = 0; v < values; v++)
        if (place->storage[v].first < 0)
            place->storage[v].bytes = 0; /* nobody's: fused away */
    tess_arena_place(place->storage, values, place->order, &plan->arena_bytes);
    plan->lower_bound = tess_arena_lower_bound(place->storage, values);
    for (int v = 0; v < values; v++) {
        const tess_value_info *info = tess_net_value(net, v);
        plan->offset[v] =
            place->storage[storage_of(plan, place, v)].offset +
            (size_t)info->offset * tess_dtype_size(tess_value_dtype(net, v, plan->bound->dtype));
    }
    return TESS_OK;
}

static tess_status collect_ops(tess_net_plan *plan, tess_error *error)
{
    const tess_net *net = plan->bound->net;
    tess_device *device = plan->bound->device;
    for (int i = 0; i < tess_net_layer_count(net); i++) {
        if (!tess_bound_runs(plan->bound, i))
            continue;
        planned_op *op = &plan->ops[plan->op_count++];
        *op = (planned_op){.op = tess_bound_op(plan->bound, i, plan->shape),
                           .layer = tess_net_layer(net, i),
                           .in = tess_bound_input(plan->bound, i),
                           .layer_index = i};
        tess_op_needs needs;
        TESS_TRY(tess_stop_check(device->stop, error)); /* planners try many shapes */
        TESS_TRY(device->query(device, &op->op, &needs, error));
        if (needs.workspace > plan->workspace_bytes)
            plan->workspace_bytes = needs.workspace;
    }
    return TESS_OK;
}

tess_status tess_net_plan_create(const tess_bound *bound, tess_plan_shape shape, tess_net_plan **out,
                                 tess_error *error)
{
    *out = NULL;
    const size_t values = (size_t)tess_net_value_count(bound->net),
                 layers = (size_t)tess_net_layer_count(bound->net);
    tess_net_plan *plan = tess_small_alloc(1, sizeof *plan);
    placing place = {tess_small_alloc(values, sizeof *place.storage),
                     tess_small_alloc(values, sizeof *place.storage_of),
                     tess_small_alloc(values, sizeof *place.order), 0};
    tess_status status = TESS_OK;
    if (plan) {
        shape.d = tess_max_i64(shape.d, 1);
        *plan = (tess_net_plan){.bound = bound, .shape = shape};
        plan->ops = tess_small_alloc(layers, sizeof *plan->ops);
        plan->offset = tess_small_alloc(values, sizeof *plan->offset);
    }
    if (!plan || !plan->ops || !plan->offset || !place.storage || !place.storage_of || !place.order)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    if (status == TESS_OK)
        status = collect_ops(plan, error);
    if (status == TESS_OK)
        status = place_values(plan, &place, error);
    tess_small_free(place.storage);
    tess_small_free(place.storage_of);
    tess_small_free(place.order);
    if (status != TESS_OK) {
        tess_net_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return TESS_OK;
}

void tess_net_plan_destroy(tess_net_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; plan->ops && i < plan->op_count; i++)
        if (plan->ops[i].prepared)
            plan->bound->device->release(plan->bound->device, plan->ops[i].prepared);
    tess_small_free(plan->ops);
    tess_small_free(plan->offset);
    tess_small_free(plan);
}

tess_status tess_net_plan_prepare(tess_net_plan *plan, tess_error *error)
{
    tess_device *device = plan->bound->device;
    for (int i = 0; i < plan->op_count; i++)
        if (!plan->ops[i].prepared)
            TESS_TRY(device->prepare(device, &plan->ops[i].op, &plan->ops[i].prepared, error));
    return TESS_OK;
}

void tess_net_plan_run(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                       tess_stream *stream)
{
    tess_net_plan_run_counted(plan, arena, workspace, weights, stream, 0);
}

void tess_net_plan_run_counted(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                               tess_stream *stream, int64_t units)
{
    tess_device *device = plan->bound->device;
    tess_stop *stop = device->host_memory ? device->stop : NULL; /* elsewhere this only queues, or captures */
    double all = 0, done = 0;
    for (int i = 0; i < plan->op_count; i++)
        all += tess_op_flops(&plan->ops[i].op);
    for (int i = 0; i < plan->op_count && !tess_stop_poll(stop); i++) {
        const planned_op *op = &plan->ops[i];
        const int64_t before = (int64_t)((double)units * (done / all));
        done += tess_op_flops(&op->op);
        const int64_t after = i + 1 < plan->op_count ? (int64_t)((double)units * (done / all)) : units;
        tess_stop_current(stop, after - before);
        tess_op_buffers buffers = {.in = (char *)arena + plan->offset[op->in],
                                   .out = (char *)arena + plan->offset[op->layer->out],
                                   .weights = (const char *)weights + plan->bound->weight_at[op->layer_index],
                                   .workspace = workspace};
        for (int r = 0; r < op->layer->residuals; r++)
            buffers.residual[r] = (char *)arena + plan->offset[op->layer->residual[r]];
        if (op->layer->map >= 0)
            buffers.map = (char *)arena + plan->offset[op->layer->map];
        device->run(device, op->prepared, &buffers, stream);
        tess_stop_add(stop, after - before);
    }
    if (!stop)
        tess_stop_add(device->stop, units);
}

static tess_tensor end_tensor(const tess_net_plan *plan, tess_value value, size_t *offset)
{
    *offset = plan->offset[value];
    return tess_value_tensor(plan->bound->net, value, plan->bound->dtype, plan->shape);
}

tess_tensor tess_net_plan_input(const tess_net_plan *plan, size_t *offset)
{
    return end_tensor(plan, tess_net_input_value(plan->bound->net), offset);
}

tess_tensor tess_net_plan_output(const tess_net_plan *plan, size_t *offset)
{
    return end_tensor(plan, tess_net_output_value(plan->bound->net), offset);
}

size_t tess_net_plan_arena_bytes(const tess_net_plan *plan)
{
    return plan->arena_bytes;
}

size_t tess_net_plan_workspace_bytes(const tess_net_plan *plan)
{
    return plan->workspace_bytes;
}

size_t tess_net_plan_lower_bound(const tess_net_plan *plan)
{
    return plan->lower_bound;
}

int tess_net_plan_op_count(const tess_net_plan *plan)
{
    return plan->op_count;
}

const tess_op *tess_net_plan_op(const tess_net_plan *plan, int index)
{
    return &plan->ops[index].op;
}
