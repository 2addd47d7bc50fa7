/* The gradients of the kernels of two convolutions that are alike, one after the other in the backward pass, are one op
 * where the device takes such pairs: the first waits for the second. What it reads stays in memory that much longer, which
 * is free once the backward pass has freed some activations. The first pairs therefore stay apart (APART): nearly all
 * activations are in memory then. Nothing but the order of the layers decides, so that the results do not
 * depend on what is computed again. */
#include <string.h>

#include "net/training/program.h"

static bool is_single(const tess_program_step *step)
{
    return !step->packs && step->op.kind == TESS_OP_CONV_GRAD && step->op.inputs == 2 &&
           step->op.outputs == 1;
}

static tess_cell storage_of(const tess_program *program, tess_cell cell)
{
    return cell < 0 || program->cells[cell].place != TESS_IN_ARENA ? -1 : program->cells[cell].root;
}

/* True if the step writes what `other` reads, or reads or writes what it writes. Parameters do not change in a pass before
 * its updates, which are not there yet. */
static bool depends(const tess_program *program, const tess_program_step *step,
                    const tess_program_step *other)
{
    bool any = false;
    for (int o = 0; o < TESS_OP_OUTPUTS; o++) {
        const tess_cell out = storage_of(program, step->out[o]);
        for (int i = 0; i < 2 && out >= 0; i++)
            any = any || out == storage_of(program, other->in[i]);
        any = any || (step->out[o] >= 0 && step->out[o] == other->out[0]);
    }
    for (int i = 0; i < TESS_OP_INPUTS; i++)
        any = any || (step->in[i] >= 0 && step->in[i] == other->out[0]);
    return any;
}

static bool can_wait(const tess_program *program, int first, int second)
{
    for (int i = first + 1; i < second; i++)
        if (depends(program, &program->steps[i], &program->steps[first]))
            return false;
    return tess_op_same(&program->steps[first].op, &program->steps[second].op);
}

/* Makes `second` a pair with `first`, which is removed, or only reports whether the device would take it. */
static bool join(tess_program *program, int first, int second, bool really)
{
    const tess_program_step *one = &program->steps[first];
    tess_program_step two = program->steps[second];
    tess_op_needs needs = {0}, single = {0};
    const tess_cell in[TESS_OP_INPUTS] = {one->in[0], one->in[1], two.in[0], two.in[1]},
                    out[TESS_OP_OUTPUTS] = {one->out[0], two.out[0], -1};
    for (int i = 0; i < 2; i++)
        two.op.in[2 + i] = two.op.in[i];
    two.op.out[1] = two.op.out[0];
    two.op.inputs = 4;
    two.op.outputs = 2;
    if (program->device->ops->query(program->device, &two.op, &needs, NULL) != TESS_OK ||
        program->device->ops->query(program->device, &one->op, &single, NULL) != TESS_OK)
        return false;
    if (!really)
        return true;
    memcpy(two.in, in, sizeof two.in);
    memcpy(two.out, out, sizeof two.out);
    two.apart = needs.apart;
    if (needs.workspace > program->workspace_bytes)
        program->workspace_bytes = needs.workspace;
    program->held_bytes += needs.held - 2 * single.held;
    program->steps[second] = two;
    memmove(&program->steps[first], &program->steps[first + 1],
            (size_t)(program->step_count - first - 1) * sizeof *program->steps);
    program->step_count--;
    return true;
}

void tess_program_pair_gradients(tess_program *program)
{
    enum { APART = 2 };
    int waiting = -1; /* a gradient that may become the first of a pair */
    int apart = APART;
    for (int i = program->section_end[TESS_SECTION_BEGIN]; i < program->step_count; i++) {
        const tess_program_step *step = &program->steps[i];
        if (step->packs || step->op.kind != TESS_OP_CONV_GRAD)
            continue;
        if (waiting >= 0 && is_single(step) && can_wait(program, waiting, i) &&
            join(program, waiting, i, apart == 0)) {
            if (apart > 0)
                apart--;
            else
                i--; /* a step was removed */
            waiting = -1;
        } else {
            waiting = is_single(step) ? i : -1;
        }
    }
}
