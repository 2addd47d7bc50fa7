/* plan.h: how a bound network runs for one image size: steps with their shapes, the offset of every tensor in
 * one arena, and the workspace. A run needs three blocks of memory of the planned sizes and allocates nothing.
 *
 * Steps: OP runs an op. COPY copies a value next to others where a concatenation could not share storage.
 * EXCHANGE starts to fetch rows of neighbours when the plan is for a strip of an image (tess_plan_shape: above, below),
 * and ARRIVAL waits for them. Between them a convolution computes the rows that need none of the neighbours'. For a slab of a volume
 * (tess_plan_shape: slices), slices take the place of rows. */
#ifndef TESS_NET_PLAN_H
#define TESS_NET_PLAN_H

#include "net/bound.h"
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
/* The first input and the last output, without any rows of neighbours. */
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
} tess_plan_step;
int tess_net_plan_step_count(const tess_net_plan *plan);
tess_plan_step tess_net_plan_step(const tess_net_plan *plan, int index);

/* The ops of its OP and COPY steps, in order. */
int tess_net_plan_op_count(const tess_net_plan *plan);
const tess_op *tess_net_plan_op(const tess_net_plan *plan, int index);

/* Rows of a value that a strip needs from its neighbours: `above` rows before its own and `below` rows after
 * them. */
typedef struct tess_exchange {
    tess_tensor rows; /* the strip's own rows */
    void *data; /* first of its own rows; the neighbours' rows lie directly around, at the tensor's strides */
    bool slices; /* slices instead of rows */
    int above, below;
} tess_exchange;
/* The strip's own rows, or slices. */
static inline int64_t tess_exchange_own(const tess_exchange *exchange)
{
    return exchange->slices ? exchange->rows.d : exchange->rows.h;
}
/* Where one of these rows begins, and the bytes from the first value of one row to the last of the `count`-th. If the value
 * shares its storage with others, theirs are in between; they are the same value on all ranks, or not yet read. */
static inline char *tess_exchange_row(const tess_exchange *exchange, int64_t row)
{
    return (char *)exchange->data +
           row * (exchange->slices ? exchange->rows.stride_d : exchange->rows.stride_h) *
               (int64_t)tess_dtype_size(exchange->rows.dtype);
}
static inline size_t tess_exchange_bytes(const tess_exchange *exchange, int64_t count)
{
    const tess_tensor *t = &exchange->rows;
    const int64_t row = (t->w - 1) * t->stride_w + t->c,
                  values = exchange->slices ? (count - 1) * t->stride_d + (t->h - 1) * t->stride_h + row
                                            : (count - 1) * t->stride_h + row;
    return count > 0 ? (size_t)values * tess_dtype_size(t->dtype) : 0;
}
/* Fills the surrounding rows in stream order: `begin` starts, and they are there after `end`. Until then the strip's own
 * rows do not change. Both neighbours make the same exchanges in the same order, also when they are stopped. */
typedef struct tess_exchanger {
    void (*begin)(void *user, const tess_exchange *exchange, tess_stream *stream);
    void (*end)(void *user, const tess_exchange *exchange, tess_stream *stream);
} tess_exchanger;
int tess_net_plan_exchange_count(const tess_net_plan *plan);

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
