/* PENALTY: parameters are few, so one block does it, in fp64. Threads divide pairs of rows, rows, columns and values, and a
 * barrier lies between what is written and what reads it; sums over the block are trees. */
#include "cuda/core/early.cuh"
#include "cuda/elementwise/channels.cuh"

namespace
{

enum { THREADS = 256 };

struct penalty_job {
    tess_op_penalty p;
    int64_t values;
    const float *from;
    const double *control;
    float *gradients;
    double *loss;
    double *gram, *lengths, *columns; /* rows^2; rows; 2 columns */
};

__device__ __forceinline__ void add_gradient(const penalty_job &job, int64_t i, double gradient)
{
    job.gradients[i] =
        (float)((double)job.gradients[i] + job.p.weight * job.control[TESS_CONTROL_LOSS_SCALE] * gradient);
}

/* Returns the thread's part of the loss. */
__device__ double orthogonality(const penalty_job &job)
{
    const int64_t rows = job.p.rows, columns = job.p.columns;
    double loss = 0;
    for (int64_t pair = threadIdx.x; pair < rows * rows; pair += THREADS) {
        const float *a = job.from + pair / rows * columns, *b = job.from + pair % rows * columns;
        double sum = pair / rows == pair % rows ? -1 : 0;
        for (int64_t k = 0; k < columns; k++)
            sum += (double)a[k] * (double)b[k];
        job.gram[pair] = sum;
        loss += sum * sum;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < job.values; i += THREADS) {
        const int64_t row = i / columns, k = i % columns;
        double sum = 0;
        for (int64_t j = 0; j < rows; j++)
            sum += job.gram[row * rows + j] * (double)job.from[j * columns + k];
        add_gradient(job, i, 4 * sum);
    }
    return loss;
}

__device__ double distinctness(const penalty_job &job)
{
    const int64_t rows = job.p.rows, columns = job.p.columns;
    const double pairs = (double)rows * (double)(rows - 1) / 2;
    double loss = 0, *along = job.gram; /* of each row */
    if (rows < 2)
        return 0;
    for (int64_t i = threadIdx.x; i < rows; i += THREADS) {
        double square = 0;
        for (int64_t k = 0; k < columns; k++)
            square += (double)job.from[i * columns + k] * (double)job.from[i * columns + k];
        job.lengths[i] = fmax(sqrt(square), job.p.epsilon);
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < columns; k += THREADS) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += (double)job.from[i * columns + k] / job.lengths[i];
        job.columns[k] = sum;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < rows; i += THREADS) {
        double sum = 0;
        for (int64_t k = 0; k < columns; k++) {
            const double own = (double)job.from[i * columns + k] / job.lengths[i];
            sum += own * (job.columns[k] - own);
        }
        along[i] = sum;
        loss += sum / 2 / pairs;
    }
    __syncthreads();
    for (int64_t v = threadIdx.x; v < job.values; v += THREADS) {
        const int64_t i = v / columns, k = v % columns;
        const double length = job.lengths[i], own = (double)job.from[v] / length;
        add_gradient(
            job, v, (job.columns[k] - own - (length <= job.p.epsilon ? 0 : along[i] * own)) / length / pairs);
    }
    return loss;
}

/* Of the factors of a softmax: first by the factors, then by its parameters. */
__device__ double of_factors(const penalty_job &job)
{
    const int64_t count = job.p.columns;
    const double temperature = tess_temperature(job.p.softmax, job.control), all = job.p.softmax.count,
                 divisor = all + job.p.epsilon, mean = all / (double)count;
    double *shares = job.columns, *slope = shares + count, loss = 0, entropy = 0, mixed = 0, inner = 0,
           outer = 1;
    const bool diversity = job.p.kind == TESS_DIVERSITY;
    tess_block_softmax<THREADS>(job.from, count, temperature, shares);
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        const double w = all * shares[i], q = w / divisor;
        if (diversity) {
            loss -= (w - mean) * (w - mean) / (double)count;
            slope[i] = -2 * (w - mean) / (double)count;
        } else {
            entropy -= q * log(q + job.p.epsilon);
            slope[i] = log(q + job.p.epsilon) + q / (q + job.p.epsilon);
            mixed += slope[i] * q;
        }
    }
    if (!diversity) {
        entropy = tess_block_sum<THREADS>(entropy);
        mixed = tess_block_sum<THREADS>(mixed);
        const double off = entropy - job.p.target;
        outer = job.p.target < 0 ? 1 : -2 * off;
        loss = threadIdx.x > 0 ? 0 : job.p.target < 0 ? -entropy : off * off;
    }
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        if (!diversity)
            slope[i] = outer * (slope[i] - mixed) / divisor;
        inner += shares[i] * slope[i];
    }
    inner = tess_block_sum<THREADS>(inner);
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
        add_gradient(job, i, all / temperature * shares[i] * (slope[i] - inner));
    return loss;
}

__global__ void __launch_bounds__(THREADS) penalty_kernel(const __grid_constant__ penalty_job job)
{
    begin_early();
    double loss = 0;
    switch (job.p.kind) {
    case TESS_ORTHOGONALITY:
        loss = orthogonality(job);
        break;
    case TESS_DISTINCTNESS:
        loss = distinctness(job);
        break;
    case TESS_ENTROPY:
    case TESS_DIVERSITY:
        loss = of_factors(job);
        break;
    }
    loss = tess_block_sum<THREADS>(loss);
    if (threadIdx.x == 0)
        *job.loss += job.p.weight * loss;
}

size_t workspace(const tess_op *op)
{
    const size_t rows = (size_t)op->penalty.rows, columns = (size_t)op->penalty.columns;
    return (rows * rows + rows + 2 * columns) * sizeof(double);
}

const char *refuses(const tess_op *op, int)
{
    const tess_op_penalty *p = &op->penalty;
    const int64_t values = p->rows > 0 && p->columns > 0 ? p->rows * p->columns : 0;
    const bool factors = p->kind == TESS_ENTROPY || p->kind == TESS_DIVERSITY;
    if (values < 1 || !tess_is_vector(&op->in[0], values) || op->outputs != 2 ||
        !tess_is_vector(&op->out[0], values) || (factors && p->rows != 1))
        return "parameters and their gradients are fp32 vectors of rows x columns";
    return op->in[1].dtype != TESS_F64 || op->out[1].dtype != TESS_F64 ? "the penalty and the control are F64"
                                                                       : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    penalty_job job = {};
    job.p = op->penalty;
    job.values = op->penalty.rows * op->penalty.columns;
    job.from = (const float *)b->in[0];
    job.control = (const double *)b->in[1];
    job.gradients = (float *)b->out[0];
    job.loss = (double *)b->out[1];
    job.gram = (double *)b->workspace;
    job.lengths = job.gram + job.p.rows * job.p.rows;
    job.columns = job.lengths + job.p.rows;
    return tess_launch_early(penalty_kernel, 1, THREADS, 0, stream, job);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_penalty = {refuses, run, NULL, workspace};
