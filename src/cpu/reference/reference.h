/* reference.h: every op as plain loops, fp64 accumulation: the truth that the fast kernels are held against.
 */
#ifndef TESS_CPU_REFERENCE_H
#define TESS_CPU_REFERENCE_H

#include "op/op.h"

/* `kernel` in the weight file's own order, `bias` may be NULL. in, out and residuals of F32, F16 or BF16. */
void tess_reference_run(const tess_op *op, const tess_op_buffers *buffers, const float *kernel,
                        const float *bias);

/* group_norm.c */
void tess_reference_group_norm(const tess_op *op, const tess_op_buffers *buffers, const float *weight,
                               const float *bias);
/* attention.c */
void tess_reference_attention(const tess_op *op, const tess_op_buffers *buffers);

#endif
