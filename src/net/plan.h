/* plan.h: how a bound network runs for one image size: steps with their shapes, the offset of every tensor in
 * one arena, and the workspace. A run needs three blocks of memory of the planned sizes and allocates nothing.
 *
 * Steps: OP runs an op. COPY copies a value next to others where a concatenation could not share storage.
 * EXCHANGE starts to fetch rows of neighbours when the plan is for a strip of an image (tess_plan_shape: above, below),
 * and ARRIVAL waits for them. Between them a convolution computes the rows that need none of the neighbours'. Kernels that can wait in the
 * middle of an op (tess_op_needs: waits) have no ARRIVAL: they compute these rows first, then wait. For a slab of a volume
 * (tess_plan_shape: slices), slices take the place of rows. A block of an image (tess_plan_shape: left, right) fetches columns and
 * corners as well: every row of a value then has room for them on both sides, so that kernels see a wider image and nothing else. */
#ifndef TESS_NET_PLAN_H
#define TESS_NET_PLAN_H

#include "net/bound.h"
#include "net/exchange.h"
#include "tensor/arena.h"

typedef struct tess_net_plan tess_net_plan; /* owned by the caller: tess_net_plan_destroy */

tess_status tess_net_plan_create(const tess_bound *bound, tess_plan_shape shape, tess_net_plan **out,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_net_plan_destroy(tess_net_plan *plan);
size_t tess_net_plan_arena_bytes(const tess_net_plan *plan);
size_t tess_net_plan_workspace_bytes(const tess_net_plan *plan);
/* The least that any placement could need, to judge the arena. */
size_t tess_net_plan_lower_bound(const tess_net_plan *plan);
/* What lies in the arena, from which step to which: *count entries, of which those without bytes do not exist. Step i is
 * op i, unless the plan is for a strip. */
const tess_lifetime *tess_net_plan_lives(const tess_net_plan *plan, int *count);
/* The first input and the last output, without any pixels of neighbours. */
tess_tensor tess_net_plan_input(const tess_net_plan *plan, size_t *offset);
tess_tensor tess_net_plan_output(const tess_net_plan *plan, size_t *offset);
tess_tensor tess_net_plan_input_at(const tess_net_plan *plan, int index, size_t *offset);
tess_tensor tess_net_plan_output_at(const tess_net_plan *plan, int index, size_t *offset);

typedef enum tess_step_kind {
    TESS_STEP_OP,
    TESS_STEP_COPY,
    TESS_STEP_EXCHANGE,
    TESS_STEP_ARRIVAL
} tess_step_kind;

/* One step, for whoever predicts a run. */
typedef struct tess_plan_step {
    tess_step_kind kind;
    const tess_op *op; /* OP, COPY; else NULL */
    int layer;         /* parts of a divided layer have the same number */
    tess_tensor rows;  /* EXCHANGE, ARRIVAL: the strip's own rows of the value, or slices */
    bool slices;
    int above, below; /* and how many rows come from the neighbours; as many go there */
    int left, right;  /* the same in columns */
    bool waits;       /* OP: waits itself for the rows of an EXCHANGE before */
    double early;     /* and the share of its output that it computes first */
} tess_plan_step;
int tess_net_plan_step_count(const tess_net_plan *plan);
tess_plan_step tess_net_plan_step(const tess_net_plan *plan, int index);

/* The ops of its OP and COPY steps, in order. */
int tess_net_plan_op_count(const tess_net_plan *plan);
const tess_op *tess_net_plan_op(const tess_net_plan *plan, int index);

int tess_net_plan_exchange_count(const tess_net_plan *plan);
/* Pinned memory of the host for its exchanges on a device with separate memory: see net/relay.h. */
size_t tess_net_plan_exchange_bytes(const tess_net_plan *plan);

/* Binds every op to its kernel; after this the plan can run. */
tess_status tess_net_plan_prepare(tess_net_plan *plan, tess_error *error) TESS_MUST_CHECK;

typedef struct tess_net_run {
    void *arena, *workspace;
    const void *weights;
    tess_stream *stream;
    int64_t units;                   /* added to the progress of the device's `stop`, layer by layer */
    const tess_exchanger *exchanger; /* for the plan of a strip; else NULL */
    void *exchange_user;
} tess_net_run;

/* On the host, ends early when the device's `stop` is set; the next sync then fails. */
void tess_net_plan_execute(const tess_net_plan *plan, const tess_net_run *run);
void tess_net_plan_run(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                       tess_stream *stream);
void tess_net_plan_run_counted(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                               tess_stream *stream, int64_t units);

#endif
