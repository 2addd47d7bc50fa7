/* LOSS: the gradient, and the sum in fp64. The values are divided into parts of PART, by the size alone. A block does
 * the gradient of a part and sums its loss: each thread every THREADS-th value, then the block as a tree; one block
 * then sums the parts in the same way. A mask is summed first, because the gradient is divided by its sum. All
 * arithmetic is fp64: the tensors are small next to a network's activations. */
#include "cuda/core/early.cuh"
#include "cuda/core/sums.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256, PART = 4096, PREDICTION = 0, TARGET = 1, CONTROL = 2, MASK = 3 };

struct loss_job {
    tess_tensor in[4], out;
    bool dense, flat[4], flat_out;
    bool shared; /* the mask has one channel for all of them */
    int64_t values, pixels;
    unsigned parts;
    tess_op_loss loss;
    const void *from[4];
    const double *control;
    void *to;
    double *total;          /* the result */
    double *sums, *weights; /* of each part; the sum of the mask's weights */
};

/* The position of value i: of its image, its pixel in the image, its channel. */
struct spot {
    int64_t i, n, pixel, c;
};

__device__ __forceinline__ spot spot_of(const loss_job &job, int64_t i)
{
    if (job.dense)
        return spot{i, 0, 0, 0};
    const int64_t all = i / job.out.c, n = all / job.pixels;
    return spot{i, n, all - n * job.pixels, i - all * job.out.c};
}

__device__ __forceinline__ double value_of(const loss_job &job, int k, const spot &s)
{
    const int64_t at =
        job.dense ? s.i
                  : tess_place(job.in[k], job.flat[k], s.n, s.pixel) + (k == MASK && job.shared ? 0 : s.c);
    return tess_value_at(job.in[k].dtype, job.from[k], at);
}

/* The loss of one value and its slope. The sign of NaN is NaN. */
__device__ __forceinline__ void loss_of(const tess_op_loss &loss, double x, double y, double *value,
                                        double *slope)
{
    const double d = x - y;
    switch (loss.kind) {
    case TESS_MSE:
    case TESS_MASKED_MSE:
        *value = d * d;
        *slope = 2 * d;
        break;
    case TESS_L1:
        *value = fabs(d);
        *slope = d > 0 ? 1 : d < 0 ? -1 : d;
        break;
    case TESS_CHARBONNIER:
        *value = sqrt(d * d + loss.epsilon * loss.epsilon);
        *slope = *value > 0 ? d / *value : d;
        break;
    case TESS_RMSE:
    case TESS_PSNR: /* loss_rms.cu */
    case TESS_IOU:  /* loss_iou.cu */
        *value = *slope = NAN;
        break;
    case TESS_BCE_LOGITS: {
        const double e = exp(-fabs(x)), weight = loss.positive > 0 ? 1 + (loss.positive - 1) * y : 1;
        *value = (1 - y) * x + weight * (log1p(e) + fmax(-x, 0.0));
        *slope = 1 - y - weight * (x < 0 ? 1 : e) / (1 + e);
        break;
    }
    case TESS_MEAN:
        *value = x;
        *slope = 1;
        break;
    }
}

__device__ __forceinline__ double count_of(const loss_job &job)
{
    return job.loss.kind == TESS_MASKED_MSE ? *job.weights : (double)job.values;
}

__global__ void __launch_bounds__(THREADS) weights_kernel(const __grid_constant__ loss_job job)
{
    begin_early();
    const int64_t begin = (int64_t)blockIdx.x * PART,
                  end = begin + PART < job.values ? begin + PART : job.values;
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS)
        sum += value_of(job, MASK, spot_of(job, i));
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        job.sums[blockIdx.x] = sum;
}

/* A mask of zeros gives a loss of zero and no gradient. */
__global__ void __launch_bounds__(THREADS) loss_kernel(const __grid_constant__ loss_job job)
{
    begin_early();
    const int64_t begin = (int64_t)blockIdx.x * PART,
                  end = begin + PART < job.values ? begin + PART : job.values;
    const bool masked = job.loss.kind == TESS_MASKED_MSE;
    const double count = count_of(job),
                 factor = count != 0 ? job.loss.share * job.control[TESS_CONTROL_LOSS_SCALE] / count : 0;
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) {
        const spot s = spot_of(job, i);
        const double weight = masked ? value_of(job, MASK, s) : 1;
        double value, slope;
        loss_of(job.loss, value_of(job, PREDICTION, s), value_of(job, TARGET, s), &value, &slope);
        sum += weight * value;
        tess_put_at(job.out.dtype, job.to,
                    job.dense ? i : tess_place(job.out, job.flat_out, s.n, s.pixel) + s.c,
                    (float)(weight * slope * factor));
    }
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        job.sums[blockIdx.x] = sum;
}

/* One block: the sum of the parts, as the mask's weights or as the loss. */
__global__ void __launch_bounds__(THREADS) end_kernel(const __grid_constant__ loss_job job, bool weights)
{
    begin_early();
    double sum = 0;
    for (unsigned i = threadIdx.x; i < job.parts; i += THREADS)
        sum += job.sums[i];
    sum = tess_block_sum<THREADS>(sum);
    if (threadIdx.x > 0)
        return;
    if (weights) {
        *job.weights = sum;
        return;
    }
    const double count = count_of(job), loss = count != 0 ? job.loss.share * (sum / count) : 0;
    *job.total = job.loss.accumulate ? *job.total + loss : loss;
}

int64_t parts_of(const tess_op *op)
{
    return (tess_values(&op->in[PREDICTION]) + PART - 1) / PART;
}

size_t workspace(const tess_op *op)
{
    return (size_t)(parts_of(op) + 1) * sizeof(double);
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *x = &op->in[PREDICTION];
    const bool masked = op->loss.kind == TESS_MASKED_MSE;
    if (!tess_is_value(x->dtype) || !tess_is_value(op->in[TARGET].dtype) ||
        !tess_is_value(op->out[0].dtype) ||
        (masked && op->inputs > MASK && !tess_is_value(op->in[MASK].dtype)))
        return "values are fp32, fp16 or bf16";
    if (op->outputs < 2 || op->out[1].dtype != TESS_F64 || op->in[CONTROL].dtype != TESS_F64)
        return "the loss and the control are F64";
    if (masked != (op->inputs > MASK))
        return "a masked loss takes a mask, no other does";
    if (!tess_same_sizes(x, &op->in[TARGET]) || !tess_same_sizes(x, &op->out[0]))
        return "the tensors differ in shape";
    if (masked) {
        tess_tensor mask = op->in[MASK];
        mask.c = mask.c == 1 ? x->c : mask.c;
        if (!tess_same_sizes(x, &mask))
            return "the mask has another shape";
    }
    return tess_values(x) < 1 || parts_of(op) > INT32_MAX ? "it has no values, or too many" : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const bool masked = op->loss.kind == TESS_MASKED_MSE;
    loss_job job = {};
    job.dense = tess_dense(&op->out[0]);
    for (int k = 0; k < op->inputs; k++) {
        job.in[k] = op->in[k];
        job.from[k] = b->in[k];
        job.flat[k] = tess_flat(&op->in[k]);
        job.dense = job.dense && (k == CONTROL || tess_dense(&op->in[k]));
    }
    job.shared = masked && op->in[MASK].c != op->in[PREDICTION].c;
    job.dense = job.dense && !job.shared;
    job.out = op->out[0];
    job.flat_out = tess_flat(&op->out[0]);
    job.values = tess_values(&op->in[PREDICTION]);
    job.pixels = tess_pixels(&op->in[PREDICTION]);
    job.parts = (unsigned)parts_of(op);
    job.loss = op->loss;
    job.control = (const double *)b->in[CONTROL];
    job.to = b->out[0];
    job.total = (double *)b->out[1];
    job.weights = (double *)b->workspace;
    job.sums = job.weights + 1;
    cudaError_t result = cudaSuccess;
    if (masked) {
        result = tess_launch_early(weights_kernel, job.parts, THREADS, 0, stream, job);
        if (result == cudaSuccess)
            result = tess_launch_early(end_kernel, 1, THREADS, 0, stream, job, true);
    }
    if (result == cudaSuccess)
        result = tess_launch_early(loss_kernel, job.parts, THREADS, 0, stream, job);
    return result != cudaSuccess ? result : tess_launch_early(end_kernel, 1, THREADS, 0, stream, job, false);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_loss = {refuses, run, NULL, workspace};
