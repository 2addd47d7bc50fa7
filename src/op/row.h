/* row.h: the properties of each kind of op. */
#ifndef TESS_OP_ROW_H
#define TESS_OP_ROW_H

#include "base/status.h"
#include "op/backward.h"

typedef enum tess_reach { TESS_REACH_POINTWISE = 1, TESS_REACH_WINDOW, TESS_REACH_EVERYTHING } tess_reach;

typedef struct tess_op_row {
    const char *name;
    int least_inputs, most_inputs, most_outputs, most_params; /* at least one output */
    tess_reach reach;
    tess_backward_fn backward; /* NULL: a layer of this kind cannot be trained */
    /* Sets the batch and the spatial sizes of out[0] from the inputs and attributes. The op itself states the
     * element types and channels of its outputs. Returns false if no output has that shape. */
    bool (*shape)(const tess_op *op, tess_tensor *out);
    double (*flops)(const tess_op *op); /* multiply-adds count as two */
} tess_op_row;

const tess_op_row *tess_op_row_of(tess_op_kind kind);
/* Checks counts and shapes against the row. Returns TESS_UNSUPPORTED with a message on a mismatch. Every
 * device calls this first. */
tess_status tess_op_check(const tess_op *op, tess_error *error) TESS_MUST_CHECK;

/* A parameter as stored in a weight file: row-major fp32, `rows` slices of `row` values along its first
 * dimension. */
typedef struct tess_op_param {
    const char *suffix; /* of its name: "weight", "bias" */
    int64_t rows, row;
} tess_op_param;

/* Writes the parameters of the op, at most TESS_OP_PARAMS; returns their number. */
int tess_op_params(const tess_op *op, tess_op_param params[TESS_OP_PARAMS]);

#endif
