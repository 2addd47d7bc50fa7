/* Which activations are computed again instead of kept. The layers are divided into segments. A value that only layers
 * of its own segment read is dropped after the forward pass, and computed again when the backward pass reaches its
 * segment. A segment ends where little else than the last result is needed later, so a residual block is never cut
 * in its middle; values that are read much later (skips) are kept in any case and do not count.
 *
 * A plan may restrict this to some segments (recompute_blocks): first those that free the most bytes for their work; of
 * equals the first in the network, whose values would be kept longest. The last segment is not computed again: the
 * backward pass starts there, when every other kept value is still in memory, so its values take their bytes then in any
 * case. */
#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "net/training/emit.h"
#include "op/row.h"

enum { SHORTEST = 2, LONGEST = 4 }; /* LONGEST: in units of the wanted length */

/* Operations in the time of one byte of memory traffic: of a card, less on a CPU. Only orders segments. */
static const double flops_per_byte = 100;

typedef struct segment {
    int first, last; /* layers */
    double bytes, work;
} segment;

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

/* True if the layer's result is needed inside its segment alone. */
static bool is_inner(const tess_emitter *e, const segment *s, int layer)
{
    const tess_layer *l = tess_net_layer(e->net, layer);
    const int reader = l->dropped || tess_net_is_end(e->net, l->out[0]) ? -1 : last_reader(e, l->out[0]);
    return reader >= 0 && reader <= s->last;
}

/* Bytes that dropping the segment's inner values frees, and the work of computing them again. */
static void measure(const tess_emitter *e, segment *s)
{
    for (int i = s->first; i <= s->last; i++) {
        if (!is_inner(e, s, i))
            continue;
        const tess_op op = tess_bound_op(e->bound, i, e->shape);
        const tess_tensor value =
            tess_value_tensor(e->net, tess_net_layer(e->net, i)->out[0], e->bound->dtype, e->shape);
        s->bytes += (double)tess_dtype_size(value.dtype) * (double)value.n * (double)value.d *
                    (double)value.h * (double)value.w * (double)value.c;
        s->work += tess_op_flops(&op) + flops_per_byte * tess_op_traffic(&op);
    }
}

static void drop_inner(tess_emitter *e, const segment *s)
{
    for (int i = s->first; i <= s->last; i++)
        if (is_inner(e, s, i))
            e->values[tess_net_layer(e->net, i)->out[0]].dropped = true;
}

static int running_layers(const tess_emitter *e)
{
    int count = 0;
    for (int i = 0; i < tess_net_layer_count(e->net); i++)
        count += !tess_net_layer(e->net, i)->dropped;
    return count;
}

/* Lists the segments that have inner values; returns their number. */
static int list_segments(const tess_emitter *e, segment *list)
{
    const int layers = tess_net_layer_count(e->net);
    const int length = e->settings->recompute == TESS_RECOMPUTE_BLOCKS
                           ? SHORTEST
                           : (int)tess_max_i64(SHORTEST + 1, (int64_t)sqrt((double)running_layers(e)));
    int first = 0, inside = 0, count = 0;
    for (int i = 0; i < layers; i++) {
        inside += !tess_net_layer(e->net, i)->dropped;
        const bool ends =
            inside >= length && (crossing(e, first, i, LONGEST * length) <= 1 || inside >= LONGEST * length);
        if (!ends && i + 1 < layers)
            continue;
        list[count] = (segment){.first = first, .last = i};
        measure(e, &list[count]);
        count += list[count].bytes > 0;
        first = i + 1;
        inside = 0;
    }
    return count;
}

/* The most bytes for their work first, then in the order of the network. */
static int by_gain(const void *a, const void *b)
{
    const segment *x = a, *y = b;
    const double gain = x->bytes * y->work - y->bytes * x->work;
    return gain > 0 ? -1 : gain < 0 ? 1 : (x->first > y->first) - (x->first < y->first);
}

void tess_choose_dropped(tess_emitter *e)
{
    if (e->settings->recompute == TESS_RECOMPUTE_NONE || e->settings->recompute_blocks == 0)
        return;
    segment *list = tess_small_alloc((size_t)tess_net_layer_count(e->net), sizeof *list);
    if (!list) {
        e->program->status = tess_fail(e->program->error, TESS_NO_MEMORY, "no memory for a training plan");
        return;
    }
    const int count = list_segments(e, list) - 1; /* without the last */
    if (count > 0)
        qsort(list, (size_t)count, sizeof *list, by_gain);
    for (int i = 0; i < count && i < e->settings->recompute_blocks; i++) {
        drop_inner(e, &list[i]);
        e->recomputed++;
    }
    tess_small_free(list);
}
