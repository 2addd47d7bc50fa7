/* plan_impl.h: the struct of a plan, shared by plan.c (its steps), place.c (the offsets of tensors) and run.c. */
#ifndef TESS_NET_PLAN_IMPL_H
#define TESS_NET_PLAN_IMPL_H

#include "net/bound_impl.h"
#include "net/plan.h"

typedef struct tess_step {
    tess_step_kind kind;
    tess_op op; /* OP, COPY */
    int layer;
    tess_value in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS]; /* EXCHANGE, ARRIVAL: in[0] */
    int64_t channel;                                     /* COPY: first channel in the storage of out[0] */
    int64_t in_row; /* OP: the strip's own row that in[0] begins with; negative: a row of a neighbour */
    int64_t row;    /* OP: the same for the output and the other inputs */
    int64_t in_column, column; /* OP: the same in columns */
    bool apart;                /* OP: the output may not lie over an input */
    bool waits; /* OP: the kernel itself waits for the rows of an EXCHANGE before, of its first input */
    int block;  /* OP: of its kernel, in rows */
    tess_prepared *prepared;
    /* EXCHANGE, ARRIVAL of a block: the copies into the compact buffer, or out of it, if the device has separate memory */
    tess_prepared *copies[TESS_EXCHANGE_SIDES];
} tess_step;

/* Rows of neighbours, or slices, that are stored around a value; of a block also columns. */
typedef struct tess_margin {
    int above, below, left, right;
} tess_margin;

/* Positions [from, to) of a part's own rows; negative ones, and those after the last, are of neighbours. */
typedef struct tess_rows {
    int64_t from, to;
} tess_rows;

struct tess_net_plan {
    const tess_bound *bound;
    tess_plan_shape shape;
    tess_step *steps;
    int step_count, op_count;
    size_t *offset;       /* for each value: offset of its own first element in the arena */
    tess_margin *margins; /* for each value */
    tess_margin *fetched; /* for each value: what of it is exchanged */
    tess_lifetime *lives; /* of the storage of each value; 0 bytes: it has none of its own */
    size_t arena_bytes, workspace_bytes, lower_bound;
    size_t packed_at; /* of a block: where the buffer of its exchanges is in the arena, behind all values */
};

/* Whether the plan is for a part of an image or volume. */
static inline bool tess_plan_cut(const tess_net_plan *plan)
{
    const tess_plan_shape *s = &plan->shape;
    return s->above || s->below || s->left || s->right;
}
/* Whether a neighbour follows before the part's first position along an axis, and after its last one. */
static inline bool tess_plan_before(const tess_net_plan *plan, int axis)
{
    const tess_plan_shape *s = &plan->shape;
    return axis == TESS_WIDTH ? s->left : axis == (s->slices ? TESS_DEPTH : TESS_HEIGHT) && s->above;
}
static inline bool tess_plan_after(const tess_net_plan *plan, int axis)
{
    const tess_plan_shape *s = &plan->shape;
    return axis == TESS_WIDTH ? s->right : axis == (s->slices ? TESS_DEPTH : TESS_HEIGHT) && s->below;
}

/* The axis that neighbours divide. */
static inline int tess_plan_axis(const tess_net_plan *plan)
{
    return plan->shape.slices ? TESS_DEPTH : TESS_HEIGHT;
}
/* From a row, or slice, to the next. */
static inline int64_t tess_plan_stride(const tess_net_plan *plan, const tess_tensor *tensor)
{
    return plan->shape.slices ? tensor->stride_d : tensor->stride_h;
}

/* OP and COPY. */
static inline bool tess_step_computes(const tess_step *step)
{
    return step->kind == TESS_STEP_OP || step->kind == TESS_STEP_COPY;
}

/* The tensor of a value in the plan: its own rows, with the strides of its storage. */
tess_tensor tess_plan_tensor(const tess_net_plan *plan, tess_value value);
tess_step *tess_plan_add_step(tess_net_plan *plan, tess_step_kind kind, int layer);
/* Asks the device what the step's op needs. */
tess_status tess_plan_ask(tess_net_plan *plan, tess_step *step, tess_error *error) TESS_MUST_CHECK;
/* plan_margins.c: the rows and columns of neighbours around each value. */
void tess_plan_set_margins(tess_net_plan *plan);
/* The rows of `in` from which a layer without padding computes all own rows of `out`: the own ones, unless the levels of both have borders of
 * their own. */
tess_rows tess_plan_rows_read(const tess_net_plan *plan, tess_value in, tess_value out);
/* What an EXCHANGE or ARRIVAL moves, in an arena; NULL: only its sizes. */
tess_exchange tess_plan_exchange(const tess_net_plan *plan, const tess_step *step, void *arena);
/* plan_pack.c: the copies of an EXCHANGE or ARRIVAL between a block and its compact buffer, which strips do without. */
tess_status tess_plan_prepare_copies(const tess_net_plan *plan, tess_step *step,
                                     tess_error *error) TESS_MUST_CHECK;
void tess_plan_release_copies(const tess_net_plan *plan, tess_step *step);
void tess_plan_run_copies(const tess_net_plan *plan, const tess_step *step, const tess_exchange *exchange,
                          tess_stream *stream);
/* plan_strip.c: the rows of the first input that a step which waits finds late, and the share of its output that needs none of them. */
tess_margin tess_plan_late(const tess_net_plan *plan, const tess_step *step);
double tess_plan_early(const tess_net_plan *plan, const tess_step *step);
/* The steps of a layer, in a part of an image or not. */
tess_status tess_plan_add_op(tess_net_plan *plan, int layer, tess_error *error) TESS_MUST_CHECK;
/* Computes lifetimes and offsets of all values; the steps must exist. */
tess_status tess_plan_place(tess_net_plan *plan, tess_error *error) TESS_MUST_CHECK;

#endif
