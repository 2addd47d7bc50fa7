/* Room for the neighbours' rows and columns around each value. At the inner edge of a part of an image, what a layer would pad with
 * zeros is stored around its input: rows before and after the part's own (in a slab of a volume, slices), and in a block columns on
 * both sides of every row. Kernels then read a larger image at the same strides and need to know nothing of neighbours. */
#include <stdlib.h>

#include "base/checked.h"
#include "net/plan_impl.h"
#include "op/row.h"

static int most(int a, int b)
{
    return a > b ? a : b;
}

static bool same(const tess_margin *a, const tess_margin *b)
{
    return a->above == b->above && a->below == b->below && a->left == b->left && a->right == b->right;
}

static tess_margin larger(const tess_margin *a, const tess_margin *b)
{
    return (tess_margin){most(a->above, b->above), most(a->below, b->below), most(a->left, b->left),
                         most(a->right, b->right)};
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
            in->down[TESS_WIDTH] != out->down[TESS_WIDTH] || same(own, other))
            continue;
        *own = *other = larger(own, other);
        changed = true;
    }
    return changed;
}

static int pad_of(const tess_layer *layer, int axis)
{
    return most(layer->window.pad_before[axis], layer->window.pad_after[axis]);
}

tess_rows tess_plan_rows_read(const tess_net_plan *plan, tess_value in, tess_value out)
{
    const tess_level_rows *levels = &plan->shape.levels;
    const int from = tess_net_value(plan->bound->net, in)->down[TESS_HEIGHT],
              to = tess_net_value(plan->bound->net, out)->down[TESS_HEIGHT];
    if (!tess_level_rows_given(levels) || from == to)
        return (tess_rows){0, tess_plan_tensor(plan, in).h};
    const int64_t first = levels->first[to], end = first + levels->rows[to];
    const tess_rows read = {to > from ? first << (to - from) : first >> (from - to),
                            to > from ? end << (to - from) : end >> (from - to)};
    return (tess_rows){read.from - levels->first[from], read.to - levels->first[from]};
}

/* The rows of the neighbours that a layer reads, or as many own rows that it leaves to them: then they read these. */
static tess_margin rows_of_neighbours(const tess_net_plan *plan, const tess_layer *layer, tess_value in)
{
    const tess_plan_shape *shape = &plan->shape;
    const int rows = pad_of(layer, tess_plan_axis(plan)), columns = pad_of(layer, TESS_WIDTH);
    tess_margin needed = {shape->above ? rows : 0, shape->below ? rows : 0, shape->left ? columns : 0,
                          shape->right ? columns : 0};
    if (!tess_level_rows_given(&shape->levels))
        return needed;
    const tess_rows read = tess_plan_rows_read(plan, in, layer->out[0]);
    needed.above = most(needed.above, abs((int)read.from));
    needed.below = most(needed.below, abs((int)(read.to - tess_plan_tensor(plan, in).h)));
    return needed;
}

/* All values of one storage have the same margins, and as many above as below: what a part receives from a neighbour is
 * as much as it sends there. */
void tess_plan_set_margins(tess_net_plan *plan)
{
    const tess_net *net = plan->bound->net;
    const tess_plan_shape *shape = &plan->shape;
    if (!tess_plan_cut(plan))
        return;
    for (int i = 0; i < tess_net_layer_count(net); i++) {
        const tess_layer *layer = tess_net_layer(net, i);
        if (!tess_bound_runs(plan->bound, i) || tess_op_row_of(layer->kind)->reach != TESS_REACH_WINDOW)
            continue;
        const tess_value read = layer->sums && shape->slices ? layer->sums - 1 : layer->in[0];
        tess_margin *root = &plan->margins[tess_net_value(net, read)->root], *own = &plan->fetched[read];
        const tess_margin needed = rows_of_neighbours(plan, layer, read);
        *root = larger(root, &needed);
        *own = larger(own, &needed);
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

tess_exchange tess_plan_exchange(const tess_net_plan *plan, const tess_step *step, void *arena)
{
    const tess_value value = step->in[0];
    const tess_margin margin = plan->fetched[value];
    tess_exchange e = {.rows = tess_plan_tensor(plan, value),
                       .slices = plan->shape.slices,
                       .above = margin.above,
                       .below = margin.below,
                       .left = margin.left,
                       .right = margin.right};
    if (arena) {
        e.data = (char *)arena + plan->offset[value];
        e.packed = tess_exchange_in_block(&e) ? (char *)arena + plan->packed_at : NULL;
    }
    return e;
}

size_t tess_net_plan_exchange_bytes(const tess_net_plan *plan)
{
    size_t most = 0;
    for (int s = 0; s < plan->step_count; s++)
        if (plan->steps[s].kind == TESS_STEP_EXCHANGE) {
            const tess_exchange e = tess_plan_exchange(plan, &plan->steps[s], NULL);
            const size_t bytes = tess_exchange_host_bytes(&e);
            most = bytes > most ? bytes : most;
        }
    return most;
}

static int64_t least_part(const tess_bound *bound, int axis)
{
    int64_t least = tess_net_grid(bound->net, axis);
    for (int i = 0; i < tess_net_layer_count(bound->net); i++) {
        const tess_layer *layer = tess_net_layer(bound->net, i);
        if (tess_bound_runs(bound, i))
            least = tess_max_i64(least, (int64_t)pad_of(layer, axis)
                                            << tess_net_value(bound->net, layer->in[0])->down[axis]);
    }
    return least;
}

int64_t tess_bound_least_strip(const tess_bound *bound)
{
    return least_part(bound, TESS_HEIGHT);
}

int64_t tess_bound_least_columns(const tess_bound *bound)
{
    return least_part(bound, TESS_WIDTH);
}

int64_t tess_bound_least_slab(const tess_bound *bound)
{
    return least_part(bound, TESS_DEPTH);
}
