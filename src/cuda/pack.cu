/* Weights into packed form, once at load: one thread a value of the piece, which is in the file's order:
 * [row][other][taps]. Rows are output channels, or input channels of a transposed convolution. */
#include "cuda/cuda.h"
#include "cuda/values.cuh"

struct pack_layout {
    int64_t first, rows, others, taps;
    bool transposed;
};

template <typename T> __global__ void pack_kernel(pack_layout l, const float *values, T *packed)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, count = l.rows * l.others * l.taps;
    if (i >= count)
        return;
    const int64_t tap = i % l.taps, other = i / l.taps % l.others, row = l.first + i / (l.taps * l.others);
    packed[(row * l.taps + tap) * l.others + other] = tess_rounded<T>(values[i]);
}

template <typename T>
__global__ void pack_transposed_kernel(pack_layout l, int64_t all_rows, const float *values, T *packed)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, count = l.rows * l.others * l.taps;
    if (i >= count)
        return;
    const int64_t tap = i % l.taps, other = i / l.taps % l.others, row = l.first + i / (l.taps * l.others);
    packed[(tap * l.others + other) * all_rows + row] = tess_rounded<T>(values[i]);
}

template <typename T>
static void launch(const tess_op *op, const pack_layout &l, const float *values, void *packed,
                   cudaStream_t stream)
{
    const int threads = 256;
    const unsigned blocks = (unsigned)((l.rows * l.others * l.taps + threads - 1) / threads);
    if (l.transposed)
        pack_transposed_kernel<T><<<blocks, threads, 0, stream>>>(l, op->in.c, values, (T *)packed);
    else
        pack_kernel<T><<<blocks, threads, 0, stream>>>(l, values, (T *)packed);
}

extern "C" cudaError_t tess_cuda_pack(const tess_op *op, tess_weight_part part, int64_t first, int64_t count,
                                      const float *values, void *packed, cudaStream_t stream)
{
    if (part == TESS_PART_BIAS) {
        char *bias = (char *)packed + tess_cuda_bias_at(op);
        return cudaMemcpyAsync((float *)bias + first, values, (size_t)count * sizeof(float),
                               cudaMemcpyDeviceToDevice, stream);
    }
    pack_layout l = {};
    l.first = first;
    l.rows = count;
    l.transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    l.others = l.transposed ? op->out.c : op->in.c;
    l.taps = (int64_t)op->kernel[0] * op->kernel[1] * op->kernel[2];
    switch (tess_op_precision(op)) {
    case TESS_F16:
        launch<__half>(op, l, values, packed, stream);
        break;
    case TESS_BF16:
        launch<__nv_bfloat16>(op, l, values, packed, stream);
        break;
    default:
        launch<float>(op, l, values, packed, stream);
    }
    return cudaGetLastError();
}
