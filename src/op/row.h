/* row.h: what is known of each kind of op. */
#ifndef TESS_OP_ROW_H
#define TESS_OP_ROW_H

#include "base/status.h"
#include "op/op.h"

typedef enum tess_reach { TESS_REACH_POINTWISE = 1, TESS_REACH_WINDOW, TESS_REACH_EVERYTHING } tess_reach;

/* What a backward pass needs of the forward one. */
typedef enum tess_keep {
    TESS_KEEP_NOTHING = 1,
    TESS_KEEP_INPUT,
    TESS_KEEP_OUTPUT,
    TESS_KEEP_BOTH,
    TESS_NO_BACKWARD
} tess_keep;

typedef struct tess_op_row {
    const char *name;
    int least_inputs, most_inputs, outputs, most_params;
    tess_reach reach;
    tess_keep keep;
    /* Fills the spatial sizes and the batch of out[0] from the inputs and attributes; element types and channels of outputs are
     * the op's own. False: no output has that shape. */
    bool (*shape)(const tess_op *op, tess_tensor *out);
    double (*flops)(const tess_op *op); /* multiply-adds count as two */
} tess_op_row;

const tess_op_row *tess_op_row_of(tess_op_kind kind);
/* Counts and shapes against the row; TESS_UNSUPPORTED, with what is wrong. Every device asks this first. */
tess_status tess_op_check(const tess_op *op, tess_error *error) TESS_MUST_CHECK;

/* A parameter as a weight file has it: row-major fp32, `rows` slices of `row` values along its first dimension. */
typedef struct tess_op_param {
    const char *suffix; /* of its name: "weight", "bias" */
    int64_t rows, row;
} tess_op_param;

/* The parameters of the op, at most TESS_OP_PARAMS; returns how many. */
int tess_op_params(const tess_op *op, tess_op_param params[TESS_OP_PARAMS]);

#endif
