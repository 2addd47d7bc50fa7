#include "op/passes.h"

/* One volume of a batch and its buffers. */
typedef struct volume {
    const tess_op *op;
    tess_op_buffers at;
    size_t tap_bytes;
    tess_pass_fn pass;
    void *user;
} volume;

static tess_tensor slices_of(tess_tensor whole, int64_t count, int64_t step)
{
    whole.n = count;
    whole.stride_n = step * whole.stride_d;
    whole.d = 1;
    return whole;
}

tess_op tess_op_slices(const tess_op *op, int64_t count, int64_t in_step, int64_t out_step)
{
    tess_op flat = *op;
    flat.in[0] = slices_of(op->in[0], count, in_step);
    flat.out[0] = slices_of(op->out[0], count, out_step);
    for (int i = 1; i < op->inputs; i++)
        flat.in[i] = slices_of(op->in[i], count, out_step);
    flat.kernel[TESS_DEPTH] = flat.stride[TESS_DEPTH] = 1;
    flat.pad_before[TESS_DEPTH] = flat.pad_after[TESS_DEPTH] = 0;
    return flat;
}

static const void *moved(const tess_tensor *t, const void *data, int64_t elements)
{
    return data ? (const char *)data + elements * (int64_t)tess_dtype_size(t->dtype) : NULL;
}

/* The buffers of volume n, moved to slice `in` of its input and slice `out` of its output. */
static tess_op_buffers moved_to(const tess_op *op, tess_op_buffers at, int64_t n, int64_t in, int64_t out)
{
    at.in[0] = moved(&op->in[0], at.in[0], n * op->in[0].stride_n + in * op->in[0].stride_d);
    at.out[0] = (void *)moved(&op->out[0], at.out[0], n * op->out[0].stride_n + out * op->out[0].stride_d);
    for (int i = 1; i < op->inputs; i++)
        at.in[i] = moved(&op->in[i], at.in[i], n * op->in[i].stride_n + out * op->in[i].stride_d);
    return at;
}

static tess_op_buffers buffers_at(const volume *v, int64_t in, int64_t out, int tap)
{
    tess_op_buffers at = moved_to(v->op, v->at, 0, in, out);
    at.weights = at.weights ? (const char *)at.weights + (size_t)tap * v->tap_bytes : NULL;
    return at;
}

/* The depth tap of a pass: the middle tap first, then the others. */
static int tap_at(int pass, int taps)
{
    const int middle = taps / 2;
    return pass == 0 ? middle : pass <= middle ? pass - 1 : pass;
}

static bool inside(const tess_op *op, int tap, int64_t z)
{
    const int64_t from = z * op->stride[TESS_DEPTH] + tap - op->pad_before[TESS_DEPTH];
    return from >= 0 && from < op->in[0].d;
}

/* True if none of the passes [first, end) reads a slice for output slice z. */
static bool untouched(const tess_op *op, int first, int end, int64_t z)
{
    for (int pass = first; pass < end; pass++)
        if (inside(op, tap_at(pass, op->kernel[TESS_DEPTH]), z))
            return false;
    return true;
}

/* What a pass does with a slice. */
typedef struct role {
    bool reached, begins, relu;
} role;

static role role_of(const tess_op *op, int pass, int64_t z)
{
    const int taps = op->kernel[TESS_DEPTH];
    return (role){.reached = inside(op, tap_at(pass, taps), z),
                  .begins = untouched(op, 0, pass, z),
                  .relu = tess_op_relu(op) && untouched(op, pass + 1, taps, z)};
}

/* One pass over slices [z, z + count), for all of which the pass has the same role. */
static tess_status accumulate(const volume *v, int pass, int64_t z, int64_t count, tess_error *error)
{
    const tess_op *op = v->op;
    const role mine = role_of(op, pass, z);
    const int tap = tap_at(pass, op->kernel[TESS_DEPTH]), stride = op->stride[TESS_DEPTH];
    tess_op flat = tess_op_slices(op, count, stride, 1);
    tess_op_buffers at = buffers_at(v, z * stride + tap - op->pad_before[TESS_DEPTH], z, tap);
    flat.activation = mine.relu ? TESS_RELU : TESS_LINEAR;
    if (!mine.begins) {
        flat.bias = flat.mapped = false;
        flat.inputs = 2;
        flat.in[1] = flat.out[0];
        at.in[1] = at.out[0];
    }
    return v->pass(v->user, &flat, &at, error);
}

static tess_status run_conv(const volume *v, tess_error *error)
{
    const tess_op *op = v->op;
    for (int pass = 0; pass < op->kernel[TESS_DEPTH]; pass++)
        for (int64_t z = 0, end; z < op->out[0].d; z = end) {
            const role first = role_of(op, pass, z);
            for (end = z + 1; end < op->out[0].d; end++) {
                const role next = role_of(op, pass, end);
                if (next.reached != first.reached || next.begins != first.begins || next.relu != first.relu)
                    break;
            }
            if (first.reached)
                TESS_TRY(accumulate(v, pass, z, end - z, error));
        }
    return TESS_OK;
}

/* Kernel = stride: each output slice depends on one tap and one input slice. */
static tess_status run_transpose(const volume *v, tess_error *error)
{
    const int taps = v->op->kernel[TESS_DEPTH];
    const tess_op flat = tess_op_slices(v->op, v->op->in[0].d, 1, taps);
    for (int tap = 0; tap < taps; tap++) {
        const tess_op_buffers at = buffers_at(v, 0, tap, tap);
        TESS_TRY(v->pass(v->user, &flat, &at, error));
    }
    return TESS_OK;
}

tess_status tess_op_passes(const tess_op *op, const tess_op_buffers *buffers, size_t tap_bytes,
                           tess_pass_fn pass, void *user, tess_error *error)
{
    for (int64_t n = 0; n < op->out[0].n; n++) {
        const volume v = {op, moved_to(op, *buffers, n, 0, 0), tap_bytes, pass, user};
        const tess_op flat = tess_op_slices(op, op->out[0].d, 1, 1);
        TESS_TRY(op->kind == TESS_OP_CONV             ? run_conv(&v, error)
                 : op->kind == TESS_OP_CONV_TRANSPOSE ? run_transpose(&v, error)
                                                      : pass(user, &flat, &v.at, error));
    }
    return TESS_OK;
}
