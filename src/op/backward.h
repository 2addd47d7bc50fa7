/* backward.h: the backward pass of an op, as plain data: the steps that make the gradients of its inputs and parameters
 * from the gradient of its output, and the tensor that each of them reads or writes. The row of an op names the
 * function that describes it. What a forward pass keeps for the backward pass is what the steps read of the op's
 * inputs and outputs; nothing else states it. */
#ifndef TESS_OP_BACKWARD_H
#define TESS_OP_BACKWARD_H

#include "op/op.h"

typedef enum tess_role {
    TESS_ROLE_NONE,
    TESS_ROLE_GRADIENT,          /* of out[0]; a step that writes it replaces it for the steps after it */
    TESS_ROLE_IN,                /* in[index] of the op */
    TESS_ROLE_OUT,               /* out[index] of the op */
    TESS_ROLE_PARAMETERS,        /* `count` of them from `index`, as one fp32 vector */
    TESS_ROLE_IN_GRADIENT,       /* the gradient of in[index] */
    TESS_ROLE_PARAMETER_GRADIENT /* that of `count` parameters from `index`, as one fp32 vector */
} tess_role;

typedef struct tess_operand {
    tess_role role;
    int index, count;
} tess_operand;

typedef enum tess_step_weights {
    TESS_STEP_NO_WEIGHTS,
    TESS_STEP_OWN_WEIGHTS,   /* the kernel of the op */
    TESS_STEP_TURNED_WEIGHTS /* the same, as FLIP turns it */
} tess_step_weights;

typedef struct tess_backward_step {
    bool passes;     /* no computation: out[0] is in[0], or its channels from `channel` */
    int64_t channel; /* of a step that passes */
    tess_op op;      /* of any other: kind and attributes; the operands give its tensors */
    tess_operand in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS];
    tess_step_weights weights;
    bool adds; /* takes one more input, which it adds to out[0]: what other readers of an input contributed */
    const char *cannot; /* why nothing computes this gradient; NULL: the step does */
} tess_backward_step;

/* The most are those of a convolution: activation, residuals, kernel, bias, input. */
enum { TESS_BACKWARD_STEPS = 4 + TESS_OP_RESIDUALS };

typedef struct tess_backward {
    int count;
    tess_backward_step steps[TESS_BACKWARD_STEPS]; /* in order */
} tess_backward;

/* Describes the backward pass of `op`, of which kind, attributes and tensors are set. `accumulate`: gradients of
 * parameters are added to what is there. */
typedef void (*tess_backward_fn)(const tess_op *op, bool accumulate, tess_backward *out);

/* The functions that the rows name. */
void tess_backward_conv(const tess_op *op, bool accumulate, tess_backward *out); /* and CONV_TRANSPOSE */
void tess_backward_sum(const tess_op *op, bool accumulate, tess_backward *out);  /* ADD, ACTIVATE */
void tess_backward_concat(const tess_op *op, bool accumulate, tess_backward *out);
void tess_backward_window(const tess_op *op, bool accumulate, tess_backward *out); /* poolings, UPSAMPLE */
void tess_backward_batch_norm(const tess_op *op, bool accumulate, tess_backward *out);
void tess_backward_group_norm(const tess_op *op, bool accumulate, tess_backward *out);
void tess_backward_attention(const tess_op *op, bool accumulate, tess_backward *out);
void tess_backward_channel_map(const tess_op *op, bool accumulate, tess_backward *out);
void tess_backward_channel_dot(const tess_op *op, bool accumulate, tess_backward *out);
void tess_backward_dropout(const tess_op *op, bool accumulate, tess_backward *out);

#endif
