/* CHANNEL_DOT: a group of `lanes` threads of a warp, a power of two, takes a pixel: each sums every lanes-th product in fp64,
 * then the group as a tree. CHANNEL_DOT_GRAD: one product a value. */
#include "cuda/core/early.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256, WARP = 32 };

struct dot_job {
    tess_tensor a, b, out;
    bool flat_a, flat_b, flat_out;
    int64_t pixels, all; /* of an image; of all */
    int channels, lanes;
    double factor;
    const void *from_a, *from_b;
    void *to;
};

__device__ __forceinline__ int64_t place(const dot_job &job, const tess_tensor &t, bool flat, int64_t pixel)
{
    const int64_t n = pixel / job.pixels;
    return tess_place(t, flat, n, pixel - n * job.pixels);
}

__global__ void __launch_bounds__(THREADS) dot_kernel(const __grid_constant__ dot_job job)
{
    begin_early();
    const int lane = (int)threadIdx.x % job.lanes;
    const int64_t groups = (int64_t)gridDim.x * (THREADS / job.lanes),
                  first = (int64_t)blockIdx.x * (THREADS / job.lanes) + threadIdx.x / job.lanes,
                  rounds = (job.all + groups - 1) / groups; /* the same for all threads of a warp */
    for (int64_t k = 0; k < rounds; k++) {
        const int64_t pixel = first + k * groups;
        double sum = 0;
        if (pixel < job.all) {
            const int64_t at = place(job, job.a, job.flat_a, pixel),
                          bt = place(job, job.b, job.flat_b, pixel);
            for (int c = lane; c < job.channels; c += job.lanes)
                sum += (double)tess_value_at(job.a.dtype, job.from_a, at + c) *
                       (double)tess_value_at(job.b.dtype, job.from_b, bt + c);
        }
        for (int half = job.lanes / 2; half > 0; half /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, half, job.lanes);
        if (lane == 0 && pixel < job.all)
            tess_put_at(job.out.dtype, job.to, place(job, job.out, job.flat_out, pixel),
                        (float)(job.factor * sum));
    }
}

/* a: the gradient, of one channel; b: the other input. */
__global__ void __launch_bounds__(THREADS) grad_kernel(const __grid_constant__ dot_job job)
{
    begin_early();
    const int64_t values = job.all * job.channels, step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < values; i += step) {
        const int64_t pixel = i / job.channels;
        const int c = (int)(i - pixel * job.channels);
        const float g = (float)job.factor *
                        tess_value_at(job.a.dtype, job.from_a, place(job, job.a, job.flat_a, pixel)),
                    other = tess_value_at(job.b.dtype, job.from_b, place(job, job.b, job.flat_b, pixel) + c);
        tess_put_at(job.out.dtype, job.to, place(job, job.out, job.flat_out, pixel) + c, g * other);
    }
}

const char *refuses(const tess_op *op, int)
{
    const bool grad = op->kind == TESS_OP_CHANNEL_DOT_GRAD;
    tess_tensor one = op->in[1];
    one.c = 1;
    if (!tess_is_value(op->in[0].dtype) || !tess_is_value(op->in[1].dtype) ||
        !tess_is_value(op->out[0].dtype))
        return "values are fp32, fp16 or bf16";
    if (!tess_same_sizes(&op->in[0], grad ? &one : &op->in[1]) ||
        !tess_same_sizes(&op->out[0], grad ? &op->in[1] : &one))
        return "the tensors differ in shape";
    return tess_values(&op->in[1]) < 1 || op->in[1].c > 1 << 20 ? "it has no values, or too many channels"
                                                                : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const int64_t most_blocks = 1 << 16;
    dot_job job = {};
    job.a = op->in[0];
    job.b = op->in[1];
    job.out = op->out[0];
    job.flat_a = tess_flat(&job.a);
    job.flat_b = tess_flat(&job.b);
    job.flat_out = tess_flat(&job.out);
    job.pixels = tess_pixels(&job.b);
    job.all = job.b.n * job.pixels;
    job.channels = (int)job.b.c;
    job.factor = op->channel_dot.factor;
    job.from_a = b->in[0];
    job.from_b = b->in[1];
    job.to = b->out[0];
    job.lanes = 1;
    while (job.lanes < WARP && job.lanes < job.channels)
        job.lanes *= 2;
    const bool grad = op->kind == TESS_OP_CHANNEL_DOT_GRAD;
    const int64_t items = grad ? job.all * job.channels : job.all * job.lanes,
                  blocks = (items + THREADS - 1) / THREADS;
    const unsigned grid = (unsigned)(blocks < most_blocks ? blocks : most_blocks);
    return tess_launch_early(grad ? grad_kernel : dot_kernel, grid, THREADS, 0, stream, job);
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_channel_dot = {refuses, run, NULL, NULL};
