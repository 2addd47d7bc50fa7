/* The first layer of a network: an fp32 image of one, three or four channels to 64 or fewer, 3x3. Writing the
 * result takes nearly all of its time, so the threads themselves arrange the taps: one row of shared memory
 * per pixel holds its 9 x C neighbours, rounded, and a few wgmma steps multiply them. */
#include "cuda/core/load.h"
#include "cuda/core/tensor_map.h"
#include "cuda/hopper/hopper.cuh"
#include "cuda/hopper/hopper.h"
#include "cuda/hopper/hopper_launch.cuh"

enum {
    OUTPUTS = 64,
    SIDE = 16,
    PIXELS = SIDE * SIDE,
    ROW_BYTES = 128,
    BLOCKS_PER_SM = 3,
    MASK_BYTES = PIXELS * ROW_BYTES,
    MASK_AT = (PIXELS + OUTPUTS) * ROW_BYTES, /* behind pixels and weights; the barrier of its copy follows */
    PLAIN_BYTES = MASK_AT + 1024,             /* 1024: to align the start */
    MASKED_BYTES = PLAIN_BYTES + MASK_BYTES + 16
};

typedef struct head_geometry {
    CUtensorMap out, mask;
    const float *in;
    const void *weights;
    const float *bias;
    int64_t stride_n, stride_h;
    int height, width, pixel; /* pixel: floats from one pixel to the next */
    int pad_y, pad_x, tiles_x, tiles_y, tiles, outputs;
    bool relu;
} head_geometry;

/* Length of the sum, in steps of 16. */
template <int C> struct head_depth {
    static constexpr int used = 9 * C, steps = (used + 15) / 16, chunks = 2 * steps;
};

/* Address of 16-byte chunk `chunk` of row `row`, swizzled. */
static __device__ __forceinline__ uint32_t chunk_at(int row, int chunk)
{
    return (uint32_t)(row * ROW_BYTES + (chunk ^ (row & 7)) * 16);
}

static __device__ __forceinline__ void put_chunk(uint32_t address, const uint32_t (&words)[4])
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
}

template <typename T, int C>
static __device__ __forceinline__ void put_row(uint32_t base, int row,
                                               const float (&values)[16 * head_depth<C>::steps])
{
#pragma unroll
    for (int chunk = 0; chunk < head_depth<C>::chunks; chunk++) {
        uint32_t words[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            words[k] = pair(values[8 * chunk + 2 * k], values[8 * chunk + 2 * k + 1], T());
        put_chunk(base + chunk_at(row, chunk), words);
    }
}

template <typename T, int C>
static __device__ __forceinline__ void put_weights(const head_geometry &g, uint32_t base)
{
    if (threadIdx.x >= OUTPUTS)
        return;
    const bool real = threadIdx.x < g.outputs; /* missing outputs are zero and not stored */
    const T *row = (const T *)g.weights + threadIdx.x * head_depth<C>::used;
    float values[16 * head_depth<C>::steps];
#pragma unroll
    for (int k = 0; k < 16 * head_depth<C>::steps; k++)
        values[k] = real && k < head_depth<C>::used ? (float)row[k] : 0.0f;
    put_row<T, C>(base, threadIdx.x, values);
}

/* Writes the neighbourhood of one pixel; zero outside the image. */
template <typename T, int C>
static __device__ __forceinline__ void put_pixel(const head_geometry &g, uint32_t base, int n, int y, int x,
                                                 int row)
{
    float values[16 * head_depth<C>::steps];
#pragma unroll
    for (int k = head_depth<C>::used; k < 16 * head_depth<C>::steps; k++)
        values[k] = 0;
#pragma unroll
    for (int tap = 0; tap < 9; tap++) {
        const int at_y = y - g.pad_y + tap / 3, at_x = x - g.pad_x + tap % 3;
        const bool inside = at_y >= 0 && at_y < g.height && at_x >= 0 && at_x < g.width;
        const float *from = g.in + n * g.stride_n + at_y * g.stride_h + at_x * g.pixel;
        if (C == 4) {
            float4 v = inside ? __ldg((const float4 *)from) : make_float4(0, 0, 0, 0);
            values[tap * C] = v.x;
            values[tap * C + 1 % C] = v.y;
            values[tap * C + 2 % C] = v.z;
            values[tap * C + 3 % C] = v.w;
        } else {
#pragma unroll
            for (int c = 0; c < C; c++)
                values[tap * C + c] = inside ? __ldg(from + c) : 0.0f;
        }
    }
    put_row<T, C>(base, row, values);
}

template <typename T, int C, bool MASKED>
__global__ void __launch_bounds__(WARPGROUP, BLOCKS_PER_SM)
    head_kernel(const __grid_constant__ head_geometry g)
{
    extern __shared__ char raw[];
    const uint32_t pixels = (shared_address(raw) + 1023) & ~1023u, weights = pixels + PIXELS * ROW_BYTES;
    const uint32_t mask = pixels + MASK_AT, mask_full = mask + MASK_BYTES;
    const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    if (MASKED && threadIdx.x == 0) {
        barrier_init(mask_full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    let_next_grid_start();
    put_weights<T, C>(g, weights);
    float bias[2] = {0, 0};
    if (g.bias) {
        const int first = 16 * warp + lane / 4;
        bias[0] = first < g.outputs ? __ldg(g.bias + first) : 0;
        bias[1] = first + 8 < g.outputs ? __ldg(g.bias + first + 8) : 0;
    }
    wait_for_grid_before();
    uint32_t mask_round = 0;
    for (int tile = blockIdx.x; tile < g.tiles; tile += gridDim.x) {
        const int x = tile % g.tiles_x * SIDE, y = tile / g.tiles_x % g.tiles_y * SIDE,
                  n = tile / g.tiles_x / g.tiles_y;
        if (threadIdx.x == 0)
            stores_read();
        __syncthreads(); /* the rows still held the previous tile */
        if (MASKED && threadIdx.x == 0) {
            barrier_expect(mask_full, MASK_BYTES);
            load_4d(mask, &g.mask, mask_full, 0, x, y, n);
        }
        for (int row = threadIdx.x; row < PIXELS; row += WARPGROUP)
            put_pixel<T, C>(g, pixels, n, y + row / SIDE, x + row % SIDE, row);
        fence_async();
        __syncthreads();
        float d[2][64];
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < head_depth<C>::steps; k++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                wgmma<T, 128>::run(d[half], matrix(weights + 32 * k, 8 * ROW_BYTES),
                                   matrix(pixels + half * 128 * ROW_BYTES + 32 * k, 8 * ROW_BYTES), k);
        wgmma_commit();
        wgmma_wait<0>();
        __syncthreads(); /* all rows are read: the result overwrites them */
        if (MASKED) {
            barrier_wait(mask_full, mask_round);
            mask_round ^= 1;
        }
#pragma unroll
        for (int i = 0; i < PIXELS / 8; i += 2) {
            uint32_t m[4], keep[4];
            const uint32_t at = chunk_at(8 * (i + lane / 16) + lane % 8, 2 * warp + lane / 8 % 2);
            if (MASKED)
                load_transposed(mask + at, keep);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const int group = i + k / 2;
                float low = d[group / 16][group % 16 * 4 + k % 2 * 2] + bias[k % 2];
                float high = d[group / 16][group % 16 * 4 + k % 2 * 2 + 1] + bias[k % 2];
                if (MASKED) {
                    const float2 two = unpair(keep[k], T());
                    low = two.x > 0 ? low : 0;
                    high = two.y > 0 ? high : 0;
                }
                m[k] = pair(g.relu ? fmaxf(low, 0) : low, g.relu ? fmaxf(high, 0) : high, T());
            }
            store_transposed(pixels + at, m);
        }
        fence_async();
        __syncthreads();
        if (threadIdx.x == 0)
            store_4d(&g.out, pixels, 0, x, y, n);
    }
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

static const char *refuses(const tess_op *op, int capability)
{
    if (capability != 90)
        return "made for compute capability 9.0";
    if (op->kind != TESS_OP_CONV || op->in[0].dtype != TESS_F32 ||
        (op->out[0].dtype != TESS_F16 && op->out[0].dtype != TESS_BF16))
        return "takes an fp32 image to fp16 or bf16";
    if (op->in[0].c > 4 || op->in[0].c == 2 || op->out[0].c > OUTPUTS || op->out[0].c % 8)
        return "takes 1, 3 or 4 channels to at most 64";
    for (int s = TESS_HEIGHT; s <= TESS_WIDTH; s++)
        if (op->kernel[s] != 3 || op->stride[s] != 1)
            return "takes 3x3 kernels";
    if (op->in[0].d != 1 || tess_op_residuals(op))
        return "takes 2-D images without a residual";
    if (op->out[0].stride_w % 8 || op->out[0].stride_h % 8 || op->out[0].stride_n % 8 ||
        (op->in[0].c == 4 && (op->in[0].stride_w % 4 || op->in[0].stride_h % 4 || op->in[0].stride_n % 4)))
        return "takes strides of 16 bytes";
    if (op->masked && (tess_op_mask(op)->dtype != op->out[0].dtype || tess_op_mask(op)->stride_w % 8 ||
                       tess_op_mask(op)->stride_h % 8 || tess_op_mask(op)->stride_n % 8))
        return "takes a mask like the output";
    return NULL;
}

/* A map of a tensor like the output, in tiles. */
static bool map_tiles(CUtensorMap *map, const tess_tensor *t, const void *data)
{
    const uint64_t sizes[4] = {(uint64_t)t->c, (uint64_t)t->w, (uint64_t)t->h, (uint64_t)t->n};
    const uint64_t strides[3] = {2 * (uint64_t)t->stride_w, 2 * (uint64_t)t->stride_h,
                                 2 * (uint64_t)t->stride_n};
    const uint32_t box[4] = {OUTPUTS, SIDE, SIDE, 1};
    return tess_cuda_tensor_map(map, t->dtype, 4, (void *)data, sizes, strides, box, NULL, ROW_BYTES);
}

template <typename T, int C>
static cudaError_t launch(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    head_geometry g = {};
    const tess_tensor *out = &op->out[0];
    if (C == 4 && (uintptr_t)buffers->in[0] % 16)
        return cudaErrorInvalidValue;
    if (!map_tiles(&g.out, out, buffers->out[0]) ||
        (op->masked && !map_tiles(&g.mask, tess_op_mask(op), buffers->in[op->inputs - 1])))
        return cudaErrorInvalidValue;
    g.in = (const float *)buffers->in[0];
    g.weights = buffers->weights;
    g.bias = tess_cuda_bias(op, buffers);
    g.stride_n = op->in[0].stride_n;
    g.stride_h = op->in[0].stride_h;
    g.pixel = (int)op->in[0].stride_w;
    g.height = (int)op->in[0].h;
    g.width = (int)op->in[0].w;
    g.pad_y = op->pad_before[TESS_HEIGHT];
    g.pad_x = op->pad_before[TESS_WIDTH];
    g.tiles_x = (int)((out->w + SIDE - 1) / SIDE);
    g.tiles_y = (int)((out->h + SIDE - 1) / SIDE);
    g.tiles = g.tiles_x * g.tiles_y * (int)out->n;
    g.outputs = (int)out->c;
    g.relu = tess_op_relu(op);
    return op->masked ? tess_hopper_launch(head_kernel<T, C, true>, g, g.tiles, BLOCKS_PER_SM, WARPGROUP,
                                           MASKED_BYTES, stream)
                      : tess_hopper_launch(head_kernel<T, C, false>, g, g.tiles, BLOCKS_PER_SM, WARPGROUP,
                                           PLAIN_BYTES, stream);
}

template <typename T>
static cudaError_t run_type(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    return op->in[0].c == 4   ? launch<T, 4>(op, buffers, stream)
           : op->in[0].c == 3 ? launch<T, 3>(op, buffers, stream)
                              : launch<T, 1>(op, buffers, stream);
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    return op->out[0].dtype == TESS_BF16 ? run_type<__nv_bfloat16>(op, buffers, stream)
                                         : run_type<__half>(op, buffers, stream);
}

template <bool MASKED> static cudaError_t load_all(void)
{
    static const void *const all[] = {(const void *)head_kernel<__half, 4, MASKED>,
                                      (const void *)head_kernel<__half, 3, MASKED>,
                                      (const void *)head_kernel<__half, 1, MASKED>,
                                      (const void *)head_kernel<__nv_bfloat16, 4, MASKED>,
                                      (const void *)head_kernel<__nv_bfloat16, 3, MASKED>,
                                      (const void *)head_kernel<__nv_bfloat16, 1, MASKED>};
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < 6 && result == cudaSuccess; i++)
        result = tess_cuda_load(all[i], MASKED ? MASKED_BYTES : PLAIN_BYTES);
    return result;
}

extern "C" cudaError_t tess_hopper_head_load_masked(void)
{
    return load_all<true>();
}

static cudaError_t load(int)
{
    return load_all<false>();
}

extern "C" const tess_cuda_launch tess_hopper_head = {refuses, run, load, NULL};
