/* FLIP: [outer][inner][taps] to [inner][outer][taps] with the taps reversed. Memory-bound: a block moves a square of
 * 32 x 32 kernels through shared memory, so that both sides are read and written in runs of 32 kernels; kernels of
 * more than nine taps are moved value by value. */
#include "cuda/core/cuda.h"

namespace
{

enum { SIDE = 32, MOST_TAPS = 9, THREADS = 256 };

struct flip_job {
    int64_t outer, inner;
    int taps;
    const float *from;
    float *to;
};

__global__ void __launch_bounds__(THREADS) flip_kernel(const __grid_constant__ flip_job job)
{
    __shared__ float tile[SIDE][SIDE * MOST_TAPS + 1];
    const int64_t o0 = (int64_t)blockIdx.y * SIDE, i0 = (int64_t)blockIdx.x * SIDE;
    const int outers = (int)(job.outer - o0 < SIDE ? job.outer - o0 : SIDE),
              inners = (int)(job.inner - i0 < SIDE ? job.inner - i0 : SIDE), run = inners * job.taps,
              back = outers * job.taps;
    for (int at = threadIdx.x; at < outers * run; at += THREADS) {
        const int o = at / run, k = at - o * run;
        tile[o][k] = job.from[((o0 + o) * job.inner + i0) * job.taps + k];
    }
    __syncthreads();
    for (int at = threadIdx.x; at < inners * back; at += THREADS) {
        const int i = at / back, k = at - i * back, o = k / job.taps, tap = k - o * job.taps;
        job.to[((i0 + i) * job.outer + o0) * job.taps + k] = tile[o][i * job.taps + job.taps - 1 - tap];
    }
}

__global__ void __launch_bounds__(THREADS) flip_values_kernel(const __grid_constant__ flip_job job)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at >= job.outer * job.inner * job.taps)
        return;
    const int64_t tap = at % job.taps, o = at / job.taps % job.outer, i = at / job.taps / job.outer;
    job.to[at] = job.from[(o * job.inner + i) * job.taps + job.taps - 1 - tap];
}

int64_t count_of(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

const char *refuses(const tess_op *op, int)
{
    const tess_op_flip *f = &op->flip;
    if (op->in[0].dtype != TESS_F32 || op->out[0].dtype != TESS_F32)
        return "takes fp32 values";
    if (f->outer < 1 || f->inner < 1 || f->taps < 1 ||
        count_of(&op->in[0]) != f->outer * f->inner * f->taps ||
        count_of(&op->out[0]) != count_of(&op->in[0]))
        return "the tensors must have as many values as the kernel";
    return f->outer > SIDE * (int64_t)65535 || count_of(&op->in[0]) > INT32_MAX ? "takes smaller kernels"
                                                                                : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const flip_job job = {op->flip.outer, op->flip.inner, (int)op->flip.taps, (const float *)buffers->in[0],
                          (float *)buffers->out[0]};
    if (job.taps <= MOST_TAPS) {
        const dim3 blocks((unsigned)((job.inner + SIDE - 1) / SIDE),
                          (unsigned)((job.outer + SIDE - 1) / SIDE));
        flip_kernel<<<blocks, THREADS, 0, stream>>>(job);
    } else {
        const int64_t count = job.outer * job.inner * job.taps;
        flip_values_kernel<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(job);
    }
    return cudaGetLastError();
}

} // namespace

extern "C" const tess_cuda_launch tess_cuda_flip = {refuses, run, NULL, NULL};
