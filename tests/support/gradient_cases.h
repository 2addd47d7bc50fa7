/* gradient_cases.h: the backward ops against central differences of their forward ops in fp64, on any device. Small
 * variables are compared value by value, large ones along random directions. */
#ifndef TESS_TESTS_GRADIENT_CASES_H
#define TESS_TESTS_GRADIENT_CASES_H

#include "gradient_bind.h"

enum { BY_VALUE = 600, DIRECTIONS = 3 };

static const gradient_case gradient_cases[] = {
    {"relu", TESS_OP_ACTIVATE_GRAD, 2, 1, 4, 12, 6, 0, TESS_RELU, false, 0, false, false},
    {"relu-gap", TESS_OP_ACTIVATE_GRAD, 2, 1, 3, 5, 13, 0, TESS_RELU, false, 3, true, false},
    {"silu", TESS_OP_ACTIVATE_GRAD, 1, 2, 3, 5, 9, 0, TESS_SILU, false, 0, true, false},
    {"silu-gap", TESS_OP_ACTIVATE_GRAD, 2, 1, 2, 2, 70, 0, TESS_SILU, false, 6, false, false},
    {"pool", TESS_OP_POOL_GRAD, 2, 1, 4, 6, 5, 2, TESS_LINEAR, false, 0, false, false},
    {"pool-odd-add", TESS_OP_POOL_GRAD, 1, 1, 7, 5, 7, 2, TESS_LINEAR, true, 4, false, false},
    {"pool-3", TESS_OP_POOL_GRAD, 1, 1, 8, 10, 3, 3, TESS_LINEAR, true, 0, false, false},
    {"pool-wide", TESS_OP_POOL_GRAD, 1, 1, 2, 4, 70, 2, TESS_LINEAR, true, 0, false, false},
    {"average", TESS_OP_AVERAGE_POOL_GRAD, 2, 1, 4, 6, 5, 2, TESS_LINEAR, false, 0, false, false},
    {"average-odd-add", TESS_OP_AVERAGE_POOL_GRAD, 1, 1, 7, 5, 7, 2, TESS_LINEAR, true, 4, false, false},
    {"average-3", TESS_OP_AVERAGE_POOL_GRAD, 1, 1, 8, 10, 3, 3, TESS_LINEAR, true, 0, false, false},
    {"average-wide", TESS_OP_AVERAGE_POOL_GRAD, 2, 1, 2, 4, 72, 2, TESS_LINEAR, true, 0, false, false},
    /* An average pooling is the gradient of an upsampling of shares. */
    {"shares", TESS_OP_AVERAGE_POOL, 2, 1, 3, 4, 16, 2, TESS_LINEAR, false, 0, false, false},
    {"shares-gap", TESS_OP_AVERAGE_POOL, 1, 1, 3, 2, 70, 3, TESS_LINEAR, false, 5, false, false},
    {"upsample", TESS_OP_UPSAMPLE_GRAD, 2, 1, 3, 4, 9, 2, TESS_LINEAR, false, 0, false, false},
    {"upsample-add", TESS_OP_UPSAMPLE_GRAD, 1, 1, 3, 2, 70, 3, TESS_LINEAR, true, 5, false, false},
    {"mse", TESS_OP_LOSS, 2, 1, 3, 25, 3, TESS_MSE, TESS_LINEAR, false, 0, false, false},
    {"l1", TESS_OP_LOSS, 2, 1, 3, 5, 3, TESS_L1, TESS_LINEAR, false, 1, false, false},
    {"charbonnier", TESS_OP_LOSS, 1, 2, 3, 5, 3, TESS_CHARBONNIER, TESS_LINEAR, false, 0, true, false},
    {"rmse", TESS_OP_LOSS, 3, 1, 3, 25, 3, TESS_RMSE, TESS_LINEAR, false, 0, false, false},
    {"rmse strided", TESS_OP_LOSS, 2, 2, 3, 5, 3, TESS_RMSE, TESS_LINEAR, false, 1, true, false},
    {"psnr", TESS_OP_LOSS, 3, 1, 3, 25, 3, TESS_PSNR, TESS_LINEAR, false, 0, false, false},
    {"psnr strided", TESS_OP_LOSS, 2, 2, 3, 5, 3, TESS_PSNR, TESS_LINEAR, false, 1, true, false},
    {"masked", TESS_OP_LOSS, 2, 1, 3, 5, 3, TESS_MASKED_MSE, TESS_LINEAR, true, 1, false, false},
    {"bce", TESS_OP_LOSS, 1, 1, 2, 3, 70, TESS_BCE_LOGITS, TESS_LINEAR, false, 0, false, false},
    {"mean", TESS_OP_LOSS, 2, 1, 3, 25, 3, TESS_MEAN, TESS_LINEAR, false, 0, false, false},
    {"iou", TESS_OP_LOSS, 2, 1, 3, 25, 3, TESS_IOU, TESS_LINEAR, false, 1, false, false},
    {"shift", TESS_OP_CHANNEL_MAP_GRAD, 2, 1, 3, 7, 5, TESS_CHANNEL_SHIFT, TESS_LINEAR, false, 0, true,
     false},
    {"shift-gap", TESS_OP_CHANNEL_MAP_GRAD, 2, 2, 3, 4, 70, TESS_CHANNEL_SHIFT, TESS_LINEAR, false, 3, false,
     true},
    {"scale", TESS_OP_CHANNEL_MAP_GRAD, 2, 1, 3, 70, 1, TESS_CHANNEL_SCALE, TESS_LINEAR, false, 0, false,
     true},
    {"scale-gap", TESS_OP_CHANNEL_MAP_GRAD, 2, 1, 3, 7, 13, TESS_CHANNEL_SCALE, TESS_LINEAR, false, 5, true,
     false},
    {"divide", TESS_OP_CHANNEL_MAP_GRAD, 1, 1, 9, 7, 50, TESS_CHANNEL_DIVIDE, TESS_LINEAR, false, 0, false,
     false},
    {"divide-wide", TESS_OP_CHANNEL_MAP_GRAD, 1, 1, 2, 3, 200, TESS_CHANNEL_DIVIDE, TESS_LINEAR, false, 0,
     true, true},
    {"softmax", TESS_OP_CHANNEL_MAP_GRAD, 2, 1, 3, 7, 13, TESS_CHANNEL_SOFTMAX, TESS_LINEAR, false, 0, false,
     false},
    {"softmax-wide", TESS_OP_CHANNEL_MAP_GRAD, 1, 1, 70, 3, 100, TESS_CHANNEL_SOFTMAX, TESS_LINEAR, false, 2,
     false, true},
    {"boundary", TESS_OP_CHANNEL_MAP_GRAD, 2, 1, 5, 40, 1, TESS_CHANNEL_BOUNDARY, TESS_LINEAR, false, 0,
     false, true},
    {"channel-dot", TESS_OP_CHANNEL_DOT_GRAD, 2, 1, 3, 7, 13, 0, TESS_LINEAR, false, 0, false, false},
    {"channel-dot-gap", TESS_OP_CHANNEL_DOT_GRAD, 1, 2, 3, 5, 70, 0, TESS_LINEAR, false, 4, false, false},
    {"orthogonality", TESS_OP_PENALTY, 1, 1, 4, 1, 11, TESS_ORTHOGONALITY, TESS_LINEAR, false, 0, false,
     true},
    {"distinctness", TESS_OP_PENALTY, 1, 1, 5, 1, 9, TESS_DISTINCTNESS, TESS_LINEAR, false, 0, false, true},
    {"entropy", TESS_OP_PENALTY, 1, 1, 1, 1, 61, TESS_ENTROPY, TESS_LINEAR, false, 0, false, true},
    {"entropy-target", TESS_OP_PENALTY, 1, 1, 1, 1, 12, TESS_ENTROPY, TESS_LINEAR, true, 0, false, true},
    {"diversity", TESS_OP_PENALTY, 1, 1, 1, 1, 61, TESS_DIVERSITY, TESS_LINEAR, false, 0, false, true},
    {"batch-norm", TESS_OP_BATCH_NORM_GRAD, 3, 1, 3, 5, 6, 0, TESS_LINEAR, false, 0, false, false},
    {"batch-norm-gap", TESS_OP_BATCH_NORM_GRAD, 2, 2, 3, 2, 13, 0, TESS_LINEAR, false, 3, true, true},
    {"batch-norm-large", TESS_OP_BATCH_NORM_GRAD, 2, 1, 70, 37, 8, 0, TESS_LINEAR, false, 0, false, true},
    {"batch-norm-wide", TESS_OP_BATCH_NORM_GRAD, 70, 1, 2, 3, 70, 0, TESS_LINEAR, false, 0, false, false},
    {"group-norm", TESS_OP_GROUP_NORM_GRAD, 2, 1, 3, 5, 6, 3, TESS_LINEAR, false, 0, false, false},
    {"group-norm-relu", TESS_OP_GROUP_NORM_GRAD, 2, 1, 3, 5, 6, 2, TESS_RELU, false, 0, true, true},
    {"group-norm-silu", TESS_OP_GROUP_NORM_GRAD, 2, 1, 3, 4, 12, 4, TESS_SILU, true, 0, false, true},
    {"group-norm-gap", TESS_OP_GROUP_NORM_GRAD, 2, 2, 3, 2, 13, 13, TESS_SILU, true, 3, false, false},
    {"group-norm-one", TESS_OP_GROUP_NORM_GRAD, 1, 1, 3, 2, 70, 1, TESS_SILU, true, 0, false, false},
    {"group-norm-large", TESS_OP_GROUP_NORM_GRAD, 2, 1, 70, 21, 16, 4, TESS_SILU, true, 0, false, true},
    {"attention", TESS_OP_ATTENTION_GRAD, 1, 1, 3, 4, 8, 2, TESS_LINEAR, false, 0, false, false},
    {"attention-by-head", TESS_OP_ATTENTION_GRAD, 2, 1, 3, 3, 6, 2, TESS_LINEAR, true, 2, false, false},
    {"attention-odd", TESS_OP_ATTENTION_GRAD, 1, 1, 5, 5, 7, 1, TESS_LINEAR, false, 0, false, false},
    {"attention-blocks", TESS_OP_ATTENTION_GRAD, 1, 1, 13, 11, 10, 2, TESS_LINEAR, true, 3, false, false},
    {"attention-volume", TESS_OP_ATTENTION_GRAD, 1, 2, 7, 5, 8, 1, TESS_LINEAR, false, 0, false, false},
    {"conv-3", TESS_OP_CONV_GRAD, 2, 1, 6, 5, 4, 3, TESS_LINEAR, false, 0, false, false},
    {"conv-3-gap", TESS_OP_CONV_GRAD, 1, 1, 9, 7, 3, 3, TESS_LINEAR, false, 5, false, true},
    {"conv-3-wide", TESS_OP_CONV_GRAD, 2, 1, 12, 10, 32, 3, TESS_LINEAR, false, 0, false, false},
    {"conv-2", TESS_OP_CONV_GRAD, 2, 1, 6, 8, 5, 2, TESS_LINEAR, false, 2, false, true},
    {"conv-1", TESS_OP_CONV_GRAD, 1, 1, 6, 8, 5, 1, TESS_LINEAR, false, 0, false, false},
    {"dropout", TESS_OP_DROPOUT, 2, 1, 2, 30, 3, 0, TESS_LINEAR, false, 0, true, false},
    {"dropout-gap", TESS_OP_DROPOUT, 2, 2, 2, 1, 70, 0, TESS_LINEAR, false, 4, false, false},
};

/* Gradients of parameters are added to what is there. */
static inline bool is_accumulated(const point *p, int k)
{
    return p->c->kind == TESS_OP_CONV_GRAD || p->c->kind == TESS_OP_PENALTY || k == 1;
}

/* The gradient of a variable that the op computed, without what it was added to; and nothing else was written. */
static inline double *computed(const point *p, const train_call *call, int k, field *before, const char *name)
{
    const tess_tensor *t = &call->op.out[k];
    double *values = malloc((size_t)p->size[k] * sizeof *values);
    const size_t size = tess_dtype_size(t->dtype);
    for (int64_t i = 0; i < p->size[k]; i++) {
        const int64_t at = place_of(t, i);
        values[i] = (double)value_in(t->dtype, call->out[k].f.data, (size_t)at);
        if (p->c->accumulate && is_accumulated(p, k))
            values[i] -= (double)value_in(t->dtype, before->data, (size_t)at);
        else if (p->c->more && is_window(p->c->kind))
            values[i] -= p->constant[i];
        memcpy((char *)before->data + (size_t)at * size, (char *)call->out[k].f.data + (size_t)at * size,
               size);
    }
    CHECK_MSG(memcmp(before->data, call->out[k].f.data, before->bytes) == 0, "%s wrote outside of its output",
              name);
    return values;
}

static inline void compare_gradient(const point *p, int k, const double *got, double bound)
{
    double most = 0, largest = 0;
    const bool by_value = p->size[k] <= BY_VALUE;
    for (int64_t i = 0; i < (by_value ? p->size[k] : DIRECTIONS); i++) {
        double *along = by_value ? NULL : normal_values(p->size[k], 40 + (uint32_t)i, TESS_F32);
        const double want = central_difference(p, k, along, i);
        double sum = by_value ? got[i] : 0, scale = fabs(want);
        for (int64_t j = 0; along && j < p->size[k]; j++) {
            sum += along[j] * got[j];
            scale += fabs(along[j] * got[j]);
        }
        most = fabs(sum - want) <= most ? most : fabs(sum - want);
        largest = scale > largest ? scale : largest;
        free(along);
    }
    CHECK_MSG(most <= bound * largest, "%s, variable %d: |a-b| %.3g of %.3g", p->c->name, k, most, largest);
    CHECK_MSG(largest > 0, "%s, variable %d has no gradient", p->c->name, k);
}

static inline void check_gradient(tess_device *device, const gradient_case *c, tess_dtype dtype, double bound)
{
    point p = point_of(c, dtype);
    train_call call = bind_call(&p, dtype);
    field before[TESS_OP_OUTPUTS];
    for (int k = 0; k < call.op.outputs; k++) {
        const field *from = k == 0 && c->over ? &call.in[0].f : &call.out[k].f;
        before[k] = (field){malloc(from->bytes), from->bytes};
        memcpy(before[k].data, from->data, from->bytes);
    }
    if (train_update(device, &call, c->name))
        for (int k = 0; k < p.variables; k++) {
            double *got = computed(&p, &call, k, &before[k], c->name);
            compare_gradient(&p, k, got, bound);
            free(got);
        }
    for (int k = 0; k < call.op.outputs; k++)
        free(before[k].data), free(call.out[k].f.data);
    for (int k = 0; k < call.op.inputs; k++)
        free(call.in[k].f.data);
    point_clear(&p);
}

static inline void check_gradients(tess_device *device, tess_dtype dtype, double bound)
{
    for (size_t i = 0; i < sizeof gradient_cases / sizeof gradient_cases[0]; i++)
        check_gradient(device, &gradient_cases[i], dtype, bound);
}

#endif
