/* The table of ops, generated from rows.def, and the functions that its rows name. */
#include "op/row.h"

static double pixels(const tess_tensor *t)
{
    return (double)t->n * (double)t->d * (double)t->h * (double)t->w;
}

static double conv_flops(const tess_op *op)
{
    return 2.0 * pixels(&op->out[0]) * (double)tess_op_taps(op) * (double)op->in[0].c * (double)op->out[0].c;
}

static double transpose_flops(const tess_op *op)
{
    return 2.0 * pixels(&op->in[0]) * (double)tess_op_taps(op) * (double)op->in[0].c * (double)op->out[0].c;
}

static double out_flops(const tess_op *op)
{
    return pixels(&op->out[0]) * (double)op->out[0].c;
}

static double in_flops(const tess_op *op)
{
    return pixels(&op->in[0]) * (double)op->in[0].c;
}

static double dot_flops(const tess_op *op)
{
    return 2 * in_flops(op);
}

static int64_t *size_of(tess_tensor *t, int axis)
{
    return axis == TESS_DEPTH ? &t->d : axis == TESS_HEIGHT ? &t->h : &t->w;
}

static int64_t in_size(const tess_op *op, int axis)
{
    const tess_tensor *in = &op->in[0];
    return axis == TESS_DEPTH ? in->d : axis == TESS_HEIGHT ? in->h : in->w;
}

/* An axis that the op does not use (the depth of 2-D ops) has kernel and stride 0. */
static int64_t at_least_one(int32_t value)
{
    return value > 1 ? value : 1;
}

static bool conv_shape(const tess_op *op, tess_tensor *out)
{
    for (int axis = 0; axis < TESS_SPATIAL; axis++) {
        const int64_t padded = in_size(op, axis) + op->pad_before[axis] + op->pad_after[axis],
                      kernel = at_least_one(op->kernel[axis]);
        if (padded < kernel)
            return false;
        *size_of(out, axis) = (padded - kernel) / at_least_one(op->stride[axis]) + 1;
    }
    return true;
}

static bool upsample_shape(const tess_op *op, tess_tensor *out)
{
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        *size_of(out, axis) = in_size(op, axis) * at_least_one(op->stride[axis]);
    return true;
}

static bool transpose_shape(const tess_op *op, tess_tensor *out)
{
    return upsample_shape(op, out);
}

static bool up_conv_shape(const tess_op *op, tess_tensor *out)
{
    out->d = op->in[0].d;
    out->h = 2 * op->in[0].h + op->pad_before[TESS_HEIGHT] + op->pad_after[TESS_HEIGHT] - 2;
    out->w = 2 * op->in[0].w + op->pad_before[TESS_WIDTH] + op->pad_after[TESS_WIDTH] - 2;
    return out->h > 0 && out->w > 0;
}

static bool pool_shape(const tess_op *op, tess_tensor *out)
{
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        *size_of(out, axis) = in_size(op, axis) / at_least_one(op->stride[axis]);
    return true;
}

static bool same_shape(const tess_op *op, tess_tensor *out)
{
    out->d = op->in[0].d;
    out->h = op->in[0].h;
    out->w = op->in[0].w;
    return out->c == op->in[0].c;
}

static bool concat_shape(const tess_op *op, tess_tensor *out)
{
    int64_t channels = 0;
    for (int i = 0; i < op->inputs; i++)
        channels += op->in[i].c;
    out->d = op->in[0].d;
    out->h = op->in[0].h;
    out->w = op->in[0].w;
    return out->c == channels;
}

/* The output has one channel, whatever the input has. */
static bool one_channel_shape(const tess_op *op, tess_tensor *out)
{
    out->d = op->in[0].d;
    out->h = op->in[0].h;
    out->w = op->in[0].w;
    return out->c == 1;
}

/* Slices of neighbours may be part of the input: there is no padding in depth then. */
static bool side_sum_shape(const tess_op *op, tess_tensor *out)
{
    const bool good = one_channel_shape(op, out);
    if (!op->side.sums)
        out->d += op->pad_before[TESS_DEPTH] + op->pad_after[TESS_DEPTH] - (op->kernel[TESS_DEPTH] - 1);
    return good;
}

/* Sums for mean and variance, then difference, product and sum. */
static double group_norm_flops(const tess_op *op)
{
    return 6 * in_flops(op);
}

static bool group_norm_shape(const tess_op *op, tess_tensor *out)
{
    const tess_tensor *in = &op->in[0], *more = &op->in[1];
    const int32_t groups = op->group_norm.groups;
    const bool vector = op->inputs == 1 || ((more->n == in->n || more->n == 1) && more->d == 1 &&
                                            more->h == 1 && more->w == 1 && more->c == 2 * in->c);
    return same_shape(op, out) && vector && groups > 0 && in->c % groups == 0;
}

/* Two products of pixels by pixels. */
static double attention_flops(const tess_op *op)
{
    return 4 * out_flops(op) * (pixels(&op->out[0]) / (double)op->out[0].n);
}

static bool attention_shape(const tess_op *op, tess_tensor *out)
{
    const int32_t heads = op->attention.heads;
    out->d = op->in[0].d;
    out->h = op->in[0].h;
    out->w = op->in[0].w;
    return op->in[0].c == 3 * out->c && heads > 0 && out->c % heads == 0;
}

/* The work of the convolutions that the gradients belong to. */
static double conv_grad_flops(const tess_op *op)
{
    return 2.0 * (op->inputs / 2) * pixels(&op->in[1]) * (double)tess_op_taps(op) * (double)op->in[0].c *
           (double)op->in[1].c;
}

static double norm_flops(const tess_op *op)
{
    return group_norm_flops(op);
}

/* Five products of pixels by pixels in place of two. */
static double attention_grad_flops(const tess_op *op)
{
    const tess_tensor *y = &op->in[0];
    return 10 * in_flops(op) * (pixels(y) / (double)y->n);
}

/* The output has the shape of the pooling's input. */
static bool pool_grad_shape(const tess_op *op, tess_tensor *out)
{
    *out = op->out[0];
    return op->in[1].d == out->d && op->in[1].h == out->h && op->in[1].w == out->w && op->in[1].c == out->c;
}

/* A vector of the table's row, for any number of images. */
static bool select_shape(const tess_op *op, tess_tensor *out)
{
    out->d = out->h = out->w = 1;
    return out->c == op->in[0].c && op->in[0].n > 0;
}

/* The products and sums of the formula, and about twenty operations of a random number. */
static double diffuse_flops(const tess_op *op)
{
    return 32 * out_flops(op);
}

static bool diffuse_shape(const tess_op *op, tess_tensor *out)
{
    const tess_tensor *known = &op->in[1];
    return same_shape(op, out) && out->c == 1 && op->in[0].d == 1 && known->n == out->n && known->d == 1 &&
           known->h == out->h && known->w == out->w && known->c == 2;
}

/* The output has the shape of the pooling's input, and the input one value for each whole window. */
static bool average_grad_shape(const tess_op *op, tess_tensor *out)
{
    bool fits = true;
    *out = op->out[0];
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        fits = fits && *size_of(out, axis) / at_least_one(op->stride[axis]) == in_size(op, axis);
    return fits;
}

/* Half of the products of all pairs of channels. */
static double moments_flops(const tess_op *op)
{
    return in_flops(op) * (op->moments.covariance ? (double)op->in[0].c + 2 : 2);
}

static double score_flops(const tess_op *op)
{
    return 2 * pixels(&op->in[0]) * pixels(&op->in[2]) * (double)op->in[2].c;
}

/* Products of the pixels that enter and leave the ring, and a triangular factor. */
static double local_rx_flops(const tess_op *op)
{
    const double c = (double)op->in[0].c, moved = 2.0 * (op->kernel[TESS_HEIGHT] + op->local_rx.inner);
    return pixels(&op->in[0]) * c * c * (moved + c / 3);
}

static bool dot_grad_shape(const tess_op *op, tess_tensor *out)
{
    const tess_tensor *in = &op->in[1];
    out->d = in->d;
    out->h = in->h;
    out->w = in->w;
    return op->in[0].c == 1 && out->c == in->c;
}

/* The products of all pairs of rows, twice. */
static double penalty_flops(const tess_op *op)
{
    return 4 * in_flops(op) * (double)op->penalty.rows;
}

/* The kernels check these shapes: they follow from attributes, differently for each kind. */
static bool any_shape(const tess_op *op, tess_tensor *out)
{
    *out = op->out[0];
    return true;
}

#define POINTWISE  TESS_REACH_POINTWISE
#define WINDOW     TESS_REACH_WINDOW
#define EVERYTHING TESS_REACH_EVERYTHING
#define TESS_OP_ROW(kind, name, least, most, outputs, params, reach, backward, shape, flops)                 \
    [TESS_OP_##kind] = {name, least, most, outputs, params, reach, backward, shape, flops},
static const tess_op_row rows[TESS_OP_KINDS] = {
#include "op/rows.def"
};
#undef TESS_OP_ROW

const tess_op_row *tess_op_row_of(tess_op_kind kind)
{
    return &rows[kind];
}

const char *tess_op_kind_name(tess_op_kind kind)
{
    return tess_op_row_of(kind)->name;
}

double tess_op_flops(const tess_op *op)
{
    return tess_op_row_of(op->kind)->flops(op);
}

tess_status tess_op_check(const tess_op *op, tess_error *error)
{
    if ((unsigned)op->kind >= TESS_OP_KINDS)
        return tess_fail(error, TESS_INTERNAL, "op %d is not in the table", (int)op->kind);
    const tess_op_row *row = tess_op_row_of(op->kind);
    if (op->inputs < row->least_inputs || op->inputs > row->most_inputs || op->outputs < 1 ||
        op->outputs > row->most_outputs)
        return tess_fail(error, TESS_INTERNAL,
                         "%s takes %d to %d inputs and at most %d outputs, not %d and %d", row->name,
                         row->least_inputs, row->most_inputs, row->most_outputs, op->inputs, op->outputs);
    if (op->masked &&
        (!tess_op_takes_mask(op) || op->mapped || op->inputs < 2 || op->activation != TESS_LINEAR))
        return tess_fail(error, TESS_INTERNAL, "only a linear convolution without a map takes a mask");
    tess_tensor out = op->out[0];
    if (!row->shape(op, &out) || out.d != op->out[0].d || out.h != op->out[0].h || out.w != op->out[0].w)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%s of %lldx%lldx%lld does not give %lldx%lldx%lld with %lld channels", row->name,
                         (long long)op->in[0].d, (long long)op->in[0].h, (long long)op->in[0].w,
                         (long long)op->out[0].d, (long long)op->out[0].h, (long long)op->out[0].w,
                         (long long)op->out[0].c);
    return TESS_OK;
}

static bool has_kernel(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_UP_CONV;
}

int tess_op_params(const tess_op *op, tess_op_param params[TESS_OP_PARAMS])
{
    if (op->kind == TESS_OP_GROUP_NORM) {
        params[0] = (tess_op_param){"weight", op->out[0].c, 1};
        params[1] = (tess_op_param){"bias", op->out[0].c, 1};
        return 2;
    }
    if (op->kind == TESS_OP_CHANNEL_MAP) {
        params[0] = (tess_op_param){"weight", op->out[0].c, 1};
        params[1] = (tess_op_param){"bias", op->out[0].c, 1};
        return tess_channel_has_bias(op->channel_map.form) ? 2 : 1;
    }
    if (!has_kernel(op))
        return 0;
    const bool transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    const int64_t first = transposed ? op->in[0].c : op->out[0].c,
                  second = transposed ? op->out[0].c : op->in[0].c;
    params[0] = (tess_op_param){"weight", first, second * tess_op_taps(op)};
    params[1] = (tess_op_param){"bias", op->out[0].c, 1};
    return op->bias ? 2 : 1;
}
