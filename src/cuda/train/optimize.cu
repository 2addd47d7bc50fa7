/* OPTIMIZE and AVERAGE: one pass over flat fp32 arrays, at the rate of the memory. A thread has four neighbours if all
 * arrays allow it, PIECES times, so that the factors of the step cost little. Numbers that change from step to step come from device
 * memory, and so does the decision to change nothing, so that a captured step can be replayed.
 *
 * Formulas and their order are those of PyTorch 2 (torch/optim, single tensor), in fp32 without contraction, with
 * factors computed in fp64: on the CPU the same steps give the same bits. */
#include "cuda/core/early.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256, PIECES = 4, GRADIENT = 0, CONTROL = 1, SQUARES = 2 };

struct step_job {
    int64_t values;
    tess_op_optimize optimize;
    const float *gradient;
    const double *control, *squares;
    float *parameter, *first, *second; /* NULL: not there */
};

/* The factors of one step. Clipping is that of torch.nn.utils.clip_grad_norm_. */
struct step_factors {
    float gradient, decay, keep, first, more_first, second, more_second, root, epsilon, rate;
};

__device__ __forceinline__ bool finite(double value)
{
    return value - value == 0;
}

__device__ __forceinline__ step_factors factors_of(const step_job &job)
{
    const tess_op_optimize &o = job.optimize;
    const double scale = job.control[TESS_CONTROL_LOSS_SCALE], rate = job.control[TESS_CONTROL_RATE],
                 most = o.clip / (sqrt(*job.squares) / scale + 1e-6);
    const bool sgd = o.kind == TESS_SGD;
    step_factors f;
    f.gradient = (float)((o.clip > 0 && most < 1 ? most : 1) / scale);
    f.decay = (float)o.weight_decay;
    f.keep = (float)(1 - rate * o.weight_decay);
    f.first = (float)(sgd ? o.momentum : o.beta1);
    f.more_first = (float)(1 - o.beta1);
    f.second = (float)o.beta2;
    f.more_second = (float)(1 - o.beta2);
    f.root = sgd ? 1 : (float)sqrt(job.control[TESS_CONTROL_CORRECTION2]);
    f.epsilon = (float)o.epsilon;
    f.rate = (float)(sgd ? rate : rate / job.control[TESS_CONTROL_CORRECTION1]);
    return f;
}

__device__ __forceinline__ void sgd(const tess_op_optimize &o, const step_factors &f, float g, float *p,
                                    float *m)
{
    if (o.weight_decay != 0)
        g = __fadd_rn(g, __fmul_rn(f.decay, *p));
    if (o.momentum > 0) {
        *m = __fadd_rn(__fmul_rn(f.first, *m), g);
        g = o.nesterov ? __fadd_rn(g, __fmul_rn(f.first, *m)) : *m;
    }
    *p = __fsub_rn(*p, __fmul_rn(f.rate, g));
}

__device__ __forceinline__ void adam(const tess_op_optimize &o, const step_factors &f, float g, float *p,
                                     float *m, float *v)
{
    if (o.weight_decay != 0) {
        if (o.kind == TESS_ADAMW)
            *p = __fmul_rn(*p, f.keep);
        else
            g = __fadd_rn(g, __fmul_rn(f.decay, *p));
    }
    *m = __fadd_rn(*m, __fmul_rn(f.more_first, __fsub_rn(g, *m)));
    *v = __fadd_rn(__fmul_rn(*v, f.second), __fmul_rn(__fmul_rn(f.more_second, g), g));
    const float root = __fadd_rn(__fdiv_rn(__fsqrt_rn(*v), f.root), f.epsilon);
    *p = __fsub_rn(*p, __fdiv_rn(__fmul_rn(f.rate, *m), root));
}

/* N values from `i` on; a moment that is not there reads as zero. */
template <int N> __device__ __forceinline__ void step(const step_job &job, const step_factors &f, int64_t i)
{
    float g[N], p[N], m[N] = {}, v[N] = {};
    tess_load<N>(job.gradient + i, g);
    tess_load<N>(job.parameter + i, p);
    if (job.first)
        tess_load<N>(job.first + i, m);
    if (job.second)
        tess_load<N>(job.second + i, v);
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float gradient = __fmul_rn(g[j], f.gradient);
        if (job.optimize.kind == TESS_SGD)
            sgd(job.optimize, f, gradient, &p[j], &m[j]);
        else
            adam(job.optimize, f, gradient, &p[j], &m[j], &v[j]);
    }
    tess_store<N>(job.parameter + i, p);
    if (job.first)
        tess_store<N>(job.first + i, m);
    if (job.second)
        tess_store<N>(job.second + i, v);
}

/* Grid: x over blocks of PIECES * THREADS pieces of N values; the last piece may have fewer. */
template <int N> __global__ void __launch_bounds__(THREADS) step_kernel(const __grid_constant__ step_job job)
{
    begin_early();
    if (!finite(*job.squares))
        return;
    const step_factors f = factors_of(job);
    for (int piece = 0; piece < PIECES; piece++) {
        const int64_t i = (((int64_t)blockIdx.x * PIECES + piece) * THREADS + threadIdx.x) * N;
        if (i + N <= job.values)
            step<N>(job, f, i);
        else
            for (int64_t k = i; k < job.values; k++)
                step<1>(job, f, k);
    }
}

struct average_job {
    int64_t values;
    const float *from;
    const double *control, *squares;
    float *to;
};

template <int N> __device__ __forceinline__ void average(const average_job &job, double decay, int64_t i)
{
    const float keep = (float)decay, add = (float)(1 - decay);
    float p[N], a[N];
    tess_load<N>(job.from + i, p);
    tess_load<N>(job.to + i, a);
#pragma unroll
    for (int j = 0; j < N; j++)
        a[j] = __fadd_rn(__fmul_rn(keep, a[j]), __fmul_rn(add, p[j]));
    tess_store<N>(job.to + i, a);
}

template <int N>
__global__ void __launch_bounds__(THREADS) average_kernel(const __grid_constant__ average_job job)
{
    begin_early();
    if (!finite(*job.squares))
        return;
    const double decay = job.control[TESS_CONTROL_DECAY];
    for (int piece = 0; piece < PIECES; piece++) {
        const int64_t i = (((int64_t)blockIdx.x * PIECES + piece) * THREADS + threadIdx.x) * N;
        if (i + N <= job.values)
            average<N>(job, decay, i);
        else
            for (int64_t k = i; k < job.values; k++)
                average<1>(job, decay, k);
    }
}

const char *refuses(const tess_op *op, int)
{
    const bool averages = op->kind == TESS_OP_AVERAGE;
    const int64_t values = tess_values(&op->in[GRADIENT]);
    const int moments = op->optimize.kind != TESS_SGD ? 2 : op->optimize.momentum > 0 ? 1 : 0;
    if (values < 1 || values > (int64_t)INT32_MAX * THREADS || !tess_is_vector(&op->in[GRADIENT], values))
        return "values are fp32, without gaps";
    for (int i = 0; i < op->outputs; i++)
        if (!tess_is_vector(&op->out[i], values))
            return "values are fp32, without gaps, as many as gradients";
    if (op->in[CONTROL].dtype != TESS_F64 || op->in[SQUARES].dtype != TESS_F64)
        return "the control and the sum of squares are F64";
    return !averages && op->outputs < 1 + moments ? "a moment is missing" : NULL;
}

cudaError_t run_average(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const average_job job = {tess_values(&op->in[0]), (const float *)b->in[0], (const double *)b->in[CONTROL],
                             (const double *)b->in[SQUARES], (float *)b->out[0]};
    const bool vectors = ((uintptr_t)job.from | (uintptr_t)job.to) % 16 == 0;
    const int64_t block = (vectors ? 4 : 1) * PIECES * THREADS;
    const unsigned blocks = (unsigned)((job.values + block - 1) / block);
    return tess_launch_early(vectors ? average_kernel<4> : average_kernel<1>, blocks, THREADS, 0, stream,
                             job);
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    if (op->kind == TESS_OP_AVERAGE)
        return run_average(op, b, stream);
    const step_job job = {tess_values(&op->in[GRADIENT]),
                          op->optimize,
                          (const float *)b->in[GRADIENT],
                          (const double *)b->in[CONTROL],
                          (const double *)b->in[SQUARES],
                          (float *)b->out[0],
                          op->outputs > 1 ? (float *)b->out[1] : NULL,
                          op->outputs > 2 ? (float *)b->out[2] : NULL};
    const bool vectors =
        ((uintptr_t)job.gradient | (uintptr_t)job.parameter | (uintptr_t)job.first | (uintptr_t)job.second) %
            16 ==
        0;
    const int64_t block = (vectors ? 4 : 1) * PIECES * THREADS;
    const unsigned blocks = (unsigned)((job.values + block - 1) / block);
    return tess_launch_early(vectors ? step_kernel<4> : step_kernel<1>, blocks, THREADS, 0, stream, job);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_optimize = {refuses, run, NULL, NULL};
