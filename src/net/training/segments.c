/* Which activations are computed again instead of kept. The layers are divided into segments. A value that only layers
 * of its own segment read is dropped after the forward pass, and computed again when the backward pass reaches its
 * segment. A segment ends where little else than the last result is needed later, so a residual block is never cut
 * in its middle; values that are read much later (skips) are kept in any case and do not count. The largest
 * activations give the most memory for the same work, so a plan can restrict this to them (recompute_down). */
#include <math.h>

#include "base/checked.h"
#include "net/training/emit.h"

enum { SHORTEST = 2, LONGEST = 4 }; /* LONGEST: in units of the wanted length */

/* The last layer that reads the value; -1: none. */
static int last_reader(const tess_emitter *e, tess_value value)
{
    for (int i = tess_net_layer_count(e->net) - 1; i >= 0; i--) {
        const tess_layer *layer = tess_net_layer(e->net, i);
        for (int k = 0; k < layer->inputs && !layer->dropped; k++)
            if (layer->in[k] == value)
                return i;
    }
    return -1;
}

/* The number of values of layers [first, last] that a layer soon after `last` reads. */
static int crossing(const tess_emitter *e, int first, int last, int soon)
{
    int count = 0;
    for (int i = first; i <= last; i++) {
        const tess_layer *layer = tess_net_layer(e->net, i);
        const int reader = layer->dropped ? -1 : last_reader(e, layer->out[0]);
        count += reader > last && reader <= last + soon;
    }
    return count;
}

static void drop_within(tess_emitter *e, int first, int last)
{
    for (int i = first; i <= last; i++) {
        const tess_layer *layer = tess_net_layer(e->net, i);
        if (layer->dropped || tess_net_is_end(e->net, layer->out[0]) ||
            tess_net_value(e->net, layer->out[0])->down[TESS_HEIGHT] > e->settings->recompute_down)
            continue;
        const int reader = last_reader(e, layer->out[0]);
        e->values[layer->out[0]].dropped = reader >= 0 && reader <= last;
    }
}

static int running_layers(const tess_emitter *e)
{
    int count = 0;
    for (int i = 0; i < tess_net_layer_count(e->net); i++)
        count += !tess_net_layer(e->net, i)->dropped;
    return count;
}

void tess_choose_dropped(tess_emitter *e)
{
    if (e->settings->recompute == TESS_RECOMPUTE_NONE)
        return;
    const int layers = tess_net_layer_count(e->net);
    const int length = e->settings->recompute == TESS_RECOMPUTE_BLOCKS
                           ? SHORTEST
                           : (int)tess_max_i64(SHORTEST + 1, (int64_t)sqrt((double)running_layers(e)));
    int first = 0, inside = 0;
    for (int i = 0; i < layers; i++) {
        inside += !tess_net_layer(e->net, i)->dropped;
        const bool ends =
            inside >= length && (crossing(e, first, i, LONGEST * length) <= 1 || inside >= LONGEST * length);
        if (!ends && i + 1 < layers)
            continue;
        drop_within(e, first, i);
        first = i + 1;
        inside = 0;
    }
}
