/* The backward pass, layer by layer from the last to the first. The row of each layer's op describes its backward pass
 * (op/backward.h); this file finds or makes the cell of every operand. Gradients of a value that several layers read
 * are added by the op that computes the last of them, where that op can add; otherwise by an ADD. The gradient of a
 * ReLU is likewise fused into the convolution that computes the gradient of its output (`masked`). */
#include <stdio.h>

#include "net/training/emit.h"
#include "op/row.h"

/* The layer whose backward pass is being emitted. */
typedef struct backward {
    tess_emitter *e;
    int index;
    const tess_layer *layer;
    tess_cell gradient; /* of its output; later, before its activation */
} backward;

static tess_cell gradient_like(tess_emitter *e, tess_value value)
{
    return tess_program_tensor(e->program, tess_value_tensor(e->net, value, e->bound->dtype, e->shape));
}

/* Describes the backward pass of a layer; false: it has none. */
static bool describe(const tess_emitter *e, int index, tess_backward *out)
{
    const tess_op op = tess_emit_op(e, index);
    const tess_op_row *row = tess_op_row_of(op.kind);
    out->count = 0;
    if (row->backward)
        row->backward(&op, e->accumulate, out);
    return row->backward != NULL;
}

static void cannot_train(const backward *b, const char *why)
{
    char text[256], number[32];
    snprintf(number, sizeof number, "of layer %d", b->index);
    snprintf(text, sizeof text, "%s %s: %s", tess_op_kind_name(b->layer->kind),
             b->layer->name[0] ? b->layer->name : number, why);
    tess_program_fail(b->e->program, text);
}

void tess_emit_arrive(tess_emitter *e, tess_value value, tess_cell contribution)
{
    tess_emitted *v = &e->values[value];
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

/* True when the backward pass of the layer that made the value starts with the gradient of a ReLU, which can be fused
 * into the last contribution to the value's gradient. */
static bool made_by_relu(const tess_emitter *e, tess_value value)
{
    const int producer = tess_net_value(e->net, value)->producer;
    tess_backward before;
    return producer >= 0 && describe(e, producer, &before) && before.count > 0 &&
           before.steps[0].op.kind == TESS_OP_ACTIVATE_GRAD && before.steps[0].op.activation == TESS_RELU;
}

/* True when no layer before this one reads the value: this layer's contribution to its gradient is the last. */
static bool reads_first(const tess_emitter *e, int index, tess_value value)
{
    for (int i = 0; i < index; i++) {
        const tess_layer *layer = tess_net_layer(e->net, i);
        for (int k = 0; k < layer->inputs && !layer->dropped; k++)
            if (layer->in[k] == value)
                return false;
    }
    return true;
}

static tess_cell cell_to_read(const backward *b, tess_operand from)
{
    switch (from.role) {
    case TESS_ROLE_GRADIENT:
        return b->gradient;
    case TESS_ROLE_IN:
        return from.index < b->layer->inputs  ? tess_emit_activation(b->e, b->layer->in[from.index])
               : tess_takes_control(b->layer) ? b->e->control
                                              : b->e->keys;
    case TESS_ROLE_OUT:
        return from.index == 0 ? tess_emit_activation(b->e, b->layer->out[0])
                               : tess_emit_statistics(b->e, b->index);
    case TESS_ROLE_PARAMETERS:
        return tess_emit_piece(b->e, TESS_IN_PARAMETERS, b->index, from.index, from.count);
    case TESS_ROLE_NONE:
    case TESS_ROLE_IN_GRADIENT:
    case TESS_ROLE_PARAMETER_GRADIENT:
        return -1;
    }
    return -1;
}

static tess_cell cell_to_write(const backward *b, tess_operand to)
{
    switch (to.role) {
    case TESS_ROLE_GRADIENT:
        return gradient_like(b->e, b->layer->out[0]);
    case TESS_ROLE_IN_GRADIENT:
        return gradient_like(b->e, b->layer->in[to.index]);
    case TESS_ROLE_PARAMETER_GRADIENT:
        return tess_emit_piece(b->e, TESS_IN_GRADIENTS, b->index, to.index, to.count);
    case TESS_ROLE_NONE:
    case TESS_ROLE_IN:
    case TESS_ROLE_OUT:
    case TESS_ROLE_PARAMETERS:
        return -1;
    }
    return -1;
}

static bool needed(const backward *b, const tess_backward_step *step)
{
    bool any = false;
    for (int i = 0; i < TESS_OP_OUTPUTS; i++)
        any = any || step->out[i].role == TESS_ROLE_GRADIENT ||
              (step->out[i].role == TESS_ROLE_PARAMETER_GRADIENT && !b->layer->frozen) ||
              (step->out[i].role == TESS_ROLE_IN_GRADIENT &&
               b->e->values[b->layer->in[step->out[i].index]].wanted);
    return any;
}

/* Applies the ReLU that made `value` to its gradient, if this is the last contribution and the device can. */
static void try_mask(const backward *b, tess_value value, tess_op *op, tess_cell *in, const tess_cell *out)
{
    tess_emitter *e = b->e;
    if (!tess_op_takes_mask(op) || !reads_first(e, b->index, value) || !made_by_relu(e, value))
        return;
    tess_op masked = *op;
    masked.masked = true;
    int last = 0;
    while (in[last] >= 0)
        last++;
    in[last] = tess_emit_activation(e, value);
    e->values[value].masked = tess_program_can(e->program, masked, in, out);
    if (e->values[value].masked)
        *op = masked;
    else
        in[last] = -1;
}

static tess_cell step_weights(const backward *b, const tess_backward_step *step, const tess_op *op,
                              const tess_cell *in, const tess_cell *out)
{
    if (step->weights == TESS_STEP_NO_WEIGHTS || b->e->program->status != TESS_OK)
        return -1;
    tess_op bound = *op; /* with its tensors, which decide the kernel and its packing */
    for (bound.inputs = 0; in[bound.inputs] >= 0; bound.inputs++)
        bound.in[bound.inputs] = *tess_program_shape(b->e->program, in[bound.inputs]);
    bound.outputs = 1;
    bound.out[0] = *tess_program_shape(b->e->program, out[0]);
    return tess_emit_weights(b->e, &bound, b->index, step->weights == TESS_STEP_TURNED_WEIGHTS);
}

static void emit_step(backward *b, const tess_backward_step *step)
{
    tess_emitter *e = b->e;
    tess_op op = step->op;
    tess_cell in[TESS_OP_INPUTS + 1] = {-1, -1, -1, -1, -1}, out[TESS_OP_OUTPUTS];
    int inputs = 0;
    for (; inputs < TESS_OP_INPUTS && step->in[inputs].role != TESS_ROLE_NONE; inputs++)
        in[inputs] = cell_to_read(b, step->in[inputs]);
    for (int i = 0; i < TESS_OP_OUTPUTS; i++)
        out[i] = cell_to_write(b, step->out[i]);
    if (step->adds) {
        const tess_value value = b->layer->in[step->out[0].index];
        in[inputs] = e->values[value].gradient;
        e->values[value].gradient = -1;
        try_mask(b, value, &op, in, out);
    }
    tess_program_op(e->program, op, in, out, step_weights(b, step, &op, in, out));
    for (int i = 0; i < TESS_OP_OUTPUTS; i++)
        if (step->out[i].role == TESS_ROLE_GRADIENT)
            b->gradient = out[i];
        else if (step->out[i].role == TESS_ROLE_IN_GRADIENT)
            tess_emit_arrive(e, b->layer->in[step->out[i].index], out[i]);
}

/* Without an op: the gradient itself, or some of its channels. */
static void pass_gradient(backward *b, const tess_backward_step *step)
{
    const tess_value value = b->layer->in[step->out[0].index];
    const int64_t channels = tess_net_value(b->e->net, value)->channels;
    const bool all = channels == tess_program_shape(b->e->program, b->gradient)->c;
    tess_emit_arrive(b->e, value,
                     all ? b->gradient
                         : tess_program_view(b->e->program, b->gradient, step->channel, channels));
}

static void layer_backward(tess_emitter *e, int index)
{
    const tess_layer *layer = tess_net_layer(e->net, index);
    const tess_emitted *result = &e->values[layer->out[0]];
    const bool wanted = result->gradient >= 0 && result->wanted;
    backward b = {e, index, layer, result->gradient};
    tess_backward list;
    if (wanted && !describe(e, index, &list))
        cannot_train(&b, "a layer of this kind cannot be trained");
    for (int i = 0; wanted && i < list.count && e->program->status == TESS_OK; i++) {
        const tess_backward_step *step = &list.steps[i];
        const bool fused = step->out[0].role == TESS_ROLE_GRADIENT && result->masked;
        if (fused || !needed(&b, step))
            continue;
        if (step->cannot)
            cannot_train(&b, step->cannot);
        else if (step->passes)
            pass_gradient(&b, step);
        else
            emit_step(&b, step);
    }
}

/* A value is wanted if parameters that are trained come before it. */
void tess_emit_wanted(tess_emitter *e)
{
    for (int i = 0; i < tess_net_layer_count(e->net); i++) {
        const tess_layer *layer = tess_net_layer(e->net, i);
        if (layer->dropped)
            continue;
        bool wanted = tess_parameters_of(e->parameters, i, false) != NULL;
        for (int k = 0; k < layer->inputs; k++)
            wanted = wanted || e->values[layer->in[k]].wanted;
        e->values[layer->out[0]].wanted = wanted;
    }
}

void tess_emit_backward(tess_emitter *e)
{
    for (int i = tess_net_layer_count(e->net) - 1; i >= 0 && e->program->status == TESS_OK; i--) {
        const char *before = tess_emit_label(e, tess_net_layer(e->net, i));
        if (!tess_net_layer(e->net, i)->dropped)
            layer_backward(e, i);
        e->program->label = before;
    }
}
