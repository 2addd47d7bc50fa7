/* grad.h: the conditions that all kernels for gradients of convolutions share. */
#ifndef TESS_CPU_GRAD_H
#define TESS_CPU_GRAD_H

#include "cpu/core/cpu.h"

tess_status tess_cpu_conv_grad_refuses(const tess_device *device, const tess_op *op,
                                       tess_error *why) TESS_MUST_CHECK;
tess_status tess_cpu_channel_sum_refuses(const tess_device *device, const tess_op *op,
                                         tess_error *why) TESS_MUST_CHECK;

#endif
