/* LOSS of kind RMSE and PSNR: the mean over images of the root of each image's mean square error, or of 20 log10 of it. The values of an image are
 * divided into parts of PART, by its size alone. Blocks sum the squares of the parts, one block for each image then
 * makes its root, and a third kernel writes the gradients, which need the roots. All arithmetic is fp64. */
#include "cuda/core/sums.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256, PART = 4096, PREDICTION = 0, TARGET = 1, CONTROL = 2 };

struct rms_job {
    tess_tensor in[2], out;
    bool flat[2], flat_out;
    int64_t values; /* of one image */
    int64_t images;
    unsigned parts; /* of one image */
    tess_op_loss loss;
    const void *from[2];
    const double *control;
    void *to;
    double *total;        /* the result */
    double *sums, *roots; /* of each part; of each image */
};

/* Prediction minus target of value i of image n. */
__device__ __forceinline__ double difference(const rms_job &job, int64_t n, int64_t pixel, int64_t c)
{
    const double x = tess_value_at(job.in[PREDICTION].dtype, job.from[PREDICTION],
                                   tess_place(job.in[PREDICTION], job.flat[PREDICTION], n, pixel) + c),
                 y = tess_value_at(job.in[TARGET].dtype, job.from[TARGET],
                                   tess_place(job.in[TARGET], job.flat[TARGET], n, pixel) + c);
    return x - y;
}

__global__ void __launch_bounds__(THREADS) squares_kernel(const __grid_constant__ rms_job job)
{
    const int64_t n = blockIdx.x / job.parts, begin = (int64_t)(blockIdx.x % job.parts) * PART,
                  end = begin + PART < job.values ? begin + PART : job.values;
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
        const double d = difference(job, n, i / job.out.c, i % job.out.c);
        sum += d * d;
    }
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        job.sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS) roots_kernel(const __grid_constant__ rms_job job)
{
    double sum = 0;
    for (unsigned i = threadIdx.x; i < job.parts; i += THREADS)
        sum += job.sums[(int64_t)blockIdx.x * job.parts + i];
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        job.roots[blockIdx.x] = sqrt(sum / (double)job.values + job.loss.epsilon * job.loss.epsilon);
}

__global__ void __launch_bounds__(THREADS) gradient_kernel(const __grid_constant__ rms_job job)
{
    const int64_t n = blockIdx.x / job.parts, begin = (int64_t)(blockIdx.x % job.parts) * PART,
                  end = begin + PART < job.values ? begin + PART : job.values;
    const bool psnr = job.loss.kind == TESS_PSNR;
    const double root = job.roots[n], by = psnr ? root * root : root,
                 scale = job.loss.share * job.control[TESS_CONTROL_LOSS_SCALE] /
                         ((double)job.images * (double)job.values) * (psnr ? 20 / log(10.0) : 1),
                 factor = by > 0 ? scale / by : scale;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
        const int64_t pixel = i / job.out.c, c = i % job.out.c;
        tess_put_at(job.out.dtype, job.to, tess_place(job.out, job.flat_out, n, pixel) + c,
                    (float)(factor * difference(job, n, pixel, c)));
    }
}

/* One block. */
__global__ void __launch_bounds__(THREADS) mean_kernel(const __grid_constant__ rms_job job)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < job.images; i += THREADS)
        sum += job.loss.kind == TESS_PSNR ? 20 * log10(job.roots[i]) : job.roots[i];
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x > 0)
        return;
    const double loss = job.loss.share * (sum / (double)job.images);
    *job.total = job.loss.accumulate ? *job.total + loss : loss;
}

int64_t parts_of(const tess_tensor *t)
{
    return (tess_values(t) / t->n + PART - 1) / PART;
}

size_t workspace(const tess_op *op)
{
    const tess_tensor *t = &op->in[PREDICTION];
    return (size_t)(t->n * (parts_of(t) + 1)) * sizeof(double);
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *x = &op->in[PREDICTION];
    if (!tess_is_value(x->dtype) || !tess_is_value(op->in[TARGET].dtype) || !tess_is_value(op->out[0].dtype))
        return "values are fp32, fp16 or bf16";
    if (op->inputs != 3 || op->outputs < 2 || op->out[1].dtype != TESS_F64 ||
        op->in[CONTROL].dtype != TESS_F64)
        return "the loss and the control are F64";
    if (!tess_same_sizes(x, &op->in[TARGET]) || !tess_same_sizes(x, &op->out[0]))
        return "the tensors differ in shape";
    return tess_values(x) < 1 || x->n * parts_of(x) > INT32_MAX ? "it has no values, or too many" : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    rms_job job = {};
    for (int k = 0; k < 2; k++) {
        job.in[k] = op->in[k];
        job.from[k] = b->in[k];
        job.flat[k] = tess_flat(&op->in[k]);
    }
    job.out = op->out[0];
    job.flat_out = tess_flat(&op->out[0]);
    job.images = op->in[0].n;
    job.values = tess_values(&op->in[0]) / job.images;
    job.parts = (unsigned)parts_of(&op->in[0]);
    job.loss = op->loss;
    job.control = (const double *)b->in[CONTROL];
    job.to = b->out[0];
    job.total = (double *)b->out[1];
    job.roots = (double *)b->workspace;
    job.sums = job.roots + job.images;
    const unsigned blocks = (unsigned)(job.images * job.parts);
    squares_kernel<<<blocks, THREADS, 0, stream>>>(job);
    roots_kernel<<<(unsigned)job.images, THREADS, 0, stream>>>(job);
    gradient_kernel<<<blocks, THREADS, 0, stream>>>(job);
    mean_kernel<<<1, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_loss_rms = {refuses, run, NULL, workspace};
