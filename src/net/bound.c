#include "net/bound.h"

#include "base/checked.h"
#include "net/bound_impl.h"
#include "net/net_impl.h"

tess_dtype tess_value_dtype(const tess_net *net, tess_value value, tess_dtype dtype)
{
    value = tess_net_value(net, value)->root; /* a storage holds values of one type */
    return tess_net_is_end(net, value) || tess_net_value(net, value)->wide ? TESS_F32 : dtype;
}

tess_plan_shape tess_smallest_shape(const tess_net *net)
{
    return (tess_plan_shape){.n = 1,
                             .h = tess_net_grid(net, TESS_HEIGHT),
                             .w = tess_net_grid(net, TESS_WIDTH),
                             .d = tess_net_grid(net, TESS_DEPTH)};
}

bool tess_plan_shape_same(const tess_plan_shape *a, const tess_plan_shape *b)
{
    bool same = a->n == b->n && a->d == b->d && a->h == b->h && a->w == b->w && a->above == b->above &&
                a->below == b->below && a->left == b->left && a->right == b->right && a->slices == b->slices;
    for (int l = 0; l < TESS_LEVELS; l++)
        same = same && a->levels.first[l] == b->levels.first[l] && a->levels.rows[l] == b->levels.rows[l];
    return same;
}

static int64_t rows_at(const tess_plan_shape *shape, int level)
{
    return tess_level_rows_given(&shape->levels) ? shape->levels.rows[level] : shape->h >> level;
}

tess_tensor tess_value_tensor(const tess_net *net, tess_value value, tess_dtype dtype, tess_plan_shape shape)
{
    const tess_value_info *info = tess_net_value(net, value), *root = tess_net_value(net, info->root);
    const int64_t d = tess_max_i64(shape.d, 1);
    tess_tensor whole = tess_tensor_3d(tess_value_dtype(net, value, dtype), info->shared ? 1 : shape.n,
                                       info->vector ? 1 : d >> info->down[TESS_DEPTH],
                                       info->vector ? 1 : rows_at(&shape, info->down[TESS_HEIGHT]),
                                       info->vector ? 1 : shape.w >> info->down[TESS_WIDTH], root->channels);
    return tess_tensor_channels(whole, info->channels);
}

bool tess_bound_runs(const tess_bound *bound, int layer)
{
    return !tess_net_layer(bound->net, layer)->dropped && !bound->fused[layer];
}

tess_value tess_bound_input(const tess_bound *bound, int layer)
{
    const int from = bound->fused_upsample[layer] ? bound->fused_upsample[layer] - 1 : layer;
    return tess_net_layer(bound->net, from)->in[0];
}

tess_op tess_bound_op(const tess_bound *bound, int index, tess_plan_shape shape)
{
    const tess_net *net = bound->net;
    const tess_layer *layer = tess_net_layer(net, index);
    tess_op op = {.kind = bound->fused_upsample[index] ? TESS_OP_UP_CONV : layer->kind,
                  .inputs = layer->inputs,
                  .outputs = layer->outputs,
                  .activation = layer->activation,
                  .bias = layer->bias || layer->norm[0],
                  .tf32 = bound->tf32,
                  .mapped = layer->mapped};
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        op.kernel[axis] = layer->window.kernel[axis];
        op.stride[axis] = layer->window.stride[axis];
        op.pad_before[axis] = layer->window.pad_before[axis];
        op.pad_after[axis] = layer->window.pad_after[axis];
    }
    if (layer->kind == TESS_OP_SIDE_SUM)
        op.side.value = layer->side;
    else if (layer->kind == TESS_OP_GROUP_NORM)
        op.group_norm = layer->group_norm;
    else if (layer->kind == TESS_OP_ATTENTION)
        op.attention = layer->attention;
    else if (layer->kind == TESS_OP_DROPOUT)
        op.random.rate = layer->rate;
    else if (layer->kind == TESS_OP_CHANNEL_MAP)
        op.channel_map = layer->channel_map;
    else if (layer->kind == TESS_OP_CHANNEL_DOT)
        op.channel_dot = layer->channel_dot;
    for (int i = 0; i < layer->inputs; i++)
        op.in[i] =
            tess_value_tensor(net, i ? layer->in[i] : tess_bound_input(bound, index), bound->dtype, shape);
    for (int i = 0; i < layer->outputs; i++)
        op.out[i] = tess_value_tensor(net, layer->out[i], bound->dtype, shape);
    return op;
}

static bool is_plain_3x3(const tess_layer *layer)
{
    const tess_layer_window *w = &layer->window;
    bool plain = layer->kind == TESS_OP_CONV && layer->inputs == 1 && w->kernel[TESS_DEPTH] == 1;
    for (int axis = TESS_HEIGHT; axis <= TESS_WIDTH; axis++)
        plain = plain && w->kernel[axis] == 3 && w->stride[axis] == 1 && w->pad_before[axis] == 1 &&
                w->pad_after[axis] == 1;
    return plain;
}

/* An upsampling that only this convolution reads can be fused into its op, if the device supports that: this
 * needs four ninths of the products, and the upsampled image is never stored. */
static void try_fused_upsample(tess_bound *bound, int index)
{
    const tess_layer *layer = tess_net_layer(bound->net, index);
    const int before = tess_net_value(bound->net, layer->in[0])->producer;
    if (before < 0 || !is_plain_3x3(layer))
        return;
    const tess_layer *up = tess_net_layer(bound->net, before);
    if (up->kind != TESS_OP_UPSAMPLE || up->window.stride[TESS_HEIGHT] != 2 ||
        up->window.stride[TESS_WIDTH] != 2 || tess_net_uses(bound->net, up->out[0]) != 1)
        return;
    tess_op_needs needs;
    bound->fused_upsample[index] = 1 + before;
    const tess_op op = tess_bound_op(bound, index, tess_smallest_shape(bound->net));
    if (bound->device->ops->query(bound->device, &op, &needs, NULL) == TESS_OK)
        bound->fused[before] = true;
    else
        bound->fused_upsample[index] = 0;
}

/* Queries the device for one layer: where its weights go, and the block size of its kernel. */
static tess_status bind_layer(tess_bound *bound, int index, tess_error *error)
{
    const tess_layer *layer = tess_net_layer(bound->net, index);
    tess_device *device = bound->device;
    bound->block[index] = 1;
    bound->weight_at[index] = bound->weight_bytes;
    if (bound->net->trained)
        return TESS_OK; /* a training plan has its own ops, and packs weights at each step */
    if (layer->kind == TESS_OP_BATCH_NORM)
        return tess_fail(error, TESS_INTERNAL, "the batch norm %s does not follow a convolution",
                         layer->name);
    if (layer->kind == TESS_OP_CONCAT)
        return TESS_OK; /* the plan turns these into copies */
    const tess_op op = tess_bound_op(bound, index, tess_smallest_shape(bound->net));
    tess_op_needs needs;
    TESS_TRY(device->ops->query(device, &op, &needs, error));
    bound->weight_bytes += tess_align_size(needs.weights, device->host_memory ? 64 : 256);
    bound->block[index] = needs.block;
    const int64_t step = (int64_t)needs.block << tess_net_value(bound->net, layer->out[0])->down[TESS_HEIGHT];
    bound->alignment = tess_max_i64(bound->alignment, step); /* all are powers of two */
    return TESS_OK;
}

static tess_status bind_layers(tess_bound *bound, tess_error *error)
{
    bound->weight_bytes = 0;
    bound->alignment = tess_net_grid(bound->net, TESS_HEIGHT);
    for (int i = 0; i < tess_net_layer_count(bound->net); i++)
        if (tess_bound_runs(bound, i))
            TESS_TRY(bind_layer(bound, i, error));
    return TESS_OK;
}

tess_status tess_bound_create(const tess_net *net, tess_device *device, tess_dtype dtype, tess_bound **out,
                              tess_error *error)
{
    *out = NULL;
    const size_t layers = (size_t)tess_net_layer_count(net);
    tess_bound *bound = tess_small_alloc(1, sizeof *bound);
    if (!bound)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to bind a network");
    *bound = (tess_bound){.net = net, .device = device, .dtype = dtype};
    bound->weight_at = tess_small_alloc(layers, sizeof *bound->weight_at);
    bound->block = tess_small_alloc(layers, sizeof *bound->block);
    bound->fused_upsample = tess_small_alloc(layers, sizeof *bound->fused_upsample);
    bound->fused = tess_small_alloc(layers, sizeof *bound->fused);
    tess_status status = TESS_OK;
    if (!bound->weight_at || !bound->block || !bound->fused_upsample || !bound->fused)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to bind a network");
    for (int i = 0; i < (int)layers && status == TESS_OK; i++)
        if (tess_bound_runs(bound, i) && !net->trained)
            try_fused_upsample(bound, i);
    if (status == TESS_OK)
        status = bind_layers(bound, error);
    if (status != TESS_OK) {
        tess_bound_destroy(bound);
        return status;
    }
    *out = bound;
    return TESS_OK;
}

tess_status tess_bound_separate_upsampling(tess_bound *bound, tess_error *error)
{
    bool any = false;
    for (int i = 0; i < tess_net_layer_count(bound->net); i++) {
        any = any || bound->fused[i];
        bound->fused[i] = false;
        bound->fused_upsample[i] = 0;
    }
    return any ? bind_layers(bound, error) : TESS_OK;
}

tess_status tess_bound_workspace(const tess_bound *bound, tess_plan_shape shape, size_t *bytes,
                                 tess_error *error)
{
    *bytes = 0;
    for (int i = 0; i < tess_net_layer_count(bound->net); i++) {
        if (!tess_bound_runs(bound, i) || tess_net_layer(bound->net, i)->kind == TESS_OP_CONCAT)
            continue;
        const tess_op op = tess_bound_op(bound, i, shape);
        tess_op_needs needs;
        TESS_TRY(bound->device->ops->query(bound->device, &op, &needs, error));
        if (needs.workspace > *bytes)
            *bytes = needs.workspace;
    }
    return TESS_OK;
}

void tess_bound_allow_tf32(tess_bound *bound)
{
    bound->tf32 = bound->dtype == TESS_F32;
}

void tess_bound_destroy(tess_bound *bound)
{
    if (!bound)
        return;
    tess_small_free(bound->weight_at);
    tess_small_free(bound->block);
    tess_small_free(bound->fused_upsample);
    tess_small_free(bound->fused);
    tess_small_free(bound);
}

size_t tess_bound_weight_bytes(const tess_bound *bound)
{
    return bound->weight_bytes;
}

tess_dtype tess_bound_dtype(const tess_bound *bound)
{
    return bound->dtype;
}

int64_t tess_bound_alignment(const tess_bound *bound)
{
    return bound->alignment;
}
