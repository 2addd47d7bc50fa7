/* Adds a map at the end of a convolution, as a separate kernel: one fp32 value per pixel is added to all its
 * channels, then the ReLU is applied. Memory-bound, so a thread processes 16 bytes of a pixel if the output
 * allows it, else one value.
 *
 * Grid: x over pixels and pieces of a row, y over rows, z over the slices of all volumes. */
#include "cuda/conv/volume.h"
#include "cuda/core/values.cuh"

namespace
{

enum { THREADS = 256 };
const int64_t MOST = 65535; /* limit of the grid in y and z */

struct map_job {
    tess_tensor out, map;
    unsigned pieces, row; /* pieces of a pixel and of a row */
    bool relu;
    void *to;
    const float *from;
};

template <typename T, int N>
__global__ void __launch_bounds__(THREADS) add_map_kernel(const __grid_constant__ map_job job)
{
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= job.row)
        return;
    const unsigned x = i / job.pieces, c = (i - x * job.pieces) * N;
    const int64_t slices = job.out.n * job.out.d;
    for (int64_t slice = blockIdx.z; slice < slices; slice += gridDim.z) {
        const int64_t n = slice / job.out.d, z = slice - n * job.out.d;
        for (int64_t y = blockIdx.y; y < job.out.h; y += gridDim.y) {
            T *to = (T *)job.to + n * job.out.stride_n + z * job.out.stride_d + y * job.out.stride_h +
                    x * job.out.stride_w + c;
            const float more = job.from[n * job.map.stride_n + z * job.map.stride_d + y * job.map.stride_h +
                                        x * job.map.stride_w];
            float values[N];
            tess_load<N>(to, values);
#pragma unroll
            for (int j = 0; j < N; j++) {
                const float sum = values[j] + more;
                values[j] = job.relu && sum < 0 ? 0 : sum;
            }
            tess_store<N>(to, values);
        }
    }
}

template <typename T, int N> cudaError_t launch(map_job job, cudaStream_t stream)
{
    const tess_tensor *out = &job.out;
    if (out->w * (out->c / N) > INT32_MAX)
        return cudaErrorInvalidValue;
    job.pieces = (unsigned)(out->c / N);
    job.row = (unsigned)out->w * job.pieces;
    const int64_t slices = out->n * out->d;
    const dim3 blocks((job.row + THREADS - 1) / THREADS, (unsigned)(out->h < MOST ? out->h : MOST),
                      (unsigned)(slices < MOST ? slices : MOST));
    add_map_kernel<T, N><<<blocks, THREADS, 0, stream>>>(job);
    return cudaGetLastError();
}

template <typename T> cudaError_t launch_type(const map_job &job, cudaStream_t stream)
{
    constexpr int PIECE = 16 / (int)sizeof(T);
    const tess_tensor *t = &job.out;
    const bool wide = t->c % PIECE == 0 && t->stride_n % PIECE == 0 && t->stride_d % PIECE == 0 &&
                      t->stride_h % PIECE == 0 && t->stride_w % PIECE == 0 && (uintptr_t)job.to % 16 == 0;
    return wide ? launch<T, PIECE>(job, stream) : launch<T, 1>(job, stream);
}

} // namespace

extern "C" cudaError_t tess_cuda_add_map(const tess_op *op, const tess_op_buffers *buffers,
                                         cudaStream_t stream)
{
    map_job job = {};
    job.out = op->out[0];
    job.map = *tess_op_map(op);
    job.relu = tess_op_relu(op);
    job.to = buffers->out[0];
    job.from = (const float *)buffers->in[op->inputs - 1];
    switch (op->out[0].dtype) {
    case TESS_F16:
        return launch_type<__half>(job, stream);
    case TESS_BF16:
        return launch_type<__nv_bfloat16>(job, stream);
    default:
        return launch_type<float>(job, stream);
    }
}
