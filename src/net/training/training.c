/* Plans a training step and allocates what it needs. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "net/training/emit.h"
#include "net/training/matters.h"
#include "net/training/training_impl.h"

static const tess_mem_category category_of[TESS_PLACES] = {
    [TESS_IN_ARENA] = TESS_MEM_ACTIVATIONS,  [TESS_IN_DATA] = TESS_MEM_IO,
    [TESS_IN_PARAMETERS] = TESS_MEM_WEIGHTS, [TESS_IN_GRADIENTS] = TESS_MEM_GRADIENTS,
    [TESS_IN_FIRST] = TESS_MEM_OPTIMIZER,    [TESS_IN_SECOND] = TESS_MEM_OPTIMIZER,
    [TESS_IN_AVERAGE] = TESS_MEM_OPTIMIZER,  [TESS_IN_RUNNING] = TESS_MEM_WEIGHTS,
    [TESS_IN_CONTROL] = TESS_MEM_OPTIMIZER,
};

/* Adds a tensor of the batch's data. */
static tess_cell add_data(tess_training *t, tess_tensor tensor)
{
    size_t bytes = 0;
    if (!tess_tensor_bytes(&tensor, &bytes) && t->program.status == TESS_OK)
        t->program.status = tess_fail(t->program.error, TESS_OVER_LIMIT,
                                      "a batch is too large; use smaller crops or fewer of them");
    const tess_cell cell =
        tess_program_piece(&t->program, TESS_IN_DATA, t->place_bytes[TESS_IN_DATA], tensor);
    t->place_bytes[TESS_IN_DATA] += tess_align_size(bytes, 256);
    return cell;
}

static tess_cell flat(tess_training *t, tess_place place)
{
    return tess_program_piece(&t->program, place, 0,
                              tess_tensor_2d(TESS_F32, 1, 1, 1, t->parameters.trained));
}

static tess_cell control_value(tess_training *t, int at, int count)
{
    return tess_program_piece(&t->program, TESS_IN_CONTROL, (size_t)at * sizeof(double),
                              tess_tensor_2d(TESS_F64, 1, 1, 1, count));
}

/* Micro-batches and penalties add their gradients, so the sums start from zero. */
static void emit_begin(tess_training *t, bool accumulate)
{
    if (accumulate) {
        const tess_op clear = {.kind = TESS_OP_COMBINE,
                               .kernel = {1, 1, 1},
                               .stride = {1, 1, 1},
                               .combine = {0, 0, 0, -INFINITY, INFINITY}};
        const tess_cell all = flat(t, TESS_IN_GRADIENTS);
        tess_program_op(&t->program, clear, (tess_cell[]){all, -1}, (tess_cell[]){all, -1, -1}, -1);
    }
    tess_program_end_section(&t->program, TESS_SECTION_BEGIN);
}

static bool has_dropout(const tess_net *net)
{
    for (int i = 0; i < tess_net_layer_count(net); i++)
        if (tess_net_layer(net, i)->kind == TESS_OP_DROPOUT && !tess_net_layer(net, i)->dropped)
            return true;
    return false;
}

/* The step's target has the shape of a value; losses that take it share it. */
static tess_cell target_of(tess_training *t, const tess_emitter *e, const tess_net_loss *loss)
{
    tess_tensor tensor = tess_value_tensor(e->net, loss->value, t->settings.dtype, e->shape);
    tensor.dtype = TESS_F32;
    if (loss->target != TESS_LOSS_OF_DATA) /* a loss that has none does not read it */
        return e->values[loss->target == TESS_LOSS_ALONE ? loss->value : loss->target].cell;
    if (t->target < 0)
        t->target = add_data(t, tensor);
    return t->target;
}

static void emit_loss(tess_training *t, tess_emitter *e, const tess_net_loss *loss, double share,
                      bool accumulate)
{
    const tess_tensor result = tess_value_tensor(e->net, loss->value, t->settings.dtype, e->shape);
    const tess_cell target = target_of(t, e, loss);
    if (loss->loss.kind == TESS_MASKED_MSE)
        t->mask = add_data(t, result);
    tess_op op = {.kind = TESS_OP_LOSS, .loss = loss->loss};
    op.loss.share = share;
    op.loss.accumulate = accumulate;
    const tess_cell gradient = tess_program_tensor(&t->program, result);
    tess_program_op(&t->program, op, (tess_cell[]){e->values[loss->value].cell, target, e->control, t->mask},
                    (tess_cell[]){gradient, control_value(t, LOSS_AT, 1), -1}, -1);
    tess_emit_arrive(e, loss->value, gradient);
}

/* Its gradient is added to what the backward pass left. */
static void emit_penalty(tess_training *t, tess_emitter *e, const tess_net_penalty *penalty)
{
    const tess_cell gradients = tess_emit_piece(e, TESS_IN_GRADIENTS, penalty->layer, 0, 1);
    tess_op op = {.kind = TESS_OP_PENALTY, .penalty = penalty->penalty};
    op.penalty.weight *= t->settings.share / t->settings.micro_batches;
    if (gradients >= 0)
        tess_program_op(
            &t->program, op,
            (tess_cell[]){tess_emit_piece(e, TESS_IN_PARAMETERS, penalty->layer, 0, 1), e->control, -1},
            (tess_cell[]){gradients, control_value(t, LOSS_AT, 1), -1}, -1);
}

static void emit_pass(tess_training *t, tess_emitter *e)
{
    const tess_net *net = e->net;
    const tess_value last = tess_net_output_value(net, tess_net_output_count(net) - 1);
    for (int i = 0; i < tess_net_input_count(net); i++) {
        const tess_value value = tess_net_input_value(net, i);
        e->values[value].cell = t->inputs[i] =
            add_data(t, tess_value_tensor(net, value, t->settings.dtype, e->shape));
    }
    e->control = control_value(t, 0, TESS_CONTROLS);
    t->target = t->mask = -1;
    e->keys = t->keys = has_dropout(net) ? add_data(t, tess_tensor_2d(TESS_I64, t->settings.n, 1, 1, 2)) : -1;
    for (int i = 0; i < tess_net_layer_count(net) && t->program.status == TESS_OK; i++)
        if (!tess_net_layer(net, i)->dropped && e->values[tess_net_layer(net, i)->out[0]].needed)
            tess_emit_layer(e, i);
    tess_emit_wanted(e);
    if (tess_net_loss_count(net) == 0) {
        const tess_net_loss only = {last, TESS_LOSS_OF_DATA, t->settings.loss};
        emit_loss(t, e, &only, t->settings.share / t->settings.micro_batches, t->settings.micro_batches > 1);
    }
    for (int i = 0; i < tess_net_loss_count(net); i++) {
        const tess_net_loss *loss = tess_net_loss_at(net, i);
        emit_loss(t, e, loss, loss->loss.share * t->settings.share / t->settings.micro_batches, true);
    }
    tess_emit_backward(e);
    for (int i = 0; i < tess_net_penalty_count(net) && t->program.status == TESS_OK; i++)
        emit_penalty(t, e, tess_net_penalty_at(net, i));
}

static void emit_update(tess_training *t)
{
    if (!t->update.in_pass)
        tess_program_end_section(&t->program, TESS_SECTION_PASS);
    tess_update_emit(&t->update, &t->program, &t->parameters, &t->settings);
    if (t->update.in_pass)
        tess_program_end_section(&t->program, TESS_SECTION_PASS);
    tess_program_end_section(&t->program, TESS_SECTION_UPDATE);
}

static void size_places(tess_training *t)
{
    const size_t trained = (size_t)t->parameters.trained * sizeof(float);
    t->place_bytes[TESS_IN_ARENA] = t->program.arena_bytes;
    t->place_bytes[TESS_IN_PARAMETERS] = t->place_bytes[TESS_IN_FIRST] = trained;
    t->place_bytes[TESS_IN_GRADIENTS] = t->update.in_pass ? 0 : trained;
    t->place_bytes[TESS_IN_SECOND] = t->settings.optimize.kind == TESS_SGD ? 0 : trained;
    t->place_bytes[TESS_IN_AVERAGE] = t->settings.average ? trained : 0;
    t->place_bytes[TESS_IN_RUNNING] = (size_t)t->parameters.running * sizeof(float);
    t->place_bytes[TESS_IN_CONTROL] = CONTROL_VALUES * sizeof(double);
}

static tess_status emit(tess_training *t, tess_emitter *e, tess_error *error)
{
    const size_t values = (size_t)tess_net_value_count(e->net), layers = (size_t)tess_net_layer_count(e->net);
    e->values = tess_small_alloc(values, sizeof *e->values);
    e->stats = tess_small_alloc(layers, sizeof *e->stats);
    e->stats_again = tess_small_alloc(layers, sizeof *e->stats_again);
    if (!e->values || !e->stats || !e->stats_again)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a training plan");
    bool *needed = tess_small_alloc(values, sizeof *needed);
    if (!needed)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a training plan");
    tess_values_matter(e->net, TESS_MATTERS_TO_STEP, needed);
    for (size_t v = 0; v < values; v++)
        e->values[v] = (tess_emitted){.cell = -1, .again = -1, .gradient = -1, .needed = needed[v]};
    tess_small_free(needed);
    memset(e->stats, -1, layers * sizeof *e->stats);
    memset(e->stats_again, -1, layers * sizeof *e->stats_again);
    tess_choose_dropped(e);
    tess_update_divide(&t->update, &t->program, e->net, &t->parameters, &t->settings);
    emit_begin(t, e->accumulate);
    emit_pass(t, e);
    if (t->settings.pair_gradients && t->program.status == TESS_OK)
        tess_program_pair_gradients(&t->program);
    emit_update(t);
    TESS_TRY(t->program.status);
    tess_program_gather_packs(&t->program);
    TESS_TRY(tess_program_place(&t->program, error));
    size_places(t);
    return TESS_OK;
}

static tess_status plan(tess_training *t, const tess_net *net, tess_error *error)
{
    const tess_training_settings *s = &t->settings;
    const int64_t size[TESS_SPATIAL] = {tess_max_i64(s->d, 1), s->h, s->w};
    if (!tess_net_is_trained(net))
        return tess_fail(error, TESS_INTERNAL, "the network was not finished for training");
    if (s->n < 1 || s->micro_batches < 1)
        return tess_fail(error, TESS_BAD_OPTION, "batch: must have at least one crop for each micro-batch");
    for (int v = 0; v < tess_net_value_count(net); v++)
        if (tess_net_value(net, v)->view || tess_net_value(net, v)->shared)
            return tess_fail(
                error, TESS_UNSUPPORTED,
                "a network with slices of vectors, or vectors for all images, cannot be trained");
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        if (size[axis] < 1 || size[axis] % tess_net_grid(net, axis))
            return tess_fail(error, TESS_BAD_OPTION, "crop: must be a multiple of %lld for this network",
                             (long long)tess_net_grid(net, axis));
    TESS_TRY(tess_bound_create(net, t->device, s->dtype, &t->bound, error));
    if (s->tf32)
        tess_bound_allow_tf32(t->bound);
    TESS_TRY(tess_parameters_list(net, &t->parameters, error));
    t->program.device = t->device;
    t->program.error = error;
    tess_emitter e = {.program = &t->program,
                      .bound = t->bound,
                      .net = net,
                      .parameters = &t->parameters,
                      .settings = s,
                      .update = &t->update,
                      .accumulate = s->micro_batches > 1 || tess_net_penalty_count(net) > 0,
                      .shape = {.n = s->n, .h = s->h, .w = s->w, .d = s->d}};
    const tess_status status = emit(t, &e, error);
    t->recomputed = e.recomputed;
    tess_small_free(e.values);
    tess_small_free(e.stats);
    tess_small_free(e.stats_again);
    t->program.error = NULL;
    return status;
}

tess_status tess_training_create(const tess_net *net, tess_device *device,
                                 const tess_training_settings *settings, tess_training **out,
                                 tess_error *error)
{
    tess_error ignored;
    *out = NULL;
    tess_training *t = tess_small_alloc(1, sizeof *t);
    if (!t)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a training plan");
    *t = (tess_training){.settings = *settings, .device = device};
    if (t->settings.share == 0)
        t->settings.share = 1;
    const tess_status status = plan(t, net, error ? error : &ignored);
    if (status != TESS_OK) {
        tess_training_destroy(t);
        return status;
    }
    *out = t;
    return TESS_OK;
}

void tess_training_destroy(tess_training *t)
{
    if (!t)
        return;
    for (int i = 0; i < TESS_SECTIONS; i++)
        if (t->graphs[i])
            t->device->graphs->release(t->device, t->graphs[i]);
    tess_program_clear(&t->program);
    for (int i = 0; i < TESS_PLACES; i++)
        t->device->memory->free(t->device, &t->blocks[i]);
    t->device->memory->free(t->device, &t->workspace);
    tess_training_exchange_free(t);
    tess_parameters_clear(&t->parameters);
    tess_small_free(t->final_from);
    tess_bound_destroy(t->bound);
    tess_small_free(t);
}

tess_mem_bytes tess_training_bytes(const tess_training *t)
{
    tess_mem_bytes bytes = {{0}};
    for (int i = 0; i < TESS_PLACES; i++)
        if (t->place_bytes[i])
            bytes.by[category_of[i]] += t->device->memory->granted(t->device, t->place_bytes[i]);
    if (t->program.workspace_bytes)
        bytes.by[TESS_MEM_WORKSPACE] += t->device->memory->granted(t->device, t->program.workspace_bytes);
    bytes.by[TESS_MEM_WORKSPACE] += t->program.held_bytes;
    /* Pinned memory: part of the device's if that is the host's. */
    bytes.by[t->device->host_memory ? TESS_MEM_IO : TESS_MEM_HOST] += tess_training_exchange_bytes(t);
    return bytes;
}

int tess_training_recomputed(const tess_training *t)
{
    return t->recomputed;
}

double tess_training_flops(const tess_training *t)
{
    return tess_program_flops(&t->program, TESS_SECTION_PASS) * t->settings.micro_batches +
           tess_program_flops(&t->program, TESS_SECTION_UPDATE);
}

const tess_parameters *tess_training_parameters(const tess_training *t)
{
    return &t->parameters;
}

/* Not every device returns cleared memory. */
static tess_status clear(tess_training *t, tess_block *block, tess_error *error)
{
    enum { PIECE = 1 << 20 };
    char *zeros = tess_small_alloc(1, PIECE);
    if (!zeros)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to clear a block");
    for (size_t at = 0; at < block->bytes; at += PIECE) {
        const size_t left = block->bytes - at;
        t->device->memory->copy(t->device, (char *)block->data + at, zeros, left < PIECE ? left : PIECE,
                                NULL);
    }
    const tess_status status = t->device->streams->sync(t->device, NULL, error);
    tess_small_free(zeros);
    return status;
}

tess_status tess_training_prepare(tess_training *t, tess_error *error)
{
    const tess_device_memory *memory = t->device->memory;
    for (int i = 0; i < TESS_PLACES; i++) {
        if (!t->place_bytes[i])
            continue;
        TESS_TRY(memory->alloc(t->device, &t->blocks[i], category_of[i], t->place_bytes[i], error));
        if (i != TESS_IN_ARENA && !t->device->host_memory)
            TESS_TRY(clear(t, &t->blocks[i], error));
        t->data[i] = t->blocks[i].data;
    }
    if (t->program.workspace_bytes)
        TESS_TRY(
            memory->alloc(t->device, &t->workspace, TESS_MEM_WORKSPACE, t->program.workspace_bytes, error));
    TESS_TRY(tess_training_exchange_prepare(t, error));
    TESS_TRY(tess_program_prepare(&t->program, error));
    TESS_TRY(tess_training_find_final(t, error));
    return tess_training_capture(t, error);
}
