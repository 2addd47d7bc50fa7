/* Lifetimes and offsets of the cells in the arena. An op may write its result over an input that it reads only at the
 * position it writes, if no later step reads that input: a gradient then takes the place of the activation that
 * masked it, or of the gradient that it is added to. */
#include "base/checked.h"
#include "net/training/program.h"
#include "tensor/arena.h"

typedef struct placing {
    tess_lifetime *storage; /* one for each cell; used at roots */
    int *merged;            /* for each root: the root whose storage it uses */
    int *order;
} placing;

static int storage_of(const tess_program *program, const placing *place, tess_cell cell)
{
    int root = program->cells[cell].root;
    while (place->merged[root] != root)
        root = place->merged[root];
    return root;
}

static void extend(const tess_program *program, placing *place, tess_cell cell, int step)
{
    if (cell < 0 || program->cells[cell].place != TESS_IN_ARENA)
        return;
    tess_lifetime *storage = &place->storage[program->cells[cell].root];
    if (storage->first < 0)
        storage->first = step;
    storage->last = step;
}

static void find_lifetimes(const tess_program *program, placing *place)
{
    for (int c = 0; c < program->cell_count; c++) {
        place->merged[c] = c;
        place->storage[c].first = place->storage[c].last = -1;
    }
    for (int s = 0; s < program->step_count; s++) {
        const tess_program_step *step = &program->steps[s];
        for (int i = 0; i < TESS_OP_INPUTS; i++)
            extend(program, place, step->in[i], s);
        for (int i = 0; i < TESS_OP_OUTPUTS; i++)
            extend(program, place, step->out[i], s);
        extend(program, place, step->weights, s);
    }
}

/* True when input `i` is read only at the position that out[0] is written to. */
static bool overwritable(const tess_op *op, int i)
{
    switch (op->kind) {
    case TESS_OP_CONV:
    case TESS_OP_CONV_TRANSPOSE:
        return i > 0; /* residuals and masks */
    case TESS_OP_ADD:
        return true;
    case TESS_OP_ACTIVATE_GRAD:
    case TESS_OP_DROPOUT:
    case TESS_OP_CHANNEL_MAP:
    case TESS_OP_CHANNEL_MAP_GRAD:
        return i == 0;
    default: /* any other op reads more than it writes at a time */
        return false;
    }
}

static bool whole(const tess_program *program, tess_cell cell)
{
    return program->cells[cell].root == cell && program->cells[cell].place == TESS_IN_ARENA;
}

static void write_in_place(const tess_program *program, placing *place, int s)
{
    const tess_program_step *step = &program->steps[s];
    const tess_cell out = step->out[0];
    if (step->packs || step->apart || !whole(program, out) || place->storage[out].first != s)
        return;
    for (int i = 0; i < step->op.inputs; i++) {
        const tess_cell in = step->in[i];
        if (!overwritable(&step->op, i) || !whole(program, in) ||
            !tess_tensor_same(&program->cells[in].tensor, &program->cells[out].tensor))
            continue;
        const int old = storage_of(program, place, in);
        bool other = false; /* another input in the same storage must stay */
        for (int k = 0; k < step->op.inputs; k++)
            other = other || (k != i && program->cells[step->in[k]].place == TESS_IN_ARENA &&
                              storage_of(program, place, step->in[k]) == old);
        if (other || place->storage[old].last != s)
            continue;
        place->merged[out] = old;
        place->storage[old].last = place->storage[out].last;
        place->storage[out].bytes = 0;
        return;
    }
}

static tess_status place_cells(tess_program *program, placing *place, tess_error *error)
{
    find_lifetimes(program, place);
    for (int c = 0; c < program->cell_count; c++)
        if (whole(program, c) && place->storage[c].first >= 0 &&
            !tess_tensor_bytes(&program->cells[c].tensor, &place->storage[c].bytes))
            return tess_fail(error, TESS_OVER_LIMIT,
                             "a batch is too large; use smaller crops or fewer of them");
    for (int s = 0; s < program->step_count; s++)
        write_in_place(program, place, s);
    tess_arena_place(place->storage, program->cell_count, place->order, &program->arena_bytes);
    for (int c = 0; c < program->cell_count; c++)
        if (whole(program, c))
            program->cells[c].offset = place->storage[storage_of(program, place, c)].offset;
    return TESS_OK;
}

tess_status tess_program_place(tess_program *program, tess_error *error)
{
    const size_t cells = (size_t)tess_max_i64(program->cell_count, 1);
    placing place = {tess_small_alloc(cells, sizeof *place.storage),
                     tess_small_alloc(cells, sizeof *place.merged),
                     tess_small_alloc(cells, sizeof *place.order)};
    tess_status status = place.storage && place.merged && place.order
                             ? place_cells(program, &place, error)
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for a training plan");
    tess_small_free(place.storage);
    tess_small_free(place.merged);
    tess_small_free(place.order);
    return status;
}
