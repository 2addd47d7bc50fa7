/* The last layer of a network: many channels to at most eight. It is bound by reading its input, so a tile of
 * the input with its border is copied to shared memory once, 64 channels at a time, and all taps read it
 * there.
 *
 * A block of 8 warps computes 32 x 16 pixels; a warp computes 16 x 4 of them as four matrix products whose
 * rows are its 16 pixels. One fragment of the input is used for every output row within the kernel's reach.
 * The 64 channels of a pixel take 144 bytes, so that the eight rows read at once are in different banks. */
#include "cuda/conv/generic.h"
#include "cuda/conv/matrix.cuh"
#include "cuda/core/load.h"

namespace
{

enum { WIDE = 32, HIGH = 16, ROWS = 4, CHANNELS = 64, PITCH = 72, THREADS = 256, OUTPUTS = 8 };

struct tail_job {
    tess_tensor in, out, residual[2], mask;
    int top, left, residuals, chunks;
    bool relu;
    const float *bias;
    const void *from, *weights, *more[2], *keep; /* keep NULL: no mask */
    void *to;
};

template <int K> struct tail_tile {
    static constexpr int w = WIDE + K - 1, h = HIGH + K - 1, values = w * h * PITCH;
    static constexpr int steps = K * K * (CHANNELS / 16);
    static constexpr int bytes = values * 2 + steps * 32 * 8;
};

/* Copies 16 bytes to shared memory without registers; zeros if `use` is false. */
__device__ __forceinline__ void bring(void *to, const void *from, bool use)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(use ? 16 : 0));
}

template <typename T, int K>
__device__ __forceinline__ void bring_tile(const tail_job &job, int64_t n, int64_t y0, int64_t x0, int chunk,
                                           T *tile)
{
    using shape = tail_tile<K>;
    for (int i = threadIdx.x; i < shape::w * shape::h * (CHANNELS / 8); i += THREADS) {
        const int piece = i % (CHANNELS / 8), pixel = i / (CHANNELS / 8);
        const int64_t y = y0 + pixel / shape::w, x = x0 + pixel % shape::w, c = chunk * CHANNELS + piece * 8;
        const bool use = y >= 0 && y < job.in.h && x >= 0 && x < job.in.w && c < job.in.c;
        const int64_t from = use ? n * job.in.stride_n + y * job.in.stride_h + x * job.in.stride_w + c : 0;
        bring(tile + pixel * PITCH + piece * 8, (const T *)job.from + from, use);
    }
}

/* Weights [out][tap][in] as right operands of the products, one for each tap and 16 channels. */
template <typename T, int K>
__device__ __forceinline__ void place_weights(const tail_job &job, int chunk, uint2 *sides)
{
    const T zero = tess_rounded<T>(0);
    const T *weights = (const T *)job.weights;
    for (int i = threadIdx.x; i < tail_tile<K>::steps * 32; i += THREADS) {
        const int lane = i % 32, step = i / 32, tap = step / (CHANNELS / 16), o = lane / 4;
        const int64_t c = chunk * CHANNELS + step % (CHANNELS / 16) * 16 + 2 * (lane % 4);
        const T *row = weights + (o * (int64_t)(K * K) + tap) * job.in.c;
        T v[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int64_t at = c + (j & 1) + (j / 2) * 8;
            v[j] = o < job.out.c && at < job.in.c ? row[at] : zero;
        }
        sides[i] = make_uint2(tess_pair(v[0], v[1]), tess_pair(v[2], v[3]));
    }
}

template <typename T, int K>
__device__ __forceinline__ void add_products(const T *tile, const uint2 *sides, float sums[ROWS][4])
{
    using shape = tail_tile<K>;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    /* ldmatrix: lanes 0..15 give the addresses of rows for channels 0..7, lanes 16..31 the same rows for
     * channels 8..15 */
    const int pixel = (warp / 2 * ROWS) * shape::w + warp % 2 * 16 + lane % 16;
    const uint32_t base = (uint32_t)__cvta_generic_to_shared(tile + pixel * PITCH + lane / 16 * 8);
#pragma unroll
    for (int kx = 0; kx < K; kx++)
#pragma unroll
        for (int c = 0; c < CHANNELS / 16; c++) {
            uint32_t b[K][2];
#pragma unroll
            for (int ky = 0; ky < K; ky++) {
                const uint2 side = sides[((ky * K + kx) * (CHANNELS / 16) + c) * 32 + lane];
                b[ky][0] = side.x;
                b[ky][1] = side.y;
            }
#pragma unroll
            for (int y = 0; y < ROWS + K - 1; y++) {
                uint32_t a[4];
                const uint32_t at = base + (uint32_t)(((y * shape::w + kx) * PITCH + c * 16) * 2);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                             : "r"(at));
#pragma unroll
                for (int ky = 0; ky < K; ky++)
                    if (y - ky >= 0 && y - ky < ROWS)
                        tess_matrix_add<T>(sums[y - ky], a, b[ky]);
            }
        }
}

template <typename Out>
__device__ __forceinline__ void finish(const tail_job &job, int64_t n, int64_t y, int64_t x, int o,
                                       float value)
{
    if (y >= job.out.h || x >= job.out.w || o >= job.out.c)
        return;
    if (job.bias)
        value += job.bias[o];
    for (int r = 0; r < job.residuals; r++) {
        const tess_tensor &t = job.residual[r];
        value += tess_value(((const Out *)job.more[r])[n * t.stride_n + y * t.stride_h + x * t.stride_w + o]);
    }
    if (job.relu && value < 0)
        value = 0;
    if (job.keep) {
        const tess_tensor &t = job.mask;
        const Out *keep = (const Out *)job.keep + n * t.stride_n + y * t.stride_h + x * t.stride_w + o;
        value = tess_value(*keep) > 0 ? value : 0;
    }
    ((Out *)job.to)[n * job.out.stride_n + y * job.out.stride_h + x * job.out.stride_w + o] =
        tess_rounded<Out>(value);
}

template <typename T, typename Out, int K>
__global__ void __launch_bounds__(THREADS) tail_kernel(tail_job job)
{
    extern __shared__ __align__(16) unsigned char shared[];
    T *tile = (T *)shared;
    uint2 *sides = (uint2 *)(shared + tail_tile<K>::values * 2);
    const int64_t n = blockIdx.z, y0 = (int64_t)blockIdx.y * HIGH, x0 = (int64_t)blockIdx.x * WIDE;
    float sums[ROWS][4] = {};
    for (int chunk = 0; chunk < job.chunks; chunk++) {
        if (chunk > 0)
            __syncthreads();
        bring_tile<T, K>(job, n, y0 - job.top, x0 - job.left, chunk, tile);
        place_weights<T, K>(job, chunk, sides);
        asm volatile("cp.async.wait_all;");
        __syncthreads();
        add_products<T, K>(tile, sides, sums);
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            finish<Out>(job, n, y0 + warp / 2 * ROWS + r, x0 + warp % 2 * 16 + lane / 4 + i / 2 * 8,
                        lane % 4 * 2 + i % 2, sums[r][i]);
}

template <typename T, typename Out, int K> cudaError_t load(void)
{
    return tess_cuda_load((const void *)tail_kernel<T, Out, K>, tail_tile<K>::bytes);
}

template <typename T> cudaError_t load_type(void)
{
    cudaError_t (*const kernels[])(void) = {load<T, float, 3>, load<T, float, 1>, load<T, T, 3>,
                                            load<T, T, 1>};
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < 4 && result == cudaSuccess; i++)
        result = kernels[i]();
    return result;
}

template <typename T, typename Out, int K> cudaError_t launch(const tail_job &job, cudaStream_t stream)
{
    const dim3 blocks((unsigned)((job.out.w + WIDE - 1) / WIDE), (unsigned)((job.out.h + HIGH - 1) / HIGH),
                      (unsigned)job.out.n);
    tail_kernel<T, Out, K><<<blocks, THREADS, tail_tile<K>::bytes, stream>>>(job);
    return cudaGetLastError();
}

template <typename T> cudaError_t launch_ends(const tess_op *op, const tail_job &job, cudaStream_t stream)
{
    const bool image = op->out[0].dtype == TESS_F32;
    if (op->kernel[TESS_HEIGHT] == 3)
        return image ? launch<T, float, 3>(job, stream) : launch<T, T, 3>(job, stream);
    return image ? launch<T, float, 1>(job, stream) : launch<T, T, 1>(job, stream);
}

} // namespace

extern "C" bool tess_cuda_tail_fits(const tess_op *op)
{
    const int k = op->kernel[TESS_HEIGHT];
    const tess_tensor *in = &op->in[0];
    return op->kind == TESS_OP_CONV && in->dtype != TESS_F32 && op->out[0].c <= OUTPUTS && in->c % 8 == 0 &&
           in->c >= 32 && (k == 1 || k == 3) && op->kernel[TESS_WIDTH] == k && op->stride[TESS_HEIGHT] == 1 &&
           op->stride[TESS_WIDTH] == 1 && in->stride_n % 8 == 0 && in->stride_h % 8 == 0 &&
           in->stride_w % 8 == 0 && op->out[0].n <= 65535 && op->out[0].h <= 65535 * (int64_t)HIGH;
}

extern "C" cudaError_t tess_cuda_tail_load(void)
{
    const cudaError_t result = load_type<__half>();
    return result == cudaSuccess ? load_type<__nv_bfloat16>() : result;
}

extern "C" cudaError_t tess_cuda_tail(const tess_op *op, const tess_op_buffers *b, cudaStream_t stream)
{
    if ((uintptr_t)b->in[0] % 16 != 0)
        return cudaErrorInvalidValue;
    tail_job job = {};
    job.in = op->in[0];
    job.out = op->out[0];
    job.top = op->pad_before[TESS_HEIGHT];
    job.left = op->pad_before[TESS_WIDTH];
    job.chunks = (int)((op->in[0].c + CHANNELS - 1) / CHANNELS);
    job.relu = tess_op_relu(op);
    job.bias = tess_cuda_bias(op, b);
    job.from = b->in[0];
    job.to = b->out[0];
    job.weights = b->weights;
    job.residuals = tess_op_residuals(op);
    for (int r = 0; r < tess_op_residuals(op); r++) {
        job.residual[r] = op->in[1 + r];
        job.more[r] = b->in[1 + r];
    }
    if (op->masked) {
        job.mask = *tess_op_mask(op);
        job.keep = b->in[op->inputs - 1];
    }
    return tess_op_precision(op) == TESS_F16 ? launch_ends<__half>(op, job, stream)
                                             : launch_ends<__nv_bfloat16>(op, job, stream);
}
