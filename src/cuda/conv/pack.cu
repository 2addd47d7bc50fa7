/* Packs weights once, at load. One thread per value of the piece, which is in the file's order:
 * [row][other][depth][taps]. Rows are output channels, or input channels of a transposed convolution. Each
 * depth tap is packed separately. */
#include "cuda/core/cuda.h"
#include "cuda/core/values.cuh"

struct pack_layout {
    int64_t first, rows, others, taps;
    int64_t depth, slice; /* number of depth taps, and the one to pack */
    bool transposed;
};

/* The position in the file of value i of the slice. */
static __device__ __forceinline__ int64_t source(const pack_layout &l, int64_t i)
{
    return (i / l.taps * l.depth + l.slice) * l.taps + i % l.taps;
}

/* Makes the writes of a thread visible to the next kernel even if that one starts early (programmatic launch): the
 * Hopper convolutions read their weights before they wait for the kernel before them. */
static __device__ __forceinline__ void publish(void)
{
    __threadfence();
}

/* A block packs 64 input channels of one row through shared memory, so that it reads and writes runs: training packs
 * all weights at every step. Grid: x over channels, y over rows. */
enum { PIECE = 64, MOST_TAPS = 9, TILE_THREADS = 192 };

template <typename T>
__global__ void __launch_bounds__(TILE_THREADS)
    pack_tile_kernel(pack_layout l, const float *values, T *packed)
{
    __shared__ float tile[PIECE * MOST_TAPS];
    const int64_t row = blockIdx.y, first = (int64_t)blockIdx.x * PIECE;
    const int taps = (int)l.taps, channels = (int)(l.others - first < PIECE ? l.others - first : PIECE);
    for (int i = threadIdx.x; i < channels * taps; i += TILE_THREADS) {
        const int channel = i / taps, tap = i - channel * taps;
        tile[i] = values[((row * l.others + first + channel) * l.depth + l.slice) * taps + tap];
    }
    __syncthreads();
    T *to = packed + (l.first + row) * taps * l.others + first;
    for (int i = threadIdx.x; i < PIECE * taps; i += TILE_THREADS) {
        const int tap = i / PIECE, channel = i % PIECE;
        if (channel < channels)
            to[tap * l.others + channel] = tess_rounded<T>(tile[channel * taps + tap]);
    }
    publish();
}

template <typename T> __global__ void pack_kernel(pack_layout l, const float *values, T *packed)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, count = l.rows * l.others * l.taps;
    if (i >= count)
        return;
    const int64_t tap = i % l.taps, other = i / l.taps % l.others, row = l.first + i / (l.taps * l.others);
    packed[(row * l.taps + tap) * l.others + other] = tess_rounded<T>(values[source(l, i)]);
    publish();
}

template <typename T>
__global__ void pack_transposed_kernel(pack_layout l, int64_t all_rows, const float *values, T *packed)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, count = l.rows * l.others * l.taps;
    if (i >= count)
        return;
    const int64_t tap = i % l.taps, other = i / l.taps % l.others, row = l.first + i / (l.taps * l.others);
    packed[(tap * l.others + other) * all_rows + row] = tess_rounded<T>(values[source(l, i)]);
    publish();
}

/* True if tap `i` of phase `phase` includes this one of the 3 taps: after upsampling, two neighbouring taps
 * can read the same input pixel. */
static __device__ __forceinline__ bool tap_in(int phase, int i, int tap)
{
    return phase == 0 ? (i == 0 ? tap == 0 : tap > 0) : (i == 0 ? tap < 2 : tap == 2);
}

/* One thread per output value. Each of the four phases of the upsampled image reads a 2x2 neighbourhood; taps
 * that read the same input pixel are summed in fp32 and rounded once. */
template <typename T>
__global__ void pack_up_conv_kernel(pack_layout l, int64_t outputs, const float *values, T *packed)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, count = l.rows * l.others * 16;
    if (i >= count)
        return;
    const int64_t in = i % l.others, at = i / l.others, row = at / 16;
    const int phase = (int)(at / 4 % 4), tap = (int)(at % 4);
    float sum = 0;
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++)
            if (tap_in(phase / 2, tap / 2, y) && tap_in(phase % 2, tap % 2, x))
                sum += values[(row * l.others + in) * 9 + 3 * y + x];
    packed[((phase * outputs + l.first + row) * 4 + tap) * l.others + in] = tess_rounded<T>(sum);
    publish();
}

template <typename T>
static void launch(const tess_op *op, const pack_layout &l, const float *values, void *packed,
                   cudaStream_t stream)
{
    const int threads = 256;
    const int64_t taps = op->kind == TESS_OP_UP_CONV ? 16 : l.taps;
    const unsigned blocks = (unsigned)((l.rows * l.others * taps + threads - 1) / threads);
    if (op->kind == TESS_OP_UP_CONV)
        pack_up_conv_kernel<T><<<blocks, threads, 0, stream>>>(l, op->out[0].c, values, (T *)packed);
    else if (l.transposed)
        pack_transposed_kernel<T><<<blocks, threads, 0, stream>>>(l, op->in[0].c, values, (T *)packed);
    else if (l.taps <= MOST_TAPS && l.rows <= 65535)
        pack_tile_kernel<T>
            <<<dim3((unsigned)((l.others + PIECE - 1) / PIECE), (unsigned)l.rows), TILE_THREADS, 0, stream>>>(
                l, values, (T *)packed);
    else
        pack_kernel<T><<<blocks, threads, 0, stream>>>(l, values, (T *)packed);
}

static cudaError_t pack_kernel_values(const tess_op *op, int64_t slice, int64_t first, int64_t count,
                                      const float *values, void *packed, cudaStream_t stream)
{
    pack_layout l = {};
    l.first = first;
    l.rows = count;
    l.transposed = op->kind == TESS_OP_CONV_TRANSPOSE;
    l.others = l.transposed ? op->out[0].c : op->in[0].c;
    l.taps = (int64_t)op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH];
    l.depth = op->kernel[TESS_DEPTH];
    l.slice = slice;
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

/* A block packs 32 rows of the file (input channels of `op`) for 8 of the others through shared memory, so that it
 * reads and writes runs. Taps are reversed. Grid: x over rows, y over the others. */
enum { TURNED_ROWS = 32, TURNED_OTHERS = 8, TURNED_THREADS = 256 };

template <typename T>
__global__ void __launch_bounds__(TURNED_THREADS)
    pack_turned_kernel(int rows, int others, int taps, const float *values, T *packed)
{
    __shared__ float tile[TURNED_ROWS][TURNED_OTHERS * MOST_TAPS + 1];
    const int row = blockIdx.x * TURNED_ROWS, other = blockIdx.y * TURNED_OTHERS,
              high = min(TURNED_ROWS, rows - row), run = min(TURNED_OTHERS, others - other) * taps;
    for (int i = threadIdx.x; i < high * run; i += TURNED_THREADS)
        tile[i / run][i % run] = values[((int64_t)(row + i / run) * others + other) * taps + i % run];
    __syncthreads();
    for (int i = threadIdx.x; i < TURNED_ROWS * run; i += TURNED_THREADS) {
        const int r = i % TURNED_ROWS, k = i / TURNED_ROWS, tap = taps - 1 - k % taps;
        if (r < high)
            packed[((int64_t)(other + k / taps) * taps + tap) * rows + row + r] = tess_rounded<T>(tile[r][k]);
    }
    publish();
}

template <typename T>
static void launch_turned(const tess_op *op, const float *values, void *packed, cudaStream_t stream)
{
    const int rows = (int)op->in[0].c, others = (int)op->out[0].c,
              taps = op->kernel[TESS_HEIGHT] * op->kernel[TESS_WIDTH];
    const dim3 grid((unsigned)((rows + TURNED_ROWS - 1) / TURNED_ROWS),
                    (unsigned)((others + TURNED_OTHERS - 1) / TURNED_OTHERS));
    pack_turned_kernel<T><<<grid, TURNED_THREADS, 0, stream>>>(rows, others, taps, values, (T *)packed);
}

extern "C" cudaError_t tess_cuda_pack_turned(const tess_op *op, const float *values, void *packed,
                                             cudaStream_t stream)
{
    switch (tess_op_precision(op)) {
    case TESS_F16:
        launch_turned<__half>(op, values, packed, stream);
        break;
    case TESS_BF16:
        launch_turned<__nv_bfloat16>(op, values, packed, stream);
        break;
    default:
        launch_turned<float>(op, values, packed, stream);
    }
    return cudaGetLastError();
}

extern "C" cudaError_t tess_cuda_pack(const tess_op *op, int param, int64_t first, int64_t count,
                                      const float *values, void *packed, cudaStream_t stream)
{
    cudaError_t result = cudaSuccess;
    for (int tap = 0; tap < op->kernel[TESS_DEPTH] && result == cudaSuccess; tap++) {
        char *to = (char *)packed + (size_t)tap * tess_cuda_tap_bytes(op);
        if (param == TESS_PARAM_BIAS) /* one per depth tap: any tap may be the first to reach a slice */
            result = cudaMemcpyAsync((float *)(to + tess_cuda_bias_at(op)) + first, values,
                                     (size_t)count * sizeof(float), cudaMemcpyDeviceToDevice, stream);
        else
            result = pack_kernel_values(op, tap, first, count, values, to, stream);
    }
    return result;
}
