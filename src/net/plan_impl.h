/* plan_impl.h: the struct of a plan, shared by plan.c (its steps), place.c (the offsets of tensors) and run.c. */
#ifndef TESS_NET_PLAN_IMPL_H
#define TESS_NET_PLAN_IMPL_H

#include "net/bound_impl.h"
#include "net/plan.h"

typedef enum tess_step_kind { TESS_STEP_OP, TESS_STEP_COPY, TESS_STEP_EXCHANGE } tess_step_kind;

typedef struct tess_step {
    tess_step_kind kind;
    tess_op op; /* OP, COPY */
    int layer;
    tess_value in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS]; /* EXCHANGE: in[0] */
    int64_t channel;                                     /* COPY: first channel in the storage of out[0] */
    int rows_above;                                      /* OP: rows of neighbours that in[0] begins with */
    bool apart;                                          /* OP: the output may not lie over an input */
    tess_prepared *prepared;
} tess_step;

/* Rows of neighbours that are stored around a value. */
typedef struct tess_margin {
    int above, below;
} tess_margin;

struct tess_net_plan {
    const tess_bound *bound;
    tess_plan_shape shape;
    tess_step *steps;
    int step_count, op_count;
    size_t *offset;       /* for each value: offset of its own first element in the arena */
    tess_margin *margins; /* for each value */
    size_t arena_bytes, workspace_bytes, lower_bound;
};

/* The tensor of a value in the plan: its own rows, with the strides of its storage. */
tess_tensor tess_plan_tensor(const tess_net_plan *plan, tess_value value);
/* Computes lifetimes and offsets of all values; the steps must exist. */
tess_status tess_plan_place(tess_net_plan *plan, tess_error *error) TESS_MUST_CHECK;

#endif
