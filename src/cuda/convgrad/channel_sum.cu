/* Sums over all but the channels. Memory-bound. A block sums every `parts`-th line (one row of one slice): a thread
 * reads 16 bytes of a pixel if the tensor allows it, and the threads of a block share the pixels of a line. */
#include "cuda/convgrad/sums.h"
#include "cuda/core/values.cuh"

namespace
{

enum { THREADS = 256, MOST_LANES = 32, MOST_PARTS = 512 };

template <typename T, int N>
__global__ void __launch_bounds__(THREADS) line_kernel(const __grid_constant__ tess_tensor t, const T *data,
                                                       int64_t lines, int lanes, float *partials)
{
    __shared__ float sums[THREADS * N];
    const int lane = threadIdx.x % lanes, row = threadIdx.x / lanes, rows = THREADS / lanes;
    const int64_t c = ((int64_t)blockIdx.y * lanes + lane) * N;
    float sum[N] = {};
    for (int64_t line = blockIdx.x; line < lines && c < t.c; line += gridDim.x) {
        const int64_t slice = line / t.h, n = slice / t.d;
        const T *from =
            data + n * t.stride_n + (slice - n * t.d) * t.stride_d + (line - slice * t.h) * t.stride_h + c;
#pragma unroll 4
        for (int64_t x = row; x < t.w; x += rows) {
            float more[N];
            tess_load<N>(from + x * t.stride_w, more);
#pragma unroll
            for (int i = 0; i < N; i++)
                sum[i] += more[i];
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        sums[threadIdx.x * N + i] = sum[i];
    __syncthreads();
    if (row > 0 || c >= t.c)
        return;
#pragma unroll
    for (int i = 0; i < N; i++) {
        float all = 0;
        for (int r = 0; r < rows; r++)
            all += sums[(r * lanes + lane) * N + i];
        partials[blockIdx.x * t.c + c + i] = all;
    }
}

int parts_of(const tess_tensor *t)
{
    const int64_t lines = t->n * t->d * t->h;
    return lines < MOST_PARTS ? (int)lines : MOST_PARTS;
}

template <typename T, int N>
void launch(const tess_tensor *t, const void *data, float *partials, cudaStream_t stream)
{
    const int64_t pieces = (t->c + N - 1) / N;
    int lanes = 1;
    while (lanes < MOST_LANES && lanes < pieces)
        lanes *= 2;
    const dim3 blocks((unsigned)parts_of(t), (unsigned)((pieces + lanes - 1) / lanes));
    line_kernel<T, N>
        <<<blocks, THREADS, 0, stream>>>(*t, (const T *)data, t->n * t->d * t->h, lanes, partials);
}

template <typename T>
void launch_type(const tess_tensor *t, const void *data, float *partials, cudaStream_t stream)
{
    constexpr int PIECE = 16 / (int)sizeof(T);
    const bool wide = t->c % PIECE == 0 && t->stride_n % PIECE == 0 && t->stride_d % PIECE == 0 &&
                      t->stride_h % PIECE == 0 && t->stride_w % PIECE == 0 && (uintptr_t)data % 16 == 0;
    if (wide)
        launch<T, PIECE>(t, data, partials, stream);
    else
        launch<T, 1>(t, data, partials, stream);
}

const char *refuses(const tess_op *op, int)
{
    const tess_dtype dtype = op->in[0].dtype;
    const tess_tensor *out = &op->out[0];
    if (dtype != TESS_F32 && dtype != TESS_F16 && dtype != TESS_BF16)
        return "values are fp32, fp16 or bf16";
    if (out->dtype != TESS_F32 || out->n * out->d * out->h * out->w * out->c != op->in[0].c)
        return "the sums are one fp32 value for each channel";
    return op->in[0].c > 65535 ? "takes fewer channels" : NULL;
}

cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    return tess_cuda_channel_sum_run(&op->in[0], buffers->in[0], buffers->workspace, (float *)buffers->out[0],
                                     op->grad.accumulate, stream);
}

size_t workspace(const tess_op *op)
{
    return tess_cuda_channel_sum_bytes(&op->in[0]);
}

} // namespace

extern "C" size_t tess_cuda_channel_sum_bytes(const tess_tensor *t)
{
    return (size_t)parts_of(t) * (size_t)t->c * sizeof(float);
}

extern "C" cudaError_t tess_cuda_channel_sum_run(const tess_tensor *t, const void *data, void *workspace,
                                                 float *out, bool accumulate, cudaStream_t stream)
{
    float *partials = (float *)workspace;
    if (t->dtype == TESS_F16)
        launch_type<__half>(t, data, partials, stream);
    else if (t->dtype == TESS_BF16)
        launch_type<__nv_bfloat16>(t, data, partials, stream);
    else
        launch_type<float>(t, data, partials, stream);
    tess_sums sums = {};
    sums.count = 1;
    sums.accumulate = accumulate;
    tess_partials *p = &sums.of[0];
    p->values = partials;
    p->dtype = TESS_F32;
    p->parts = parts_of(t);
    p->rows = p->taps = p->out_rows = 1;
    p->columns = p->out_columns = t->c;
    p->out = out;
    const cudaError_t result = cudaGetLastError();
    return result == cudaSuccess ? tess_cuda_sum_parts(&sums, stream) : result;
}

extern "C" const tess_cuda_launch tess_cuda_channel_sum = {refuses, run, NULL, workspace};
