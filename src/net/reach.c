/* How far an output value looks, to the last bit. Intervals of needed pixels go backwards through the layers,
 * from an aligned window of the output to the input.
 *
 * Winograd's F(4x4) computes pixel 0 of a block from pixels -1..3 relative to the block, pixels 1 and 2 from
 * 0..3, pixel 3 from 0..4: terms that cancel in exact arithmetic do not cancel in floating point. So it
 * reaches up to three pixels where the kernel reaches one, and an exact halo must cover that. F(2x2) has no
 * such terms. */
#include "base/checked.h"
#include "net/bound_impl.h"

typedef struct interval {
    int64_t from, to; /* to: behind the last; empty when from == to */
} interval;

static void widen(interval *have, interval more)
{
    if (have->from == have->to) {
        *have = more;
        return;
    }
    have->from = tess_min_i64(have->from, more.from);
    have->to = tess_max_i64(have->to, more.to);
}

static int64_t floor_to(int64_t value, int64_t step)
{
    return value >= 0 ? value / step * step : -tess_round_up(-value, step);
}

/* One axis of a layer. */
typedef struct steps {
    int kernel, stride, pad, block;
} steps;

static steps steps_of(const tess_bound *bound, int index, bool depth)
{
    const tess_layer *layer = tess_net_layer(bound->net, index);
    if (depth)
        return (steps){layer->kernel_d, layer->stride_d, layer->pad_d, 1};
    return (steps){layer->kernel, layer->stride, layer->pad, bound->block[index]};
}

static interval needed(tess_layer_kind kind, steps s, interval out)
{
    switch (kind) {
    case TESS_LAYER_CONV:
    case TESS_LAYER_SIDE_SUM: {
        interval in = {out.from * s.stride - s.pad, (out.to - 1) * s.stride - s.pad + s.kernel};
        if (s.block > 2) {
            int64_t first = floor_to(out.from, s.block), last = floor_to(out.to - 1, s.block);
            in.from = out.from == first ? first - 1 : first;
            in.to = out.to - 1 == last + s.block - 1 ? last + s.block + 1 : last + s.block;
        }
        return in;
    }
    case TESS_LAYER_MAX_POOL:
        return (interval){out.from * s.stride, out.to * s.stride};
    case TESS_LAYER_CONV_TRANSPOSE:
    case TESS_LAYER_UPSAMPLE:
        return (interval){floor_to(out.from, s.stride) / s.stride,
                          floor_to(out.to - 1, s.stride) / s.stride + 1};
    default:
        return out;
    }
}

static int64_t reach(const tess_bound *bound, bool depth)
{
    const tess_net *net = bound->net;
    const int values = tess_net_value_count(net);
    interval *need = tess_small_alloc((size_t)values, sizeof *need);
    if (!need)
        return INT64_MAX / 4; /* a halo that no image has: the job runs whole, or says that it cannot */
    const interval window = {0, depth ? tess_net_grid_depth(net) : bound->alignment};
    need[tess_net_output_value(net)] = window;
    for (int i = tess_net_layer_count(net) - 1; i >= 0; i--) {
        const tess_layer *layer = tess_net_layer(net, i);
        if (layer->kind == TESS_LAYER_CONCAT) {
            widen(&need[layer->in], need[layer->out]);
            widen(&need[layer->residual[0]], need[layer->out]);
        }
        if (!tess_layer_runs(layer) || need[layer->out].from == need[layer->out].to)
            continue;
        widen(&need[layer->in], needed(layer->kind, steps_of(bound, i, depth), need[layer->out]));
        if (layer->map >= 0)
            widen(&need[layer->map], need[layer->out]);
        for (int r = 0; r < layer->residuals; r++)
            widen(&need[layer->residual[r]], need[layer->out]);
    }
    interval input = need[tess_net_input_value(net)];
    tess_small_free(need);
    return tess_max_i64(window.from - input.from, input.to - window.to);
}

int64_t tess_bound_reach(const tess_bound *bound)
{
    return reach(bound, false);
}

int64_t tess_bound_reach_depth(const tess_bound *bound)
{
    return reach(bound, true);
}
