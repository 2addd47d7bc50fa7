#include "net/training/program.h"

#include <string.h>

#include "base/stop.h"
#include "base/trace.h"

static void no_memory(tess_program *program)
{
    if (program->status == TESS_OK)
        program->status = tess_fail(program->error, TESS_NO_MEMORY, "no memory for a training plan");
}

void tess_program_fail(tess_program *program, const char *text)
{
    if (program->status == TESS_OK)
        program->status = tess_fail(program->error, TESS_UNSUPPORTED, "%s", text);
}

/* Makes room for one more element of an array. */
static void *room_for(tess_program *program, void *array, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    const int more = *capacity ? 2 * *capacity : 64;
    void *grown = tess_small_realloc(array, (size_t)more, size);
    if (!grown)
        no_memory(program);
    else
        *capacity = more;
    return grown ? grown : array;
}

static tess_cell add_cell(tess_program *program, tess_cell_info info)
{
    if (program->status == TESS_OK)
        program->cells = room_for(program, program->cells, program->cell_count, &program->cell_capacity,
                                  sizeof *program->cells);
    if (program->status != TESS_OK)
        return -1;
    if (info.root < 0)
        info.root = program->cell_count;
    program->cells[program->cell_count] = info;
    return program->cell_count++;
}

tess_cell tess_program_tensor(tess_program *program, tess_tensor tensor)
{
    return add_cell(program, (tess_cell_info){.tensor = tess_tensor_3d(tensor.dtype, tensor.n, tensor.d,
                                                                       tensor.h, tensor.w, tensor.c),
                                              .place = TESS_IN_ARENA,
                                              .root = -1});
}

tess_cell tess_program_bytes(tess_program *program, size_t bytes)
{
    return tess_program_tensor(program, tess_tensor_2d(TESS_U8, 1, 1, 1, (int64_t)bytes));
}

tess_cell tess_program_view(tess_program *program, tess_cell whole, int64_t first, int64_t channels)
{
    if (whole < 0)
        return -1;
    const tess_tensor tensor = program->cells[whole].tensor;
    return tess_program_part(program, whole, (size_t)first * tess_dtype_size(tensor.dtype),
                             tess_tensor_channels(tensor, channels));
}

tess_cell tess_program_part(tess_program *program, tess_cell whole, size_t offset, tess_tensor tensor)
{
    if (whole < 0)
        return -1;
    const tess_cell_info info = program->cells[whole];
    const bool is_root = info.root == whole && info.place == TESS_IN_ARENA;
    return add_cell(program, (tess_cell_info){.tensor = tensor,
                                              .place = info.place,
                                              .root = info.root,
                                              .offset = (is_root ? 0 : info.offset) + offset});
}

tess_cell tess_program_piece(tess_program *program, tess_place place, size_t offset, tess_tensor tensor)
{
    return add_cell(program,
                    (tess_cell_info){.tensor = tensor, .place = place, .root = -1, .offset = offset});
}

const tess_tensor *tess_program_shape(const tess_program *program, tess_cell cell)
{
    return &program->cells[cell].tensor;
}

/* Sets the tensors and counts of the op from the cells. False after a failure. */
static bool bind(const tess_program *program, tess_op *op, const tess_cell *in, const tess_cell *out)
{
    for (op->inputs = 0; op->inputs < TESS_OP_INPUTS && in[op->inputs] >= 0; op->inputs++)
        op->in[op->inputs] = program->cells[in[op->inputs]].tensor;
    for (op->outputs = 0; op->outputs < TESS_OP_OUTPUTS && out[op->outputs] >= 0; op->outputs++)
        op->out[op->outputs] = program->cells[out[op->outputs]].tensor;
    return op->inputs > 0 && op->outputs > 0;
}

bool tess_program_can(const tess_program *program, tess_op op, const tess_cell *in, const tess_cell *out)
{
    tess_op_needs needs;
    return program->status == TESS_OK && bind(program, &op, in, out) &&
           program->device->ops->query(program->device, &op, &needs, NULL) == TESS_OK;
}

static tess_program_step *add_step(tess_program *program)
{
    if (program->status == TESS_OK)
        program->steps = room_for(program, program->steps, program->step_count, &program->step_capacity,
                                  sizeof *program->steps);
    if (program->status != TESS_OK)
        return NULL;
    tess_program_step *step = &program->steps[program->step_count++];
    memset(step, 0, sizeof *step);
    step->weights = -1;
    step->label = program->label;
    memset(step->in, -1, sizeof step->in);
    memset(step->out, -1, sizeof step->out);
    return step;
}

void tess_program_op(tess_program *program, tess_op op, const tess_cell *in, const tess_cell *out,
                     tess_cell weights)
{
    if (program->status != TESS_OK)
        return;
    tess_op_needs needs = {0};
    if (!bind(program, &op, in, out)) {
        program->status =
            tess_fail(program->error, TESS_INTERNAL, "%s has no input or output in a training plan",
                      tess_op_kind_name(op.kind));
        return;
    }
    program->status = tess_stop_check(program->device->stop, program->error);
    if (program->status == TESS_OK)
        program->status = program->device->ops->query(program->device, &op, &needs, program->error);
    tess_program_step *step = add_step(program);
    if (!step)
        return;
    step->op = op;
    step->weights = weights;
    step->apart = needs.apart;
    memcpy(step->in, in, sizeof(tess_cell) * (size_t)op.inputs);
    memcpy(step->out, out, sizeof(tess_cell) * (size_t)op.outputs);
    if (needs.workspace > program->workspace_bytes)
        program->workspace_bytes = needs.workspace;
    program->held_bytes += needs.held;
}

void tess_program_pack(tess_program *program, const tess_op *op, int param, bool turned, tess_cell values,
                       tess_cell packed)
{
    tess_program_step *step = add_step(program);
    if (!step)
        return;
    step->packs = true;
    step->turned = turned;
    step->param = param;
    step->op = *op;
    step->in[0] = values;
    step->out[0] = packed;
}

void tess_program_move_up(tess_program *program, int from, int to)
{
    tess_program_step *steps = program->steps;
    const tess_program_step moved = steps[from];
    memmove(&steps[to + 1], &steps[to], (size_t)(from - to) * sizeof *steps);
    steps[to] = moved;
}

void tess_program_end_section(tess_program *program, tess_section section)
{
    program->section_end[section] = program->step_count;
}

tess_status tess_program_prepare(tess_program *program, tess_error *error)
{
    for (int i = 0; i < program->step_count; i++) {
        tess_program_step *step = &program->steps[i];
        if (!step->packs && !step->prepared)
            TESS_TRY(program->device->ops->prepare(program->device, &step->op, &step->prepared, error));
    }
    return TESS_OK;
}

static void *address(const tess_program *program, void *const blocks[TESS_PLACES], tess_cell cell)
{
    const tess_cell_info *info = &program->cells[cell], *root = &program->cells[info->root];
    const size_t within = info->place == TESS_IN_ARENA && info->root != cell ? root->offset : 0;
    return (char *)blocks[info->place] + within + info->offset;
}

int tess_program_together(const tess_program *program, int first, int end)
{
    int count = 0;
    while (count < TESS_PACKS_TOGETHER && first + count < end && program->steps[first + count].packs)
        count++;
    return count ? count : 1;
}

static void run_packs(const tess_program *program, int first, int count, void *const blocks[TESS_PLACES],
                      tess_stream *stream)
{
    tess_repack list[TESS_PACKS_TOGETHER];
    for (int i = 0; i < count; i++) {
        const tess_program_step *step = &program->steps[first + i];
        list[i] = (tess_repack){.op = &step->op,
                                .param = step->param,
                                .turned = step->turned,
                                .values = address(program, blocks, step->in[0]),
                                .packed = address(program, blocks, step->out[0])};
    }
    program->device->ops->repack(program->device, list, count, stream);
}

static void run_op(const tess_program *program, const tess_program_step *step,
                   void *const blocks[TESS_PLACES], void *workspace, tess_stream *stream)
{
    tess_op_buffers buffers = {.workspace = workspace};
    for (int k = 0; k < step->op.inputs; k++)
        buffers.in[k] = address(program, blocks, step->in[k]);
    for (int k = 0; k < step->op.outputs; k++)
        buffers.out[k] = address(program, blocks, step->out[k]);
    if (step->weights >= 0)
        buffers.weights = address(program, blocks, step->weights);
    if (program->device->traced)
        tess_trace_label(step->label);
    program->device->ops->run(program->device, step->prepared, &buffers, stream);
    if (program->device->traced)
        tess_trace_label(NULL);
}

void tess_program_run_watched(const tess_program *program, tess_section section,
                              void *const blocks[TESS_PLACES], void *workspace, tess_stream *stream,
                              void (*after)(void *user, int step), void *user)
{
    tess_device *device = program->device;
    tess_stop *stop = device->host_memory ? device->stop : NULL; /* others only queue or capture */
    const int end = program->section_end[section];
    for (int i = section > 0 ? program->section_end[section - 1] : 0; i < end && !tess_stop_poll(stop);) {
        const int count = tess_program_together(program, i, end);
        if (program->steps[i].packs)
            run_packs(program, i, count, blocks, stream);
        else
            run_op(program, &program->steps[i], blocks, workspace, stream);
        i += count;
        if (after)
            after(user, i - 1);
    }
}

void tess_program_run(const tess_program *program, tess_section section, void *const blocks[TESS_PLACES],
                      void *workspace, tess_stream *stream)
{
    tess_program_run_watched(program, section, blocks, workspace, stream, NULL, NULL);
}

double tess_program_flops(const tess_program *program, tess_section section)
{
    double flops = 0;
    const int from = section > 0 ? program->section_end[section - 1] : 0;
    for (int i = from; i < program->section_end[section]; i++)
        if (!program->steps[i].packs)
            flops += tess_op_flops(&program->steps[i].op);
    return flops;
}

void tess_program_clear(tess_program *program)
{
    for (int i = 0; i < program->step_count; i++)
        if (program->steps[i].prepared)
            program->device->ops->release(program->device, program->steps[i].prepared);
    tess_small_free(program->cells);
    tess_small_free(program->steps);
    *program = (tess_program){0};
}
