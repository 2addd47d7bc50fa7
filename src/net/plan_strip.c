/* The steps of a layer. If the plan is for a strip of an image, a layer that reads rows of a neighbour follows their
 * exchange. A convolution is then divided: while the rows are under way it computes the output rows that do not need
 * them, and the rows at the inner edges after their arrival. The parts begin at multiples of the bound network's
 * alignment, so they have the bits of the undivided op. In a slab of a volume all of this is done with slices in place of rows. */
#include "base/checked.h"
#include "net/plan_impl.h"
#include "op/row.h"

enum { LEAST_PARTS = 4 }; /* a strip of fewer edges is not divided: small ops cost more than the exchange */

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* The length along the divided axis. */
static int64_t *side(const tess_net_plan *plan, tess_tensor *tensor)
{
    return plan->shape.slices ? &tensor->d : &tensor->h;
}

/* An op may write over an input only if both are stored alike, so both get the larger margin: a row more instead of a
 * tensor more. Returns true if something changed. */
static bool match_margins(tess_net_plan *plan, const tess_layer *layer)
{
    const tess_net *net = plan->bound->net;
    const tess_value_info *out = tess_net_value(net, layer->out[0]);
    tess_margin *own = &plan->margins[out->root];
    const int axis = tess_plan_axis(plan);
    const bool alone = layer->kind == TESS_OP_ACTIVATE || layer->kind == TESS_OP_GROUP_NORM;
    bool changed = false;
    for (int i = alone ? 0 : 1; i < layer->inputs; i++) {
        const tess_value_info *in = tess_net_value(net, layer->in[i]);
        tess_margin *other = &plan->margins[in->root];
        if (in->vector || in->channels != out->channels || in->down[axis] != out->down[axis] ||
            (own->above == other->above && own->below == other->below))
            continue;
        own->above = other->above = most(own->above, other->above);
        own->below = other->below = most(own->below, other->below);
        changed = true;
    }
    return changed;
}

/* At the inner edge of a strip, the rows that a layer would pad with zeros are stored around its input. All
 * values of one storage have the same margins, and as many above as below: what a strip receives from a neighbour is
 * as much as it sends there. */
void tess_plan_set_margins(tess_net_plan *plan)
{
    const tess_net *net = plan->bound->net;
    const int axis = tess_plan_axis(plan);
    if (!plan->shape.above && !plan->shape.below)
        return;
    for (int i = 0; i < tess_net_layer_count(net); i++) {
        const tess_layer *layer = tess_net_layer(net, i);
        if (!tess_bound_runs(plan->bound, i) || tess_op_row_of(layer->kind)->reach != TESS_REACH_WINDOW)
            continue;
        const tess_value read = layer->sums && plan->shape.slices ? layer->sums - 1 : layer->in[0];
        tess_margin *root = &plan->margins[tess_net_value(net, read)->root];
        const int pad = most(layer->window.pad_before[axis], layer->window.pad_after[axis]);
        root->above = plan->shape.above ? most(root->above, pad) : 0;
        root->below = plan->shape.below ? most(root->below, pad) : 0;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < tess_net_layer_count(net); i++)
            if (tess_bound_runs(plan->bound, i))
                changed = match_margins(plan, tess_net_layer(net, i)) || changed;
    }
    for (int v = 0; v < tess_net_value_count(net); v++)
        plan->margins[v] = plan->margins[tess_net_value(net, v)->root];
}

static int64_t least_part(const tess_bound *bound, int axis)
{
    int64_t least = tess_net_grid(bound->net, axis);
    for (int i = 0; i < tess_net_layer_count(bound->net); i++) {
        const tess_layer *layer = tess_net_layer(bound->net, i);
        const int pad = most(layer->window.pad_before[axis], layer->window.pad_after[axis]);
        if (tess_bound_runs(bound, i))
            least = tess_max_i64(least, (int64_t)pad << tess_net_value(bound->net, layer->in[0])->down[axis]);
    }
    return least;
}

int64_t tess_bound_least_strip(const tess_bound *bound)
{
    return least_part(bound, TESS_HEIGHT);
}

int64_t tess_bound_least_slab(const tess_bound *bound)
{
    return least_part(bound, TESS_DEPTH);
}

/* Output rows [from, to) of a layer in a strip. */
typedef struct rows {
    int64_t from, to;
} rows;

/* Restricts the op to these rows. At an inner edge, and between parts, the first input begins with the rows that the
 * whole op would pad or read anyway, and there is no padding. The stride is 1, or all rows are computed. */
static void take_rows(const tess_net_plan *plan, tess_step *step, rows part)
{
    tess_op *op = &step->op;
    const int axis = tess_plan_axis(plan);
    const int64_t height = *side(plan, &op->out[0]), in_height = *side(plan, &op->in[0]);
    const int before = op->pad_before[axis], after = op->pad_after[axis];
    const bool all = part.from == 0 && part.to == height;
    int64_t in_to = all ? in_height : part.to;
    step->row = step->in_row = part.from;
    if (part.from > 0 || plan->shape.above) {
        step->in_row -= before;
        op->pad_before[axis] = 0;
    }
    if (part.to < height || plan->shape.below) {
        in_to += after;
        op->pad_after[axis] = 0;
    }
    *side(plan, &op->in[0]) = in_to - step->in_row;
    for (int i = 1; i < op->inputs && !all; i++)
        *side(plan, &op->in[i]) = part.to - part.from;
    *side(plan, &op->out[0]) = part.to - part.from;
}

static tess_status add_part(tess_net_plan *plan, int index, tess_op op, const rows *part, tess_error *error)
{
    const tess_layer *layer = tess_net_layer(plan->bound->net, index);
    tess_step *step = tess_plan_add_step(plan, TESS_STEP_OP, index);
    step->op = op;
    for (int i = 0; i < layer->inputs; i++) {
        step->in[i] = i ? layer->in[i] : tess_bound_input(plan->bound, index);
        step->op.in[i] = tess_plan_tensor(plan, step->in[i]);
    }
    for (int i = 0; i < layer->outputs; i++) {
        step->out[i] = layer->out[i];
        step->op.out[i] = tess_plan_tensor(plan, step->out[i]);
    }
    if (part)
        take_rows(plan, step, *part);
    return tess_plan_ask(plan, step, error);
}

/* The rows at an inner edge that wait for the exchange; 0: the op is not divided. Kernels have blocks of rows, not of slices. */
static int64_t edge_rows(const tess_net_plan *plan, int index, const tess_op *op)
{
    const tess_layer *layer = tess_net_layer(plan->bound->net, index);
    const bool slices = plan->shape.slices;
    const int axis = tess_plan_axis(plan), down = tess_net_value(plan->bound->net, layer->out[0])->down[axis];
    const int64_t step = slices ? 1 : tess_max_i64(plan->bound->alignment >> down, 1),
                  reach = most(op->pad_before[axis], op->pad_after[axis]), edge = tess_round_up(reach, step),
                  out = slices ? op->out[0].d : op->out[0].h, in = slices ? op->in[0].d : op->in[0].h;
    const bool plain = op->kind == TESS_OP_CONV && op->outputs == 1 && op->stride[axis] == 1 && out == in &&
                       (slices || op->out[0].d == 1);
    return plain && out >= LEAST_PARTS * edge ? edge : 0;
}

/* Fetches the rows around `value` once, before the first layer that reads them. */
static bool exchange_before(tess_net_plan *plan, int layer, tess_value value)
{
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == TESS_STEP_EXCHANGE && plan->steps[i].in[0] == value)
            return false;
    tess_plan_add_step(plan, TESS_STEP_EXCHANGE, layer)->in[0] = value;
    return true;
}

/* The sums of channels are exchanged, which are one value for each pixel, and then added up. */
static tess_status add_sums(tess_net_plan *plan, int index, const tess_op *op, tess_error *error)
{
    const tess_layer *layer = tess_net_layer(plan->bound->net, index);
    const tess_value sums = layer->sums - 1;
    tess_step *first = tess_plan_add_step(plan, TESS_STEP_OP, index);
    first->op = *op;
    first->op.side.sums = true;
    first->in[0] = layer->in[0];
    first->out[0] = sums;
    first->op.in[0] = tess_plan_tensor(plan, layer->in[0]);
    first->op.out[0] = tess_plan_tensor(plan, sums);
    TESS_TRY(tess_plan_ask(plan, first, error));
    tess_plan_add_step(plan, TESS_STEP_EXCHANGE, index)->in[0] = sums;
    tess_plan_add_step(plan, TESS_STEP_ARRIVAL, index)->in[0] = sums;
    tess_step *second = tess_plan_add_step(plan, TESS_STEP_OP, index);
    second->op = *op;
    second->in[0] = sums;
    second->out[0] = layer->out[0];
    second->op.in[0] = tess_plan_tensor(plan, sums);
    second->op.out[0] = tess_plan_tensor(plan, layer->out[0]);
    take_rows(plan, second, (rows){0, second->op.out[0].d});
    return tess_plan_ask(plan, second, error);
}

static tess_status add_in_strip(tess_net_plan *plan, int index, tess_op op, tess_error *error)
{
    const tess_value value = tess_bound_input(plan->bound, index);
    if (plan->shape.slices && tess_net_layer(plan->bound->net, index)->sums)
        return add_sums(plan, index, &op, error);
    const int64_t height = *side(plan, &op.out[0]), edge = edge_rows(plan, index, &op);
    const rows all = {0, height},
               inner = {plan->shape.above ? edge : 0, plan->shape.below ? height - edge : height};
    const bool new = exchange_before(plan, index, value), divided = new &&edge > 0;
    if (divided)
        TESS_TRY(add_part(plan, index, op, &inner, error));
    if (new)
        tess_plan_add_step(plan, TESS_STEP_ARRIVAL, index)->in[0] = value;
    if (!divided)
        return add_part(plan, index, op, &all, error);
    if (plan->shape.above)
        TESS_TRY(add_part(plan, index, op, &(rows){0, edge}, error));
    if (plan->shape.below)
        TESS_TRY(add_part(plan, index, op, &(rows){height - edge, height}, error));
    return TESS_OK;
}

tess_status tess_plan_add_op(tess_net_plan *plan, int index, tess_error *error)
{
    const tess_op op = tess_bound_op(plan->bound, index, plan->shape);
    const bool cut = plan->shape.above || plan->shape.below;
    const int axis = tess_plan_axis(plan);
    if (cut && (tess_op_row_of(op.kind)->reach == TESS_REACH_EVERYTHING || op.kind == TESS_OP_UP_CONV))
        return tess_fail(error, TESS_UNSUPPORTED,
                         op.kind == TESS_OP_UP_CONV
                             ? "%s cannot be computed for a strip of an image yet"
                             : "%s looks at the whole image, which a strip of it does not hold",
                         tess_op_kind_name(op.kind));
    if ((plan->shape.above && op.pad_before[axis] > 0) || (plan->shape.below && op.pad_after[axis] > 0))
        return add_in_strip(plan, index, op, error);
    return add_part(plan, index, op, NULL, error);
}
