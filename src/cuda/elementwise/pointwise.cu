/* Ops that move, compare or change single values: max-pool, nearest upsampling, addition, activations. They
 * are memory-bound, so a thread processes 16 bytes of one pixel if the tensors allow it (else one value),
 * reads its inputs once and writes every output that depends on them: a pooled or added pixel, or all copies
 * of an upsampled one.
 *
 * Grid: x over pixels and pieces of a row, y over rows, z over images. Strides are 64-bit, but the position in
 * a row is found by 32-bit divisions: 64-bit ones would take longer than the memory accesses. */
#include "cuda/conv/generic.h"
#include "cuda/core/activation.cuh"
#include "cuda/core/early.cuh"
#include "cuda/core/values.cuh"

namespace
{

enum { THREADS = 256 };
const int64_t MOST = 65535; /* limit of the grid in y and z */

struct pointwise_job {
    tess_tensor in, out, residual[2];
    unsigned pieces; /* pieces of a pixel */
    unsigned row;    /* pieces of a row of the grid: of `out`, or of `in` for upsampling */
    int64_t rows;
    int residuals, sy, sx;
    tess_activation activation;
    const void *from, *more[2];
    void *to;
};

__device__ __forceinline__ int64_t at(const tess_tensor &t, int64_t n, int64_t y, int64_t x)
{
    return n * t.stride_n + y * t.stride_h + x * t.stride_w;
}

/* SIDE: side of a square window known at compile time, so that all its reads are in progress at once; 0: any
 * window. */
template <typename T, int N, int SIDE> struct pool {
    static __device__ __forceinline__ void run(const pointwise_job &job, int64_t n, int64_t y, int64_t x,
                                               int64_t c)
    {
        const int sy = SIDE ? SIDE : job.sy, sx = SIDE ? SIDE : job.sx;
        const T *from = (const T *)job.from + c + at(job.in, n, y * sy, x * sx);
        float values[N], more[N];
        tess_load<N>(from, values);
#pragma unroll
        for (int dy = 0; dy < sy; dy++)
#pragma unroll
            for (int dx = 0; dx < sx; dx++) {
                if (dy == 0 && dx == 0)
                    continue;
                tess_load<N>(from + dy * job.in.stride_h + dx * job.in.stride_w, more);
#pragma unroll
                for (int j = 0; j < N; j++)
                    values[j] = more[j] > values[j] ? more[j] : values[j];
            }
        tess_store<N>((T *)job.to + c + at(job.out, n, y, x), values);
    }
};

template <typename T, int N, int SIDE> struct upsample {
    static __device__ __forceinline__ void run(const pointwise_job &job, int64_t n, int64_t y, int64_t x,
                                               int64_t c)
    {
        typedef tess_vector<T, N> piece;
        const int sy = SIDE ? SIDE : job.sy, sx = SIDE ? SIDE : job.sx;
        const piece value = *(const piece *)((const T *)job.from + c + at(job.in, n, y, x));
        T *to = (T *)job.to + c + at(job.out, n, y * sy, x * sx);
#pragma unroll
        for (int dy = 0; dy < sy; dy++)
#pragma unroll
            for (int dx = 0; dx < sx; dx++)
                if (y * sy + dy < job.out.h && x * sx + dx < job.out.w)
                    *(piece *)(to + dy * job.out.stride_h + dx * job.out.stride_w) = value;
    }
};

template <typename T, int N, int> struct add {
    static __device__ __forceinline__ void run(const pointwise_job &job, int64_t n, int64_t y, int64_t x,
                                               int64_t c)
    {
        float values[N], more[N];
        tess_load<N>((const T *)job.from + c + at(job.in, n, y, x), values);
#pragma unroll
        for (int r = 0; r < TESS_OP_RESIDUALS; r++) {
            if (r >= job.residuals)
                break;
            tess_load<N>((const T *)job.more[r] + c + at(job.residual[r], n, y, x), more);
#pragma unroll
            for (int j = 0; j < N; j++)
                values[j] += more[j];
        }
        tess_store<N>((T *)job.to + c + at(job.out, n, y, x), values);
    }
};

template <typename T, int N, int> struct activate {
    static __device__ __forceinline__ void run(const pointwise_job &job, int64_t n, int64_t y, int64_t x,
                                               int64_t c)
    {
        float values[N];
        tess_load<N>((const T *)job.from + c + at(job.in, n, y, x), values);
#pragma unroll
        for (int j = 0; j < N; j++)
            values[j] = tess_activated(job.activation, values[j]);
        tess_store<N>((T *)job.to + c + at(job.out, n, y, x), values);
    }
};

template <typename OP, int N>
__global__ void __launch_bounds__(THREADS) pointwise_kernel(const __grid_constant__ pointwise_job job)
{
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    begin_early();
    if (i >= job.row)
        return;
    const unsigned x = i / job.pieces, c = (i - x * job.pieces) * N;
    for (int64_t n = blockIdx.z; n < job.out.n; n += gridDim.z)
        for (int64_t y = blockIdx.y; y < job.rows; y += gridDim.y)
            OP::run(job, n, y, x, c);
}

bool wide(const tess_tensor *t, const void *data)
{
    const int64_t group = 16 / (int64_t)tess_dtype_size(t->dtype);
    return t->c % group == 0 && t->stride_n % group == 0 && t->stride_h % group == 0 &&
           t->stride_w % group == 0 && (uintptr_t)data % 16 == 0;
}

template <template <typename, int, int> class OP, typename T, int N>
cudaError_t launch(const pointwise_job &job, cudaStream_t stream)
{
    const dim3 blocks((job.row + THREADS - 1) / THREADS, (unsigned)(job.rows < MOST ? job.rows : MOST),
                      (unsigned)(job.out.n < MOST ? job.out.n : MOST));
    return tess_launch_early(job.sy == 2 && job.sx == 2 ? pointwise_kernel<OP<T, N, 2>, N>
                                                        : pointwise_kernel<OP<T, N, 0>, N>,
                             blocks, THREADS, 0, stream, job);
}

template <typename T, int N>
cudaError_t launch_kind(tess_op_kind kind, pointwise_job &job, cudaStream_t stream)
{
    const bool upsamples = kind == TESS_OP_UPSAMPLE;
    const int64_t width = upsamples ? (job.out.w + job.sx - 1) / job.sx : job.out.w;
    job.rows = upsamples ? (job.out.h + job.sy - 1) / job.sy : job.out.h;
    job.pieces = (unsigned)(job.out.c / N);
    if (width * job.pieces > INT32_MAX)
        return cudaErrorInvalidValue;
    job.row = (unsigned)width * job.pieces;
    return kind == TESS_OP_MAX_POOL   ? launch<pool, T, N>(job, stream)
           : kind == TESS_OP_ACTIVATE ? launch<activate, T, N>(job, stream)
           : upsamples                ? launch<upsample, T, N>(job, stream)
                                      : launch<add, T, N>(job, stream);
}

template <typename T>
cudaError_t launch_type(tess_op_kind kind, pointwise_job &job, bool vectors, cudaStream_t stream)
{
    return vectors ? launch_kind<T, 16 / (int)sizeof(T)>(kind, job, stream)
                   : launch_kind<T, 1>(kind, job, stream);
}

} // namespace

extern "C" cudaError_t tess_cuda_pointwise(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    pointwise_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.residuals = tess_op_residuals(op);
    job.sy = op->stride[TESS_HEIGHT];
    job.sx = op->stride[TESS_WIDTH];
    job.activation = op->activation;
    job.from = b->in[0];
    job.to = b->out[0];
    bool vectors = wide(&op->in[0], b->in[0]) && wide(&op->out[0], b->out[0]);
    for (int r = 0; r < tess_op_residuals(op); r++) {
        job.residual[r] = op->in[1 + r];
        job.more[r] = b->in[1 + r];
        vectors = vectors && wide(&op->in[1 + r], b->in[1 + r]);
    }
    switch (op->out[0].dtype) {
    case TESS_F16:
        return launch_type<__half>(op->kind, job, vectors, stream);
    case TESS_BF16:
        return launch_type<__nv_bfloat16>(op->kind, job, vectors, stream);
    default:
        return launch_type<float>(op->kind, job, vectors, stream);
    }
}
