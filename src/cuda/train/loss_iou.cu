/* LOSS of kind IOU. Parts of PART values, by the size alone, sum the intersection and the union; one block adds them and makes
 * the loss; a third kernel writes the gradients, which need both sums. All arithmetic is fp64. */
#include "cuda/core/sums.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256, PART = 4096, PREDICTION = 0, TARGET = 1, CONTROL = 2 };

struct iou_job {
    tess_tensor in[2], out;
    bool flat[2], flat_out;
    int64_t values, pixels; /* of all images; of one */
    unsigned parts;
    tess_op_loss loss;
    const void *from[2];
    const double *control;
    void *to;
    double *total; /* the result */
    double *both;  /* intersection and union with epsilon */
    double *sums;  /* [part][2] */
};

__device__ __forceinline__ double value_of(const iou_job &job, int k, int64_t i)
{
    const int64_t all = i / job.out.c, n = all / job.pixels;
    return tess_value_at(job.in[k].dtype, job.from[k],
                         tess_place(job.in[k], job.flat[k], n, all - n * job.pixels) + (i - all * job.out.c));
}

__global__ void __launch_bounds__(THREADS) sums_kernel(const __grid_constant__ iou_job job)
{
    const int64_t begin = (int64_t)blockIdx.x * PART,
                  end = begin + PART < job.values ? begin + PART : job.values;
    double both = 0, any = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
        const double s = 1 / (1 + exp(-value_of(job, PREDICTION, i))), t = value_of(job, TARGET, i);
        both += s * t;
        any += s + t - s * t;
    }
    both = tess_block_sum<THREADS>(both);
    any = tess_block_sum<THREADS>(any);
    if (threadIdx.x == 0) {
        job.sums[2 * (int64_t)blockIdx.x] = both;
        job.sums[2 * (int64_t)blockIdx.x + 1] = any;
    }
}

/* One block. */
__global__ void __launch_bounds__(THREADS) end_kernel(const __grid_constant__ iou_job job)
{
    double both = 0, any = 0;
    for (unsigned i = threadIdx.x; i < job.parts; i += THREADS) {
        both += job.sums[2 * (int64_t)i];
        any += job.sums[2 * (int64_t)i + 1];
    }
    both = tess_block_sum<THREADS>(both) + job.loss.epsilon;
    any = tess_block_sum<THREADS>(any) + job.loss.epsilon;
    if (threadIdx.x > 0)
        return;
    job.both[0] = both;
    job.both[1] = any;
    const double loss = job.loss.share * (1 - both / any);
    *job.total = job.loss.accumulate ? *job.total + loss : loss;
}

__global__ void __launch_bounds__(THREADS) gradient_kernel(const __grid_constant__ iou_job job)
{
    const int64_t begin = (int64_t)blockIdx.x * PART,
                  end = begin + PART < job.values ? begin + PART : job.values;
    const double any = job.both[1], hit = 1 / any, miss = job.both[0] / (any * any),
                 factor = job.loss.share * job.control[TESS_CONTROL_LOSS_SCALE];
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
        const double x = value_of(job, PREDICTION, i), t = value_of(job, TARGET, i);
        const double slope = 1 / (1 + exp(-x)) / (1 + exp(x));
        const int64_t all = i / job.out.c, n = all / job.pixels;
        tess_put_at(job.out.dtype, job.to,
                    tess_place(job.out, job.flat_out, n, all - n * job.pixels) + (i - all * job.out.c),
                    (float)(factor * slope * ((1 - t) * miss - t * hit)));
    }
}

int64_t parts_of(const tess_op *op)
{
    return (tess_values(&op->in[PREDICTION]) + PART - 1) / PART;
}

size_t workspace(const tess_op *op)
{
    return (size_t)(2 * parts_of(op) + 2) * sizeof(double);
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
    return tess_values(x) < 1 || parts_of(op) > INT32_MAX ? "it has no values, or too many" : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    iou_job job = {};
    for (int k = 0; k < 2; k++) {
        job.in[k] = op->in[k];
        job.from[k] = b->in[k];
        job.flat[k] = tess_flat(&op->in[k]);
    }
    job.out = op->out[0];
    job.flat_out = tess_flat(&op->out[0]);
    job.values = tess_values(&op->in[PREDICTION]);
    job.pixels = tess_pixels(&op->in[PREDICTION]);
    job.parts = (unsigned)parts_of(op);
    job.loss = op->loss;
    job.control = (const double *)b->in[CONTROL];
    job.to = b->out[0];
    job.total = (double *)b->out[1];
    job.both = (double *)b->workspace;
    job.sums = job.both + 2;
    sums_kernel<<<job.parts, THREADS, 0, stream>>>(job);
    end_kernel<<<1, THREADS, 0, stream>>>(job);
    gradient_kernel<<<job.parts, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_loss_iou = {refuses, run, NULL, workspace};
