/* The last layer of a network: 64 channels or fewer to an fp32 image of at most 8, 3x3 or 1x1, with the image
 * itself as an fp32 residual. It is bound by reading its input, so it reads the input once: the pixels are the
 * rows of the product (64 at a time: 8 x 8) and the few outputs are its 8 columns. */
#include "cuda/core/load.h"
#include "cuda/core/tensor_map.h"
#include "cuda/hopper/hopper.cuh"
#include "cuda/hopper/hopper.h"
#include "cuda/hopper/hopper_launch.cuh"

enum {
    INPUTS = 64,
    OUTPUTS = 8,
    WIDTH = 8,
    HEIGHT = 32,
    BLOCKS = HEIGHT / 8,
    ROW_BYTES = 128,
    STAGES = 4,
    TEAMS = 2
};

typedef struct tail_geometry {
    CUtensorMap in;
    const void *weights;
    const float *bias, *residual[2];
    float *out;
    int64_t stride_n, stride_h, residual_n[2], residual_h[2];
    int pixel, residual_pixel[2]; /* floats from one pixel to the next */
    int height, width, inputs, outputs, pad_y, pad_x, tiles_x, tiles_y, tiles, residuals;
    bool relu;
} tail_geometry;

template <int SIDE> struct tail_tile {
    static constexpr int pitch = WIDTH + SIDE - 1, rows = HEIGHT + SIDE - 1,
                         load_bytes = pitch * rows * ROW_BYTES;
    static constexpr int stage_bytes = (load_bytes + 1023) / 1024 * 1024, taps = SIDE * SIDE;
    static constexpr int weights_at = STAGES * stage_bytes,
                         barriers_at = weights_at + taps * OUTPUTS * ROW_BYTES;
    static constexpr int shared_bytes = barriers_at + 16 * STAGES + 1024;
};

/* Outputs that the layer lacks are rows of zeros. */
template <typename T, int SIDE>
static __device__ __forceinline__ void put_weights(const tail_geometry &g, char *shared)
{
    constexpr int taps = SIDE * SIDE;
    for (int i = threadIdx.x; i < taps * OUTPUTS * INPUTS; i += blockDim.x) {
        const int tap = i / (OUTPUTS * INPUTS), row = i / INPUTS % OUTPUTS, c = i % INPUTS;
        T *to = (T *)(shared + (tap * OUTPUTS + row) * ROW_BYTES + ((c / 8) ^ row) * 16) + c % 8;
        *to = row < g.outputs && c < g.inputs ? ((const T *)g.weights)[(row * taps + tap) * g.inputs + c]
                                              : T(0.0f);
    }
}

template <int SIDE>
static __device__ __forceinline__ void load_tiles(const tail_geometry &g, uint32_t base, uint32_t full)
{
    typedef tail_tile<SIDE> tile_type;
    int stage = 0;
    uint32_t round = 0;
    for (int tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
        const int x = tile % g.tiles_x * WIDTH, y = tile / g.tiles_x % g.tiles_y * HEIGHT;
        barrier_wait(full + 8 * (STAGES + stage), round ^ 1);
        barrier_expect(full + 8 * stage, tile_type::load_bytes);
        load_4d(base + stage * tile_type::stage_bytes, &g.in, full + 8 * stage, 0, x - g.pad_x, y - g.pad_y,
                tile / g.tiles_x / g.tiles_y);
        if (++stage == STAGES) {
            stage = 0;
            round ^= 1;
        }
    }
}

static __device__ __forceinline__ void put_pixel(const tail_geometry &g, int n, int y, int x, int c,
                                                 float value)
{
    if (y >= g.height || x >= g.width || c >= g.outputs)
        return;
    if (g.bias)
        value += __ldg(g.bias + c);
    for (int r = 0; r < g.residuals; r++)
        value += g.residual[r][n * g.residual_n[r] + y * g.residual_h[r] + x * g.residual_pixel[r] + c];
    g.out[n * g.stride_n + y * g.stride_h + x * g.pixel + c] = g.relu ? fmaxf(value, 0) : value;
}

template <typename T, int SIDE>
static __device__ __forceinline__ void multiply(const tail_geometry &g, uint32_t base, uint32_t full,
                                                int team, int warp, int lane)
{
    typedef tail_tile<SIDE> tile_type;
    int turn = team;
    for (int tile = blockIdx.x + team * gridDim.x; tile < g.tiles; tile += TEAMS * gridDim.x, turn += TEAMS) {
        const int stage = turn % STAGES;
        const uint32_t pixels = base + stage * tile_type::stage_bytes;
        float d[BLOCKS][4];
        barrier_wait(full + 8 * stage, turn / STAGES & 1);
        wgmma_fence();
#pragma unroll
        for (int tap = 0; tap < tile_type::taps; tap++) {
            const int shift = tap / SIDE * tile_type::pitch + tap % SIDE;
            const uint64_t weights =
                matrix(base + tile_type::weights_at + tap * OUTPUTS * ROW_BYTES, 8 * ROW_BYTES);
#pragma unroll
            for (int k = 0; k < INPUTS / 16; k++)
#pragma unroll
                for (int i = 0; i < BLOCKS; i++)
                    wgmma<T, OUTPUTS>::run(
                        d[i],
                        matrix(pixels + (shift + i * 8 * tile_type::pitch) * ROW_BYTES + 32 * k,
                               tile_type::pitch * ROW_BYTES),
                        weights + (32 * k >> 4), tap | k);
        }
        wgmma_commit();
        wgmma_wait<0>();
        if (warp == 0 && lane == 0)
            barrier_arrive(full + 8 * (STAGES + stage));
        const int x = tile % g.tiles_x * WIDTH + lane / 4,
                  y = tile / g.tiles_x % g.tiles_y * HEIGHT + 2 * warp;
        const int n = tile / g.tiles_x / g.tiles_y;
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
#pragma unroll
            for (int k = 0; k < 4; k++)
                put_pixel(g, n, y + 8 * i + k / 2, x, lane % 4 * 2 + k % 2, d[i][k]);
    }
}

template <typename T, int SIDE>
__global__ void __launch_bounds__((TEAMS + 1) * WARPGROUP, 1)
    tail_kernel(const __grid_constant__ tail_geometry g)
{
    typedef tail_tile<SIDE> tile_type;
    extern __shared__ char raw[];
    const uint32_t base = (shared_address(raw) + 1023) & ~1023u, full = base + tile_type::barriers_at;
    const int team = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0),
              warp = __shfl_sync(~0u, threadIdx.x % WARPGROUP / 32, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * STAGES; i++)
            barrier_init(full + 8 * i, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    put_weights<T, SIDE>(g, raw + (base - shared_address(raw)) + tile_type::weights_at);
    fence_async();
    __syncthreads();
    let_next_grid_start();
    wait_for_grid_before();
    if (team == TEAMS) {
        if (threadIdx.x % WARPGROUP == 0)
            load_tiles<SIDE>(g, base, full);
    } else {
        multiply<T, SIDE>(g, base, full, team, warp, threadIdx.x % 32);
    }
}

static const char *refuses(const tess_op *op, int capability)
{
    if (capability != 90)
        return "made for compute capability 9.0";
    if (op->kind != TESS_OP_CONV || op->out[0].dtype != TESS_F32 ||
        (op->in[0].dtype != TESS_F16 && op->in[0].dtype != TESS_BF16))
        return "takes fp16 or bf16 to an fp32 image";
    if (op->masked)
        return "takes no mask";
    if (op->in[0].c > INPUTS || op->in[0].c % 8 || op->out[0].c > OUTPUTS)
        return "takes 64 channels or fewer to at most 8";
    const int side = op->kernel[TESS_HEIGHT];
    if ((side != 3 && side != 1) || op->kernel[TESS_WIDTH] != side || op->stride[TESS_HEIGHT] != 1 ||
        op->stride[TESS_WIDTH] != 1)
        return "takes 3x3 and 1x1 kernels";
    if (op->in[0].d != 1 || op->in[0].stride_w % 8 || op->in[0].stride_h % 8 || op->in[0].stride_n % 8)
        return "takes strides of 16 bytes";
    for (int r = 0; r < tess_op_residuals(op); r++)
        if (op->in[1 + r].dtype != TESS_F32)
            return "takes fp32 residuals";
    return NULL;
}

template <typename T, int SIDE>
static cudaError_t launch(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    typedef tail_tile<SIDE> tile_type;
    tail_geometry g = {};
    const tess_tensor *in = &op->in[0], *out = &op->out[0];
    const uint64_t sizes[4] = {(uint64_t)in->c, (uint64_t)in->w, (uint64_t)in->h, (uint64_t)in->n};
    const uint64_t strides[3] = {2 * (uint64_t)in->stride_w, 2 * (uint64_t)in->stride_h,
                                 2 * (uint64_t)in->stride_n};
    const uint32_t box[4] = {INPUTS, tile_type::pitch, tile_type::rows, 1};
    if (!tess_cuda_tensor_map(&g.in, in->dtype, 4, (void *)buffers->in[0], sizes, strides, box, NULL,
                              ROW_BYTES))
        return cudaErrorInvalidValue;
    g.weights = buffers->weights;
    g.bias = tess_cuda_bias(op, buffers);
    g.out = (float *)buffers->out[0];
    g.stride_n = out->stride_n;
    g.stride_h = out->stride_h;
    g.pixel = (int)out->stride_w;
    g.residuals = tess_op_residuals(op);
    for (int r = 0; r < tess_op_residuals(op); r++) {
        g.residual[r] = (const float *)buffers->in[1 + r];
        g.residual_n[r] = op->in[1 + r].stride_n;
        g.residual_h[r] = op->in[1 + r].stride_h;
        g.residual_pixel[r] = (int)op->in[1 + r].stride_w;
    }
    g.height = (int)out->h;
    g.width = (int)out->w;
    g.inputs = (int)in->c;
    g.outputs = (int)out->c;
    g.pad_y = op->pad_before[TESS_HEIGHT];
    g.pad_x = op->pad_before[TESS_WIDTH];
    g.tiles_x = (int)((out->w + WIDTH - 1) / WIDTH);
    g.tiles_y = (int)((out->h + HEIGHT - 1) / HEIGHT);
    g.tiles = g.tiles_x * g.tiles_y * (int)out->n;
    g.relu = tess_op_relu(op);
    return tess_hopper_launch(tail_kernel<T, SIDE>, g, g.tiles, 1, (TEAMS + 1) * WARPGROUP,
                              tile_type::shared_bytes, stream);
}

template <typename T>
static cudaError_t run_type(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    return op->kernel[TESS_HEIGHT] == 3 ? launch<T, 3>(op, buffers, stream)
                                        : launch<T, 1>(op, buffers, stream);
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    return op->in[0].dtype == TESS_BF16 ? run_type<__nv_bfloat16>(op, buffers, stream)
                                        : run_type<__half>(op, buffers, stream);
}

template <typename T, int SIDE> static void load_one(cudaError_t *result)
{
    if (*result == cudaSuccess)
        *result = tess_cuda_load((const void *)tail_kernel<T, SIDE>, tail_tile<SIDE>::shared_bytes);
}

static cudaError_t load(int)
{
    cudaError_t result = cudaSuccess;
    load_one<__half, 3>(&result);
    load_one<__half, 1>(&result);
    load_one<__nv_bfloat16, 3>(&result);
    load_one<__nv_bfloat16, 1>(&result);
    return result;
}

extern "C" const tess_cuda_launch tess_hopper_tail = {refuses, run, load, NULL};
