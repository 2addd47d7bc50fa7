/* How far an output value depends on its surroundings, bit for bit. Intervals of needed pixels are propagated
 * backwards through the layers, from an aligned window of the output to the input. The op table says for each
 * op whether it reads one position, a window, or everything; a layer that reads everything (attention, a norm
 * over the image) makes the reach TESS_REACH_ALL.
 *
 * Winograd's F(4x4) computes pixel 0 of a block from pixels -1..3 relative to the block, pixels 1 and 2 from
 * 0..3, pixel 3 from 0..4: terms that cancel in exact arithmetic do not cancel in floating point. So it reaches
 * up to three pixels where the kernel reaches one, and an exact halo must cover that. F(2x2) has no such terms. */
#include "base/checked.h"
#include "net/bound_impl.h"
#include "op/row.h"

typedef struct interval {
    int64_t from, to; /* `to` is exclusive; empty when from == to */
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

/* The part of the input that a window needs; `block`: outputs are computed in blocks of this size. */
static interval window_of(const tess_layer *layer, int axis, int block, interval out)
{
    const tess_layer_window *w = &layer->window;
    const int64_t stride = w->stride[axis], kernel = w->kernel[axis], pad = w->pad_before[axis];
    if (layer->kind == TESS_OP_CONV_TRANSPOSE || layer->kind == TESS_OP_UPSAMPLE)
        return (interval){floor_to(out.from, stride) / stride, floor_to(out.to - 1, stride) / stride + 1};
    interval in = {out.from * stride - pad, (out.to - 1) * stride - pad + kernel};
    if (block > 2) {
        const int64_t first = floor_to(out.from, block), last = floor_to(out.to - 1, block);
        in.from = out.from == first ? first - 1 : first;
        in.to = out.to - 1 == last + block - 1 ? last + block + 1 : last + block;
    }
    return in;
}

static int64_t reach(const tess_bound *bound, int axis)
{
    const tess_net *net = bound->net;
    interval *need = tess_small_alloc((size_t)tess_net_value_count(net), sizeof *need);
    if (!need)
        return TESS_REACH_ALL; /* a halo larger than any image: the job runs uncut, or reports that it cannot */
    const interval window = {0, axis == TESS_DEPTH ? tess_net_grid(net, axis) : bound->alignment};
    bool everything = false;
    for (int i = 0; i < tess_net_output_count(net); i++)
        need[tess_net_output_value(net, i)] = window;
    for (int i = tess_net_layer_count(net) - 1; i >= 0; i--) {
        const tess_layer *layer = tess_net_layer(net, i);
        const interval out = need[layer->out[0]];
        if ((layer->dropped && layer->kind != TESS_OP_CONCAT) || out.from == out.to)
            continue;
        const tess_reach looks = tess_op_row_of(layer->kind)->reach;
        everything = everything || looks == TESS_REACH_EVERYTHING;
        for (int k = 0; k < layer->inputs; k++)
            widen(&need[layer->in[k]],
                  k == 0 && looks == TESS_REACH_WINDOW
                      ? window_of(layer, axis, axis == TESS_DEPTH ? 1 : bound->block[i], out)
                      : out);
    }
    int64_t most = 0;
    for (int i = 0; i < tess_net_input_count(net); i++) {
        const interval input = need[tess_net_input_value(net, i)];
        if (!tess_net_value(net, tess_net_input_value(net, i))->vector)
            most = tess_max_i64(most, tess_max_i64(window.from - input.from, input.to - window.to));
    }
    tess_small_free(need);
    return everything ? TESS_REACH_ALL : most;
}

int64_t tess_bound_reach(const tess_bound *bound)
{
    return reach(bound, TESS_HEIGHT);
}

int64_t tess_bound_reach_depth(const tess_bound *bound)
{
    return reach(bound, TESS_DEPTH);
}
