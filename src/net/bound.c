#include "net/bound_impl.h"

#include "base/checked.h"
#include "net/net_impl.h"

bool tess_layer_runs(const tess_layer *layer)
{
    return !layer->dropped && layer->kind != TESS_LAYER_INPUT;
}

bool tess_layer_has_weights(const tess_layer *layer)
{
    return tess_layer_runs(layer) &&
           (layer->kind == TESS_LAYER_CONV || layer->kind == TESS_LAYER_CONV_TRANSPOSE);
}

tess_dtype tess_value_dtype(const tess_net *net, tess_value value, tess_dtype dtype)
{
    bool end = value == tess_net_input_value(net) || value == tess_net_output_value(net);
    return end || tess_net_value(net, value)->wide ? TESS_F32 : dtype;
}

tess_plan_shape tess_smallest_shape(const tess_net *net)
{
    const int64_t grid = tess_net_grid(net);
    return (tess_plan_shape){.n = 1, .h = grid, .w = grid, .mode = TESS_INFER, .d = tess_net_grid_depth(net)};
}

tess_tensor tess_value_tensor(const tess_net *net, tess_value value, tess_dtype dtype, tess_plan_shape shape)
{
    const tess_value_info *info = tess_net_value(net, value), *root = tess_net_value(net, info->root);
    const int64_t depth = tess_max_i64(shape.d, 1) >> info->down_d;
    tess_tensor whole = tess_tensor_3d(tess_value_dtype(net, value, dtype), shape.n, depth,
                                       shape.h >> info->down, shape.w >> info->down, root->channels);
    return tess_tensor_channels(whole, info->channels);
}

tess_op tess_layer_op(const tess_net *net, const tess_layer *layer, tess_dtype dtype, tess_plan_shape shape)
{
    static const tess_op_kind kinds[] = {
        [TESS_LAYER_CONV] = TESS_OP_CONV,         [TESS_LAYER_CONV_TRANSPOSE] = TESS_OP_CONV_TRANSPOSE,
        [TESS_LAYER_ADD] = TESS_OP_ADD,           [TESS_LAYER_MAX_POOL] = TESS_OP_MAX_POOL,
        [TESS_LAYER_UPSAMPLE] = TESS_OP_UPSAMPLE, [TESS_LAYER_SIDE_SUM] = TESS_OP_SIDE_SUM};
    tess_op op = {.kind = kinds[layer->kind],
                  .in = tess_value_tensor(net, layer->in, dtype, shape),
                  .out = tess_value_tensor(net, layer->out, dtype, shape),
                  .bias = layer->bias || layer->norm[0],
                  .relu = layer->relu,
                  .residuals = layer->residuals};
    op.kernel[TESS_DEPTH] = layer->kernel_d;
    op.stride[TESS_DEPTH] = layer->stride_d;
    op.pad_before[TESS_DEPTH] = op.pad_after[TESS_DEPTH] = layer->pad_d;
    for (int s = TESS_HEIGHT; s <= TESS_WIDTH; s++) {
        op.kernel[s] = layer->kernel;
        op.stride[s] = layer->stride;
        op.pad_before[s] = op.pad_after[s] = layer->pad;
    }
    for (int r = 0; r < layer->residuals; r++)
        op.residual[r] = tess_value_tensor(net, layer->residual[r], dtype, shape);
    if (layer->kind == TESS_LAYER_SIDE_SUM)
        op.side.value = layer->side;
    op.mapped = layer->map >= 0;
    if (op.mapped)
        op.map = tess_value_tensor(net, layer->map, dtype, shape);
    return op;
}

bool tess_bound_runs(const tess_bound *bound, int layer)
{
    return tess_layer_runs(tess_net_layer(bound->net, layer)) && !bound->enlarged[layer];
}

tess_value tess_bound_input(const tess_bound *bound, int layer)
{
    const int from = bound->enlarges[layer] ? bound->enlarges[layer] - 1 : layer;
    return tess_net_layer(bound->net, from)->in;
}

tess_op tess_bound_op(const tess_bound *bound, int layer, tess_plan_shape shape)
{
    tess_op op = tess_layer_op(bound->net, tess_net_layer(bound->net, layer), bound->dtype, shape);
    op.tf32 = bound->tf32;
    if (bound->enlarges[layer]) {
        op.kind = TESS_OP_UP_CONV;
        op.in = tess_value_tensor(bound->net, tess_bound_input(bound, layer), bound->dtype, shape);
    }
    return op;
}

/* An upsampling that only this convolution reads can go into its op, where the device has such a one: four
 * ninths of the products, and the enlarged image is never stored. */
static void try_enlarging(tess_bound *bound, int index)
{
    const tess_layer *layer = tess_net_layer(bound->net, index);
    const int before = tess_net_value(bound->net, layer->in)->producer;
    const tess_layer *up = tess_net_layer(bound->net, before);
    if (layer->kind != TESS_LAYER_CONV || layer->kernel != 3 || layer->stride != 1 || layer->pad != 1 ||
        layer->kernel_d != 1 || layer->residuals || layer->map >= 0 || up->kind != TESS_LAYER_UPSAMPLE ||
        up->stride != 2 || tess_net_uses(bound->net, up->out) != 1)
        return;
    tess_op_needs needs;
    bound->enlarges[index] = 1 + before;
    tess_op op = tess_bound_op(bound, index, tess_smallest_shape(bound->net));
    if (bound->device->query(bound->device, &op, &needs, NULL) == TESS_OK)
        bound->enlarged[before] = true;
    else
        bound->enlarges[index] = 0;
}

tess_status tess_bound_create(const tess_net *net, tess_device *device, tess_dtype dtype, tess_bound **out,
                              tess_error *error)
{
    *out = NULL;
    const int layers = tess_net_layer_count(net);
    tess_bound *bound = tess_small_alloc(1, sizeof *bound);
    if (!bound)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to bind a network");
    *bound = (tess_bound){.net = net, .device = device, .dtype = dtype, .alignment = tess_net_grid(net)};
    bound->weight_at = tess_small_alloc((size_t)layers, sizeof *bound->weight_at);
    bound->block = tess_small_alloc((size_t)layers, sizeof *bound->block);
    bound->enlarges = tess_small_alloc((size_t)layers, sizeof *bound->enlarges);
    bound->enlarged = tess_small_alloc((size_t)layers, sizeof *bound->enlarged);
    tess_status status = TESS_OK;
    if (!bound->weight_at || !bound->block || !bound->enlarges || !bound->enlarged)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to bind a network");
    for (int i = 0; i < layers && status == TESS_OK; i++)
        if (tess_layer_runs(tess_net_layer(net, i)))
            try_enlarging(bound, i);
    for (int i = 0; i < layers && status == TESS_OK; i++) {
        const tess_layer *layer = tess_net_layer(net, i);
        if (!tess_bound_runs(bound, i))
            continue;
        if (layer->kind == TESS_LAYER_RELU || layer->kind == TESS_LAYER_BATCH_NORM) {
            status = tess_fail(error, TESS_INTERNAL, "layer %d (%s) could not be fused", i, layer->name);
            break;
        }
        tess_op op = tess_bound_op(bound, i, tess_smallest_shape(net));
        tess_op_needs needs;
        status = device->query(device, &op, &needs, error);
        bound->weight_at[i] = bound->weight_bytes;
        bound->weight_bytes += tess_align_size(needs.weights, device->host_memory ? 64 : 256);
        bound->block[i] = needs.block;
        int64_t step = (int64_t)needs.block << tess_net_value(net, layer->out)->down;
        bound->alignment = tess_max_i64(bound->alignment, step); /* all are powers of two */
    }
    if (status != TESS_OK) {
        tess_bound_destroy(bound);
        return status;
    }
    *out = bound;
    return TESS_OK;
}

tess_status tess_bound_workspace(const tess_bound *bound, tess_plan_shape shape, size_t *bytes,
                                 tess_error *error)
{
    *bytes = 0;
    for (int i = 0; i < tess_net_layer_count(bound->net); i++) {
        if (!tess_bound_runs(bound, i))
            continue;
        tess_op op = tess_bound_op(bound, i, shape);
        tess_op_needs needs;
        TESS_TRY(bound->device->query(bound->device, &op, &needs, error));
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
    tess_small_free(bound->enlarges);
    tess_small_free(bound->enlarged);
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
