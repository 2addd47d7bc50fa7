/* Turns layers into steps. */
#include "net/plan.h"

#include "base/checked.h"
#include "base/stop.h"
#include "net/plan_impl.h"

tess_tensor tess_plan_tensor(const tess_net_plan *plan, tess_value value)
{
    tess_tensor t = tess_value_tensor(plan->bound->net, value, plan->bound->dtype, plan->shape);
    const tess_margin margin = plan->margins[value];
    const int64_t more = margin.above + margin.below;
    t.stride_h += (margin.left + margin.right) * t.stride_w;
    t.stride_d = (t.h + (plan->shape.slices ? 0 : more)) * t.stride_h;
    t.stride_n = (t.d + (plan->shape.slices ? more : 0)) * t.stride_d;
    return t;
}

tess_step *tess_plan_add_step(tess_net_plan *plan, tess_step_kind kind, int layer)
{
    tess_step *step = &plan->steps[plan->step_count++];
    *step = (tess_step){.kind = kind, .layer = layer};
    plan->op_count += tess_step_computes(step);
    return step;
}

tess_status tess_plan_ask(tess_net_plan *plan, tess_step *step, tess_error *error)
{
    tess_device *device = plan->bound->device;
    tess_op_needs needs;
    TESS_TRY(tess_stop_check(device->stop, error)); /* planners try many shapes */
    TESS_TRY(device->ops->query(device, &step->op, &needs, error));
    step->apart = needs.apart;
    step->block = needs.block;
    if (needs.workspace > plan->workspace_bytes)
        plan->workspace_bytes = needs.workspace;
    return TESS_OK;
}

/* True when the value is already where a concatenation wants it. */
static bool in_its_place(const tess_net *net, tess_value value, tess_value whole, int64_t channel)
{
    const tess_value_info *part = tess_net_value(net, value), *all = tess_net_value(net, whole);
    return part->root == all->root && part->offset == all->offset + channel;
}

/* A value that could not be placed in the storage of the concatenation is copied there, by an upsampling with
 * factor 1. */
static tess_status add_copies(tess_net_plan *plan, int index, tess_error *error)
{
    const tess_net *net = plan->bound->net;
    const tess_layer *layer = tess_net_layer(net, index);
    int64_t channel = 0;
    for (int i = 0; i < layer->inputs; i++) {
        const int64_t channels = tess_net_value(net, layer->in[i])->channels;
        if (!in_its_place(net, layer->in[i], layer->out[0], channel)) {
            tess_step *step = tess_plan_add_step(plan, TESS_STEP_COPY, index);
            step->in[0] = layer->in[i];
            step->out[0] = layer->out[0];
            step->channel = channel;
            step->op =
                (tess_op){.kind = TESS_OP_UPSAMPLE,
                          .inputs = 1,
                          .outputs = 1,
                          .in = {tess_plan_tensor(plan, layer->in[i])},
                          .out = {tess_tensor_channels(tess_plan_tensor(plan, layer->out[0]), channels)},
                          .kernel = {1, 1, 1},
                          .stride = {1, 1, 1}};
            TESS_TRY(tess_plan_ask(plan, step, error));
        }
        channel += channels;
    }
    return TESS_OK;
}

static tess_status collect_steps(tess_net_plan *plan, tess_error *error)
{
    const tess_net *net = plan->bound->net;
    tess_plan_set_margins(plan);
    for (int i = 0; i < tess_net_layer_count(net); i++) {
        if (!tess_bound_runs(plan->bound, i))
            continue;
        const bool concat = tess_net_layer(net, i)->kind == TESS_OP_CONCAT;
        TESS_TRY((concat ? add_copies : tess_plan_add_op)(plan, i, error));
    }
    return TESS_OK;
}

/* Marks norms and convolutions that read the same value, one after the other: both ops' outputs are read later, and
 * their input is there until the second ends, so none of the three lies over another. */
static void pair_readers(tess_net_plan *plan)
{
    for (int i = 1; i < plan->step_count; i++) {
        tess_step *first = &plan->steps[i - 1], *second = &plan->steps[i];
        if (first->kind == TESS_STEP_OP && second->kind == TESS_STEP_OP && first->in[0] == second->in[0] &&
            first->op.kind == TESS_OP_GROUP_NORM && second->op.kind == TESS_OP_CONV &&
            first->op.inputs == 1 && second->op.inputs == 1)
            first->op.leads = second->op.beside = true;
    }
}

tess_status tess_net_plan_create(const tess_bound *bound, tess_plan_shape shape, tess_net_plan **out,
                                 tess_error *error)
{
    *out = NULL;
    const size_t values = (size_t)tess_net_value_count(bound->net),
                 layers = (size_t)tess_net_layer_count(bound->net);
    tess_net_plan *plan = tess_small_alloc(1, sizeof *plan);
    if (!plan)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    shape.d = tess_max_i64(shape.d, 1);
    *plan = (tess_net_plan){.bound = bound, .shape = shape};
    /* A layer adds at most one copy for each input, or an exchange, an arrival and five ops. */
    enum { MOST = TESS_OP_INPUTS > 7 ? TESS_OP_INPUTS : 7 };
    plan->steps = tess_small_alloc(layers * MOST, sizeof *plan->steps);
    plan->offset = tess_small_alloc(values, sizeof *plan->offset);
    plan->margins = tess_small_alloc(values, sizeof *plan->margins);
    plan->fetched = tess_small_alloc(values, sizeof *plan->fetched);
    tess_status status = TESS_OK;
    if (!plan->steps || !plan->offset || !plan->margins || !plan->fetched)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    if (status == TESS_OK)
        status = collect_steps(plan, error);
    pair_readers(plan);
    if (status == TESS_OK)
        status = tess_plan_place(plan, error);
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
    for (int i = 0; plan->steps && i < plan->step_count; i++) {
        if (plan->steps[i].prepared)
            plan->bound->device->ops->release(plan->bound->device, plan->steps[i].prepared);
        tess_plan_release_copies(plan, &plan->steps[i]);
    }
    tess_small_free(plan->steps);
    tess_small_free(plan->offset);
    tess_small_free(plan->margins);
    tess_small_free(plan->fetched);
    tess_small_free(plan->lives);
    tess_small_free(plan);
}

const tess_lifetime *tess_net_plan_lives(const tess_net_plan *plan, int *count)
{
    *count = tess_net_value_count(plan->bound->net);
    return plan->lives;
}

tess_status tess_net_plan_prepare(tess_net_plan *plan, tess_error *error)
{
    tess_device *device = plan->bound->device;
    for (int i = 0; i < plan->step_count; i++) {
        tess_step *step = &plan->steps[i];
        if (!tess_step_computes(step))
            TESS_TRY(tess_plan_prepare_copies(plan, step, error));
        else if (!step->prepared)
            TESS_TRY(device->ops->prepare(device, &step->op, &step->prepared, error));
    }
    return TESS_OK;
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

tess_tensor tess_net_plan_input_at(const tess_net_plan *plan, int index, size_t *offset)
{
    const tess_value value = tess_net_input_value(plan->bound->net, index);
    *offset = plan->offset[value];
    return tess_plan_tensor(plan, value);
}

tess_tensor tess_net_plan_output_at(const tess_net_plan *plan, int index, size_t *offset)
{
    const tess_value value = tess_net_output_value(plan->bound->net, index);
    *offset = plan->offset[value];
    return tess_plan_tensor(plan, value);
}

tess_tensor tess_net_plan_input(const tess_net_plan *plan, size_t *offset)
{
    return tess_net_plan_input_at(plan, 0, offset);
}

tess_tensor tess_net_plan_output(const tess_net_plan *plan, size_t *offset)
{
    return tess_net_plan_output_at(plan, tess_net_output_count(plan->bound->net) - 1, offset);
}

int tess_net_plan_op_count(const tess_net_plan *plan)
{
    return plan->op_count;
}

int tess_net_plan_exchange_count(const tess_net_plan *plan)
{
    int count = 0;
    for (int i = 0; i < plan->step_count; i++)
        count += plan->steps[i].kind == TESS_STEP_EXCHANGE;
    return count;
}

int tess_net_plan_step_count(const tess_net_plan *plan)
{
    return plan->step_count;
}

tess_plan_step tess_net_plan_step(const tess_net_plan *plan, int index)
{
    const tess_step *step = &plan->steps[index];
    tess_plan_step view = {.kind = step->kind, .layer = step->layer};
    if (tess_step_computes(step)) {
        view.op = &step->op;
        view.waits = step->waits;
        view.early = step->waits ? tess_plan_early(plan, step) : 0;
        return view;
    }
    const tess_exchange e = tess_plan_exchange(plan, step, NULL);
    view.rows = e.rows;
    view.slices = e.slices;
    view.above = e.above;
    view.below = e.below;
    view.left = e.left;
    view.right = e.right;
    return view;
}

const tess_op *tess_net_plan_op(const tess_net_plan *plan, int index)
{
    if (plan->op_count == plan->step_count)
        return &plan->steps[index].op;
    int at = 0;
    for (;; at++)
        if (tess_step_computes(&plan->steps[at]) && index-- == 0)
            return &plan->steps[at].op;
}
