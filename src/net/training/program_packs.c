/* Weights are packed right before the op that uses them, so that they take memory for a moment only. Where a device packs
 * many parameters at the price of one, the steps that pack are moved up to the first of a group, whose bytes are limited:
 * this is what weights take longer than necessary. */
#include "net/training/program.h"

static size_t end_of(const tess_cell_info *cell)
{
    size_t bytes = 0;
    return tess_tensor_bytes(&cell->tensor, &bytes) ? cell->offset + bytes : SIZE_MAX;
}

/* Running statistics and constants share a block; normalisations write the former. */
static bool written(const tess_program *program, const tess_cell_info *cell)
{
    for (int i = program->section_end[TESS_SECTION_BEGIN]; i < program->section_end[TESS_SECTION_PASS]; i++)
        for (int k = 0; k < TESS_OP_OUTPUTS && program->steps[i].out[k] >= 0; k++) {
            const tess_cell_info *to = &program->cells[program->steps[i].out[k]];
            if (to->place == cell->place && to->offset < end_of(cell) && cell->offset < end_of(to))
                return true;
        }
    return false;
}

/* Parameters change only after the last step that reads them, constants never; other values are made by a step of the pass. */
static bool can_move(const tess_program *program, int step)
{
    const tess_program_step *s = &program->steps[step];
    if (!s->packs)
        return false;
    const tess_cell_info *values = &program->cells[s->in[0]];
    return values->place == TESS_IN_PARAMETERS ||
           (values->place == TESS_IN_RUNNING && !written(program, values));
}

void tess_program_gather_packs(tess_program *program)
{
    const size_t most = program->device->ops->repack_bytes;
    const int end = program->section_end[TESS_SECTION_PASS];
    size_t bytes = 0;      /* of the group */
    int place = -1;        /* where it ends; -1: there is none */
    tess_cell packed = -1; /* its last cell: kernel and bias of an op share one */
    for (int i = program->section_end[TESS_SECTION_BEGIN]; i < end && most > 0; i++) {
        if (!can_move(program, i))
            continue;
        const tess_cell cell = program->steps[i].out[0];
        const size_t more = cell == packed ? 0 : (size_t)tess_program_shape(program, cell)->c;
        if (place < 0 || (more > 0 && bytes + more > most)) {
            place = i;
            bytes = 0;
        }
        bytes += more;
        packed = cell;
        tess_program_move_up(program, i, place++);
    }
}
