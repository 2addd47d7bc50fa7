/* Vector operations of solvers: weighted sums, inner products, products with a spectrum. The unit of work is a
 * line (one row of one image, all channels). All are memory-bound, so plain loops are enough.
 *
 * An inner product is summed in fp64 over blocks of lines, then over the blocks in order. Only the tensor
 * decides the size of a block, so any number of threads gives the same bits. */
#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

enum { DOT_BLOCK = 1 << 16, DOT_LANES = 8 };

typedef struct vector_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} vector_job;

static tess_status check_spectrum(const tess_op *op, tess_error *error)
{
    const tess_tensor *f = &op->in[1];
    const int64_t parts = op->spectrum.complex_factor ? 2 : 1;
    if (tess_op_residuals(op) < 1 || f->c != parts || f->n != 1 || f->d != 1 || f->w != op->in[0].w ||
        (f->h != op->in[0].h && f->h != 1) || op->in[0].c % parts)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "a factor of %lldx%lldx%lld does not fit a spectrum of %lldx%lldx%lld",
                         (long long)f->h, (long long)f->w, (long long)f->c, (long long)op->in[0].h,
                         (long long)op->in[0].w, (long long)op->in[0].c);
    return TESS_OK;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *error)
{
    (void)device;
    if (op->kind != TESS_OP_COMBINE && op->kind != TESS_OP_DOT && op->kind != TESS_OP_SPECTRUM)
        return tess_kernel_refuse(error, NULL);
    const char *name = tess_op_kind_name(op->kind);
    const bool dot = op->kind == TESS_OP_DOT, spectrum = op->kind == TESS_OP_SPECTRUM;
    bool fp32 = op->in[0].dtype == TESS_F32 && op->out[0].dtype == (dot ? TESS_F64 : TESS_F32);
    bool alike = dot ? tess_op_residuals(op) == 1 : tess_cpu_same_sizes(&op->in[0], &op->out[0]);
    for (int r = 0; r < tess_op_residuals(op); r++) {
        fp32 = fp32 && op->in[1 + r].dtype == TESS_F32;
        alike = alike && ((spectrum && r == 0) || tess_cpu_same_sizes(&op->in[0], &op->in[1 + r]));
    }
    if (!fp32)
        return tess_fail(error, TESS_UNSUPPORTED, "the CPU takes a %s of fp32 values", name);
    if (!alike)
        return tess_fail(error, TESS_UNSUPPORTED, "a %s takes tensors of one shape", name);
    return spectrum ? check_spectrum(op, error) : TESS_OK;
}

/* Lines per block, and number of blocks. */
static int64_t dot_lines(const tess_tensor *t)
{
    return tess_max_i64(1, DOT_BLOCK / tess_max_i64(1, t->w * t->c));
}

static int64_t dot_blocks(const tess_tensor *t)
{
    return tess_ceil_div(tess_cpu_lines(t), dot_lines(t));
}

static void vector_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    const size_t sums = op->kind == TESS_OP_DOT ? (size_t)dot_blocks(&op->in[0]) * sizeof(double) : 0;
    *needs = (tess_op_needs){.workspace = sums, .block = 1};
}

typedef struct operand {
    const float *data; /* NULL: the factor is zero, and the tensor is not read */
    int64_t step;      /* elements from pixel to pixel */
    float factor;
} operand;

static operand operand_of(const vector_job *job, int which, double factor, int64_t item)
{
    const tess_op *op = job->op;
    const tess_tensor *t = &op->in[which];
    const float *data = job->buffers->in[which];
    if (factor == 0 || which > tess_op_residuals(op))
        return (operand){0};
    return (operand){data + tess_cpu_line(t, item), t->stride_w, (float)factor};
}

static inline float limited(float value, float low, float high)
{
    value = value < low ? low : value; /* in this form NaN stays NaN, and is noticed */
    return value > high ? high : value;
}

static void combine_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const vector_job *job = arg;
    const tess_op *op = job->op;
    const tess_op_combine *k = &op->combine;
    operand from[3] = {operand_of(job, 0, k->a, item), operand_of(job, 1, k->b, item),
                       operand_of(job, 2, k->c, item)};
    float *out = (float *)job->buffers->out[0] + tess_cpu_line(&op->out[0], item);
    int64_t pixels = op->in[0].w, channels = op->in[0].c;
    bool flat = op->out[0].stride_w == channels;
    int used = 0;
    for (int i = 0; i < 3; i++)
        if (from[i].data) {
            flat = flat && from[i].step == channels;
            from[used++] = from[i];
        }
    for (int i = used; i < 3; i++)
        from[i] = (operand){out, 0, 0};
    if (flat)
        channels *= pixels, pixels = 1;
    const float low = (float)k->low, high = (float)k->high;
    for (int64_t x = 0; x < pixels; x++, out += op->out[0].stride_w) {
        const float *a = from[0].data + x * from[0].step, *b = from[1].data + x * from[1].step,
                    *c = from[2].data + x * from[2].step;
        const float fa = from[0].factor, fb = from[1].factor, fc = from[2].factor;
        for (int64_t i = 0; used == 0 && i < channels; i++)
            out[i] = limited(0, low, high);
        for (int64_t i = 0; used == 1 && i < channels; i++)
            out[i] = limited(fa * a[i], low, high);
        for (int64_t i = 0; used == 2 && i < channels; i++)
            out[i] = limited(fa * a[i] + fb * b[i], low, high);
        for (int64_t i = 0; used == 3 && i < channels; i++)
            out[i] = limited(fa * a[i] + fb * b[i] + fc * c[i], low, high);
    }
}

static double dot_run(const float *a, const float *b, int64_t count)
{
    double lanes[DOT_LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + DOT_LANES <= count; i += DOT_LANES)
        for (int l = 0; l < DOT_LANES; l++)
            lanes[l] += (double)a[i + l] * (double)b[i + l];
    for (; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    for (int l = 0; l < DOT_LANES; l++)
        sum += lanes[l];
    return sum;
}

static void dot_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const vector_job *job = arg;
    const tess_tensor *a = &job->op->in[0], *b = &job->op->in[1];
    const int64_t lines = dot_lines(a), end = tess_min_i64(tess_cpu_lines(a), (item + 1) * lines);
    const bool flat = a->stride_w == a->c && b->stride_w == a->c;
    double sum = 0;
    for (int64_t line = item * lines; line < end; line++) {
        const float *x = (const float *)job->buffers->in[0] + tess_cpu_line(a, line);
        const float *y = (const float *)job->buffers->in[1] + tess_cpu_line(b, line);
        if (flat)
            sum += dot_run(x, y, a->w * a->c);
        else
            for (int64_t i = 0; i < a->w; i++, x += a->stride_w, y += b->stride_w)
                sum += dot_run(x, y, a->c);
    }
    ((double *)job->buffers->workspace)[item] = sum;
}

static void spectrum_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const vector_job *job = arg;
    const tess_op *op = job->op;
    const tess_tensor *f = &op->in[1], *s = &op->in[2];
    const float *in = (const float *)job->buffers->in[0] + tess_cpu_line(&op->in[0], item);
    const float *factor =
        (const float *)job->buffers->in[1] + (f->h == 1 ? 0 : item % op->in[0].h * f->stride_h);
    const float *less =
        tess_op_residuals(op) > 1 ? (const float *)job->buffers->in[2] + tess_cpu_line(s, item) : NULL;
    float *out = (float *)job->buffers->out[0] + tess_cpu_line(&op->out[0], item);
    for (int64_t x = 0; x < op->in[0].w; x++, in += op->in[0].stride_w, out += op->out[0].stride_w) {
        const float re = factor[x * f->stride_w];
        if (op->spectrum.complex_factor) {
            const float im = factor[x * f->stride_w + 1] * (op->spectrum.conjugate ? -1.0f : 1.0f);
            for (int64_t c = 0; c < op->in[0].c; c += 2) {
                const float a = in[c], b = in[c + 1]; /* `out` may be `in` or the factor */
                out[c] = a * re - b * im - (less ? less[c] : 0);
                out[c + 1] = a * im + b * re - (less ? less[c + 1] : 0);
            }
        } else {
            for (int64_t c = 0; c < op->in[0].c; c++)
                out[c] = in[c] * re - (less ? less[c] : 0);
        }
        less = less ? less + s->stride_w : NULL;
    }
}

static void vector_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                       tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    vector_job job = {op, buffers};
    if (op->kind != TESS_OP_DOT) {
        tess_pool_run(cpu->pool, tess_cpu_lines(&op->in[0]),
                      op->kind == TESS_OP_COMBINE ? combine_item : spectrum_item, &job);
        return;
    }
    const int64_t blocks = dot_blocks(&op->in[0]);
    tess_pool_run(cpu->pool, blocks, dot_item, &job);
    double sum = 0;
    for (int64_t i = 0; i < blocks; i++)
        sum += ((const double *)buffers->workspace)[i];
    *(double *)buffers->out[0] = sum;
}

const tess_kernel tess_cpu_vector = {
    .name = "vector", .refuses = refuses, .needs = vector_needs, .run = vector_run};
