/* passes.h: does an op on volumes as passes of 2-D ops, which every device has. The slices of a volume are a
 * batch of images, and each depth tap of a kernel is a 2-D kernel, whose packed weights follow those of the
 * tap before. A convolution sums its taps in the output: the first pass that reaches a slice adds bias, map
 * and residuals (one of which may be the output's own memory), later passes use the output as their residual,
 * and the last applies the ReLU. The order (middle tap first) is the same for every slice of every volume, so
 * that a window of a volume gives the same bits as the whole. */
#ifndef TESS_OP_PASSES_H
#define TESS_OP_PASSES_H

#include "base/status.h"
#include "op/op.h"

typedef tess_status (*tess_pass_fn)(void *user, const tess_op *flat, const tess_op_buffers *at,
                                    tess_error *error);

/* The 2-D op on `count` slices. It reads every in_step-th slice and writes every out_step-th. */
tess_op tess_op_slices(const tess_op *op, int64_t count, int64_t in_step, int64_t out_step);
/* Calls `pass` for each pass, in order. `tap_bytes`: size of the packed weights of one depth tap. */
tess_status tess_op_passes(const tess_op *op, const tess_op_buffers *buffers, size_t tap_bytes,
                           tess_pass_fn pass, void *user, tess_error *error) TESS_MUST_CHECK;

#endif
