/* gradient_bind.h: the point of each case of gradient_cases.h, and the backward op at it with its tensors. */
#ifndef TESS_TESTS_GRADIENT_BIND_H
#define TESS_TESTS_GRADIENT_BIND_H

#include "gradient_point.h"
#include "train_run.h"

static inline int64_t place_of(const tess_tensor *t, int64_t i)
{
    const int64_t pixel = i / t->c, row = pixel / t->w, slice = row / t->h;
    return slice / t->d * t->stride_n + slice % t->d * t->stride_d + row % t->h * t->stride_h +
           pixel % t->w * t->stride_w + i % t->c;
}

/* Dense values to their places in a tensor of random values. */
static inline field placed(const tess_tensor *t, const double *values, uint32_t item)
{
    field f = random_field(t, item);
    for (int64_t i = 0; values && i < t->n * t->d * t->h * t->w * t->c; i++)
        put_value(t->dtype, f.data, (size_t)place_of(t, i), (float)values[i]);
    return f;
}

static inline void add_variable(point *p, int64_t size, tess_dtype dtype)
{
    p->size[p->variables] = size;
    p->variable[p->variables] = normal_values(size, (uint32_t)(1 + p->variables), dtype);
    p->variables++;
}

static inline void set_constants(point *p, int64_t count, tess_dtype dtype)
{
    p->constants = count;
    p->constant = normal_values(count, 8, dtype);
}

static inline point point_of(const gradient_case *c, tess_dtype dtype)
{
    point p = {.c = c};
    const int64_t values = c->n * c->d * c->h * c->w * c->c;
    p.results = values;
    switch (c->kind) {
    case TESS_OP_ACTIVATE_GRAD:
        add_variable(&p, values, dtype);
        p.forward = forward_activate;
        break;
    case TESS_OP_POOL_GRAD:
        add_variable(&p, values, dtype);
        for (int64_t i = 0; i < values; i++) /* bf16 holds them, and they differ within a window */
            p.variable[0][i] = (double)((i * 101 + 7) % 251 - 125) / 16;
        set_constants(&p, values, dtype);
        p.results = c->n * (c->h / c->parts) * (c->w / c->parts) * c->c;
        p.forward = forward_pool;
        break;
    case TESS_OP_AVERAGE_POOL_GRAD:
        add_variable(&p, values, dtype);
        set_constants(&p, values, dtype);
        for (int64_t i = 0; i < values; i++)
            p.constant[i] /= 16; /* as small as shares, or rounding the sum to 16 bits hides them */
        p.results = c->n * (c->h / c->parts) * (c->w / c->parts) * c->c;
        p.forward = forward_average;
        break;
    case TESS_OP_UPSAMPLE_GRAD:
    case TESS_OP_AVERAGE_POOL:
        add_variable(&p, values, dtype);
        set_constants(&p, values, dtype);
        p.results = values * c->parts * c->parts;
        p.forward = forward_upsample;
        break;
    case TESS_OP_LOSS:
        add_variable(&p, values, dtype);
        set_constants(&p, 2 * values, dtype);
        for (int64_t i = values; i < 2 * values; i++)
            p.constant[i] = fabs(p.constant[i]);
        p.results = 1;
        p.forward = forward_loss;
        break;
    case TESS_OP_BATCH_NORM_GRAD:
        add_variable(&p, values, dtype);
        add_variable(&p, 2 * c->c, TESS_F32);
        p.forward = forward_batch_norm;
        break;
    case TESS_OP_GROUP_NORM_GRAD:
        add_variable(&p, values, dtype);
        add_variable(&p, 2 * c->c, TESS_F32);
        if (c->more)
            add_variable(&p, c->n * 2 * c->c, dtype);
        p.forward = forward_group_norm;
        break;
    case TESS_OP_ATTENTION_GRAD:
        add_variable(&p, 3 * values, dtype);
        p.forward = forward_attention;
        break;
    case TESS_OP_DROPOUT:
        add_variable(&p, values, dtype);
        p.forward = forward_dropout;
        break;
    case TESS_OP_CHANNEL_MAP_GRAD:
        add_variable(&p, values, dtype);
        add_variable(&p, c->c * (tess_channel_has_bias((tess_channel_form)c->parts) ? 2 : 1), TESS_F32);
        if (c->parts == TESS_CHANNEL_BOUNDARY)
            for (int64_t i = 0; i < c->c; i++)
                p.variable[1][i] = (double)(float)(0.4 + 0.1 * p.variable[1][i]);
        p.forward = forward_channel_map;
        break;
    case TESS_OP_CHANNEL_DOT_GRAD:
        add_variable(&p, values, dtype);
        set_constants(&p, values, dtype);
        p.results = values / c->c;
        p.forward = forward_channel_dot;
        break;
    case TESS_OP_PENALTY:
        add_variable(&p, c->h * c->c, TESS_F32);
        p.results = 1;
        p.forward = forward_penalty;
        break;
    case TESS_OP_CONV_GRAD:
        add_variable(&p, CONV_OUT * c->c * c->parts * c->parts, TESS_F32);
        add_variable(&p, CONV_OUT, TESS_F32);
        set_constants(&p, values, dtype);
        p.results = values / c->c / (c->parts == 2 ? 4 : 1) * CONV_OUT;
        p.forward = forward_conv;
        break;
    default:
        abort();
    }
    p.factor = normal_values(p.results, 9, dtype);
    if (c->kind == TESS_OP_LOSS)
        p.factor[0] = 4; /* share 1/2, loss scale 8 */
    if (c->kind == TESS_OP_PENALTY)
        p.factor[0] = 8; /* loss scale */
    return p;
}

static inline void point_clear(point *p)
{
    for (int i = 0; i < p->variables; i++)
        free(p->variable[i]);
    free(p->constant), free(p->factor);
}

/* A tensor of activations with the case's gap. */
static inline tess_tensor values_tensor(const gradient_case *c, tess_dtype dtype, int64_t h, int64_t w,
                                        int64_t channels)
{
    return tess_tensor_channels(tess_tensor_3d(dtype, c->n, c->d, h, w, channels + c->gap), channels);
}

static inline void set_input(train_call *call, tess_tensor t, const double *values)
{
    call->op.in[call->op.inputs] = t;
    call->in[call->op.inputs++].f = placed(&t, values, 31);
}

static inline void set_output(train_call *call, tess_tensor t)
{
    call->op.out[call->op.outputs] = t;
    call->out[call->op.outputs++].f = random_field(&t, 32);
}

static inline void set_memory(train_call *call, tess_dtype dtype, int64_t count, const void *data)
{
    call->op.in[call->op.inputs] = vector_of(dtype, count);
    field f = over_memory(NULL, count, dtype);
    f.data = malloc(f.bytes);
    memcpy(f.data, data, f.bytes);
    call->in[call->op.inputs++].f = f;
}

static inline bool is_window(tess_op_kind kind)
{
    return kind == TESS_OP_POOL_GRAD || kind == TESS_OP_UPSAMPLE_GRAD || kind == TESS_OP_AVERAGE_POOL ||
           kind == TESS_OP_AVERAGE_POOL_GRAD;
}

static inline void bind_windows(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c);
    const bool largest = c->kind == TESS_OP_POOL_GRAD, pool = largest || c->kind == TESS_OP_AVERAGE_POOL_GRAD;
    const int s = c->parts;
    call->op.kernel[0] = call->op.stride[0] = 1;
    for (int axis = 1; axis < TESS_SPATIAL; axis++)
        call->op.kernel[axis] = call->op.stride[axis] = s;
    set_input(call, values_tensor(c, dtype, pool ? c->h / s : c->h * s, pool ? c->w / s : c->w * s, c->c),
              p->factor);
    if (largest)
        set_input(call, t, p->variable[0]);
    if (c->more)
        set_input(call, t, p->constant);
    set_output(call, t);
}

static inline void bind_loss(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c);
    double control[TESS_CONTROLS] = {0};
    control[TESS_CONTROL_LOSS_SCALE] = 8;
    call->op.loss = (tess_op_loss){(tess_loss)c->parts, 0.1, 0.5, false, 3};
    set_input(call, t, p->variable[0]);
    set_input(call, t, p->constant);
    set_memory(call, TESS_F64, TESS_CONTROLS, control);
    if (c->more)
        set_input(call, t, p->constant + p->size[0]);
    set_output(call, t);
    call->op.out[1] = vector_of(TESS_F64, 1);
    call->out[1].f = (field){calloc(1, sizeof(double)), sizeof(double)};
    call->op.outputs = 2;
}

static inline void bind_activate(const point *p, tess_dtype dtype, train_call *call)
{
    const tess_tensor t = values_tensor(p->c, dtype, p->c->h, p->c->w, p->c->c);
    double *seen = malloc((size_t)p->size[0] * sizeof *seen);
    for (int64_t i = 0; i < p->size[0]; i++)
        seen[i] = p->c->activation == TESS_RELU ? activated(TESS_RELU, p->variable[0][i]) : p->variable[0][i];
    set_input(call, t, p->factor);
    set_input(call, t, seen);
    set_output(call, t);
    free(seen);
}

static inline void bind_batch_norm(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c), vector = vector_of(TESS_F32, 2 * c->c);
    double *statistics = malloc((size_t)(2 * c->c) * sizeof *statistics);
    const int64_t count = p->size[0] / c->c;
    for (int64_t i = 0; i < c->c; i++) {
        statistics[i] = mean_of(p->variable[0] + i, count, c->c, 0, 1);
        statistics[c->c + i] = 1 / sqrt(mean_of(p->variable[0] + i, count, c->c, statistics[i], 2) + 1e-5);
    }
    call->op.batch_norm = (tess_op_batch_norm){1e-5, 0.1, c->accumulate};
    set_input(call, t, p->factor);
    set_input(call, t, p->variable[0]);
    set_input(call, vector, statistics);
    set_input(call, vector, p->variable[1]);
    set_output(call, t);
    set_output(call, vector);
    free(statistics);
}

static inline void bind_group_norm(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c), vector = vector_of(TESS_F32, 2 * c->c),
                      more = strided(dtype, c->n, 1, 1, 2 * c->c, c->gap);
    call->op.group_norm = (tess_op_group_norm){c->parts, 1e-5, c->accumulate};
    set_input(call, t, p->factor);
    set_input(call, t, p->variable[0]);
    set_input(call, vector, p->variable[1]);
    set_output(call, t);
    set_output(call, vector);
    if (c->more) {
        set_input(call, more, p->variable[2]);
        set_output(call, more);
    }
}

static inline void bind_attention(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c),
                      all = values_tensor(c, dtype, c->h, c->w, 3 * c->c);
    double *results = malloc((size_t)p->results * sizeof *results);
    p->forward(p, results);
    call->op.attention = (tess_op_attention){c->parts, c->more};
    set_input(call, t, p->factor);
    set_input(call, all, p->variable[0]);
    set_input(call, t, results);
    set_output(call, all);
    free(results);
}

static inline void bind_dropout(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c);
    int64_t keys[2 * 4];
    for (int64_t n = 0; n < c->n; n++)
        keys[2 * n] = dropout_key(n).item, keys[2 * n + 1] = dropout_key(n).step;
    call->op.random = (tess_op_random){dropout_key(0).seed, DROPOUT_PERCENT / 100.0};
    set_input(call, t, p->factor);
    set_memory(call, TESS_I64, 2 * c->n, keys);
    call->op.in[1] = tess_tensor_2d(TESS_I64, c->n, 1, 1, 2);
    set_output(call, t);
}

static inline void set_control(train_call *call)
{
    double control[TESS_CONTROLS] = {0};
    control[TESS_CONTROL_LOSS_SCALE] = 8;
    control[TESS_CONTROL_EPOCH] = MAP_EPOCH;
    set_memory(call, TESS_F64, TESS_CONTROLS, control);
}

static inline void bind_channel_map(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c);
    call->op.channel_map = channel_map_of(c);
    set_input(call, t, p->factor);
    set_input(call, t, p->variable[0]);
    set_input(call, vector_of(TESS_F32, p->size[1]), p->variable[1]);
    if (c->parts == TESS_CHANNEL_SOFTMAX)
        set_control(call);
    set_output(call, t);
    set_output(call, vector_of(TESS_F32, p->size[1]));
}

static inline void bind_channel_dot(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c);
    call->op.channel_dot.factor = 1.5;
    set_input(call, values_tensor(c, dtype, c->h, c->w, 1), p->factor);
    set_input(call, t, p->constant);
    set_output(call, t);
}

static inline void bind_penalty(const point *p, train_call *call)
{
    call->op.penalty = penalty_of(p->c);
    set_input(call, vector_of(TESS_F32, p->size[0]), p->variable[0]);
    set_control(call);
    set_output(call, vector_of(TESS_F32, p->size[0]));
    call->op.out[1] = vector_of(TESS_F64, 1);
    call->out[1].f = (field){calloc(1, sizeof(double)), sizeof(double)};
    call->op.outputs = 2;
}

static inline void bind_conv(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const int s = c->parts == 2 ? 2 : 1;
    call->op.kernel[0] = call->op.stride[0] = 1;
    for (int axis = 1; axis < TESS_SPATIAL; axis++) {
        call->op.kernel[axis] = c->parts;
        call->op.stride[axis] = s;
        call->op.pad_before[axis] = call->op.pad_after[axis] = c->parts / 3;
    }
    call->op.grad.accumulate = c->accumulate;
    set_input(call, values_tensor(c, dtype, c->h, c->w, c->c), p->constant);
    set_input(call, values_tensor(c, dtype, c->h / s, c->w / s, CONV_OUT), p->factor);
    set_output(call, vector_of(TESS_F32, p->size[0]));
    set_output(call, vector_of(TESS_F32, p->size[1]));
}

static inline train_call bind_call(const point *p, tess_dtype dtype)
{
    const gradient_case *c = p->c;
    train_call call = {.op = {.kind = c->kind, .activation = c->activation}, .over = c->over ? 1 : 0};
    switch (c->kind) {
    case TESS_OP_ACTIVATE_GRAD:
        bind_activate(p, dtype, &call);
        break;
    case TESS_OP_POOL_GRAD:
    case TESS_OP_UPSAMPLE_GRAD:
    case TESS_OP_AVERAGE_POOL:
    case TESS_OP_AVERAGE_POOL_GRAD:
        bind_windows(p, dtype, &call);
        break;
    case TESS_OP_LOSS:
        bind_loss(p, dtype, &call);
        break;
    case TESS_OP_BATCH_NORM_GRAD:
        bind_batch_norm(p, dtype, &call);
        break;
    case TESS_OP_GROUP_NORM_GRAD:
        bind_group_norm(p, dtype, &call);
        break;
    case TESS_OP_ATTENTION_GRAD:
        bind_attention(p, dtype, &call);
        break;
    case TESS_OP_DROPOUT:
        bind_dropout(p, dtype, &call);
        break;
    case TESS_OP_CHANNEL_MAP_GRAD:
        bind_channel_map(p, dtype, &call);
        break;
    case TESS_OP_CHANNEL_DOT_GRAD:
        bind_channel_dot(p, dtype, &call);
        break;
    case TESS_OP_PENALTY:
        bind_penalty(p, &call);
        break;
    case TESS_OP_CONV_GRAD:
        bind_conv(p, dtype, &call);
        break;
    default:
        abort();
    }
    return call;
}

#endif
