/* diffusion_sampler_impl.h: the struct of a sampler. diffusion_plan.c: its plans and sizes. diffusion_prepare.c: its memory,
 * tables and graphs. diffusion_run.c: batches. */
#ifndef TESS_SOLVE_DIFFUSION_SAMPLER_IMPL_H
#define TESS_SOLVE_DIFFUSION_SAMPLER_IMPL_H

#include "base/mem.h"
#include "solve/diffusion_sampler.h"

/* The ops around the network. */
typedef enum tess_sampler_op {
    TESS_SAMPLER_ROW,     /* SELECT: the network's scales and shifts of this step */
    TESS_SAMPLER_CONTROL, /* SELECT: the factors of this step */
    TESS_SAMPLER_DIFFUSE,
    TESS_SAMPLER_COND,  /* COMBINE: conditioning into the network's input */
    TESS_SAMPLER_GUESS, /* COMBINE: a first guess into y */
    TESS_SAMPLER_TAKE,  /* COMBINE: y, dense, over the previous x0 */
    TESS_SAMPLER_OPS
} tess_sampler_op;

/* A step for one number of windows. */
typedef struct tess_sampler_plan {
    int64_t n;
    tess_net_plan *net;
    size_t input_at, y_at, vector_at, output_at; /* in the arena */
    tess_op ops[TESS_SAMPLER_OPS];
    tess_prepared *prepared[TESS_SAMPLER_OPS];
    tess_graph *graph; /* NULL where the device has none */
} tess_sampler_plan;

/* Places in the device's block of pixels. */
typedef struct tess_sampler_places {
    size_t cond, known, guess, items, up; /* uploaded as they are: [0, up) */
    size_t previous, control, index, all;
} tess_sampler_places;

/* Places in the block of tables. */
typedef struct tess_sampler_tables {
    size_t rows, controls, start, zero, all;
} tess_sampler_tables;

typedef struct tess_sampler_slot {
    char *host; /* what is uploaded, laid out as on the device, then the result */
    tess_event *done;
    bool busy;
    int64_t n, number; /* of the batch, counted over all batches */
} tess_sampler_slot;

enum { TESS_SAMPLER_GROUP = 8, TESS_SAMPLER_RING = TESS_SAMPLER_AHEAD / TESS_SAMPLER_GROUP };
/* At most one plan for each power of two. */
enum { TESS_SAMPLER_PLANS = 24 };

/* Steps that are queued, with what they count for. */
typedef struct tess_sampler_group {
    tess_event *done;
    int64_t units, number;
} tess_sampler_group;

struct tess_sampler {
    tess_sampler_settings settings;
    tess_sampler_steps steps;
    tess_sampler_plan plans[TESS_SAMPLER_PLANS]; /* from the whole batch down */
    int plan_count;
    tess_net_plan *embedding;
    size_t arena_bytes, workspace_bytes, held_bytes;
    tess_sampler_places places;
    tess_sampler_tables tables;
    size_t slot_bytes;
    tess_block arena, workspace, table, io, host;
    const void *step_weights;
    tess_stream *stream;
    tess_sampler_slot slots[TESS_SAMPLER_SLOTS];
    tess_sampler_group ring[TESS_SAMPLER_RING];
    int64_t ring_first,
        ring_end; /* groups [first, end) are under way, at their number modulo the ring's size */
    int64_t batches;
    bool ready;
};

/* Runs one of the ops of a plan. */
void tess_sampler_run_op(const tess_sampler *sampler, const tess_sampler_plan *plan, tess_sampler_op which,
                         const void *control);
/* One step, not as a graph. */
void tess_sampler_run_step(const tess_sampler *sampler, const tess_sampler_plan *plan, int64_t units);

#endif
