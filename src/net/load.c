/* Loads the weight file directly into packed form, a few output channels at a time. Batch norm is folded here:
 * w' = w g / sqrt(v + eps), b' = beta + (b - mean) g / sqrt(v + eps), in fp64 before the single rounding to
 * fp32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/stop.h"
#include "net/bound_impl.h"
#include "op/row.h"

enum { PIECE = 65536 }; /* floats read at once */
static const double NORM_EPSILON = 1e-5;

/* The factor and the offset of each output channel. */
typedef struct folded {
    double *factor, *shift;
} folded;

static tess_status find(const tess_weights *weights, const char *layer, const char *part, int64_t elements,
                        const tess_weight **out, tess_error *error)
{
    char name[TESS_LAYER_NAME + 32];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    *out = tess_weights_find(weights, name);
    if (!*out)
        return tess_fail(error, TESS_BAD_INPUT, "%s: tensor %s is missing", tess_weights_path(weights), name);
    if ((*out)->elements != elements)
        return tess_fail(error, TESS_BAD_INPUT, "%s: tensor %s has %lld values, expected %lld",
                         tess_weights_path(weights), name, (long long)(*out)->elements, (long long)elements);
    return TESS_OK;
}

/* A single NaN would make every pixel NaN. */
static tess_status check_finite(const tess_weights *weights, const tess_weight *weight, const float *values,
                                int64_t count, tess_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: tensor %s holds NaN or infinity; the training that made it failed",
                             tess_weights_path(weights), weight->name);
    return TESS_OK;
}

static tess_status read_all(tess_weights *weights, const char *layer, const char *part, int64_t count,
                            float *values, tess_error *error)
{
    const tess_weight *weight;
    TESS_TRY(find(weights, layer, part, count, &weight, error));
    TESS_TRY(tess_weights_read(weights, weight, 0, count, values, error));
    return check_finite(weights, weight, values, count, error);
}

/* `values`: scratch of five times the channels. */
static tess_status fold(tess_weights *weights, const tess_layer *layer, int64_t channels, float *values,
                        folded *fold, tess_error *error)
{
    float *bias = values, *gain = values + channels, *beta = gain + channels, *mean = beta + channels,
          *variance = mean + channels;
    memset(bias, 0, (size_t)channels * sizeof *bias);
    if (layer->bias)
        TESS_TRY(read_all(weights, layer->name, "bias", channels, bias, error));
    if (layer->norm[0]) {
        TESS_TRY(read_all(weights, layer->norm, "weight", channels, gain, error));
        TESS_TRY(read_all(weights, layer->norm, "bias", channels, beta, error));
        TESS_TRY(read_all(weights, layer->norm, "running_mean", channels, mean, error));
        TESS_TRY(read_all(weights, layer->norm, "running_var", channels, variance, error));
    }
    for (int64_t c = 0; c < channels; c++) {
        fold->factor[c] = 1;
        fold->shift[c] = bias[c];
        if (layer->norm[0]) {
            fold->factor[c] = gain[c] / sqrt((double)variance[c] + NORM_EPSILON);
            fold->shift[c] = beta[c] + ((double)bias[c] - mean[c]) * fold->factor[c];
        }
        fold->factor[c] *= layer->scale;
        fold->shift[c] *= layer->scale;
    }
    return TESS_OK;
}

/* Keeps only the middle slice of rows of [slices][taps] kernels, in place. */
static void keep_middle(float *values, int64_t kernels, int64_t taps, int slices)
{
    for (int64_t k = 0; k < kernels; k++)
        memmove(values + k * taps, values + (k * slices + slices / 2) * taps, (size_t)taps * sizeof *values);
}

/* Number of values of one row of the file's tensor: all slices, including unused ones. */
static int64_t row_of(const tess_layer *layer, const tess_op *op)
{
    const int64_t second = layer->kind == TESS_OP_CONV_TRANSPOSE ? op->out[0].c : op->in[0].c;
    return second * layer->slices * op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH];
}

static tess_status load_kernel(const tess_bound *bound, tess_weights *weights, const tess_layer *layer,
                               const tess_op *op, const folded *fold, float *values, void *packed,
                               tess_error *error)
{
    const bool up = layer->kind == TESS_OP_CONV_TRANSPOSE;
    const int64_t taps = (int64_t)op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH] * layer->slices,
                  rows = up ? op->in[0].c : op->out[0].c, row = row_of(layer, op);
    const tess_weight *weight;
    TESS_TRY(find(weights, layer->name, "weight", rows * row, &weight, error));
    if (weight->rank < 2 || weight->dims[0] != rows || weight->dims[1] != row / taps)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: tensor %s has the shape [%lld, %lld, ...], expected [%lld, %lld, ...]",
                         tess_weights_path(weights), weight->name, (long long)weight->dims[0],
                         (long long)(weight->rank > 1 ? weight->dims[1] : 0), (long long)rows,
                         (long long)(row / taps));
    const int64_t at_once = tess_max_i64(PIECE / row, 1);
    for (int64_t first = 0; first < rows; first += at_once) {
        int64_t count = tess_min_i64(at_once, rows - first);
        TESS_TRY(tess_stop_check(bound->device->stop, error));
        TESS_TRY(tess_weights_read(weights, weight, first * row, count * row, values, error));
        TESS_TRY(check_finite(weights, weight, values, count * row, error));
        for (int64_t i = 0; i < count * row; i++) {
            int64_t channel = up ? i % row / taps : first + i / row;
            values[i] = (float)(values[i] * fold->factor[channel]);
        }
        if (layer->slices > op->kernel[TESS_DEPTH])
            keep_middle(values, count * row / taps, taps / layer->slices, layer->slices);
        bound->device->ops->pack(bound->device, op, TESS_PARAM_KERNEL, first, count, values, packed);
    }
    return TESS_OK;
}

/* Loads kernel and bias of a convolution, and folds the batch norm after it. */
static tess_status load_conv(const tess_bound *bound, tess_weights *weights, int index, void *packed,
                             tess_error *error)
{
    const tess_layer *layer = tess_net_layer(bound->net, index);
    tess_op op = tess_bound_op(bound, index, tess_smallest_shape(bound->net));
    const int64_t channels = op.out[0].c;
    int64_t room = tess_max_i64(tess_max_i64(PIECE, row_of(layer, &op)), 5 * channels);
    float *values = tess_small_alloc((size_t)room, sizeof *values);
    folded fold_of = {tess_small_alloc((size_t)channels, sizeof(double)),
                      tess_small_alloc((size_t)channels, sizeof(double))};
    tess_status status = TESS_OK;
    if (!values || !fold_of.factor || !fold_of.shift)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to load %s", layer->name);
    if (status == TESS_OK)
        status = fold(weights, layer, channels, values, &fold_of, error);
    if (status == TESS_OK)
        status = load_kernel(bound, weights, layer, &op, &fold_of, values, packed, error);
    if (status == TESS_OK && op.bias) {
        for (int64_t c = 0; c < channels; c++)
            values[c] = (float)fold_of.shift[c];
        bound->device->ops->pack(bound->device, &op, TESS_PARAM_BIAS, 0, channels, values, packed);
    }
    tess_small_free(values);
    tess_small_free(fold_of.factor);
    tess_small_free(fold_of.shift);
    return status;
}

/* Loads parameters as they are in the file, whole. */
static tess_status load_plain(const tess_bound *bound, tess_weights *weights, int index, void *packed,
                              tess_error *error)
{
    const tess_layer *layer = tess_net_layer(bound->net, index);
    const tess_op op = tess_bound_op(bound, index, tess_smallest_shape(bound->net));
    tess_op_param params[TESS_OP_PARAMS];
    const int count = tess_op_params(&op, params);
    for (int i = 0; i < count; i++) {
        const int64_t elements = params[i].rows * params[i].row;
        float *values = tess_small_alloc((size_t)elements, sizeof *values);
        tess_status status = values
                                 ? read_all(weights, layer->name, params[i].suffix, elements, values, error)
                                 : tess_fail(error, TESS_NO_MEMORY, "no memory to load %s", layer->name);
        if (status == TESS_OK)
            bound->device->ops->pack(bound->device, &op, i, 0, params[i].rows, values, packed);
        tess_small_free(values);
        TESS_TRY(status);
    }
    return TESS_OK;
}

tess_status tess_bound_load(const tess_bound *bound, tess_weights *weights, void *packed, tess_error *error)
{
    for (int i = 0; i < tess_net_layer_count(bound->net); i++) {
        const tess_op_kind kind = tess_net_layer(bound->net, i)->kind;
        if (!tess_bound_runs(bound, i) || kind == TESS_OP_CONCAT)
            continue;
        const bool conv = kind == TESS_OP_CONV || kind == TESS_OP_CONV_TRANSPOSE;
        TESS_TRY(
            (conv ? load_conv : load_plain)(bound, weights, i, (char *)packed + bound->weight_at[i], error));
    }
    return TESS_OK;
}
