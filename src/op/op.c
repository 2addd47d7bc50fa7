#include "op/op.h"

#include <stdio.h>
#include <string.h>

tess_dtype tess_op_precision(const tess_op *op)
{
    const tess_tensor *other = op->kind == TESS_OP_CONV_GRAD ? &op->in[1] : &op->out[0];
    return op->in[0].dtype != TESS_F32 ? op->in[0].dtype : other->dtype;
}

static double bytes_of(const tess_tensor *t)
{
    return (double)tess_dtype_size(t->dtype) * (double)t->n * (double)t->d * (double)t->h * (double)t->w *
           (double)t->c;
}

double tess_op_traffic(const tess_op *op)
{
    double bytes = 0;
    for (int i = 0; i < op->inputs; i++)
        bytes += bytes_of(&op->in[i]);
    for (int i = 0; i < op->outputs; i++)
        bytes += bytes_of(&op->out[i]);
    return bytes;
}

/* What a class has in place of the output's channels: the number that fixes the work of a pixel. */
static int64_t class_outputs(const tess_op *op)
{
    if (op->kind == TESS_OP_CONV_GRAD)
        return op->in[1].c;
    return op->kind == TESS_OP_SCORE ? op->in[2].h * op->in[2].w : op->out[0].c;
}

void tess_op_class(const tess_op *op, char *text, size_t size)
{
    char depth[16] = "";
    const int64_t out = class_outputs(op);
    if (op->kernel[TESS_DEPTH] > 1)
        snprintf(depth, sizeof depth, "%dx", op->kernel[TESS_DEPTH]);
    snprintf(text, size, "%s%s%dx%d/%d %lld>%lld %s", tess_op_kind_name(op->kind), depth,
             op->kernel[TESS_HEIGHT], op->kernel[TESS_WIDTH], op->stride[TESS_WIDTH], (long long)op->in[0].c,
             (long long)out, op->tf32 ? "TF32" : tess_dtype_name(tess_op_precision(op)));
}

static bool same_window(const tess_op *a, const tess_op *b)
{
    return memcmp(a->kernel, b->kernel, sizeof a->kernel) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           memcmp(a->pad_before, b->pad_before, sizeof a->pad_before) == 0 &&
           memcmp(a->pad_after, b->pad_after, sizeof a->pad_after) == 0;
}

static bool equal(double a, double b)
{
    return !(a < b) && !(a > b);
}

static bool same_samples(const tess_op_samples *a, const tess_op_samples *b)
{
    return equal(a->full_scale, b->full_scale) && a->first == b->first &&
           a->level_channel == b->level_channel && equal(a->level, b->level) &&
           a->level_from == b->level_from;
}

static bool same_combine(const tess_op_combine *a, const tess_op_combine *b)
{
    return equal(a->a, b->a) && equal(a->b, b->b) && equal(a->c, b->c) && equal(a->low, b->low) &&
           equal(a->high, b->high);
}

static bool same_rays(const tess_op_rays *a, const tess_op_rays *b)
{
    return a->geometry == b->geometry && equal(a->spacing, b->spacing) && a->circle == b->circle &&
           a->along == b->along && a->first == b->first && a->depth == b->depth &&
           a->accumulate == b->accumulate && equal(a->scale, b->scale);
}

static bool same_optimize(const tess_op_optimize *a, const tess_op_optimize *b)
{
    return a->kind == b->kind && equal(a->beta1, b->beta1) && equal(a->beta2, b->beta2) &&
           equal(a->epsilon, b->epsilon) && equal(a->weight_decay, b->weight_decay) &&
           equal(a->momentum, b->momentum) && equal(a->clip, b->clip) && a->nesterov == b->nesterov;
}

static bool same_softmax(const tess_op_softmax *a, const tess_op_softmax *b)
{
    return equal(a->count, b->count) && equal(a->start, b->start) && equal(a->least, b->least) &&
           equal(a->decay, b->decay);
}

static bool same_channel_map(const tess_op_channel_map *a, const tess_op_channel_map *b)
{
    return a->form == b->form && equal(a->epsilon, b->epsilon) && same_softmax(&a->softmax, &b->softmax) &&
           a->accumulate == b->accumulate;
}

static bool same_loss(const tess_op_loss *a, const tess_op_loss *b)
{
    return a->kind == b->kind && equal(a->epsilon, b->epsilon) && equal(a->share, b->share) &&
           a->accumulate == b->accumulate && equal(a->positive, b->positive);
}

static bool same_group_norm(const tess_op_group_norm *a, const tess_op_group_norm *b)
{
    return a->groups == b->groups && equal(a->epsilon, b->epsilon) && a->accumulate == b->accumulate;
}

static bool same_batch_norm(const tess_op_batch_norm *a, const tess_op_batch_norm *b)
{
    return equal(a->epsilon, b->epsilon) && equal(a->momentum, b->momentum) && a->accumulate == b->accumulate;
}

static bool same_penalty(const tess_op_penalty *a, const tess_op_penalty *b)
{
    return a->kind == b->kind && equal(a->weight, b->weight) && equal(a->epsilon, b->epsilon) &&
           equal(a->target, b->target) && a->rows == b->rows && a->columns == b->columns &&
           same_softmax(&a->softmax, &b->softmax);
}

static bool same_fft(const tess_op_fft *a, const tess_op_fft *b)
{
    return a->inverse == b->inverse && a->rows_only == b->rows_only && a->columns_only == b->columns_only &&
           a->rows == b->rows;
}

static bool same_spectrum(const tess_op_spectrum *a, const tess_op_spectrum *b)
{
    return a->complex_factor == b->complex_factor && a->conjugate == b->conjugate;
}

/* Compares members, not bytes: the padding between members is undefined. The switch lists every kind, so that
 * the compiler reports a missing one. */
static bool same_attributes(const tess_op *a, const tess_op *b)
{
    switch (a->kind) {
    case TESS_OP_IMPORT:
    case TESS_OP_EXPORT:
        return same_samples(&a->samples, &b->samples);
    case TESS_OP_COMBINE:
        return same_combine(&a->combine, &b->combine);
    case TESS_OP_FFT:
        return same_fft(&a->fft, &b->fft);
    case TESS_OP_SPECTRUM:
        return same_spectrum(&a->spectrum, &b->spectrum);
    case TESS_OP_FILTER:
        return a->filter.product_only == b->filter.product_only;
    case TESS_OP_PROJECT:
    case TESS_OP_BACKPROJECT:
    case TESS_OP_RAY_COSINE:
    case TESS_OP_RAY_SPREAD:
        return same_rays(&a->rays, &b->rays);
    case TESS_OP_SIDE_SUM:
        return equal(a->side.value, b->side.value) && a->side.sums == b->side.sums;
    case TESS_OP_GROUP_NORM:
    case TESS_OP_GROUP_NORM_GRAD:
        return same_group_norm(&a->group_norm, &b->group_norm);
    case TESS_OP_CONV_GRAD:
    case TESS_OP_CHANNEL_SUM:
        return a->grad.accumulate == b->grad.accumulate;
    case TESS_OP_FLIP:
        return a->flip.outer == b->flip.outer && a->flip.inner == b->flip.inner &&
               a->flip.taps == b->flip.taps;
    case TESS_OP_BATCH_NORM_TRAIN:
    case TESS_OP_BATCH_NORM_GRAD:
        return same_batch_norm(&a->batch_norm, &b->batch_norm);
    case TESS_OP_DROPOUT:
    case TESS_OP_NOISE:
        return a->random.seed == b->random.seed && equal(a->random.rate, b->random.rate);
    case TESS_OP_LOSS:
        return same_loss(&a->loss, &b->loss);
    case TESS_OP_OPTIMIZE:
        return same_optimize(&a->optimize, &b->optimize);
    case TESS_OP_DIFFUSE:
        return a->diffuse.seed == b->diffuse.seed;
    case TESS_OP_MOMENTS:
        return a->moments.covariance == b->moments.covariance && a->moments.each == b->moments.each;
    case TESS_OP_CHANNEL_MAP:
    case TESS_OP_CHANNEL_MAP_GRAD:
        return same_channel_map(&a->channel_map, &b->channel_map);
    case TESS_OP_CHANNEL_DOT:
    case TESS_OP_CHANNEL_DOT_GRAD:
        return equal(a->channel_dot.factor, b->channel_dot.factor);
    case TESS_OP_PENALTY:
        return same_penalty(&a->penalty, &b->penalty);
    case TESS_OP_LOCAL_RX:
        return a->local_rx.inner == b->local_rx.inner && equal(a->local_rx.epsilon, b->local_rx.epsilon);
    case TESS_OP_ATTENTION:
    case TESS_OP_ATTENTION_GRAD:
        return a->attention.heads == b->attention.heads && a->attention.by_head == b->attention.by_head;
    case TESS_OP_CONV:
    case TESS_OP_CONV_TRANSPOSE:
    case TESS_OP_UP_CONV:
    case TESS_OP_MAX_POOL:
    case TESS_OP_AVERAGE_POOL:
    case TESS_OP_AVERAGE_POOL_GRAD:
    case TESS_OP_UPSAMPLE:
    case TESS_OP_ADD:
    case TESS_OP_ACTIVATE:
    case TESS_OP_CONCAT:
    case TESS_OP_BATCH_NORM:
    case TESS_OP_DOT:
    case TESS_OP_ACTIVATE_GRAD:
    case TESS_OP_POOL_GRAD:
    case TESS_OP_UPSAMPLE_GRAD:
    case TESS_OP_AVERAGE:
    case TESS_OP_SELECT:
    case TESS_OP_SCORE:
    case TESS_OP_KINDS:
        return true;
    }
    return false;
}

bool tess_op_same(const tess_op *a, const tess_op *b)
{
    bool same = a->kind == b->kind && a->inputs == b->inputs && a->outputs == b->outputs &&
                a->activation == b->activation && a->bias == b->bias && a->tf32 == b->tf32 &&
                a->mapped == b->mapped && a->masked == b->masked && a->leads == b->leads &&
                a->beside == b->beside && same_window(a, b) && same_attributes(a, b);
    for (int i = 0; same && i < a->inputs; i++)
        same = tess_tensor_same(&a->in[i], &b->in[i]);
    for (int i = 0; same && i < a->outputs; i++)
        same = tess_tensor_same(&a->out[i], &b->out[i]);
    return same;
}
