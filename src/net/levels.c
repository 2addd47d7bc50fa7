#include "net/levels.h"

#include "base/checked.h"
#include "net/bound_impl.h"
#include "op/row.h"

static int level_of(const tess_net *net, tess_value value)
{
    return tess_net_value(net, value)->down[TESS_HEIGHT];
}

/* A layer that makes two rows of one, or one of two, without looking at others. */
static bool halves_or_doubles(const tess_layer *layer)
{
    const tess_layer_window *w = &layer->window;
    const bool by_two =
        w->stride[TESS_HEIGHT] == 2 && w->pad_before[TESS_HEIGHT] == 0 && w->pad_after[TESS_HEIGHT] == 0;
    switch (layer->kind) {
    case TESS_OP_CONV:
    case TESS_OP_CONV_TRANSPOSE:
    case TESS_OP_MAX_POOL:
    case TESS_OP_AVERAGE_POOL:
        return by_two && w->kernel[TESS_HEIGHT] == 2;
    case TESS_OP_UPSAMPLE:
        return by_two;
    default: /* no other kind is known to */
        return false;
    }
}

static bool takes_levels(const tess_net *net, const tess_layer *layer)
{
    const int out = level_of(net, layer->out[0]);
    bool takes = tess_op_row_of(layer->kind)->reach != TESS_REACH_EVERYTHING && layer->outputs == 1;
    for (int i = 0; i < layer->inputs && takes; i++) {
        const int in = level_of(net, layer->in[i]);
        takes = tess_net_value(net, layer->in[i])->vector || in == out ||
                (i == 0 && (in == out + 1 || in + 1 == out) && halves_or_doubles(layer));
    }
    return takes;
}

static bool possible(const tess_bound *bound)
{
    const tess_net *net = bound->net;
    bool possible = bound->device->host_memory && bound->dtype == TESS_F32 && !tess_net_is_volume(net) &&
                    bound->alignment > tess_net_grid(net, TESS_HEIGHT);
    for (int v = 0; v < tess_net_value_count(net); v++)
        possible =
            possible && level_of(net, v) < TESS_LEVELS && (!tess_net_is_end(net, v) || level_of(net, v) == 0);
    for (int i = 0; i < tess_net_layer_count(net); i++)
        possible = possible && !bound->fused[i] &&
                   (!tess_bound_runs(bound, i) || takes_levels(net, tess_net_layer(net, i)));
    return possible;
}

static void add_layer(tess_levels *levels, const tess_bound *bound, int index)
{
    const tess_layer *layer = tess_net_layer(bound->net, index);
    const tess_layer_window *w = &layer->window;
    const int in = level_of(bound->net, layer->in[0]), out = level_of(bound->net, layer->out[0]);
    const tess_op op = tess_bound_op(bound, index, tess_smallest_shape(bound->net));
    levels->count = (int)tess_max_i64(levels->count, out + 1);
    levels->step[out] = tess_max_i64(levels->step[out], bound->block[index]);
    levels->least[in] =
        tess_max_i64(levels->least[in], tess_max_i64(w->pad_before[TESS_HEIGHT], w->pad_after[TESS_HEIGHT]));
    levels->share[out] += tess_op_flops(&op);
}

tess_levels tess_levels_of(const tess_bound *bound)
{
    tess_levels levels = {.grid = tess_net_grid(bound->net, TESS_HEIGHT)};
    if (!possible(bound))
        return levels;
    for (int l = 0; l < TESS_LEVELS; l++) /* a level is read two rows at a time */
        levels.step[l] = 2, levels.least[l] = 1;
    for (int i = 0; i < tess_net_layer_count(bound->net); i++)
        if (tess_bound_runs(bound, i))
            add_layer(&levels, bound, i);
    if (levels.count == 1)
        levels.count = 0;
    double all = 0;
    for (int l = 0; l < levels.count; l++)
        all += levels.share[l];
    for (int l = 0; l < levels.count; l++)
        levels.share[l] /= all;
    return levels;
}
