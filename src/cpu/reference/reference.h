/* reference.h: every op as plain loops with fp64 accumulation; the fast kernels are tested against it. */
#ifndef TESS_CPU_REFERENCE_H
#define TESS_CPU_REFERENCE_H

#include "op/op.h"

/* `kernel` is in the weight file's order, `bias` may be NULL. in, out and residuals are F32, F16 or BF16. */
void tess_reference_run(const tess_op *op, const tess_op_buffers *buffers, const float *kernel,
                        const float *bias);

/* group_norm.c */
void tess_reference_group_norm(const tess_op *op, const tess_op_buffers *buffers, const float *weight,
                               const float *bias);
/* conv_grad.c */
void tess_reference_conv_grad(const tess_op *op, const tess_op_buffers *buffers);
/* attention.c */
void tess_reference_attention(const tess_op *op, const tess_op_buffers *buffers);

/* gradients.c: the backward ops, and BATCH_NORM_TRAIN, of values in F32, F16 or BF16. The workspace is the caller's. */
void tess_reference_gradient(const tess_op *op, const tess_op_buffers *buffers);
size_t tess_reference_gradient_workspace(const tess_op *op);
/* A gradient times the derivative of the activation at `value`. */
double tess_reference_before_activation(tess_activation activation, double gradient, double value);
/* norm_grad.c */
void tess_reference_batch_norm(const tess_op *op, const tess_op_buffers *buffers);
void tess_reference_batch_norm_grad(const tess_op *op, const tess_op_buffers *buffers);
void tess_reference_group_norm_grad(const tess_op *op, const tess_op_buffers *buffers);
/* attention_grad.c */
void tess_reference_attention_grad(const tess_op *op, const tess_op_buffers *buffers);

/* statistics.c: MOMENTS, SCORE and LOCAL_RX. The workspace is the caller's. */
void tess_reference_statistics(const tess_op *op, const tess_op_buffers *buffers);
size_t tess_reference_statistics_workspace(const tess_op *op);

#endif
