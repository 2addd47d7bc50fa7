/* group_norm.h: shared by the fast and the reference kernel of group norms. Parameters stay in the file's
 * order, fp32: the c weights, then the c biases. */
#ifndef TESS_CPU_GROUP_NORM_H
#define TESS_CPU_GROUP_NORM_H

#include "cpu/core/cpu.h"

tess_status tess_cpu_group_norm_refuses(const tess_device *device, const tess_op *op,
                                        tess_error *why) TESS_MUST_CHECK;
size_t tess_cpu_group_norm_weights(const tess_op *op);
void tess_cpu_group_norm_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                              const float *values, void *packed);

#endif
