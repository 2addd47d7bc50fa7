/* program.h: a list of device ops over cells. A cell is a tensor that one step writes: an activation, a gradient, packed
 * weights (all in the arena, where lifetimes decide their places), or a piece of a block that outlives the step, such
 * as the parameters. */
#ifndef TESS_NET_TRAINING_PROGRAM_H
#define TESS_NET_TRAINING_PROGRAM_H

#include "device/device.h"

typedef int tess_cell; /* -1: none */

enum { TESS_PACKS_TOGETHER = 64 }; /* the most parameters that are packed by one call */

typedef enum tess_place {
    TESS_IN_ARENA,
    TESS_IN_DATA, /* inputs, target, mask */
    TESS_IN_PARAMETERS,
    TESS_IN_GRADIENTS,
    TESS_IN_FIRST,
    TESS_IN_SECOND,
    TESS_IN_AVERAGE,
    TESS_IN_RUNNING,
    TESS_IN_CONTROL, /* control, loss, norm */
    TESS_PLACES
} tess_place;

typedef enum tess_section {
    TESS_SECTION_BEGIN,  /* once a step, before the first pass */
    TESS_SECTION_PASS,   /* once for each micro-batch */
    TESS_SECTION_UPDATE, /* once a step, after the last pass */
    TESS_SECTIONS
} tess_section;

typedef struct tess_cell_info {
    tess_tensor tensor;
    tess_place place;
    tess_cell root; /* the cell whose storage contains this one; usually itself */
    size_t offset;  /* bytes from the start of the root, or of the place's block; arena: set by place() */
} tess_cell_info;

typedef struct tess_program_step {
    bool packs;  /* packs parameter `param` of `op` from in[0] into out[0]; otherwise runs the op */
    bool turned; /* packs the kernel turned, for an input gradient */
    int param;
    tess_op op;
    tess_cell in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS];
    tess_cell weights; /* packed parameters; -1: none */
    bool apart;        /* the output may not lie over an input */
    tess_prepared *prepared;
    const char *label; /* of its layer; NULL: of none */
} tess_program_step;

typedef struct tess_program {
    tess_device *device;
    tess_cell_info *cells;
    tess_program_step *steps;
    int cell_count, cell_capacity, step_count, step_capacity;
    int section_end[TESS_SECTIONS]; /* the number of steps up to the end of each section */
    size_t arena_bytes, workspace_bytes, held_bytes;
    tess_status status; /* the first failure; later calls do nothing */
    tess_error *error;  /* valid while the program is built */
    const char *label;  /* of the steps that are appended now; not copied */
} tess_program;

void tess_program_clear(tess_program *program);

/* Adds a dense tensor to the arena; returns -1 after a failure. */
tess_cell tess_program_tensor(tess_program *program, tess_tensor tensor);
/* Adds `bytes` of the arena without a type. */
tess_cell tess_program_bytes(tess_program *program, size_t bytes);
/* Channels [first, first + tensor.c) of another cell. */
tess_cell tess_program_view(tess_program *program, tess_cell whole, int64_t first, int64_t channels);
/* A tensor at `offset` bytes in another cell. */
tess_cell tess_program_part(tess_program *program, tess_cell whole, size_t offset, tess_tensor tensor);
/* A tensor at `offset` bytes in a block. */
tess_cell tess_program_piece(tess_program *program, tess_place place, size_t offset, tess_tensor tensor);
const tess_tensor *tess_program_shape(const tess_program *program, tess_cell cell);

/* Appends a step. The tensors of the op are set from the cells; unused entries of in and out are -1. */
void tess_program_op(tess_program *program, tess_op op, const tess_cell *in, const tess_cell *out,
                     tess_cell weights);
void tess_program_pack(tess_program *program, const tess_op *op, int param, bool turned, tess_cell values,
                       tess_cell packed);
/* True when the device does the op with these cells. */
bool tess_program_can(const tess_program *program, tess_op op, const tess_cell *in, const tess_cell *out);
void tess_program_end_section(tess_program *program, tess_section section);
/* Notes a failure of an emitting function. */
void tess_program_fail(tess_program *program, const char *text);

/* Moves a step up to `to`; those from there on move down by one. */
void tess_program_move_up(tess_program *program, int from, int to);
/* program_pairs.c: makes pairs of gradients of convolutions, of the steps after the first section. */
void tess_program_pair_gradients(tess_program *program);
/* program_packs.c: moves steps that pack next to each other, so that the device packs many parameters at once. */
void tess_program_gather_packs(tess_program *program);
/* Computes offsets in the arena, and lets ops overwrite inputs that no later step reads. */
tess_status tess_program_place(tess_program *program, tess_error *error) TESS_MUST_CHECK;
tess_status tess_program_prepare(tess_program *program, tess_error *error) TESS_MUST_CHECK;
/* The number of steps from `first` on, before `end`, that run together: more than one if they pack. */
int tess_program_together(const tess_program *program, int first, int end);
/* Runs the steps of a section. `blocks`: the start of each place's block. */
void tess_program_run(const tess_program *program, tess_section section, void *const blocks[TESS_PLACES],
                      void *workspace, tess_stream *stream);
/* The same; calls `after` with the number of each step that has run, or the last of those that ran together. */
void tess_program_run_watched(const tess_program *program, tess_section section,
                              void *const blocks[TESS_PLACES], void *workspace, tess_stream *stream,
                              void (*after)(void *user, int step), void *user);
double tess_program_flops(const tess_program *program, tess_section section);

#endif
