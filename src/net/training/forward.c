/* The forward pass of a training step, and layers computed again for the backward pass. Weights are packed right before
 * the op that uses them, so that packed weights are in the arena for a moment only. */
#include <math.h>

#include "base/checked.h"
#include "net/training/emit.h"
#include "op/row.h"

static const double EPSILON = 1e-5, MOMENTUM = 0.1;     /* PyTorch's batch norm */
static const uint64_t LAYER_SEED = 0x9e3779b97f4a7c15u; /* between the seeds of two layers */

tess_cell tess_emit_piece(tess_emitter *e, tess_place place, int layer, int first, int count)
{
    if (tess_net_layer(e->net, layer)->frozen) {
        if (place == TESS_IN_GRADIENTS)
            return -1;
        place = TESS_IN_RUNNING;
    }
    const bool running = place == TESS_IN_RUNNING;
    const tess_parameter *one = tess_parameters_of(e->parameters, layer, running);
    if (!one)
        return -1;
    int64_t elements = 0;
    for (int i = 0; i < count; i++)
        elements += one[first + i].elements;
    if (place == TESS_IN_GRADIENTS)
        return tess_update_gradients(e->update, e->program, one[first].offset, elements);
    return tess_program_piece(e->program, place, (size_t)one[first].offset * sizeof(float),
                              tess_tensor_2d(TESS_F32, 1, 1, 1, elements));
}

tess_cell tess_emit_weights(tess_emitter *e, const tess_op *op, int layer, bool turned)
{
    tess_op_needs needs = {0};
    tess_op_param params[TESS_OP_PARAMS];
    const int count = tess_op_params(op, params);
    if (count == 0 || e->program->status != TESS_OK)
        return -1;
    e->program->status = e->program->device->ops->query(e->program->device, op, &needs, e->program->error);
    const bool fused = e->program->device->ops->packs_turned && tess_op_taps(op) <= 9;
    const tess_cell packed = tess_program_bytes(e->program, needs.weights ? needs.weights : 1);
    for (int i = 0; i < count; i++) {
        tess_cell values = tess_emit_piece(e, TESS_IN_PARAMETERS, layer, i, 1);
        if (turned && !fused) {
            const tess_cell flipped = tess_program_tensor(
                e->program, tess_tensor_2d(TESS_F32, 1, 1, 1, params[i].rows * params[i].row));
            const tess_op flip = {.kind = TESS_OP_FLIP,
                                  .flip = {op->in[0].c, op->out[0].c, tess_op_taps(op)}};
            tess_program_op(e->program, flip, (tess_cell[]){values, -1}, (tess_cell[]){flipped, -1}, -1);
            values = flipped;
        }
        tess_program_pack(e->program, op, i, turned && fused, values, packed);
    }
    return packed;
}

static tess_cell input_of(tess_emitter *e, tess_value value)
{
    return e->recomputing ? tess_emit_activation(e, value) : e->values[value].cell;
}

tess_op tess_emit_op(const tess_emitter *e, int index)
{
    const tess_layer *layer = tess_net_layer(e->net, index);
    tess_op op = tess_bound_op(e->bound, index, e->shape);
    if (layer->kind == TESS_OP_BATCH_NORM)
        op =
            (tess_op){.kind = TESS_OP_BATCH_NORM_TRAIN,
                      .activation = layer->activation,
                      .batch_norm = {EPSILON, e->recomputing ? 0 : MOMENTUM}}; /* averages are updated once */
    else if (layer->kind == TESS_OP_DROPOUT)
        op.random.seed = e->settings->seed + (uint64_t)index * LAYER_SEED;
    else if (tess_takes_control(layer))
        op.in[op.inputs++] = *tess_program_shape(e->program, e->control);
    return op;
}

/* The operands of a batch norm in training besides its input and output. */
static void add_norm_operands(tess_emitter *e, int index, tess_cell *in, tess_cell *out)
{
    const int64_t channels = tess_program_shape(e->program, out[0])->c;
    in[1] = tess_emit_piece(e, TESS_IN_PARAMETERS, index, 0, 2);
    out[1] = tess_program_tensor(e->program, tess_tensor_2d(TESS_F32, 1, 1, 1, 2 * channels));
    out[2] = tess_emit_piece(e, TESS_IN_RUNNING, index, 0, 2);
    (e->recomputing ? e->stats_again : e->stats)[index] = out[1];
}

/* The weight of the layer comes closer to the mean of this batch before it is used. */
static void emit_follow(tess_emitter *e, int index, tess_cell in)
{
    const tess_tensor *t = tess_program_shape(e->program, in);
    const double pixels = (double)(t->n * t->d * t->h * t->w), by = tess_net_layer(e->net, index)->follows;
    const tess_cell sum = tess_program_tensor(e->program, tess_tensor_2d(TESS_F32, 1, 1, 1, t->c)),
                    own = tess_emit_piece(e, TESS_IN_RUNNING, index, 0, 1);
    tess_program_op(e->program, (tess_op){.kind = TESS_OP_CHANNEL_SUM}, (tess_cell[]){in, -1},
                    (tess_cell[]){sum, -1, -1}, -1);
    tess_program_op(e->program,
                    (tess_op){.kind = TESS_OP_COMBINE,
                              .kernel = {1, 1, 1},
                              .stride = {1, 1, 1},
                              .combine = {1 - by, by / pixels, 0, -INFINITY, INFINITY}},
                    (tess_cell[]){own, sum, -1}, (tess_cell[]){own, -1, -1}, -1);
}

static void emit_concat(tess_emitter *e, const tess_layer *layer, tess_cell out)
{
    int64_t channel = 0;
    for (int i = 0; i < layer->inputs; i++) {
        const int64_t channels = tess_net_value(e->net, layer->in[i])->channels;
        const tess_op copy = {.kind = TESS_OP_UPSAMPLE, .kernel = {1, 1, 1}, .stride = {1, 1, 1}};
        tess_program_op(e->program, copy, (tess_cell[]){input_of(e, layer->in[i]), -1},
                        (tess_cell[]){tess_program_view(e->program, out, channel, channels), -1, -1}, -1);
        channel += channels;
    }
}

static void emit_layer(tess_emitter *e, int index)
{
    const tess_layer *layer = tess_net_layer(e->net, index);
    const tess_value value = layer->out[0];
    tess_cell in[TESS_OP_INPUTS] = {-1, -1, -1, -1}, out[TESS_OP_OUTPUTS] = {-1, -1, -1};
    for (int i = 0; i < layer->inputs && layer->kind != TESS_OP_CONCAT; i++)
        in[i] = input_of(e, layer->in[i]);
    out[0] = tess_program_tensor(e->program, tess_value_tensor(e->net, value, e->bound->dtype, e->shape));
    if (out[0] < 0)
        return;
    if (e->recomputing)
        e->values[value].again = out[0];
    else
        e->values[value].cell = out[0];
    if (layer->kind == TESS_OP_CONCAT) {
        emit_concat(e, layer, out[0]);
        return;
    }
    if (layer->kind == TESS_OP_BATCH_NORM)
        add_norm_operands(e, index, in, out);
    else if (layer->kind == TESS_OP_DROPOUT)
        in[1] = e->keys;
    else if (tess_takes_control(layer))
        in[1] = e->control;
    if (layer->follows > 0 && !e->recomputing) /* once */
        emit_follow(e, index, in[0]);
    const tess_op op = tess_emit_op(e, index);
    tess_program_op(e->program, op, in, out, tess_emit_weights(e, &op, index, false));
}

void tess_emit_layer(tess_emitter *e, int index)
{
    const char *before = tess_emit_label(e, tess_net_layer(e->net, index));
    emit_layer(e, index);
    e->program->label = before;
}

tess_cell tess_emit_activation(tess_emitter *e, tess_value value)
{
    tess_emitted *v = &e->values[value];
    if (!v->dropped)
        return v->cell;
    if (v->again < 0) {
        const bool before = e->recomputing;
        e->recomputing = true;
        tess_emit_layer(e, tess_net_value(e->net, value)->producer);
        e->recomputing = before;
    }
    return v->again;
}

tess_cell tess_emit_statistics(tess_emitter *e, int layer)
{
    if (e->stats_again[layer] >= 0)
        return e->stats_again[layer];
    return e->stats[layer];
}
