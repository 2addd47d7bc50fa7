/* The row "generic" for CONV_GRAD: the division into parts, then the kernel of the type, then the sums. */
#include "cuda/convgrad/conv_grad.h"

#include "base/checked.h"

enum {
    STEP = 32, /* pixels: a multiple of both kernels' steps */
    ROWS = 64, /* of a block */
    COLUMNS = 128,
    BLOCKS = 512, /* enough for any card */
    LEAST_STEPS = 8,
    ALIGNMENT = 256
};
static const int64_t MOST_PARTIALS = 8 << 20; /* values */

static bool is_value(tess_dtype dtype)
{
    return dtype == TESS_F32 || dtype == TESS_F16 || dtype == TESS_BF16;
}

static int64_t count_of(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

tess_dtype tess_cuda_conv_grad_type(const tess_op *op)
{
    return op->in[0].dtype != TESS_F32 ? op->in[0].dtype : op->in[1].dtype;
}

static bool window_fits(const tess_op *op)
{
    const int64_t in[TESS_SPATIAL] = {op->in[0].d, op->in[0].h, op->in[0].w},
                  out[TESS_SPATIAL] = {op->in[1].d, op->in[1].h, op->in[1].w};
    for (int s = 0; s < TESS_SPATIAL; s++) {
        const int64_t room = in[s] + op->pad_before[s] + op->pad_after[s] - op->kernel[s];
        if (op->kernel[s] < 1 || op->stride[s] < 1 || op->pad_before[s] < 0 || op->pad_after[s] < 0 ||
            room < 0 || room / op->stride[s] + 1 != out[s])
            return false;
    }
    return op->in[0].n == op->in[1].n;
}

const char *tess_cuda_conv_grad_refuses(const tess_op *op)
{
    const tess_tensor *x = &op->in[0], *dy = &op->in[1];
    if (op->kind != TESS_OP_CONV_GRAD)
        return "not the gradient of a convolution's parameters";
    if (tess_op_is_pair(op) &&
        (op->inputs != 4 || op->outputs != 2 || !tess_tensor_same(x, &op->in[2]) ||
         !tess_tensor_same(dy, &op->in[3]) || !tess_tensor_same(&op->out[0], &op->out[1])))
        return "the two convolutions of a pair must be alike";
    if (!is_value(x->dtype) || !is_value(dy->dtype))
        return "values are fp32, fp16 or bf16";
    if (x->dtype != dy->dtype && x->dtype != TESS_F32 && dy->dtype != TESS_F32)
        return "the inputs must have one type, or one is an fp32 image";
    if (x->d != 1 || dy->d != 1 || op->kernel[TESS_DEPTH] != 1)
        return "there are no 3-D kernels";
    if (!window_fits(op))
        return "the gradient has not the shape of the convolution's output";
    if (op->out[0].dtype != TESS_F32 || count_of(&op->out[0]) != x->c * dy->c * tess_op_taps(op) ||
        (op->outputs > 1 && !tess_op_is_pair(op) &&
         (op->out[1].dtype != TESS_F32 || count_of(&op->out[1]) != dy->c)))
        return "the results are flat fp32 vectors, one value for each parameter";
    if (x->c * tess_op_taps(op) > INT32_MAX / 2 || dy->c > 65535 * ROWS || x->h > INT32_MAX / 4 ||
        x->w > INT32_MAX / 4 || tess_op_taps(op) > 128 || dy->n * dy->h * dy->w > INT32_MAX / 2)
        return "takes smaller tensors";
    return NULL;
}

static bool wide(const tess_tensor *t, const void *data)
{
    const int64_t piece = 16 / (int64_t)tess_dtype_size(t->dtype);
    return t->c % piece == 0 && t->stride_n % piece == 0 && t->stride_h % piece == 0 &&
           t->stride_w % piece == 0 && (uintptr_t)data % 16 == 0;
}

/* As many parts as fill a card, if each has some steps and the partial sums stay small. */
static void divide(tess_grad_job *job)
{
    const int64_t blocks =
        (int64_t)((job->columns + COLUMNS - 1) / COLUMNS) * ((job->cout + ROWS - 1) / ROWS);
    int64_t parts = (BLOCKS + blocks - 1) / blocks;
    parts = tess_min_i64(parts, (job->pixels + STEP * LEAST_STEPS - 1) / (STEP * LEAST_STEPS));
    parts = tess_max_i64(1, tess_min_i64(parts, MOST_PARTIALS / ((int64_t)job->cout * job->columns)));
    job->per_part = ((job->pixels + parts - 1) / parts + STEP - 1) / STEP * STEP;
    job->parts = (int)((job->pixels + job->per_part - 1) / job->per_part);
}

static tess_grad_job job_of(const tess_op *op)
{
    const tess_tensor *x = &op->in[0], *dy = &op->in[1];
    tess_grad_job job = {.pixels = dy->n * dy->h * dy->w,
                         .w = (unsigned)dy->w,
                         .h = (unsigned)dy->h,
                         .in_h = (int)x->h,
                         .in_w = (int)x->w,
                         .cin = (int)x->c,
                         .cout = (int)dy->c,
                         .taps = (int)tess_op_taps(op),
                         .kw = op->kernel[TESS_WIDTH],
                         .columns = (int)(tess_op_taps(op) * x->c),
                         .in_n = x->stride_n,
                         .in_y = x->stride_h,
                         .in_x = x->stride_w,
                         .dy_n = dy->stride_n,
                         .dy_y = dy->stride_h,
                         .dy_x = dy->stride_w,
                         .stride_y = op->stride[TESS_HEIGHT],
                         .stride_x = op->stride[TESS_WIDTH],
                         .top = op->pad_before[TESS_HEIGHT],
                         .left = op->pad_before[TESS_WIDTH]};
    divide(&job);
    return job;
}

static size_t partial_bytes(const tess_grad_job *job)
{
    return tess_align_size((size_t)job->parts * (size_t)job->cout * (size_t)job->columns * sizeof(float),
                           ALIGNMENT);
}

static const char *refuses(const tess_op *op, int capability)
{
    (void)capability;
    const char *why = tess_cuda_conv_grad_refuses(op);
    return !why && tess_op_is_pair(op) ? "takes one convolution at a time" : why;
}

static size_t workspace(const tess_op *op)
{
    if (tess_cuda_pixels_grad_fits(op))
        return tess_cuda_pixels_grad_bytes(op);
    const tess_grad_job job = job_of(op);
    return partial_bytes(&job) + (op->outputs > 1 ? tess_cuda_channel_sum_bytes(&op->in[1]) : 0);
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    if (tess_cuda_pixels_grad_fits(op))
        return tess_cuda_pixels_grad(op, buffers, stream);
    tess_grad_job job = job_of(op);
    job.in = buffers->in[0];
    job.dy = buffers->in[1];
    job.partials = buffers->workspace;
    job.wide_in = wide(&op->in[0], job.in);
    job.wide_dy = wide(&op->in[1], job.dy);
    const tess_sums sums = {.of = {{.values = job.partials,
                                    .dtype = TESS_F32,
                                    .parts = job.parts,
                                    .rows = job.cout,
                                    .taps = job.taps,
                                    .columns = job.cin,
                                    .out_rows = job.cout,
                                    .out_columns = job.cin,
                                    .out = buffers->out[0]}},
                            .count = 1,
                            .accumulate = op->grad.accumulate};
    cudaError_t result = tess_cuda_conv_grad_type(op) == TESS_F32 ? tess_cuda_grad_float(&job, stream)
                                                                  : tess_cuda_grad_matrix(op, &job, stream);
    if (result == cudaSuccess)
        result = tess_cuda_sum_parts(&sums, stream);
    if (result == cudaSuccess && op->outputs > 1)
        result =
            tess_cuda_channel_sum_run(&op->in[1], job.dy, (char *)buffers->workspace + partial_bytes(&job),
                                      buffers->out[1], op->grad.accumulate, stream);
    return result;
}

const tess_cuda_launch tess_cuda_conv_grad = {refuses, run, NULL, workspace, NULL, NULL, NULL};
