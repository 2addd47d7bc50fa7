/* attention.h: the conditions of the fast and the reference kernel of attention. */
#ifndef TESS_CPU_ATTENTION_H
#define TESS_CPU_ATTENTION_H

#include "cpu/core/cpu.h"

static inline tess_status tess_cpu_attention_refuses(const tess_device *device, const tess_op *op,
                                                     tess_error *why)
{
    (void)device;
    const tess_dtype in = op->in[0].dtype, out = op->out[0].dtype;
    if (op->kind != TESS_OP_ATTENTION)
        return tess_kernel_refuse(why, NULL);
    if ((in != TESS_F32 && in != TESS_BF16) || (out != TESS_F32 && out != TESS_BF16))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    if (op->activation != TESS_LINEAR)
        return tess_kernel_refuse(why, "attention ends with no activation");
    return TESS_OK;
}

#endif
