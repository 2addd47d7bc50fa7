/* Computes lifetimes and offsets. A convolution overwrites its residual if no later step reads it, so a
 * residual block needs two tensors, not three; norms and activations overwrite their input. */
#include "base/checked.h"
#include "net/plan_impl.h"
#include "tensor/arena.h"

/* One storage for each root value; values that share a storage point to the same one. */
typedef struct placing {
    tess_lifetime *storage;
    int *storage_of, *order;
} placing;

static int storage_of(const tess_net_plan *plan, const placing *place, tess_value value)
{
    return place->storage_of[tess_net_value(plan->bound->net, value)->root];
}

static void extend(const tess_net_plan *plan, placing *place, tess_value value, int step)
{
    tess_lifetime *storage = &place->storage[storage_of(plan, place, value)];
    if (storage->first < 0)
        storage->first = step;
    if (step > storage->last)
        storage->last = step;
}

static void extend_lifetimes(const tess_net_plan *plan, placing *place)
{
    const tess_net *net = plan->bound->net;
    for (int v = 0; v < tess_net_value_count(net); v++)
        place->storage[v].first = place->storage[v].last = -1;
    for (int i = 0; i < tess_net_input_count(net); i++) {
        const tess_value value = tess_net_input_value(net, i);
        extend(plan, place, value, 0);
        if (tess_net_value(net, value)->kept)
            extend(plan, place, value, plan->step_count);
    }
    for (int s = 0; s < plan->step_count; s++) {
        const tess_step *step = &plan->steps[s];
        if (!tess_step_computes(step)) {
            extend(plan, place, step->in[0], s);
            continue;
        }
        for (int i = 0; i < step->op.inputs; i++)
            extend(plan, place, step->in[i], s);
        for (int i = 0; i < step->op.outputs; i++)
            extend(plan, place, step->out[i], s);
    }
    for (int i = 0; i < tess_net_output_count(net); i++)
        extend(plan, place, tess_net_output_value(net, i), plan->step_count);
}

static bool dense(const tess_net *net, tess_value value)
{
    const tess_value_info *info = tess_net_value(net, value);
    return info->root == value && info->channels > 0;
}

static bool same_storage(const tess_net_plan *plan, tess_value a, tess_value b)
{
    const tess_net *net = plan->bound->net;
    const tess_tensor first = tess_plan_tensor(plan, a), second = tess_plan_tensor(plan, b);
    return dense(net, a) && dense(net, b) && tess_tensor_same(&first, &second) &&
           plan->margins[a].above == plan->margins[b].above &&
           plan->margins[a].below == plan->margins[b].below &&
           plan->margins[a].left == plan->margins[b].left && plan->margins[a].right == plan->margins[b].right;
}

/* The inputs [first, end) that an op's output may overwrite: the op reads them only at the position that it
 * writes. */
static void over_inputs(const tess_op *op, int *first, int *end)
{
    const bool adds =
        op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_ADD;
    const bool own = op->kind == TESS_OP_ACTIVATE || op->kind == TESS_OP_GROUP_NORM;
    *first = own ? 0 : 1;
    *end = own ? 1 : adds ? 1 + tess_op_residuals(op) : 1;
}

/* True when the first input of the step has the same storage. */
static bool read_twice(const tess_net_plan *plan, const placing *place, const tess_step *step, int input)
{
    return input > 0 && storage_of(plan, place, step->in[0]) == storage_of(plan, place, step->in[input]);
}

/* Gives the output the storage of an input that no later step needs. */
static void write_in_place(const tess_net_plan *plan, placing *place, int s)
{
    const tess_step *step = &plan->steps[s];
    int first, end;
    over_inputs(&step->op, &first, &end);
    for (int i = first; i < end && step->kind == TESS_STEP_OP && !step->apart; i++) {
        const int old = storage_of(plan, place, step->in[i]), own = place->storage_of[step->out[0]];
        if (!same_storage(plan, step->in[i], step->out[0]) || old == own || place->storage[old].last != s ||
            read_twice(plan, place, step, i))
            continue;
        for (int v = 0; v < tess_net_value_count(plan->bound->net); v++)
            if (place->storage_of[v] == own)
                place->storage_of[v] = old;
        place->storage[old].last = place->storage[own].last;
        place->storage[own].bytes = 0;
        return;
    }
}

static tess_status size_storage(const tess_net_plan *plan, placing *place, tess_error *error)
{
    for (int v = 0; v < tess_net_value_count(plan->bound->net); v++) {
        tess_tensor whole = tess_plan_tensor(plan, v);
        whole.c = tess_net_value(plan->bound->net, tess_net_value(plan->bound->net, v)->root)->channels;
        *(plan->shape.slices ? &whole.d : &whole.h) += plan->margins[v].above + plan->margins[v].below;
        whole.w += plan->margins[v].left + plan->margins[v].right;
        place->storage_of[v] = v;
        if (!tess_tensor_bytes(&whole, &place->storage[v].bytes))
            return tess_fail(error, TESS_OVER_LIMIT,
                             "an image of %lld x %lld is too large for one window; use `tile`",
                             (long long)plan->shape.h, (long long)plan->shape.w);
    }
    return TESS_OK;
}

/* The buffer of a block's exchanges, of which one is under way at a time. */
static void place_packed(tess_net_plan *plan)
{
    size_t most = 0;
    for (int s = 0; s < plan->step_count; s++)
        if (plan->steps[s].kind == TESS_STEP_EXCHANGE) {
            const tess_exchange e = tess_plan_exchange(plan, &plan->steps[s], NULL);
            const size_t bytes = tess_exchange_packed_bytes(&e);
            most = bytes > most ? bytes : most;
        }
    if (most == 0)
        return;
    plan->packed_at = tess_align_size(plan->arena_bytes, 64);
    plan->arena_bytes = plan->packed_at + tess_align_size(most, 64);
}

static tess_status place_values(tess_net_plan *plan, placing *place, tess_error *error)
{
    const tess_net *net = plan->bound->net;
    const int values = tess_net_value_count(net);
    TESS_TRY(size_storage(plan, place, error));
    extend_lifetimes(plan, place);
    for (int s = 0; s < plan->step_count; s++)
        write_in_place(plan, place, s);
    for (int v = 0; v < values; v++)
        if (place->storage[v].first < 0)
            place->storage[v].bytes = 0; /* fused: not stored */
    tess_arena_place(place->storage, values, place->order, &plan->arena_bytes);
    plan->lower_bound = tess_arena_lower_bound(place->storage, values);
    place_packed(plan);
    for (int v = 0; v < values; v++) {
        const tess_tensor t = tess_plan_tensor(plan, v);
        const int64_t first = plan->margins[v].above * tess_plan_stride(plan, &t) +
                              plan->margins[v].left * t.stride_w + tess_net_value(net, v)->offset;
        plan->offset[v] =
            place->storage[storage_of(plan, place, v)].offset + (size_t)first * tess_dtype_size(t.dtype);
    }
    return TESS_OK;
}

tess_status tess_plan_place(tess_net_plan *plan, tess_error *error)
{
    const size_t values = (size_t)tess_net_value_count(plan->bound->net);
    placing place = {tess_small_alloc(values, sizeof *place.storage),
                     tess_small_alloc(values, sizeof *place.storage_of),
                     tess_small_alloc(values, sizeof *place.order)};
    tess_status status = TESS_OK;
    if (!place.storage || !place.storage_of || !place.order)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    if (status == TESS_OK)
        status = place_values(plan, &place, error);
    plan->lives = place.storage;
    tess_small_free(place.storage_of);
    tess_small_free(place.order);
    return status;
}
