/* Vector operations of solvers: weighted sums, inner products, products with a spectrum. All are memory-bound.
 *
 * COMBINE and SPECTRUM: one thread per value (per complex pair with a complex factor). Grid: x over the values
 * of a line (one row of one image, all channels), y over lines; a COMBINE of dense tensors is one line. Sums
 * are rounded as on the CPU: no contraction, the same order.
 *
 * DOT: the values are divided into parts of PART, by the tensor's size alone. A block sums a part in fp64:
 * each thread every THREADS-th value, then the block as a tree. One block then sums the parts in the same way.
 * There are no atomics, so the bits do not depend on the card or on other work. */
#include "cuda/core/cuda.h"
#include "cuda/core/early.cuh"
#include "cuda/core/load.h"
#include "cuda/core/sums.cuh"

namespace
{

enum { THREADS = 256, PART = 1 << 15, AHEAD = 8 };
const unsigned MOST = 65535; /* limit of the grid in y */

/* The common shape of all tensors of an op, and the start of a line in each. */
struct lines {
    unsigned d, h, count;
    unsigned c;  /* values per pixel */
    int64_t row; /* values per line; below 2^31 if there are gaps */
};

__device__ __forceinline__ int64_t line_at(const tess_tensor &t, const lines &l, unsigned line)
{
    const unsigned y = line % l.h, image = line / l.h;
    return image / l.d * t.stride_n + image % l.d * t.stride_d + y * t.stride_h;
}

/* The offset of value i of a line. */
__device__ __forceinline__ int64_t value_at(const tess_tensor &t, const lines &l, int64_t i)
{
    return t.stride_w == l.c ? i : (unsigned)i / l.c * t.stride_w + (unsigned)i % l.c;
}

struct combine_job {
    lines l;
    tess_tensor from[3], out;
    const float *data[3]; /* NULL: not read */
    float factor[3], low, high;
    float *to;
};

__global__ void __launch_bounds__(THREADS) combine_kernel(const __grid_constant__ combine_job job)
{
    begin_early();
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= job.l.row)
        return;
    for (unsigned line = blockIdx.y; line < job.l.count; line += gridDim.y) {
        float sum = 0;
        bool first = true;
#pragma unroll
        for (int k = 0; k < 3; k++)
            if (job.data[k]) {
                const float value = __fmul_rn(
                    job.factor[k],
                    job.data[k][line_at(job.from[k], job.l, line) + value_at(job.from[k], job.l, i)]);
                sum = first ? value : __fadd_rn(sum, value); /* 0 + -0 would give +0 */
                first = false;
            }
        sum = sum < job.low ? job.low : sum; /* in this form NaN stays NaN, and is noticed */
        sum = sum > job.high ? job.high : sum;
        job.to[line_at(job.out, job.l, line) + value_at(job.out, job.l, i)] = sum;
    }
}

struct spectrum_job {
    lines l;
    tess_tensor in, factor, less, out;
    const float *from, *times, *minus; /* minus may be NULL */
    float *to;
    float sign; /* of the factor's imaginary part */
    bool one_row;
};

/* PARTS values of one pixel belong together. All inputs are read before anything is written, because `out` may
 * alias any of them. A factor that is overwritten has one channel (or pair) and as many rows as `out`, so only
 * this thread reads it. */
template <int PARTS>
__global__ void __launch_bounds__(THREADS) spectrum_kernel(const __grid_constant__ spectrum_job job)
{
    const int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * PARTS;
    if (i >= job.l.row)
        return;
    for (unsigned line = blockIdx.y; line < job.l.count; line += gridDim.y) {
        const int64_t row = job.one_row ? 0 : line % job.l.h * job.factor.stride_h;
        const float *factor = job.times + row + (unsigned)i / job.l.c * job.factor.stride_w;
        const float *in = job.from + line_at(job.in, job.l, line) + value_at(job.in, job.l, i);
        const int64_t less = job.minus ? line_at(job.less, job.l, line) + value_at(job.less, job.l, i) : 0;
        float *out = job.to + line_at(job.out, job.l, line) + value_at(job.out, job.l, i);
        const float re = factor[0], a = in[0], less_re = job.minus ? job.minus[less] : 0;
        if (PARTS == 2) {
            const float im = factor[1] * job.sign, b = in[1], less_im = job.minus ? job.minus[less + 1] : 0;
            out[0] = __fsub_rn(__fsub_rn(__fmul_rn(a, re), __fmul_rn(b, im)), less_re);
            out[1] = __fsub_rn(__fadd_rn(__fmul_rn(a, im), __fmul_rn(b, re)), less_im);
        } else {
            out[0] = __fsub_rn(__fmul_rn(a, re), less_re);
        }
    }
}

struct dot_job {
    lines l;
    tess_tensor a, b;
    const float *x, *y;
    double *parts;
    bool dense;
};

/* The sum of a thread's values without gaps, in their order. AHEAD values are read at once: one at a time does not
 * keep the memory busy. */
__device__ __forceinline__ double dot_dense(const dot_job &job, int64_t i, int64_t end)
{
    const bool square = job.x == job.y;
    double sum = 0;
    for (; i + (AHEAD - 1) * THREADS < end; i += AHEAD * THREADS) {
        float x[AHEAD], y[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            x[k] = job.x[i + k * THREADS];
            y[k] = square ? x[k] : job.y[i + k * THREADS];
        }
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            sum += (double)x[k] * (double)y[k];
    }
    for (; i < end; i += THREADS)
        sum += (double)job.x[i] * (double)job.y[i];
    return sum;
}

/* One block per part; products of two floats are exact in fp64. */
__global__ void __launch_bounds__(THREADS) dot_kernel(const __grid_constant__ dot_job job)
{
    begin_early();
    const int64_t all = (int64_t)job.l.count * job.l.row, begin = (int64_t)blockIdx.x * PART,
                  end = begin + PART < all ? begin + PART : all;
    double sum = 0;
    if (job.dense)
        sum = dot_dense(job, begin + threadIdx.x, end);
    else
        for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
            const unsigned line = (unsigned)(i / job.l.row);
            const int64_t in_line = i - line * job.l.row;
            const int64_t at_x = line_at(job.a, job.l, line) + value_at(job.a, job.l, in_line),
                          at_y = line_at(job.b, job.l, line) + value_at(job.b, job.l, in_line);
            sum += (double)job.x[at_x] * (double)job.y[at_y];
        }
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        job.parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS) dot_end_kernel(const double *parts, int64_t count, double *out)
{
    begin_early();
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
        sum += parts[i];
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        *out = sum;
}

bool same_shape(const tess_tensor *a, const tess_tensor *b)
{
    return a->n == b->n && a->d == b->d && a->h == b->h && a->w == b->w && a->c == b->c;
}

/* True if the values have no gaps; strides of dimensions of size one do not matter. */
bool is_dense(const tess_tensor *t)
{
    return (t->w == 1 || t->stride_w == t->c) && (t->h == 1 || t->stride_h == t->w * t->c) &&
           (t->d == 1 || t->stride_d == t->h * t->w * t->c) &&
           (t->n == 1 || t->stride_n == t->d * t->h * t->w * t->c);
}

int64_t values_of(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

int64_t dot_parts(const tess_tensor *t)
{
    return (values_of(t) + PART - 1) / PART;
}

lines lines_of(const tess_tensor *t)
{
    lines l = {};
    l.d = (unsigned)t->d;
    l.h = (unsigned)t->h;
    l.count = (unsigned)(t->n * t->d * t->h);
    l.c = (unsigned)t->c;
    l.row = t->w * t->c;
    return l;
}

dim3 grid_of(const lines &l, int64_t parts)
{
    return dim3((unsigned)((l.row / parts + THREADS - 1) / THREADS), l.count < MOST ? l.count : MOST);
}

cudaError_t run_combine(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const tess_op_combine *k = &op->combine;
    const double factors[3] = {k->a, k->b, k->c};
    combine_job job = {};
    job.l = lines_of(&op->in[0]);
    job.out = op->out[0];
    job.to = (float *)b->out[0];
    job.low = (float)k->low;
    job.high = (float)k->high;
    bool dense = is_dense(&op->out[0]);
    for (int i = 0; i < 3; i++) {
        if (factors[i] == 0 || i > tess_op_residuals(op))
            continue;
        job.from[i] = i ? op->in[1 + i - 1] : op->in[0];
        job.data[i] = (const float *)(i ? b->in[1 + i - 1] : b->in[0]);
        job.factor[i] = (float)factors[i];
        dense = dense && is_dense(&job.from[i]);
    }
    if (dense) { /* one line */
        job.l.row *= job.l.count;
        job.l.d = job.l.h = job.l.count = 1;
        job.out.stride_w = job.from[0].stride_w = job.from[1].stride_w = job.from[2].stride_w = job.l.c;
    }
    return tess_launch_early(combine_kernel, grid_of(job.l, 1), THREADS, 0, stream, job);
}

cudaError_t run_spectrum(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    spectrum_job job = {};
    job.l = lines_of(&op->in[0]);
    job.in = op->in[0];
    job.out = op->out[0];
    job.factor = op->in[1];
    job.from = (const float *)b->in[0];
    job.times = (const float *)b->in[1];
    if (tess_op_residuals(op) > 1) {
        job.less = op->in[2];
        job.minus = (const float *)b->in[2];
    }
    job.to = (float *)b->out[0];
    job.sign = op->spectrum.conjugate ? -1.0f : 1.0f;
    job.one_row = op->in[1].h == 1;
    if (op->spectrum.complex_factor)
        spectrum_kernel<2><<<grid_of(job.l, 2), THREADS, 0, stream>>>(job);
    else
        spectrum_kernel<1><<<grid_of(job.l, 1), THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

cudaError_t run_dot(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    dot_job job = {};
    job.l = lines_of(&op->in[0]);
    job.a = op->in[0];
    job.b = op->in[1];
    job.x = (const float *)b->in[0];
    job.y = (const float *)b->in[1];
    job.parts = (double *)(((uintptr_t)b->workspace + sizeof(double) - 1) / sizeof(double) * sizeof(double));
    job.dense = is_dense(&op->in[0]) && is_dense(&op->in[1]);
    const int64_t parts = dot_parts(&op->in[0]);
    if (parts == 1)
        job.parts = (double *)b->out[0];
    const cudaError_t result = tess_launch_early(dot_kernel, (unsigned)parts, THREADS, 0, stream, job);
    if (result != cudaSuccess || parts <= 1)
        return result;
    return tess_launch_early(dot_end_kernel, 1, THREADS, 0, stream, job.parts, parts, (double *)b->out[0]);
}

const char *refuses_factor(const tess_op *op)
{
    const tess_tensor *f = &op->in[1];
    const int64_t parts = op->spectrum.complex_factor ? 2 : 1;
    if (tess_op_residuals(op) < 1 || f->c != parts || f->n != 1 || f->d != 1 || f->w != op->in[0].w ||
        (f->h != op->in[0].h && f->h != 1) || op->in[0].c % parts)
        return "the factor does not fit the spectrum";
    return NULL;
}

const char *vector_refuses(const tess_op *op, int)
{
    const bool dot = op->kind == TESS_OP_DOT, spectrum = op->kind == TESS_OP_SPECTRUM;
    if (op->kind != TESS_OP_COMBINE && !dot && !spectrum)
        return "only sums and products of vectors";
    if (op->in[0].dtype != TESS_F32 || op->out[0].dtype != (dot ? TESS_F64 : TESS_F32))
        return "values are fp32";
    if (dot ? tess_op_residuals(op) != 1 : !same_shape(&op->in[0], &op->out[0]))
        return "the tensors differ in shape";
    for (int r = 0; r < tess_op_residuals(op); r++) {
        if (op->in[1 + r].dtype != TESS_F32)
            return "values are fp32";
        if (!(spectrum && r == 0) && !same_shape(&op->in[0], &op->in[1 + r]))
            return "the tensors differ in shape";
    }
    if (op->in[0].w * op->in[0].c > INT32_MAX || op->in[0].n * op->in[0].d * op->in[0].h > INT32_MAX ||
        values_of(&op->in[0]) > (int64_t)INT32_MAX * THREADS)
        return "it has too many values";
    if (values_of(&op->in[0]) < 1)
        return "it has no values";
    return spectrum ? refuses_factor(op) : NULL;
}

size_t vector_workspace(const tess_op *op)
{
    return op->kind == TESS_OP_DOT ? (size_t)(dot_parts(&op->in[0]) + 1) * sizeof(double) : 0;
}

cudaError_t vector_run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    return op->kind == TESS_OP_COMBINE ? run_combine(op, b, stream)
           : op->kind == TESS_OP_DOT   ? run_dot(op, b, stream)
                                       : run_spectrum(op, b, stream);
}

/* Loads all kernels, before any graph is captured. */
cudaError_t vector_load(int)
{
    const void *const kernels[] = {(const void *)combine_kernel, (const void *)spectrum_kernel<1>,
                                   (const void *)spectrum_kernel<2>, (const void *)dot_kernel,
                                   (const void *)dot_end_kernel};
    cudaError_t result = cudaSuccess;
    for (const void *kernel : kernels)
        result = result == cudaSuccess ? tess_cuda_load(kernel, 0) : result;
    return result;
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_vector = {vector_refuses, vector_run, vector_load,
                                                      vector_workspace};
