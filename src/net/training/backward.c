/* The backward pass, layer by layer from the last to the first. Gradients of a value that several layers read are added
 * by the op that computes the last of them, where that op can add; otherwise by an ADD. The gradient of a ReLU is
 * likewise fused into the convolution that computes the gradient of its output (`masked`). */
#include <stdio.h>

#include "net/training/emit.h"
#include "op/row.h"

static tess_cell gradient_like(tess_emitter *e, tess_value value)
{
    return tess_program_tensor(e->program, tess_value_tensor(e->net, value, e->bound->dtype, e->shape));
}

static void add_ready(tess_emitter *e, tess_value value, tess_cell contribution)
{
    tess_emitted *v = &e->values[value];
    v->readers--;
    if (!v->wanted)
        return;
    if (v->gradient < 0) {
        v->gradient = contribution;
        return;
    }
    const tess_cell sum = gradient_like(e, value);
    tess_program_op(e->program, (tess_op){.kind = TESS_OP_ADD, .kernel = {1, 1, 1}, .stride = {1, 1, 1}},
                    (tess_cell[]){v->gradient, contribution, -1}, (tess_cell[]){sum, -1, -1}, -1);
    v->gradient = sum;
}

/* An op computes a contribution and can add the others to it. */
static void add_computed(tess_emitter *e, tess_value value, tess_op op, const tess_cell *in, int inputs)
{
    tess_emitted *v = &e->values[value];
    tess_cell all[TESS_OP_INPUTS + 1] = {-1, -1, -1, -1, -1};
    for (int i = 0; i < inputs; i++)
        all[i] = in[i];
    all[inputs] = v->gradient;
    v->gradient = gradient_like(e, value);
    tess_program_op(e->program, op, all, (tess_cell[]){v->gradient, -1, -1}, -1);
    v->readers--;
}

/* The ReLU that made the value, if a layer ends with one: its gradient can be fused into the last contribution. */
static bool made_by_relu(const tess_emitter *e, tess_value value)
{
    const int producer = tess_net_value(e->net, value)->producer;
    const tess_layer *layer = producer < 0 ? NULL : tess_net_layer(e->net, producer);
    return layer && layer->activation == TESS_RELU && layer->kind != TESS_OP_GROUP_NORM;
}

/* The op of a convolution's input gradient: a convolution with the turned kernel for stride 1, a transposed one for
 * kernel = stride, and a strided one for a transposed one. */
static bool input_gradient(const tess_layer *layer, tess_op *op)
{
    const tess_layer_window *w = &layer->window;
    const bool transposed = layer->kind == TESS_OP_CONV_TRANSPOSE;
    bool plain = true, tiled = true;
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        plain = plain && w->stride[axis] == 1;
        tiled = tiled && w->stride[axis] == w->kernel[axis] && w->pad_before[axis] == 0 &&
                w->pad_after[axis] == 0;
        op->kernel[axis] = w->kernel[axis];
        op->stride[axis] = w->stride[axis];
        op->pad_before[axis] = plain ? w->kernel[axis] - 1 - w->pad_before[axis] : 0;
        op->pad_after[axis] = plain ? w->kernel[axis] - 1 - w->pad_after[axis] : 0;
    }
    op->kind = plain || transposed ? TESS_OP_CONV : TESS_OP_CONV_TRANSPOSE;
    return plain || tiled;
}

static void conv_input(tess_emitter *e, int index, const tess_layer *layer, tess_cell gradient)
{
    const tess_value value = layer->in[0];
    tess_emitted *v = &e->values[value];
    if (!v->wanted) {
        v->readers--;
        return;
    }
    tess_op op = {.tf32 = e->settings->tf32};
    if (!input_gradient(layer, &op)) {
        char text[160];
        snprintf(text, sizeof text, "%s: only strides of 1 or of the kernel's size can be trained",
                 layer->name);
        tess_program_fail(e->program, text);
        return;
    }
    const bool turned = op.kind == TESS_OP_CONV && layer->kind == TESS_OP_CONV;
    tess_cell in[TESS_OP_INPUTS + 1] = {gradient, v->gradient, -1, -1, -1};
    const tess_cell out[TESS_OP_OUTPUTS] = {gradient_like(e, value), -1, -1};
    if (v->readers == 1 && made_by_relu(e, value)) {
        tess_op masked = op;
        masked.masked = true;
        tess_cell with[TESS_OP_INPUTS + 1] = {in[0], in[1], -1, -1, -1};
        with[in[1] < 0 ? 1 : 2] = tess_emit_activation(e, value);
        if (tess_program_can(e->program, masked, with, out)) {
            op = masked;
            for (int i = 0; i < TESS_OP_INPUTS; i++)
                in[i] = with[i];
            v->masked = true;
        }
    }
    if (e->program->status != TESS_OK)
        return;
    tess_op bound = op; /* with its tensors, which decide the kernel and its packing */
    for (bound.inputs = 0; in[bound.inputs] >= 0; bound.inputs++)
        bound.in[bound.inputs] = *tess_program_shape(e->program, in[bound.inputs]);
    bound.outputs = 1;
    bound.out[0] = *tess_program_shape(e->program, out[0]);
    tess_program_op(e->program, op, in, out, tess_emit_weights(e, &bound, index, turned));
    v->gradient = out[0];
    v->readers--;
}

static void conv_parameters(tess_emitter *e, int index, const tess_layer *layer, tess_cell gradient)
{
    const bool transposed = layer->kind == TESS_OP_CONV_TRANSPOSE, sums = e->settings->micro_batches > 1;
    const tess_cell x = tess_emit_activation(e, layer->in[0]);
    tess_op op = {.kind = TESS_OP_CONV_GRAD, .tf32 = e->settings->tf32, .grad = {sums}};
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        op.kernel[axis] = layer->window.kernel[axis];
        op.stride[axis] = layer->window.stride[axis];
        op.pad_before[axis] = layer->window.pad_before[axis];
        op.pad_after[axis] = layer->window.pad_after[axis];
    }
    const tess_cell kernel = tess_emit_piece(e, TESS_IN_GRADIENTS, index, 0, 1),
                    bias = layer->bias ? tess_emit_piece(e, TESS_IN_GRADIENTS, index, 1, 1) : -1;
    tess_program_op(e->program, op, (tess_cell[]){transposed ? gradient : x, transposed ? x : gradient, -1},
                    (tess_cell[]){kernel, transposed ? -1 : bias, -1}, -1);
    if (transposed && layer->bias)
        tess_program_op(e->program, (tess_op){.kind = TESS_OP_CHANNEL_SUM, .grad = {sums}},
                        (tess_cell[]){gradient, -1}, (tess_cell[]){bias, -1, -1}, -1);
}

static void conv_backward(tess_emitter *e, int index, const tess_layer *layer, tess_cell gradient)
{
    for (int i = 1; i < layer->inputs; i++)
        add_ready(e, layer->in[i], gradient);
    conv_parameters(e, index, layer, gradient);
    conv_input(e, index, layer, gradient);
}

static void batch_norm_backward(tess_emitter *e, int index, const tess_layer *layer, tess_cell gradient)
{
    const tess_cell x = tess_emit_activation(e, layer->in[0]), out = gradient_like(e, layer->in[0]);
    const tess_op op = {.kind = TESS_OP_BATCH_NORM_GRAD,
                        .batch_norm = {.accumulate = e->settings->micro_batches > 1}};
    tess_program_op(e->program, op,
                    (tess_cell[]){gradient, x, tess_emit_statistics(e, index),
                                  tess_emit_piece(e, TESS_IN_PARAMETERS, index, 0, 2)},
                    (tess_cell[]){out, tess_emit_piece(e, TESS_IN_GRADIENTS, index, 0, 2), -1}, -1);
    add_ready(e, layer->in[0], out);
}

static void group_norm_backward(tess_emitter *e, int index, const tess_layer *layer, tess_cell gradient)
{
    const bool shifted = layer->inputs > 1;
    const tess_cell x = tess_emit_activation(e, layer->in[0]), out = gradient_like(e, layer->in[0]),
                    shift = shifted ? gradient_like(e, layer->in[1]) : -1;
    tess_op op = {
        .kind = TESS_OP_GROUP_NORM_GRAD, .activation = layer->activation, .group_norm = layer->group_norm};
    op.group_norm.accumulate = e->settings->micro_batches > 1;
    tess_program_op(e->program, op,
                    (tess_cell[]){gradient, x, tess_emit_piece(e, TESS_IN_PARAMETERS, index, 0, 2),
                                  shifted ? tess_emit_activation(e, layer->in[1]) : -1},
                    (tess_cell[]){out, tess_emit_piece(e, TESS_IN_GRADIENTS, index, 0, 2), shift}, -1);
    add_ready(e, layer->in[0], out);
    if (shifted)
        add_ready(e, layer->in[1], shift);
}

static void attention_backward(tess_emitter *e, const tess_layer *layer, tess_cell gradient)
{
    const tess_cell out = gradient_like(e, layer->in[0]);
    tess_program_op(e->program, (tess_op){.kind = TESS_OP_ATTENTION_GRAD, .attention = layer->attention},
                    (tess_cell[]){gradient, tess_emit_activation(e, layer->in[0]),
                                  tess_emit_activation(e, layer->out[0]), -1},
                    (tess_cell[]){out, -1, -1}, -1);
    add_ready(e, layer->in[0], out);
}

/* The gradient before the activation that ends the layer. */
static tess_cell before_activation(tess_emitter *e, const tess_layer *layer)
{
    const tess_value value = layer->out[0];
    const bool silu = layer->activation == TESS_SILU;
    if (layer->activation == TESS_LINEAR || layer->kind == TESS_OP_GROUP_NORM || e->values[value].masked)
        return e->values[value].gradient;
    const tess_cell out = gradient_like(e, value);
    tess_program_op(
        e->program, (tess_op){.kind = TESS_OP_ACTIVATE_GRAD, .activation = layer->activation},
        (tess_cell[]){e->values[value].gradient, tess_emit_activation(e, silu ? layer->in[0] : value), -1},
        (tess_cell[]){out, -1, -1}, -1);
    return out;
}

static void window_backward(tess_emitter *e, const tess_layer *layer, tess_cell gradient)
{
    const bool pool = layer->kind == TESS_OP_MAX_POOL;
    tess_op op = {.kind = pool ? TESS_OP_POOL_GRAD : TESS_OP_UPSAMPLE_GRAD};
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        op.kernel[axis] = layer->window.kernel[axis];
        op.stride[axis] = layer->window.stride[axis];
    }
    const tess_cell in[] = {gradient, pool ? tess_emit_activation(e, layer->in[0]) : -1};
    if (e->values[layer->in[0]].wanted)
        add_computed(e, layer->in[0], op, in, pool ? 2 : 1);
    else
        e->values[layer->in[0]].readers--;
}

static void layer_backward(tess_emitter *e, int index)
{
    const tess_layer *layer = tess_net_layer(e->net, index);
    if (e->values[layer->out[0]].gradient < 0 || !e->values[layer->out[0]].wanted) {
        for (int i = 0; i < layer->inputs; i++)
            e->values[layer->in[i]].readers--;
        return;
    }
    const tess_cell gradient = before_activation(e, layer);
    int64_t channel = 0;
    if (e->program->status != TESS_OK)
        return;
    switch (layer->kind) {
    case TESS_OP_CONV:
    case TESS_OP_CONV_TRANSPOSE:
        conv_backward(e, index, layer, gradient);
        return;
    case TESS_OP_MAX_POOL:
    case TESS_OP_UPSAMPLE:
        window_backward(e, layer, gradient);
        return;
    case TESS_OP_ACTIVATE:
    case TESS_OP_ADD:
        for (int i = 0; i < layer->inputs; i++)
            add_ready(e, layer->in[i], gradient);
        return;
    case TESS_OP_CONCAT:
        for (int i = 0; i < layer->inputs; i++) {
            const int64_t channels = tess_net_value(e->net, layer->in[i])->channels;
            add_ready(e, layer->in[i], tess_program_view(e->program, gradient, channel, channels));
            channel += channels;
        }
        return;
    case TESS_OP_BATCH_NORM:
        batch_norm_backward(e, index, layer, gradient);
        return;
    case TESS_OP_GROUP_NORM:
        group_norm_backward(e, index, layer, gradient);
        return;
    case TESS_OP_ATTENTION:
        attention_backward(e, layer, gradient);
        return;
    default: {
        char text[120];
        snprintf(text, sizeof text, "a layer of kind %s cannot be trained", tess_op_kind_name(layer->kind));
        tess_program_fail(e->program, text);
    }
    }
}

/* A value is wanted if parameters come before it. */
static void mark_wanted(tess_emitter *e)
{
    for (int i = 0; i < tess_net_layer_count(e->net); i++) {
        const tess_layer *layer = tess_net_layer(e->net, i);
        if (layer->dropped)
            continue;
        bool wanted = tess_parameters_of(e->parameters, i, false) != NULL;
        for (int k = 0; k < layer->inputs; k++) {
            wanted = wanted || e->values[layer->in[k]].wanted;
            e->values[layer->in[k]].readers++;
        }
        e->values[layer->out[0]].wanted = wanted;
    }
}

void tess_emit_backward(tess_emitter *e, tess_cell gradient)
{
    mark_wanted(e);
    e->values[tess_net_output_value(e->net, tess_net_output_count(e->net) - 1)].gradient = gradient;
    for (int i = tess_net_layer_count(e->net) - 1; i >= 0 && e->program->status == TESS_OK; i--)
        if (!tess_net_layer(e->net, i)->dropped)
            layer_backward(e, i);
}
