/* Turns layers into steps. */
#include "net/plan.h"

#include "base/checked.h"
#include "base/stop.h"
#include "net/plan_impl.h"
#include "op/row.h"

tess_tensor tess_plan_tensor(const tess_net_plan *plan, tess_value value)
{
    tess_tensor t = tess_value_tensor(plan->bound->net, value, plan->bound->dtype, plan->shape);
    const tess_margin margin = plan->margins[value];
    t.stride_d = (t.h + margin.above + margin.below) * t.stride_h;
    t.stride_n = t.d * t.stride_d;
    return t;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* At the inner edge of a strip, the rows that a layer would pad with zeros are stored around its input. All
 * values of one storage have the same margins. */
static void set_margins(tess_net_plan *plan)
{
    const tess_net *net = plan->bound->net;
    if (!plan->shape.above && !plan->shape.below)
        return;
    for (int i = 0; i < tess_net_layer_count(net); i++) {
        const tess_layer *layer = tess_net_layer(net, i);
        if (!tess_bound_runs(plan->bound, i) || tess_op_row_of(layer->kind)->reach != TESS_REACH_WINDOW)
            continue;
        tess_margin *root = &plan->margins[tess_net_value(net, layer->in[0])->root];
        if (plan->shape.above)
            root->above = most(root->above, layer->window.pad_before[TESS_HEIGHT]);
        if (plan->shape.below)
            root->below = most(root->below, layer->window.pad_after[TESS_HEIGHT]);
    }
    for (int v = 0; v < tess_net_value_count(net); v++)
        plan->margins[v] = plan->margins[tess_net_value(net, v)->root];
}

static tess_step *add_step(tess_net_plan *plan, tess_step_kind kind, int layer)
{
    tess_step *step = &plan->steps[plan->step_count++];
    *step = (tess_step){.kind = kind, .layer = layer};
    plan->op_count += kind != TESS_STEP_EXCHANGE;
    return step;
}

/* Fetches the rows around `value` once, before the first layer that reads them. */
static void exchange_before(tess_net_plan *plan, int layer, tess_value value)
{
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == TESS_STEP_EXCHANGE && plan->steps[i].in[0] == value)
            return;
    add_step(plan, TESS_STEP_EXCHANGE, layer)->in[0] = value;
}

static tess_status ask(tess_net_plan *plan, tess_step *step, tess_error *error)
{
    tess_device *device = plan->bound->device;
    tess_op_needs needs;
    TESS_TRY(tess_stop_check(device->stop, error)); /* planners try many shapes */
    TESS_TRY(device->ops->query(device, &step->op, &needs, error));
    step->apart = needs.apart;
    if (needs.workspace > plan->workspace_bytes)
        plan->workspace_bytes = needs.workspace;
    return TESS_OK;
}

/* At an inner edge the first input begins with rows of the neighbour, and there is no padding. */
static void open_edges(const tess_net_plan *plan, tess_step *step)
{
    tess_op *op = &step->op;
    const bool above = plan->shape.above && op->pad_before[TESS_HEIGHT] > 0,
               below = plan->shape.below && op->pad_after[TESS_HEIGHT] > 0;
    if (above) {
        step->rows_above = op->pad_before[TESS_HEIGHT];
        op->in[0].h += op->pad_before[TESS_HEIGHT];
        op->pad_before[TESS_HEIGHT] = 0;
    }
    if (below) {
        op->in[0].h += op->pad_after[TESS_HEIGHT];
        op->pad_after[TESS_HEIGHT] = 0;
    }
}

static tess_status add_op(tess_net_plan *plan, int index, tess_error *error)
{
    const tess_layer *layer = tess_net_layer(plan->bound->net, index);
    tess_op op = tess_bound_op(plan->bound, index, plan->shape);
    const bool strip = (plan->shape.above && op.pad_before[TESS_HEIGHT] > 0) ||
                       (plan->shape.below && op.pad_after[TESS_HEIGHT] > 0);
    if ((plan->shape.above || plan->shape.below) && tess_op_row_of(op.kind)->reach == TESS_REACH_EVERYTHING)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%s looks at the whole image, which a strip of it does not hold",
                         tess_op_kind_name(op.kind));
    if (strip)
        exchange_before(plan, index, tess_bound_input(plan->bound, index));
    tess_step *step = add_step(plan, TESS_STEP_OP, index);
    step->op = op;
    for (int i = 0; i < layer->inputs; i++) {
        step->in[i] = i ? layer->in[i] : tess_bound_input(plan->bound, index);
        step->op.in[i] = tess_plan_tensor(plan, step->in[i]);
    }
    for (int i = 0; i < layer->outputs; i++) {
        step->out[i] = layer->out[i];
        step->op.out[i] = tess_plan_tensor(plan, step->out[i]);
    }
    if (strip)
        open_edges(plan, step);
    return ask(plan, step, error);
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
            tess_step *step = add_step(plan, TESS_STEP_COPY, index);
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
            TESS_TRY(ask(plan, step, error));
        }
        channel += channels;
    }
    return TESS_OK;
}

static tess_status collect_steps(tess_net_plan *plan, tess_error *error)
{
    const tess_net *net = plan->bound->net;
    set_margins(plan);
    for (int i = 0; i < tess_net_layer_count(net); i++) {
        if (!tess_bound_runs(plan->bound, i))
            continue;
        const bool concat = tess_net_layer(net, i)->kind == TESS_OP_CONCAT;
        TESS_TRY((concat ? add_copies : add_op)(plan, i, error));
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
    if (!plan)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    shape.d = tess_max_i64(shape.d, 1);
    *plan = (tess_net_plan){.bound = bound, .shape = shape};
    /* A layer adds at most one copy for each input, or an exchange and an op. */
    plan->steps = tess_small_alloc(layers * TESS_OP_INPUTS, sizeof *plan->steps);
    plan->offset = tess_small_alloc(values, sizeof *plan->offset);
    plan->margins = tess_small_alloc(values, sizeof *plan->margins);
    tess_status status = TESS_OK;
    if (!plan->steps || !plan->offset || !plan->margins)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    if (status == TESS_OK)
        status = collect_steps(plan, error);
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
    for (int i = 0; plan->steps && i < plan->step_count; i++)
        if (plan->steps[i].prepared)
            plan->bound->device->ops->release(plan->bound->device, plan->steps[i].prepared);
    tess_small_free(plan->steps);
    tess_small_free(plan->offset);
    tess_small_free(plan->margins);
    tess_small_free(plan);
}

tess_status tess_net_plan_prepare(tess_net_plan *plan, tess_error *error)
{
    tess_device *device = plan->bound->device;
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind != TESS_STEP_EXCHANGE && !plan->steps[i].prepared)
            TESS_TRY(device->ops->prepare(device, &plan->steps[i].op, &plan->steps[i].prepared, error));
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
    return plan->step_count - plan->op_count;
}

const tess_op *tess_net_plan_op(const tess_net_plan *plan, int index)
{
    if (plan->op_count == plan->step_count)
        return &plan->steps[index].op;
    int at = 0;
    for (;; at++)
        if (plan->steps[at].kind != TESS_STEP_EXCHANGE && index-- == 0)
            return &plan->steps[at].op;
}
