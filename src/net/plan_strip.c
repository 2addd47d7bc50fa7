/* The steps of a layer. If the plan is for a strip of an image, a layer that reads rows of a neighbour follows their
 * exchange. A kernel of the host that can wait in the middle of an op does so. Any other convolution is divided: while the rows are
 * under way it computes the output rows that do not need
 * them, and the rows at the inner edges after their arrival. The parts begin at multiples of the bound network's
 * alignment, so they have the bits of the undivided op. In a slab of a volume all of this is done with slices in place of rows.
 * In a block the inner part is a rectangle; the rows above and below it in full width, and the columns beside it, follow. */
#include "base/checked.h"
#include "net/plan_impl.h"
#include "op/row.h"

/* A strip of fewer edges is not divided: small ops cost more than the exchange. On a CPU every part transforms the weights again,
 * which takes longer than rows take to arrive; only where these are a small part of the op, it pays to be independent of late
 * neighbours. */
enum { LEAST_PARTS = 4, LEAST_PARTS_HOST = 8 };

/* A box of a layer's output: positions [from, to) along each axis. */
typedef struct box {
    int64_t from[TESS_SPATIAL], to[TESS_SPATIAL];
} box;

static int most(int a, int b)
{
    return a > b ? a : b;
}

static int64_t *length_of(tess_tensor *tensor, int axis)
{
    return axis == TESS_DEPTH ? &tensor->d : axis == TESS_HEIGHT ? &tensor->h : &tensor->w;
}

static box all_of(tess_tensor *out)
{
    box all = {{0}};
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        all.to[axis] = *length_of(out, axis);
    return all;
}

/* The axes along which a part may have neighbours. */
typedef struct axes {
    int axis[2];
} axes;

static axes cut_axes(const tess_net_plan *plan)
{
    return (axes){{tess_plan_axis(plan), TESS_WIDTH}};
}

/* Restricts the op to the box along one axis, and returns the own position that its first input begins with. At an inner edge, and
 * between parts, the first input begins with what the whole op would pad or read anyway, and there is no padding. The stride is
 * 1, or all positions are computed, from those in `read`. */
static int64_t take_along(const tess_net_plan *plan, tess_op *op, int axis, tess_rows read, int64_t from,
                          int64_t to)
{
    const int64_t length = *length_of(&op->out[0], axis);
    const int before = op->pad_before[axis], after = op->pad_after[axis];
    const bool all = from == 0 && to == length;
    int64_t in_from = all ? read.from : from, in_to = all ? read.to : to;
    if (from > 0 || tess_plan_before(plan, axis)) {
        in_from -= before;
        op->pad_before[axis] = 0;
    }
    if (to < length || tess_plan_after(plan, axis)) {
        in_to += after;
        op->pad_after[axis] = 0;
    }
    *length_of(&op->in[0], axis) = in_to - in_from;
    for (int i = 1; i < op->inputs && !all; i++)
        *length_of(&op->in[i], axis) = to - from;
    *length_of(&op->out[0], axis) = to - from;
    return in_from;
}

static void take_box(const tess_net_plan *plan, tess_step *step, const box *part)
{
    const int axis = tess_plan_axis(plan);
    const tess_rows across = {0, step->op.in[0].w};
    const tess_rows read = axis == TESS_HEIGHT ? tess_plan_rows_read(plan, step->in[0], step->out[0])
                                               : (tess_rows){0, step->op.in[0].d};
    step->row = part->from[axis];
    step->column = part->from[TESS_WIDTH];
    step->in_row = take_along(plan, &step->op, axis, read, part->from[axis], part->to[axis]);
    step->in_column =
        take_along(plan, &step->op, TESS_WIDTH, across, part->from[TESS_WIDTH], part->to[TESS_WIDTH]);
}

static tess_status add_part(tess_net_plan *plan, int index, tess_op op, const box *part, tess_error *error)
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
        take_box(plan, step, part);
    return tess_plan_ask(plan, step, error);
}

/* The positions at an inner edge that wait for the exchange; 0: the op is not divided along this axis. Kernels have blocks of rows and
 * columns, not of slices. */
static int64_t edge_along(const tess_net_plan *plan, int index, tess_op *op, int axis)
{
    const tess_layer *layer = tess_net_layer(plan->bound->net, index);
    const bool slices = axis == TESS_DEPTH;
    const int down = tess_net_value(plan->bound->net, layer->out[0])->down[axis];
    const int64_t step = slices ? 1 : tess_max_i64(plan->bound->alignment >> down, 1),
                  reach = most(op->pad_before[axis], op->pad_after[axis]), edge = tess_round_up(reach, step),
                  out = *length_of(&op->out[0], axis), in = *length_of(&op->in[0], axis);
    const bool plain = op->kind == TESS_OP_CONV && op->outputs == 1 && op->stride[axis] == 1 && out == in &&
                       (slices || op->out[0].d == 1);
    const int least = plan->bound->device->host_memory ? LEAST_PARTS_HOST : LEAST_PARTS;
    return plain && out >= least * edge ? edge : 0;
}

/* The part of the output that needs nothing of the neighbours. False: it is too little to divide the op. */
static bool inner_of(const tess_net_plan *plan, int index, tess_op *op, box *inner)
{
    const axes cut = cut_axes(plan);
    double all = 1, left = 1;
    *inner = all_of(&op->out[0]);
    for (int i = 0; i < 2; i++) {
        const int axis = cut.axis[i];
        const bool before = tess_plan_before(plan, axis), after = tess_plan_after(plan, axis);
        if (!before && !after)
            continue;
        const int64_t edge = edge_along(plan, index, op, axis), length = inner->to[axis];
        if (edge == 0)
            return false;
        inner->from[axis] = before ? edge : 0;
        inner->to[axis] = after ? length - edge : length;
        all *= (double)length;
        left *= (double)(inner->to[axis] - inner->from[axis]);
    }
    return 2 * left >= all;
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
    const box all = all_of(&second->op.out[0]);
    take_box(plan, second, &all);
    return tess_plan_ask(plan, second, error);
}

/* What is left of the output around the inner part: along the first axis in full width, then beside it. */
static tess_status add_edges(tess_net_plan *plan, int index, tess_op op, const box *inner, tess_error *error)
{
    const axes cut = cut_axes(plan);
    box whole = all_of(&op.out[0]);
    for (int i = 0; i < 2; i++) {
        const int axis = cut.axis[i];
        for (int after = 0; after < 2; after++) {
            box edge = whole;
            if (after)
                edge.from[axis] = inner->to[axis];
            else
                edge.to[axis] = inner->from[axis];
            if (edge.from[axis] < edge.to[axis])
                TESS_TRY(add_part(plan, index, op, &edge, error));
        }
        whole.from[axis] = inner->from[axis];
        whole.to[axis] = inner->to[axis];
    }
    return TESS_OK;
}

/* A neighbour reads as many rows of this part as this part reads of it. */
static tess_status check_rows(const tess_net_plan *plan, tess_value value, tess_error *error)
{
    const int rows = most(plan->fetched[value].above, plan->fetched[value].below);
    if (tess_level_rows_given(&plan->shape.levels) && rows > tess_plan_tensor(plan, value).h)
        return tess_fail(error, TESS_INTERNAL, "levels of a strip begin too far from each other");
    return TESS_OK;
}

tess_margin tess_plan_late(const tess_net_plan *plan, const tess_step *step)
{
    const int64_t own = tess_plan_tensor(plan, step->in[0]).h, above = -step->in_row,
                  below = step->in_row + step->op.in[0].h - own;
    return (tess_margin){.above = (int)tess_max_i64(above, 0), .below = (int)tess_max_i64(below, 0)};
}

double tess_plan_early(const tess_net_plan *plan, const tess_step *step)
{
    const tess_margin late = tess_plan_late(plan, step);
    const int64_t rows = step->op.out[0].h,
                  edges = ((late.above > 0) + (late.below > 0)) * (int64_t)step->block;
    return (double)tess_max_i64(rows - edges, 0) / (double)rows;
}

/* Whether the kernel of an op waits for rows by itself. Other devices only queue ops, and columns are late in every row. */
static tess_status can_wait(const tess_net_plan *plan, const tess_op *op, bool *waits, tess_error *error)
{
    tess_device *device = plan->bound->device;
    const tess_plan_shape *s = &plan->shape;
    tess_op_needs needs = {0};
    const bool plain =
        op->kind == TESS_OP_CONV && op->stride[TESS_HEIGHT] == 1 && op->out[0].h == op->in[0].h;
    if (plain && device->host_memory && !s->slices && !s->left && !s->right)
        TESS_TRY(device->ops->query(device, op, &needs, error));
    *waits = needs.waits;
    return TESS_OK;
}

static tess_status add_in_part(tess_net_plan *plan, int index, tess_op op, tess_error *error)
{
    const tess_value value = tess_bound_input(plan->bound, index);
    TESS_TRY(check_rows(plan, value, error));
    if (plan->shape.slices && tess_net_layer(plan->bound->net, index)->sums)
        return add_sums(plan, index, &op, error);
    const box all = all_of(&op.out[0]);
    box inner;
    bool waits;
    TESS_TRY(can_wait(plan, &op, &waits, error));
    const bool new = exchange_before(plan, index, value);
    if (new &&waits) {
        TESS_TRY(add_part(plan, index, op, &all, error));
        plan->steps[plan->step_count - 1].waits = true;
        return TESS_OK;
    }
    const bool divided = new &&inner_of(plan, index, &op, &inner);
    if (divided)
        TESS_TRY(add_part(plan, index, op, &inner, error));
    if (new)
        tess_plan_add_step(plan, TESS_STEP_ARRIVAL, index)->in[0] = value;
    return divided ? add_edges(plan, index, op, &inner, error) : add_part(plan, index, op, &all, error);
}

/* A layer between levels with borders of their own does so on all ranks or on none, so that all make the same exchanges. */
static bool reads_neighbours(const tess_net_plan *plan, int index, const tess_op *op)
{
    const axes cut = cut_axes(plan);
    const tess_layer *layer = tess_net_layer(plan->bound->net, index);
    if (tess_level_rows_given(&plan->shape.levels) &&
        tess_net_value(plan->bound->net, layer->in[0])->down[TESS_HEIGHT] !=
            tess_net_value(plan->bound->net, layer->out[0])->down[TESS_HEIGHT])
        return true;
    for (int i = 0; i < 2; i++) {
        const int axis = cut.axis[i];
        if ((tess_plan_before(plan, axis) && op->pad_before[axis] > 0) ||
            (tess_plan_after(plan, axis) && op->pad_after[axis] > 0))
            return true;
    }
    return false;
}

tess_status tess_plan_add_op(tess_net_plan *plan, int index, tess_error *error)
{
    const tess_op op = tess_bound_op(plan->bound, index, plan->shape);
    const bool cut = tess_plan_cut(plan);
    if (cut && (tess_op_row_of(op.kind)->reach == TESS_REACH_EVERYTHING || op.kind == TESS_OP_UP_CONV))
        return tess_fail(error, TESS_UNSUPPORTED,
                         op.kind == TESS_OP_UP_CONV
                             ? "%s cannot be computed for a strip of an image yet"
                             : "%s looks at the whole image, which a strip of it does not hold",
                         tess_op_kind_name(op.kind));
    if (reads_neighbours(plan, index, &op))
        return add_in_part(plan, index, op, error);
    return add_part(plan, index, op, NULL, error);
}
