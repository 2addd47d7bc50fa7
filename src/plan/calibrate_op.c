/* The op that is timed for a class: the same on an image of another size. */
#include "base/checked.h"
#include "plan/rates_impl.h"

/* Number of slices to measure an op with: enough that the slices at the ends, which miss a tap, matter little. */
static int64_t depth_of(const tess_op *op)
{
    return op->kernel[TESS_DEPTH] > 1 ? 8 : 1;
}

bool tess_calibrate_of_pixels(const tess_op *op)
{
    return op->kind == TESS_OP_MOMENTS || op->kind == TESS_OP_SCORE || op->kind == TESS_OP_IMPORT ||
           op->kind == TESS_OP_LOCAL_RX;
}

static tess_op resized_pixels(const tess_op *op, int64_t side)
{
    tess_op sized = *op;
    sized.in[0] = tess_tensor_2d(op->in[0].dtype, 1, side, side, op->in[0].c);
    if (op->kind != TESS_OP_MOMENTS)
        sized.out[0] = tess_tensor_2d(op->out[0].dtype, 1, side, side, op->out[0].c);
    if (op->kind != TESS_OP_SCORE)
        sized.inputs = 1; /* marks of pixels that are left out: negligible */
    return sized;
}

/* As many positions of the input as so many of the output are computed from, in rows or in columns. */
static int64_t read_for(const tess_op *op, int64_t size)
{
    if (op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_UPSAMPLE)
        return size / op->stride[TESS_HEIGHT];
    if (op->kind == TESS_OP_UP_CONV)
        return size / 2;
    return op->kind == TESS_OP_ADD ? size : size * op->stride[TESS_HEIGHT];
}

tess_op tess_calibrate_resized(const tess_op *op, int64_t side)
{
    return tess_calibrate_of_pixels(op) ? resized_pixels(op, side) : tess_calibrate_sized(op, side, side);
}

tess_op tess_calibrate_sized(const tess_op *op, int64_t height, int64_t width)
{
    tess_op sized = *op;
    int64_t depth = depth_of(op), in_depth = depth * tess_max_i64(op->stride[TESS_DEPTH], 1);
    if (op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_UPSAMPLE)
        in_depth = depth / tess_max_i64(op->stride[TESS_DEPTH], 1);
    sized.in[0] =
        tess_tensor_3d(op->in[0].dtype, 1, in_depth, read_for(op, height), read_for(op, width), op->in[0].c);
    sized.out[0] = tess_tensor_3d(op->out[0].dtype, 1, depth, height, width, op->out[0].c);
    sized.inputs -= op->mapped ? 1 : 0; /* one value per pixel: negligible */
    sized.mapped = false;
    for (int i = 1; i < sized.inputs; i++) {
        const tess_tensor *more = &op->in[i];
        const bool vector = more->d * more->h * more->w == 1 && more->c != op->out[0].c;
        sized.in[i] = vector ? tess_tensor_2d(more->dtype, 1, 1, 1, more->c) : sized.out[0];
    }
    return sized;
}
