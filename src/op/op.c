#include "op/op.h"

#include <stdio.h>

const char *tess_op_kind_name(tess_op_kind kind)
{
    static const char *const names[] = {
        [TESS_OP_SIDE_SUM] = "sidesum",  [TESS_OP_FILTER] = "filter",
        [TESS_OP_CONV] = "conv",         [TESS_OP_CONV_TRANSPOSE] = "deconv",
        [TESS_OP_UP_CONV] = "upconv",    [TESS_OP_MAX_POOL] = "maxpool",
        [TESS_OP_UPSAMPLE] = "upsample", [TESS_OP_ADD] = "add",
        [TESS_OP_IMPORT] = "import",     [TESS_OP_EXPORT] = "export",
        [TESS_OP_COMBINE] = "combine",   [TESS_OP_DOT] = "dot",
        [TESS_OP_FFT] = "fft",           [TESS_OP_SPECTRUM] = "spectrum",
        [TESS_OP_PROJECT] = "project",   [TESS_OP_BACKPROJECT] = "backproject",
        [TESS_OP_RAY_COSINE] = "cosine", [TESS_OP_RAY_SPREAD] = "spread"};
    return names[kind];
}

tess_dtype tess_op_precision(const tess_op *op)
{
    return op->in.dtype != TESS_F32 ? op->in.dtype : op->out.dtype;
}

static double pixels(const tess_tensor *t)
{
    return (double)t->n * (double)t->d * (double)t->h * (double)t->w;
}

double tess_op_flops(const tess_op *op)
{
    double taps = (double)op->kernel[0] * op->kernel[1] * op->kernel[2];
    switch (op->kind) {
    case TESS_OP_CONV:
    case TESS_OP_UP_CONV:
        return 2.0 * pixels(&op->out) * taps * (double)op->in.c * (double)op->out.c;
    case TESS_OP_CONV_TRANSPOSE:
        return 2.0 * pixels(&op->in) * taps * (double)op->in.c * (double)op->out.c;
    case TESS_OP_SIDE_SUM:
        return pixels(&op->in) * (double)op->in.c;
    default:
        return pixels(&op->out) * (double)op->out.c;
    }
}

double tess_op_traffic(const tess_op *op)
{
    double in = (double)tess_dtype_size(op->in.dtype), out = (double)tess_dtype_size(op->out.dtype);
    return in * pixels(&op->in) * (double)op->in.c +
           out * pixels(&op->out) * (double)op->out.c * (1 + op->residuals);
}

void tess_op_class(const tess_op *op, char *text, size_t size)
{
    char depth[16] = "";
    if (op->kernel[TESS_DEPTH] > 1)
        snprintf(depth, sizeof depth, "%dx", op->kernel[TESS_DEPTH]);
    snprintf(text, size, "%s%s%dx%d/%d %lld>%lld %s", tess_op_kind_name(op->kind), depth,
             op->kernel[TESS_HEIGHT], op->kernel[TESS_WIDTH], op->stride[TESS_WIDTH], (long long)op->in.c,
             (long long)op->out.c, op->tf32 ? "TF32" : tess_dtype_name(tess_op_precision(op)));
}
