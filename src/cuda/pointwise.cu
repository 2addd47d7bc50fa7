/* The ops that only move or compare values: max-pool, nearest upsampling, addition. They wait for memory: one
 * thread makes 16 bytes of one output pixel where the tensors allow, else one value. */
#include "cuda/generic.h"
#include "cuda/values.cuh"

namespace
{

struct pointwise_job {
    tess_op_kind kind;
    tess_tensor in, out, residual[2];
    int residuals, sy, sx;
    const void *from, *more[2];
    void *to;
};

__device__ __forceinline__ int64_t at(const tess_tensor &t, int64_t n, int64_t y, int64_t x)
{
    return n * t.stride_n + y * t.stride_h + x * t.stride_w;
}

template <typename T, int N> __global__ void pointwise_kernel(pointwise_job job)
{
    const int64_t groups = job.out.c / N, i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= job.out.n * job.out.h * job.out.w * groups)
        return;
    const int64_t c = i % groups * N, pixel = i / groups;
    const int64_t x = pixel % job.out.w, y = pixel / job.out.w % job.out.h,
                  n = pixel / (job.out.w * job.out.h);
    const T *from = (const T *)job.from + c;
    float values[N], more[N];
    if (job.kind == TESS_OP_MAX_POOL) {
        tess_load<N>(from + at(job.in, n, y * job.sy, x * job.sx), values);
        for (int k = 1; k < job.sy * job.sx; k++) {
            tess_load<N>(from + at(job.in, n, y * job.sy + k / job.sx, x * job.sx + k % job.sx), more);
#pragma unroll
            for (int j = 0; j < N; j++)
                values[j] = more[j] > values[j] ? more[j] : values[j];
        }
    } else if (job.kind == TESS_OP_UPSAMPLE) {
        tess_load<N>(from + at(job.in, n, y / job.sy, x / job.sx), values);
    } else {
        tess_load<N>(from + at(job.in, n, y, x), values);
        for (int r = 0; r < job.residuals; r++) {
            tess_load<N>((const T *)job.more[r] + c + at(job.residual[r], n, y, x), more);
#pragma unroll
            for (int j = 0; j < N; j++)
                values[j] += more[j];
        }
    }
    tess_store<N>((T *)job.to + c + at(job.out, n, y, x), values);
}

bool wide(const tess_tensor *t, const void *data)
{
    const int64_t group = 16 / (int64_t)tess_dtype_size(t->dtype);
    return t->c % group == 0 && t->stride_n % group == 0 && t->stride_h % group == 0 &&
           t->stride_w % group == 0 && (uintptr_t)data % 16 == 0;
}

template <typename T> void launch(const pointwise_job &job, bool vectors, cudaStream_t stream)
{
    constexpr int N = 16 / (int)sizeof(T);
    const int64_t threads = 256, items = job.out.n * job.out.h * job.out.w * job.out.c / (vectors ? N : 1);
    const unsigned blocks = (unsigned)((items + threads - 1) / threads);
    if (vectors)
        pointwise_kernel<T, N><<<blocks, (unsigned)threads, 0, stream>>>(job);
    else
        pointwise_kernel<T, 1><<<blocks, (unsigned)threads, 0, stream>>>(job);
}

} // namespace

extern "C" cudaError_t tess_cuda_pointwise(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    pointwise_job job = {};
    job.kind = op->kind;
    job.in = op->in;
    job.out = op->out;
    job.residuals = op->residuals;
    job.sy = op->stride[TESS_HEIGHT];
    job.sx = op->stride[TESS_WIDTH];
    job.from = b->in;
    job.to = b->out;
    bool vectors = wide(&op->in, b->in) && wide(&op->out, b->out);
    for (int r = 0; r < op->residuals; r++) {
        job.residual[r] = op->residual[r];
        job.more[r] = b->residual[r];
        vectors = vectors && wide(&op->residual[r], b->residual[r]);
    }
    if (op->out.dtype == TESS_F32)
        launch<float>(job, vectors, stream);
    else if (op->out.dtype == TESS_F16)
        launch<__half>(job, vectors, stream);
    else
        launch<__nv_bfloat16>(job, vectors, stream);
    return cudaGetLastError();
}
