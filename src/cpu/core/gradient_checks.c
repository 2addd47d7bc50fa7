/* The conditions of the CPU for backward ops, average pooling, and batch norms in training, for the fast and the reference kernels. */
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

bool tess_cpu_is_pointwise_grad(const tess_op *op)
{
    return op->kind == TESS_OP_ACTIVATE_GRAD || op->kind == TESS_OP_POOL_GRAD ||
           op->kind == TESS_OP_UPSAMPLE_GRAD || op->kind == TESS_OP_AVERAGE_POOL ||
           op->kind == TESS_OP_AVERAGE_POOL_GRAD;
}

static tess_status answer(bool fits, tess_error *why, const char *needs)
{
    return fits ? TESS_OK : tess_kernel_refuse(why, needs);
}

static bool all_vectors(const tess_tensor *list, int from, int to, int64_t count)
{
    for (int i = from; i < to; i++)
        if (!tess_cpu_is_vector(&list[i], TESS_F32, count))
            return false;
    return true;
}

/* `small` has a value for each window of `large`. */
static bool is_pooled(const tess_op *op, const tess_tensor *small, const tess_tensor *large)
{
    return op->stride[TESS_HEIGHT] > 0 && op->stride[TESS_WIDTH] > 0 && op->stride[TESS_DEPTH] <= 1 &&
           small->n == large->n && small->d == large->d && small->c == large->c &&
           small->h == large->h / op->stride[TESS_HEIGHT] && small->w == large->w / op->stride[TESS_WIDTH];
}

static tess_status check_pointwise(const tess_op *op, tess_error *why)
{
    const tess_tensor *in = op->in, *out = &op->out[0];
    const bool activate = op->kind == TESS_OP_ACTIVATE_GRAD,
               grows = op->kind == TESS_OP_POOL_GRAD || op->kind == TESS_OP_AVERAGE_POOL_GRAD;
    if (activate && op->activation == TESS_LINEAR)
        return tess_kernel_refuse(why, "the gradient of an activation needs a ReLU or a SiLU");
    bool fits = activate ? tess_cpu_same_sizes(&in[0], out)
                         : is_pooled(op, grows ? &in[0] : out, grows ? out : &in[0]);
    for (int i = 1; i < op->inputs; i++)
        fits = fits && tess_cpu_is_value(&in[i]) && tess_cpu_same_sizes(&in[i], out);
    return answer(fits, why, "the sizes of the gradients do not fit those of the values");
}

static tess_status check_batch_norm(const tess_op *op, tess_error *why)
{
    const bool forward = op->kind == TESS_OP_BATCH_NORM_TRAIN;
    const tess_tensor *in = &op->in[forward ? 0 : 1];
    if (!forward && op->activation != TESS_LINEAR)
        return tess_kernel_refuse(why, "the gradient of a batch norm starts before its activation");
    return answer(tess_cpu_is_value(in) && tess_cpu_same_sizes(&op->in[0], in) &&
                      tess_cpu_same_sizes(&op->out[0], in) && op->outputs > 1 &&
                      all_vectors(op->in, forward ? 1 : 2, op->inputs, 2 * in->c) &&
                      all_vectors(op->out, 1, op->outputs, 2 * in->c),
                  why, "a batch norm takes values and gradients of one shape and vectors of 2 c fp32 values");
}

static tess_status check_group_norm(const tess_op *op, tess_error *why)
{
    const tess_tensor *in = &op->in[1], vector = tess_tensor_2d(TESS_F32, in->n, 1, 1, 2 * in->c);
    const int32_t groups = op->group_norm.groups;
    bool fits = tess_cpu_is_value(in) && tess_cpu_same_sizes(&op->in[0], in) &&
                tess_cpu_same_sizes(&op->out[0], in) && groups > 0 && in->c % groups == 0 &&
                op->outputs == op->inputs - 1 && all_vectors(op->in, 2, 3, 2 * in->c) &&
                all_vectors(op->out, 1, 2, 2 * in->c);
    if (fits && op->inputs > 3)
        fits = tess_cpu_same_sizes(&op->in[3], &vector) && tess_cpu_same_sizes(&op->out[2], &vector) &&
               tess_cpu_is_value(&op->in[3]) && tess_cpu_is_value(&op->out[2]);
    return answer(fits, why,
                  "the gradient of a group norm takes values and gradients of one shape, 2 c parameters, and "
                  "2 c scales and shifts an image");
}

static tess_status check_attention(const tess_op *op, tess_error *why)
{
    const tess_tensor *gradient = &op->in[0], *values = &op->in[1], *result = &op->in[2];
    const int32_t heads = op->attention.heads;
    tess_tensor wide = *gradient;
    wide.c *= 3;
    return answer(
        tess_cpu_is_value(values) && tess_cpu_is_value(result) && heads > 0 && gradient->c % heads == 0 &&
            tess_cpu_same_sizes(&wide, values) && tess_cpu_same_sizes(values, &op->out[0]) &&
            tess_cpu_same_sizes(gradient, result),
        why,
        "the gradient of an attention takes c channels of gradients and results, and 3 c of queries, keys "
        "and values, in whole heads");
}

tess_status tess_cpu_gradients_refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    const bool pointwise = tess_cpu_is_pointwise_grad(op),
               batch = op->kind == TESS_OP_BATCH_NORM_TRAIN || op->kind == TESS_OP_BATCH_NORM_GRAD;
    if (!pointwise && !batch && op->kind != TESS_OP_GROUP_NORM_GRAD && op->kind != TESS_OP_ATTENTION_GRAD)
        return tess_kernel_refuse(why, NULL);
    if (!tess_cpu_is_value(&op->in[0]) || !tess_cpu_is_value(&op->out[0]))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    return pointwise                             ? check_pointwise(op, why)
           : batch                               ? check_batch_norm(op, why)
           : op->kind == TESS_OP_GROUP_NORM_GRAD ? check_group_norm(op, why)
                                                 : check_attention(op, why);
}

tess_status tess_cpu_gradients_refuses_fast(const tess_device *device, const tess_op *op, bool known,
                                            tess_error *why)
{
    return known && tess_cpu_of(device)->f32 ? tess_cpu_gradients_refuses(device, op, why)
                                             : tess_kernel_refuse(why, NULL);
}
