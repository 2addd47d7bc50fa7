/* Gradients of ops that move or change single values: ACTIVATE_GRAD, POOL_GRAD, UPSAMPLE_GRAD; AVERAGE_POOL, which is
 * UPSAMPLE_GRAD times a factor, and AVERAGE_POOL_GRAD; and DROPOUT, whose gradient is itself. They are memory-bound: a thread has 16 bytes of one pixel (one value if the tensors do not allow
 * it) of the smaller of its tensors, reads its inputs once and writes all that depends on them.
 *
 * Grid: x over pixels and pieces of a row, y over rows of all slices and images. */
#include <math.h>

#include "base/philox.h"
#include "cuda/core/activation.cuh"
#include "cuda/core/early.cuh"
#include "cuda/core/tensors.cuh"

namespace
{

enum { THREADS = 256 };
const unsigned MOST = 65535; /* limit of the grid in y */

struct grad_job {
    tess_tensor in[3], out;
    const void *from[3];
    void *to;
    bool more;           /* there is a tensor to add, the last input */
    unsigned pieces;     /* pieces of a pixel */
    unsigned row;        /* pieces of a row of the grid */
    unsigned h, d, rows; /* rows of a slice, slices of an image, all rows */
    int sz, sy, sx;      /* the window */
    float factor;        /* of the sum of a window, or of what it gives to each of its values */
    tess_activation activation;
    uint64_t seed;
    uint32_t threshold; /* DROPOUT: words below it make zeros */
    float kept;         /* DROPOUT: 1 - rate */
};

struct spot {
    int64_t n, z, y, x, c;
};

__device__ __forceinline__ int64_t at(const tess_tensor &t, const spot &s)
{
    return s.n * t.stride_n + s.z * t.stride_d + s.y * t.stride_h + s.x * t.stride_w + s.c;
}

template <typename T, int N, int> struct activate_grad {
    static __device__ __forceinline__ void run(const grad_job &job, const spot &s)
    {
        float gradient[N], value[N];
        tess_load<N>((const T *)job.from[0] + at(job.in[0], s), gradient);
        tess_load<N>((const T *)job.from[1] + at(job.in[1], s), value);
#pragma unroll
        for (int j = 0; j < N; j++)
            gradient[j] = tess_activated_grad(job.activation, value[j], gradient[j]);
        tess_store<N>((T *)job.to + at(job.out, s), gradient);
    }
};

/* SIDE: side of a square window known at compile time; 0: any window. */
template <typename T, int N, int SIDE> struct pool_grad {
    static __device__ __forceinline__ void run(const grad_job &job, const spot &s)
    {
        const int sz = SIDE ? 1 : job.sz, sy = SIDE ? SIDE : job.sy, sx = SIDE ? SIDE : job.sx;
        const spot first = {s.n, s.z * sz, s.y * sy, s.x * sx, s.c};
        /* The pooling drops what is left behind the last whole window. */
        const bool pooled = s.z < job.in[0].d && s.y < job.in[0].h && s.x < job.in[0].w;
        float gradient[N] = {}, value[N], best[N];
        int which[N] = {};
        if (pooled) {
            const T *from = (const T *)job.from[1] + at(job.in[1], first);
            tess_load<N>((const T *)job.from[0] + at(job.in[0], s), gradient);
            int k = 0;
#pragma unroll
            for (int dz = 0; dz < sz; dz++)
#pragma unroll
                for (int dy = 0; dy < sy; dy++)
#pragma unroll
                    for (int dx = 0; dx < sx; dx++, k++) {
                        tess_load<N>(from + dz * job.in[1].stride_d + dy * job.in[1].stride_h +
                                         dx * job.in[1].stride_w,
                                     value);
#pragma unroll
                        for (int j = 0; j < N; j++)
                            if (k == 0 || value[j] > best[j]) {
                                best[j] = value[j];
                                which[j] = k;
                            }
                    }
        }
        int k = 0;
#pragma unroll
        for (int dz = 0; dz < sz; dz++)
#pragma unroll
            for (int dy = 0; dy < sy; dy++)
#pragma unroll
                for (int dx = 0; dx < sx; dx++, k++) {
                    const spot to = {first.n, first.z + dz, first.y + dy, first.x + dx, first.c};
                    if (to.z >= job.out.d || to.y >= job.out.h || to.x >= job.out.w)
                        continue;
#pragma unroll
                    for (int j = 0; j < N; j++)
                        value[j] = 0;
                    if (job.more)
                        tess_load<N>((const T *)job.from[2] + at(job.in[2], to), value);
#pragma unroll
                    for (int j = 0; j < N; j++)
                        value[j] += pooled && which[j] == k ? gradient[j] : 0;
                    tess_store<N>((T *)job.to + at(job.out, to), value);
                }
    }
};

template <typename T, int N, int SIDE> struct window_sum {
    static __device__ __forceinline__ void run(const grad_job &job, const spot &s)
    {
        const int sz = SIDE ? 1 : job.sz, sy = SIDE ? SIDE : job.sy, sx = SIDE ? SIDE : job.sx;
        const spot first = {s.n, s.z * sz, s.y * sy, s.x * sx, s.c};
        const T *from = (const T *)job.from[0] + at(job.in[0], first);
        float sum[N] = {}, value[N];
#pragma unroll
        for (int dz = 0; dz < sz; dz++)
#pragma unroll
            for (int dy = 0; dy < sy; dy++)
#pragma unroll
                for (int dx = 0; dx < sx; dx++) {
                    tess_load<N>(from + dz * job.in[0].stride_d + dy * job.in[0].stride_h +
                                     dx * job.in[0].stride_w,
                                 value);
#pragma unroll
                    for (int j = 0; j < N; j++)
                        sum[j] += value[j];
                }
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[j] *= job.factor;
        if (job.more) {
            tess_load<N>((const T *)job.from[1] + at(job.in[1], s), value);
#pragma unroll
            for (int j = 0; j < N; j++)
                sum[j] += value[j];
        }
        tess_store<N>((T *)job.to + at(job.out, s), sum);
    }
};

template <typename T, int N, int SIDE> struct average_grad {
    static __device__ __forceinline__ void run(const grad_job &job, const spot &s)
    {
        const int sz = SIDE ? 1 : job.sz, sy = SIDE ? SIDE : job.sy, sx = SIDE ? SIDE : job.sx;
        const spot window = {s.n, s.z / sz, s.y / sy, s.x / sx, s.c};
        float gradient[N] = {}, value[N];
        /* The pooling drops what is left behind the last whole window. */
        if (window.z < job.in[0].d && window.y < job.in[0].h && window.x < job.in[0].w)
            tess_load<N>((const T *)job.from[0] + at(job.in[0], window), gradient);
#pragma unroll
        for (int j = 0; j < N; j++)
            gradient[j] *= job.factor;
        if (job.more) {
            tess_load<N>((const T *)job.from[1] + at(job.in[1], s), value);
#pragma unroll
            for (int j = 0; j < N; j++)
                gradient[j] += value[j];
        }
        tess_store<N>((T *)job.to + at(job.out, s), gradient);
    }
};

/* A piece of several values is whole blocks of four random words: its first channel is a multiple of N. */
template <typename T, int N, int> struct dropout {
    static __device__ __forceinline__ void run(const grad_job &job, const spot &s)
    {
        const tess_tensor &t = job.in[0];
        const int64_t *key = (const int64_t *)job.from[1] + s.n * job.in[1].stride_n;
        const int64_t element = ((s.z * t.h + s.y) * t.w + s.x) * t.c + s.c;
        float value[N];
        tess_load<N>((const T *)job.from[0] + at(t, s), value);
#pragma unroll
        for (int j = 0; j < N; j += 4) {
            uint32_t words[4];
            tess_philox_block(job.seed, (uint32_t)key[0], (uint32_t)key[1], element / 4 + j / 4, words);
#pragma unroll
            for (int i = 0; i < (N < 4 ? N : 4); i++) {
                const int lane = N < 4 ? (int)(element % 4) : i;
                const uint32_t word = lane == 0   ? words[0]
                                      : lane == 1 ? words[1]
                                      : lane == 2 ? words[2]
                                                  : words[3];
                value[j + i] = word >> 8 < job.threshold ? 0 : value[j + i] / job.kept;
            }
        }
        tess_store<N>((T *)job.to + at(job.out, s), value);
    }
};

template <typename OP, int N>
__global__ void __launch_bounds__(THREADS) grad_kernel(const __grid_constant__ grad_job job)
{
    begin_early();
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= job.row)
        return;
    const unsigned x = i / job.pieces, c = (i - x * job.pieces) * N;
    for (unsigned line = blockIdx.y; line < job.rows; line += gridDim.y) {
        const unsigned slice = line / job.h, n = slice / job.d;
        OP::run(job, spot{n, slice - n * job.d, line - slice * job.h, x, c});
    }
}

template <template <typename, int, int> class OP, typename T, int N>
cudaError_t launch(const grad_job &job, cudaStream_t stream)
{
    const dim3 blocks((job.row + THREADS - 1) / THREADS, job.rows < MOST ? job.rows : MOST);
    return tess_launch_early(job.sz == 1 && job.sy == 2 && job.sx == 2 ? grad_kernel<OP<T, N, 2>, N>
                                                                       : grad_kernel<OP<T, N, 0>, N>,
                             blocks, THREADS, 0, stream, job);
}

template <typename T, int N> cudaError_t launch_kind(tess_op_kind kind, grad_job &job, cudaStream_t stream)
{
    job.pieces = (unsigned)(job.out.c / N);
    job.row *= job.pieces;
    switch (kind) {
    case TESS_OP_ACTIVATE_GRAD:
        return launch<activate_grad, T, N>(job, stream);
    case TESS_OP_POOL_GRAD:
        return launch<pool_grad, T, N>(job, stream);
    case TESS_OP_UPSAMPLE_GRAD:
    case TESS_OP_AVERAGE_POOL:
        return launch<window_sum, T, N>(job, stream);
    case TESS_OP_AVERAGE_POOL_GRAD:
        return launch<average_grad, T, N>(job, stream);
    default: /* DROPOUT */
        return launch<dropout, T, N>(job, stream);
    }
}

template <typename T>
cudaError_t launch_type(tess_op_kind kind, grad_job &job, bool vectors, cudaStream_t stream)
{
    return vectors ? launch_kind<T, 16 / (int)sizeof(T)>(kind, job, stream)
                   : launch_kind<T, 1>(kind, job, stream);
}

/* The inputs that hold values: of DROPOUT, the second holds the keys. */
int value_inputs(const tess_op *op)
{
    return op->kind == TESS_OP_DROPOUT ? 1 : op->inputs;
}

int window(const tess_op *op, int axis)
{
    const bool windows = op->kind != TESS_OP_ACTIVATE_GRAD && op->kind != TESS_OP_DROPOUT;
    return windows && op->stride[axis] > 1 ? op->stride[axis] : 1;
}

/* The windows of one axis: of POOL_GRAD also the one that the pooling dropped because it is not whole. */
int64_t windows(const tess_op *op, int64_t size, int side)
{
    return op->kind == TESS_OP_POOL_GRAD ? (size + side - 1) / side : size;
}

const char *refuses_shape(const tess_op *op)
{
    const tess_tensor *out = &op->out[0];
    const int last = op->inputs - 1;
    switch (op->kind) {
    case TESS_OP_ACTIVATE_GRAD:
        return tess_same_sizes(&op->in[0], out) && tess_same_sizes(&op->in[1], out)
                   ? NULL
                   : "the tensors differ in shape";
    case TESS_OP_POOL_GRAD:
        return op->in[0].n == out->n && op->in[0].c == out->c &&
                       op->in[0].d == out->d / window(op, TESS_DEPTH) &&
                       op->in[0].h == out->h / window(op, TESS_HEIGHT) &&
                       op->in[0].w == out->w / window(op, TESS_WIDTH) && tess_same_sizes(&op->in[1], out) &&
                       tess_same_sizes(&op->in[last], out)
                   ? NULL
                   : "the tensors do not fit the window";
    case TESS_OP_UPSAMPLE_GRAD:
    case TESS_OP_AVERAGE_POOL:
    case TESS_OP_AVERAGE_POOL_GRAD:
        return op->in[0].n == out->n && op->in[0].c == out->c &&
                       (last == 0 || tess_same_sizes(&op->in[1], out))
                   ? NULL
                   : "the tensors differ in shape";
    default:
        return tess_same_sizes(&op->in[0], out) && op->in[1].dtype == TESS_I64 && op->in[1].n == out->n &&
                       op->in[1].c == 2 && op->random.rate >= 0 && op->random.rate < 1
                   ? NULL
                   : "dropout takes two I64 for each image and a rate from 0 to below 1";
    }
}

const char *refuses(const tess_op *op, int)
{
    const tess_tensor *out = &op->out[0];
    if (!tess_is_value(out->dtype))
        return "values are fp32, fp16 or bf16";
    for (int i = 0; i < value_inputs(op); i++)
        if (op->in[i].dtype != out->dtype)
            return "all values have one type";
    if (tess_values(out) < 1 || out->w * out->c > INT32_MAX || out->n * out->d * out->h > INT32_MAX)
        return "takes rows of up to 2147483647 values, and as many rows";
    return refuses_shape(op);
}

cudaError_t run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    const int64_t piece = 16 / (int64_t)tess_dtype_size(op->out[0].dtype);
    bool vectors = tess_whole(&op->out[0], b->out[0], piece);
    grad_job job = {};
    for (int i = 0; i < op->inputs; i++) {
        job.in[i] = op->in[i];
        job.from[i] = b->in[i];
        vectors = vectors && (i >= value_inputs(op) || tess_whole(&op->in[i], b->in[i], piece));
    }
    job.out = op->out[0];
    job.to = b->out[0];
    job.more = op->inputs > (op->kind == TESS_OP_POOL_GRAD ? 2 : 1);
    job.sz = window(op, TESS_DEPTH);
    job.sy = window(op, TESS_HEIGHT);
    job.sx = window(op, TESS_WIDTH);
    const bool averages = op->kind == TESS_OP_AVERAGE_POOL || op->kind == TESS_OP_AVERAGE_POOL_GRAD;
    job.factor = averages ? 1.0f / (float)(job.sz * job.sy * job.sx) : 1;
    job.row = (unsigned)windows(op, op->out[0].w, job.sx);
    job.h = (unsigned)windows(op, op->out[0].h, job.sy);
    job.d = (unsigned)windows(op, op->out[0].d, job.sz);
    job.rows = (unsigned)op->out[0].n * job.d * job.h;
    job.activation = op->activation;
    if (op->kind == TESS_OP_DROPOUT) {
        job.seed = op->random.seed;
        job.threshold = (uint32_t)ceilf((float)op->random.rate * 0x1p24f);
        job.kept = (float)(1 - op->random.rate);
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

} // namespace

extern "C" const tess_cuda_launch tess_cuda_pointwise_grad = {refuses, run, NULL, NULL};
