/* group_norm.h: shared by the fast and the reference kernel of group norms. Parameters stay in the file's
 * order, fp32: the c weights, then the c biases. */
#ifndef TESS_CPU_GROUP_NORM_H
#define TESS_CPU_GROUP_NORM_H

#include "cpu/core/cpu.h"
#include "cpu/norm/passes.h"

/* A group norm at work, forward or backward. */
typedef struct tess_group_norm {
    tess_norm_passes passes;
    int64_t groups;
    double epsilon;
    const float *params;
    const tess_tensor *more; /* scales and shifts, or NULL */
    const void *more_data;
    double *statistics; /* [n][group][mean, 1 / deviation], or NULL */
} tess_group_norm;

/* 1 + scale, and shift, of a channel: 1 and 0 if there are none. */
void tess_cpu_scale_shift(const tess_group_norm *norm, int64_t n, int64_t c, double *scale, double *shift);
/* Sums, then sets the passes' table, and the statistics if wanted. */
void tess_cpu_group_norm_table(tess_pool *pool, const tess_group_norm *norm);

tess_status tess_cpu_group_norm_refuses(const tess_device *device, const tess_op *op,
                                        tess_error *why) TESS_MUST_CHECK;
size_t tess_cpu_group_norm_weights(const tess_op *op);
void tess_cpu_group_norm_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                              const float *values, void *packed);

#endif
