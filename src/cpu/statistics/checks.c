#include "cpu/core/lines.h"
#include "cpu/statistics/statistics.h"
#include "tensor/moments.h"

enum { MOST_CHANNELS = 1 << 14 }; /* the square of the channels must be a size */

static bool is_mask(const tess_tensor *mask, const tess_tensor *pixels)
{
    tess_tensor one = *pixels;
    one.c = 1;
    return (mask->dtype == TESS_U8 || mask->dtype == TESS_F32) && tess_cpu_same_sizes(mask, &one);
}

static tess_status check_moments(const tess_op *op, tess_error *why)
{
    const int64_t values = (int64_t)tess_moments_values((int)op->in[0].c, op->moments.covariance),
                  vectors = op->moments.each ? op->in[0].n : 1;
    if (!tess_cpu_is_vector(&op->out[0], TESS_F64, vectors * values))
        return tess_kernel_refuse(
            why,
            "the output of moments is an fp64 vector of tess_moments_values values, or one for each image");
    return TESS_OK;
}

static tess_status check_score(const tess_op *op, tess_error *why)
{
    const int64_t c = op->in[0].c;
    if (op->out[0].dtype != TESS_F32 || !tess_cpu_is_vector(&op->in[1], TESS_F32, c) || op->in[2].c != c ||
        !tess_cpu_is_vector(&op->in[2], TESS_F32, tess_cpu_pixels(&op->in[2]) * c))
        return tess_kernel_refuse(
            why, "a score takes a mean of c fp32 values and a factor of rows of c fp32 values");
    return TESS_OK;
}

static tess_status check_local(const tess_op *op, tess_error *why)
{
    const int32_t *k = op->kernel, inner = op->local_rx.inner;
    if (op->out[0].dtype != TESS_F32 && op->out[0].dtype != TESS_F64)
        return tess_kernel_refuse(why, "local scores are fp32 or fp64");
    if (k[TESS_DEPTH] > 1 || k[TESS_HEIGHT] != k[TESS_WIDTH] || k[TESS_WIDTH] % 2 != 1 || inner < 1 ||
        inner % 2 != 1 || inner >= k[TESS_WIDTH])
        return tess_kernel_refuse(
            why, "local scores need two odd windows, the inner one smaller than the outer one");
    if (!(op->local_rx.epsilon >= 0) || !(op->local_rx.epsilon < INFINITY))
        return tess_kernel_refuse(why, "epsilon of local scores must be 0 or more");
    return TESS_OK;
}

tess_status tess_cpu_statistics_refuses(const tess_op *op, tess_error *why)
{
    if (op->kind != TESS_OP_MOMENTS && op->kind != TESS_OP_SCORE && op->kind != TESS_OP_LOCAL_RX)
        return tess_kernel_refuse(why, NULL);
    if (op->in[0].dtype != TESS_F32)
        return tess_kernel_refuse(why, "statistics take pixels of fp32 values");
    if (op->in[0].c < 1 || op->in[0].c > MOST_CHANNELS || tess_cpu_pixels(&op->in[0]) < 1)
        return tess_kernel_refuse(why, "statistics take pixels of 1 to 16384 channels");
    if (op->kind != TESS_OP_SCORE && op->inputs > 1 && !is_mask(&op->in[1], &op->in[0]))
        return tess_kernel_refuse(why, "a mask has one channel of uint8 or fp32 and the size of the image");
    return op->kind == TESS_OP_MOMENTS ? check_moments(op, why)
           : op->kind == TESS_OP_SCORE ? check_score(op, why)
                                       : check_local(op, why);
}

tess_status tess_cpu_statistics_refuses_fast(const tess_device *device, const tess_op *op, tess_op_kind kind,
                                             tess_error *why)
{
    if (op->kind != kind || !tess_cpu_of(device)->f32)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_statistics_refuses(op, why);
}
