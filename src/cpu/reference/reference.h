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

#endif
