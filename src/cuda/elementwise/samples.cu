/* Converts a file's samples to values and back with the arithmetic of tensor/samples.c: one fp32 product for
 * import, one fp64 product rounded to nearest for export, so that both devices agree to the last bit. One
 * thread per pixel. */
#include <math.h>

#include <cuda_fp16.h>

#include "cuda/core/cuda.h"

struct samples_job {
    tess_tensor in, out;
    tess_op_samples s;
    float scale;
    int top, left;
};

template <typename T> __device__ __forceinline__ float to_value(T sample, float scale)
{
    return __fmul_rn((float)sample, scale);
}

template <> __device__ __forceinline__ float to_value<float>(float sample, float)
{
    return sample;
}

template <> __device__ __forceinline__ float to_value<__half>(__half sample, float)
{
    return __half2float(sample);
}

template <> __device__ __forceinline__ float to_value<double>(double sample, float)
{
    return (float)sample;
}

template <typename T> __global__ void import_kernel(samples_job job, const T *in, float *out)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const tess_tensor &from = job.in, &to = job.out;
    if (i >= to.n * to.h * to.w)
        return;
    const int64_t x = i % to.w, y = i / to.w % to.h, n = i / (to.w * to.h);
    const int64_t fx = x < from.w ? x : from.w - 1, fy = y < from.h ? y : from.h - 1;
    in += n * from.stride_n + fy * from.stride_h + fx * from.stride_w;
    out += n * to.stride_n + y * to.stride_h + x * to.stride_w;
    const int64_t channels = to.c - (job.s.level_channel ? 1 : 0);
    for (int64_t c = 0; c < channels; c++)
        out[c] = to_value(in[job.s.first + c], job.scale);
    if (job.s.level_channel)
        out[channels] = job.s.level_from ? to_value(in[job.s.level_from], job.scale) : job.s.level;
}

template <typename T> struct sample_range;
template <> struct sample_range<uint8_t> {
    static constexpr double least = 0, most = UINT8_MAX;
};
template <> struct sample_range<uint16_t> {
    static constexpr double least = 0, most = UINT16_MAX;
};
template <> struct sample_range<int16_t> {
    static constexpr double least = INT16_MIN, most = INT16_MAX;
};
template <> struct sample_range<uint32_t> {
    static constexpr double least = 0, most = UINT32_MAX;
};
template <> struct sample_range<int32_t> {
    static constexpr double least = INT32_MIN, most = INT32_MAX;
};

template <typename T> __device__ __forceinline__ T to_sample(float value, double full_scale)
{
    constexpr double least = sample_range<T>::least, most = sample_range<T>::most;
    const double v = rint(__dmul_rn((double)value, full_scale));
    return (T)(v >= most ? most : v > least ? v : least); /* NaN becomes `least` */
}

template <> __device__ __forceinline__ float to_sample<float>(float value, double)
{
    return value;
}

template <> __device__ __forceinline__ __half to_sample<__half>(float value, double)
{
    return __float2half_rn(value);
}

template <> __device__ __forceinline__ double to_sample<double>(float value, double)
{
    return (double)value;
}

template <typename T> __global__ void export_kernel(samples_job job, const float *in, T *out)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const tess_tensor &from = job.in, &to = job.out;
    if (i >= to.n * to.h * to.w)
        return;
    const int64_t x = i % to.w, y = i / to.w % to.h, n = i / (to.w * to.h);
    in += n * from.stride_n + (y + job.top) * from.stride_h + (x + job.left) * from.stride_w;
    out += n * to.stride_n + y * to.stride_h + x * to.stride_w + job.s.first;
    for (int64_t c = 0; c < from.c; c++)
        out[c] = to_sample<T>(in[c], job.s.full_scale);
}

template <typename T>
static void launch(const tess_op *op, const samples_job &job, const tess_op_buffers *b, cudaStream_t stream)
{
    const int threads = 128;
    const unsigned blocks = (unsigned)((op->out[0].n * op->out[0].h * op->out[0].w + threads - 1) / threads);
    if (op->kind == TESS_OP_IMPORT)
        import_kernel<T><<<blocks, threads, 0, stream>>>(job, (const T *)b->in[0], (float *)b->out[0]);
    else
        export_kernel<T><<<blocks, threads, 0, stream>>>(job, (const float *)b->in[0], (T *)b->out[0]);
}

static const char *samples_refuses(const tess_op *op, int)
{
    if (op->kind != TESS_OP_IMPORT && op->kind != TESS_OP_EXPORT)
        return "only samples are imported and exported";
    const bool import = op->kind == TESS_OP_IMPORT;
    if ((import ? op->out[0].dtype : op->in[0].dtype) != TESS_F32)
        return "samples are exchanged with fp32 values";
    switch (import ? op->in[0].dtype : op->out[0].dtype) {
    case TESS_U8:
    case TESS_U16:
    case TESS_I16:
    case TESS_U32:
    case TESS_I32:
    case TESS_F16:
    case TESS_F32:
    case TESS_F64:
        return NULL;
    default:
        return "samples of this type are not read";
    }
}

static cudaError_t samples_run(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    samples_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.s = op->samples;
    job.scale = (float)(1.0 / op->samples.full_scale);
    job.top = op->pad_before[TESS_HEIGHT];
    job.left = op->pad_before[TESS_WIDTH];
    switch (op->kind == TESS_OP_IMPORT ? op->in[0].dtype : op->out[0].dtype) {
    case TESS_U8:
        launch<uint8_t>(op, job, b, stream);
        break;
    case TESS_U16:
        launch<uint16_t>(op, job, b, stream);
        break;
    case TESS_I16:
        launch<int16_t>(op, job, b, stream);
        break;
    case TESS_U32:
        launch<uint32_t>(op, job, b, stream);
        break;
    case TESS_I32:
        launch<int32_t>(op, job, b, stream);
        break;
    case TESS_F16:
        launch<__half>(op, job, b, stream);
        break;
    case TESS_F64:
        launch<double>(op, job, b, stream);
        break;
    default:
        launch<float>(op, job, b, stream);
    }
    return cudaGetLastError();
}

extern "C" const tess_cuda_launch tess_cuda_samples = {samples_refuses, samples_run, NULL, NULL};
