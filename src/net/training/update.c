/* All gradients are needed at once if they are clipped by their norm, summed over micro-batches, or if a step may be
 * skipped because one of them is not finite (fp16's loss scale). Otherwise each group of layers is updated inside the
 * pass, when the backward pass has left its layers, and the memory of its gradients is used again. */
#include "net/training/update.h"

#include "base/checked.h"
#include "net/channels.h"
#include "net/training/matters.h"

static tess_tensor vector_of(tess_dtype dtype, int64_t count)
{
    return tess_tensor_2d(dtype, 1, 1, 1, count);
}

static tess_cell values_in(tess_program *program, tess_place place, int64_t first, int64_t count)
{
    return tess_program_piece(program, place, (size_t)first * sizeof(float), vector_of(TESS_F32, count));
}

static tess_cell control_in(tess_program *program, int at, int64_t count)
{
    return tess_program_piece(program, TESS_IN_CONTROL, (size_t)at * sizeof(double),
                              vector_of(TESS_F64, count));
}

/* The first value after a parameter's layer; parameters[i] is the last of its layer. */
static int64_t layer_end(const tess_parameters *parameters, int i)
{
    const tess_parameter *last = &parameters->list[i];
    return (last->offset + last->elements + TESS_PARAMETER_ALIGN - 1) / TESS_PARAMETER_ALIGN *
           TESS_PARAMETER_ALIGN;
}

/* True if parameter `i` is the last trained one of its layer. */
static bool ends_layer(const tess_parameters *parameters, int i)
{
    const tess_parameter *one = &parameters->list[i];
    if (one->running)
        return false;
    for (int k = i + 1; k < parameters->count && parameters->list[k].layer == one->layer; k++)
        if (!parameters->list[k].running)
            return false;
    return true;
}

/* Groups of whole layers, in the order of the backward pass: the first of at least `least` values, each next one GROWTH
 * times as many. The backward pass frees activations as it goes, so that gradients may take more bytes later, and an
 * update of many values costs fewer launches. */
static void divide(tess_update *update, const tess_parameters *parameters, int64_t least)
{
    enum { GROWTH = 16 };
    int64_t end = parameters->trained;
    for (int i = parameters->count - 1; i > 0; i--) {
        if (!ends_layer(parameters, i - 1)) /* the layer before may also end with running statistics */
            continue;
        const int64_t first = layer_end(parameters, i - 1);
        if (end - first < least || update->count + 1 == UPDATE_GROUPS)
            continue;
        update->groups[update->count++] = (tess_update_group){first, end - first, -1};
        end = first;
        least *= GROWTH;
    }
    update->groups[update->count++] = (tess_update_group){0, end, -1};
}

/* True if the loss depends on all parameters: the backward pass then writes all gradients. In the block of gradients
 * those that it does not write are zero. */
static bool all_matter(const tess_net *net, const tess_parameters *parameters)
{
    bool *matters = tess_small_alloc((size_t)tess_net_value_count(net), sizeof *matters),
         all = matters != NULL;
    if (matters)
        tess_values_matter(net, TESS_MATTERS_TO_GRADIENTS, matters);
    for (int i = 0; i < tess_net_layer_count(net) && all; i++) {
        const tess_layer *layer = tess_net_layer(net, i);
        all = layer->dropped || matters[layer->out[0]] || !tess_parameters_of(parameters, i, false);
    }
    tess_small_free(matters);
    return all;
}

void tess_update_divide(tess_update *update, tess_program *program, const tess_net *net,
                        const tess_parameters *parameters, const tess_training_settings *settings)
{
    const bool all_at_once = settings->optimize.clip > 0 || settings->micro_batches > 1 ||
                             settings->dtype == TESS_F16 || settings->update_bytes == 0 ||
                             tess_net_penalty_count(net) > 0 || !all_matter(net, parameters);
    *update = (tess_update){.count = 0};
    divide(update, parameters,
           all_at_once ? parameters->trained
                       : tess_max_i64(1, (int64_t)(settings->update_bytes / sizeof(float))));
    update->in_pass = update->count > 1;
    for (int g = 0; g < update->count && update->in_pass; g++)
        update->groups[g].gradients =
            tess_program_tensor(program, vector_of(TESS_F32, update->groups[g].count));
}

tess_cell tess_update_gradients(const tess_update *update, tess_program *program, int64_t first,
                                int64_t elements)
{
    if (!update->in_pass)
        return values_in(program, TESS_IN_GRADIENTS, first, elements);
    const tess_update_group *group = update->groups;
    while (first < group->first)
        group++;
    return tess_program_part(program, group->gradients, (size_t)(first - group->first) * sizeof(float),
                             vector_of(TESS_F32, elements));
}

/* The backward pass writes the gradients of parameters, not those of the gaps between layers, which count in sums. */
static void clear_gaps(const tess_update *update, const tess_update_group *group, tess_program *program,
                       const tess_parameters *parameters)
{
    const tess_op copy = {.kind = TESS_OP_UPSAMPLE, .kernel = {1, 1, 1}, .stride = {1, 1, 1}};
    for (int i = 0; i < parameters->count; i++) {
        const tess_parameter *one = &parameters->list[i];
        const int64_t at = one->offset + one->elements;
        if (!ends_layer(parameters, i) || one->offset < group->first ||
            one->offset >= group->first + group->count || at == layer_end(parameters, i))
            continue;
        const int64_t gap = layer_end(parameters, i) - at;
        const tess_cell zeros =
            tess_program_piece(program, TESS_IN_CONTROL, ZERO_AT * sizeof(double), vector_of(TESS_F32, gap));
        tess_program_op(program, copy, (tess_cell[]){zeros, -1},
                        (tess_cell[]){tess_update_gradients(update, program, at, gap), -1, -1}, -1);
    }
}

static void emit_group(const tess_update *update, int g, tess_program *program,
                       const tess_parameters *parameters, const tess_training_settings *settings)
{
    const tess_update_group *group = &update->groups[g];
    const int64_t first = group->first, count = group->count;
    /* In rows, between which devices divide the sum. */
    const tess_tensor rows =
        tess_tensor_2d(TESS_F32, 1, count / TESS_PARAMETER_ALIGN, 1, TESS_PARAMETER_ALIGN);
    const tess_cell gradients = tess_update_gradients(update, program, first, count),
                    squared = update->in_pass ? tess_program_part(program, group->gradients, 0, rows)
                                              : tess_program_piece(program, TESS_IN_GRADIENTS, 0, rows),
                    control = control_in(program, 0, TESS_CONTROLS),
                    norm = control_in(program, NORM_AT + g, 1),
                    values = values_in(program, TESS_IN_PARAMETERS, first, count);
    if (update->in_pass)
        clear_gaps(update, group, program, parameters);
    tess_program_op(program, (tess_op){.kind = TESS_OP_DOT}, (tess_cell[]){squared, squared, -1},
                    (tess_cell[]){norm, -1, -1}, -1);
    tess_program_op(program, (tess_op){.kind = TESS_OP_OPTIMIZE, .optimize = settings->optimize},
                    (tess_cell[]){gradients, control, norm, -1},
                    (tess_cell[]){values, values_in(program, TESS_IN_FIRST, first, count),
                                  settings->optimize.kind == TESS_SGD
                                      ? -1
                                      : values_in(program, TESS_IN_SECOND, first, count)},
                    -1);
    if (settings->average)
        tess_program_op(program, (tess_op){.kind = TESS_OP_AVERAGE}, (tess_cell[]){values, control, norm, -1},
                        (tess_cell[]){values_in(program, TESS_IN_AVERAGE, first, count), -1, -1}, -1);
}

/* True if the step reads or writes parameters of the group, or its gradients. */
static bool touches(const tess_program *program, const tess_program_step *step,
                    const tess_update_group *group)
{
    tess_cell cells[TESS_OP_INPUTS + TESS_OP_OUTPUTS];
    int count = 0;
    for (int i = 0; i < TESS_OP_INPUTS; i++)
        cells[count++] = step->in[i];
    for (int i = 0; i < TESS_OP_OUTPUTS; i++)
        cells[count++] = step->out[i];
    for (int i = 0; i < count; i++) {
        if (cells[i] < 0)
            continue;
        const tess_cell_info *info = &program->cells[cells[i]];
        const int64_t at =
            (int64_t)(info->offset / sizeof(float)); /* of a parameter, the whole of it or a layer */
        if (info->place == TESS_IN_PARAMETERS ? at >= group->first && at < group->first + group->count
                                              : info->root == group->gradients)
            return true;
    }
    return false;
}

void tess_update_emit(const tess_update *update, tess_program *program, const tess_parameters *parameters,
                      const tess_training_settings *settings)
{
    for (int g = 0; g < update->count; g++) {
        const int start = program->step_count;
        emit_group(update, g, program, parameters, settings);
        if (!update->in_pass || program->status != TESS_OK)
            continue;
        int place = start;
        while (place > 0 && !touches(program, &program->steps[place - 1], &update->groups[g]))
            place--;
        for (int i = start; i < program->step_count; i++)
            tess_program_move_up(program, i, place++);
    }
}
