/* gradient_cases.h: the backward ops against central differences of their forward ops in fp64, on any device. Small
 * variables are compared value by value, large ones along random directions. */
#ifndef TESS_TESTS_GRADIENT_CASES_H
#define TESS_TESTS_GRADIENT_CASES_H

#include "gradient_point.h"
#include "train_run.h"

enum { BY_VALUE = 600, DIRECTIONS = 3 };

static const gradient_case gradient_cases[] = {
    {"relu", TESS_OP_ACTIVATE_GRAD, 2, 1, 5, 7, 6, 0, TESS_RELU, false, 0, false, false},
    {"relu-gap", TESS_OP_ACTIVATE_GRAD, 2, 1, 3, 5, 13, 0, TESS_RELU, false, 3, true, false},
    {"silu", TESS_OP_ACTIVATE_GRAD, 1, 2, 3, 5, 9, 0, TESS_SILU, false, 0, true, false},
    {"silu-gap", TESS_OP_ACTIVATE_GRAD, 2, 1, 2, 2, 70, 0, TESS_SILU, false, 6, false, false},
    {"pool", TESS_OP_POOL_GRAD, 2, 1, 4, 6, 5, 2, TESS_LINEAR, false, 0, false, false},
    {"pool-odd-add", TESS_OP_POOL_GRAD, 1, 1, 7, 5, 7, 2, TESS_LINEAR, true, 4, false, false},
    {"pool-3", TESS_OP_POOL_GRAD, 1, 1, 8, 10, 3, 3, TESS_LINEAR, true, 0, false, false},
    {"upsample", TESS_OP_UPSAMPLE_GRAD, 2, 1, 3, 4, 9, 2, TESS_LINEAR, false, 0, false, false},
    {"upsample-add", TESS_OP_UPSAMPLE_GRAD, 1, 1, 3, 2, 70, 3, TESS_LINEAR, true, 5, false, false},
    {"mse", TESS_OP_LOSS, 2, 1, 3, 5, 3, TESS_MSE, TESS_LINEAR, false, 0, false, false},
    {"l1", TESS_OP_LOSS, 2, 1, 3, 5, 3, TESS_L1, TESS_LINEAR, false, 1, false, false},
    {"charbonnier", TESS_OP_LOSS, 1, 2, 3, 5, 3, TESS_CHARBONNIER, TESS_LINEAR, false, 0, true, false},
    {"masked", TESS_OP_LOSS, 2, 1, 3, 5, 3, TESS_MASKED_MSE, TESS_LINEAR, true, 1, false, false},
    {"bce", TESS_OP_LOSS, 2, 1, 3, 5, 3, TESS_BCE_LOGITS, TESS_LINEAR, false, 0, false, false},
};

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
    case TESS_OP_UPSAMPLE_GRAD:
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
    default:
        abort();
    }
    p.factor = normal_values(p.results, 9, dtype);
    if (c->kind == TESS_OP_LOSS)
        p.factor[0] = 4; /* share 1/2, loss scale 8 */
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
    call->in[call->op.inputs++] = placed(&t, values, 31);
}

static inline void set_output(train_call *call, tess_tensor t)
{
    call->op.out[call->op.outputs] = t;
    call->out[call->op.outputs++] = random_field(&t, 32);
}

static inline void set_memory(train_call *call, tess_dtype dtype, int64_t count, const void *data)
{
    call->op.in[call->op.inputs] = vector_of(dtype, count);
    field f = over_memory(NULL, count, dtype);
    f.data = malloc(f.bytes);
    memcpy(f.data, data, f.bytes);
    call->in[call->op.inputs++] = f;
}

static inline void bind_windows(const point *p, tess_dtype dtype, train_call *call)
{
    const gradient_case *c = p->c;
    const tess_tensor t = values_tensor(c, dtype, c->h, c->w, c->c);
    const bool pool = c->kind == TESS_OP_POOL_GRAD;
    const int s = c->parts;
    call->op.kernel[0] = call->op.stride[0] = 1;
    for (int axis = 1; axis < TESS_SPATIAL; axis++)
        call->op.kernel[axis] = call->op.stride[axis] = s;
    set_input(call, values_tensor(c, dtype, pool ? c->h / s : c->h * s, pool ? c->w / s : c->w * s, c->c),
              p->factor);
    if (pool)
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
    call->op.loss = (tess_op_loss){(tess_loss)c->parts, 0.1, 0.5, false};
    set_input(call, t, p->variable[0]);
    set_input(call, t, p->constant);
    set_memory(call, TESS_F64, TESS_CONTROLS, control);
    if (c->more)
        set_input(call, t, p->constant + p->size[0]);
    set_output(call, t);
    call->op.out[1] = vector_of(TESS_F64, 1);
    call->out[1] = (field){calloc(1, sizeof(double)), sizeof(double)};
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
        bind_windows(p, dtype, &call);
        break;
    case TESS_OP_LOSS:
        bind_loss(p, dtype, &call);
        break;
    default:
        abort();
    }
    return call;
}

/* The gradient of a variable that the op computed, without what it was added to; and nothing else was written. */
static inline double *computed(const point *p, const train_call *call, int k, field *before, const char *name)
{
    const tess_tensor *t = &call->op.out[k];
    double *values = malloc((size_t)p->size[k] * sizeof *values);
    const size_t size = tess_dtype_size(t->dtype);
    for (int64_t i = 0; i < p->size[k]; i++) {
        const int64_t at = place_of(t, i);
        values[i] = (double)value_in(t->dtype, call->out[k].data, (size_t)at);
        if (p->c->accumulate && t->dtype == TESS_F32 && k > 0)
            values[i] -= (double)value_in(t->dtype, before->data, (size_t)at);
        else if (p->c->more && p->c->kind != TESS_OP_LOSS && p->constant)
            values[i] -= p->constant[i];
        memcpy((char *)before->data + (size_t)at * size, (char *)call->out[k].data + (size_t)at * size, size);
    }
    CHECK_MSG(memcmp(before->data, call->out[k].data, before->bytes) == 0, "%s wrote outside of its output",
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
        const field *from = k == 0 && c->over ? &call.in[0] : &call.out[k];
        before[k] = (field){malloc(from->bytes), from->bytes};
        memcpy(before[k].data, from->data, from->bytes);
    }
    if (train_run(device, &call, c->name))
        for (int k = 0; k < p.variables; k++) {
            double *got = computed(&p, &call, k, &before[k], c->name);
            compare_gradient(&p, k, got, bound);
            free(got);
        }
    for (int k = 0; k < call.op.outputs; k++)
        free(before[k].data), free(call.out[k].data);
    for (int k = 0; k < call.op.inputs; k++)
        free(call.in[k].data);
    point_clear(&p);
}

static inline void check_gradients(tess_device *device, tess_dtype dtype, double bound)
{
    for (size_t i = 0; i < sizeof gradient_cases / sizeof gradient_cases[0]; i++)
        check_gradient(device, &gradient_cases[i], dtype, bound);
}

#endif
