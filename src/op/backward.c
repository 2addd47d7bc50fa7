/* The backward passes of the ops of networks. */
#include "op/backward.h"

#include <string.h>

static const tess_operand GRADIENT = {TESS_ROLE_GRADIENT, 0, 0};

static tess_operand operand(tess_role role, int index)
{
    return (tess_operand){role, index, 1};
}

static tess_operand all_parameters(tess_role role)
{
    return (tess_operand){role, 0, TESS_OP_PARAMS};
}

static tess_backward_step *add_step(tess_backward *b, tess_op op)
{
    tess_backward_step *step = &b->steps[b->count++];
    *step = (tess_backward_step){.op = op, .in = {GRADIENT}};
    return step;
}

static tess_backward_step *pass_gradient(tess_backward *b, int input, int64_t channel)
{
    tess_backward_step *step = add_step(b, (tess_op){.inputs = 0});
    step->passes = true;
    step->channel = channel;
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, input);
    return step;
}

/* The gradient before the activation that ends the op. */
static void before_activation(const tess_op *op, tess_backward *b)
{
    if (op->activation == TESS_LINEAR)
        return;
    tess_backward_step *step =
        add_step(b, (tess_op){.kind = TESS_OP_ACTIVATE_GRAD, .activation = op->activation});
    step->in[1] = operand(op->activation == TESS_SILU ? TESS_ROLE_IN : TESS_ROLE_OUT, 0);
    step->out[0] = GRADIENT;
}

static void copy_window(const tess_op *from, tess_op *to)
{
    memcpy(to->kernel, from->kernel, sizeof to->kernel);
    memcpy(to->stride, from->stride, sizeof to->stride);
    memcpy(to->pad_before, from->pad_before, sizeof to->pad_before);
    memcpy(to->pad_after, from->pad_after, sizeof to->pad_after);
}

static void conv_parameters(const tess_op *op, bool accumulate, tess_backward *b)
{
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    const tess_operand bias = operand(TESS_ROLE_PARAMETER_GRADIENT, TESS_PARAM_BIAS);
    tess_op grad = {.kind = TESS_OP_CONV_GRAD, .tf32 = op->tf32, .grad = {accumulate}};
    copy_window(op, &grad);
    tess_backward_step *step = add_step(b, grad);
    step->in[transposed ? 1 : 0] = operand(TESS_ROLE_IN, 0);
    step->in[transposed ? 0 : 1] = GRADIENT;
    step->out[0] = operand(TESS_ROLE_PARAMETER_GRADIENT, TESS_PARAM_KERNEL);
    if (op->bias && !transposed)
        step->out[1] = bias;
    else if (op->bias)
        add_step(b, (tess_op){.kind = TESS_OP_CHANNEL_SUM, .grad = {accumulate}})->out[0] = bias;
}

/* A convolution of the turned kernel for stride 1, a transposed one for kernel = stride, and a strided one for a
 * transposed one. */
static void conv_input(const tess_op *op, tess_backward *b)
{
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    bool plain = true, tiled = true;
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        plain = plain && op->stride[axis] == 1;
        tiled = tiled && op->stride[axis] == op->kernel[axis] && op->pad_before[axis] == 0 &&
                op->pad_after[axis] == 0;
    }
    tess_op grad = {.kind = plain || transposed ? TESS_OP_CONV : TESS_OP_CONV_TRANSPOSE, .tf32 = op->tf32};
    copy_window(op, &grad);
    for (int axis = 0; axis < TESS_SPATIAL && plain; axis++) {
        grad.pad_before[axis] = op->kernel[axis] - 1 - op->pad_before[axis];
        grad.pad_after[axis] = op->kernel[axis] - 1 - op->pad_after[axis];
    }
    tess_backward_step *step = add_step(b, grad);
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, 0);
    step->weights = plain && !transposed ? TESS_STEP_TURNED_WEIGHTS : TESS_STEP_OWN_WEIGHTS;
    step->adds = true;
    if (!plain && !tiled)
        step->cannot = "only strides of 1 or of the kernel's size can be trained";
}

void tess_backward_conv(const tess_op *op, bool accumulate, tess_backward *out)
{
    before_activation(op, out);
    for (int i = 1; i < op->inputs; i++) {
        tess_backward_step *step = pass_gradient(out, i, 0);
        if (op->mapped && i == op->inputs - 1)
            step->cannot = "a map that is added to all channels cannot be trained";
    }
    conv_parameters(op, accumulate, out);
    conv_input(op, out);
}

void tess_backward_sum(const tess_op *op, bool accumulate, tess_backward *out)
{
    (void)accumulate;
    before_activation(op, out);
    for (int i = 0; i < op->inputs; i++)
        pass_gradient(out, i, 0);
}

void tess_backward_concat(const tess_op *op, bool accumulate, tess_backward *out)
{
    (void)accumulate;
    int64_t channel = 0;
    for (int i = 0; i < op->inputs; i++) {
        pass_gradient(out, i, channel);
        channel += op->in[i].c;
    }
}

void tess_backward_window(const tess_op *op, bool accumulate, tess_backward *out)
{
    (void)accumulate;
    const bool largest = op->kind == TESS_OP_MAX_POOL;
    tess_op grad = {.kind = largest                            ? TESS_OP_POOL_GRAD
                            : op->kind == TESS_OP_AVERAGE_POOL ? TESS_OP_AVERAGE_POOL_GRAD
                                                               : TESS_OP_UPSAMPLE_GRAD};
    copy_window(op, &grad);
    tess_backward_step *step = add_step(out, grad);
    if (largest)
        step->in[1] = operand(TESS_ROLE_IN, 0);
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, 0);
    step->adds = true;
}

void tess_backward_batch_norm(const tess_op *op, bool accumulate, tess_backward *out)
{
    before_activation(op, out);
    tess_backward_step *step =
        add_step(out, (tess_op){.kind = TESS_OP_BATCH_NORM_GRAD, .batch_norm = {.accumulate = accumulate}});
    step->in[1] = operand(TESS_ROLE_IN, 0);
    step->in[2] = operand(TESS_ROLE_OUT, 1); /* statistics */
    step->in[3] = all_parameters(TESS_ROLE_PARAMETERS);
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, 0);
    step->out[1] = all_parameters(TESS_ROLE_PARAMETER_GRADIENT);
}

/* Its gradient includes that of the activation. */
void tess_backward_group_norm(const tess_op *op, bool accumulate, tess_backward *out)
{
    tess_op grad = {
        .kind = TESS_OP_GROUP_NORM_GRAD, .activation = op->activation, .group_norm = op->group_norm};
    grad.group_norm.accumulate = accumulate;
    tess_backward_step *step = add_step(out, grad);
    step->in[1] = operand(TESS_ROLE_IN, 0);
    step->in[2] = all_parameters(TESS_ROLE_PARAMETERS);
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, 0);
    step->out[1] = all_parameters(TESS_ROLE_PARAMETER_GRADIENT);
    if (op->inputs > 1) {
        step->in[3] = operand(TESS_ROLE_IN, 1);
        step->out[2] = operand(TESS_ROLE_IN_GRADIENT, 1);
    }
}

void tess_backward_attention(const tess_op *op, bool accumulate, tess_backward *out)
{
    (void)accumulate;
    tess_backward_step *step =
        add_step(out, (tess_op){.kind = TESS_OP_ATTENTION_GRAD, .attention = op->attention});
    step->in[1] = operand(TESS_ROLE_IN, 0);
    step->in[2] = operand(TESS_ROLE_OUT, 0);
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, 0);
}

/* The same values become zero. */
void tess_backward_dropout(const tess_op *op, bool accumulate, tess_backward *out)
{
    (void)accumulate;
    tess_backward_step *step = add_step(out, (tess_op){.kind = TESS_OP_DROPOUT, .random = op->random});
    step->in[1] = operand(TESS_ROLE_IN, 1);
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, 0);
}

void tess_backward_channel_map(const tess_op *op, bool accumulate, tess_backward *out)
{
    tess_op grad = {.kind = TESS_OP_CHANNEL_MAP_GRAD, .channel_map = op->channel_map};
    grad.channel_map.accumulate = accumulate;
    tess_backward_step *step = add_step(out, grad);
    step->in[1] = operand(TESS_ROLE_IN, 0);
    step->in[2] =
        (tess_operand){TESS_ROLE_PARAMETERS, 0, tess_channel_has_bias(op->channel_map.form) ? 2 : 1};
    if (op->channel_map.form == TESS_CHANNEL_SOFTMAX)
        step->in[3] = operand(TESS_ROLE_IN, 1);
    step->out[0] = operand(TESS_ROLE_IN_GRADIENT, 0);
    step->out[1] = step->in[2];
    step->out[1].role = TESS_ROLE_PARAMETER_GRADIENT;
}

void tess_backward_channel_dot(const tess_op *op, bool accumulate, tess_backward *out)
{
    (void)accumulate;
    for (int i = 0; i < 2; i++) {
        tess_backward_step *step =
            add_step(out, (tess_op){.kind = TESS_OP_CHANNEL_DOT_GRAD, .channel_dot = op->channel_dot});
        step->in[1] = operand(TESS_ROLE_IN, 1 - i);
        step->out[0] = operand(TESS_ROLE_IN_GRADIENT, i);
    }
}
