/* Host side of the Hopper convolutions: the ops that they accept, tile shape, tensor maps, launch. */
#include "cuda/core/load.h"
#include "cuda/hopper/hopper.h"
#include "cuda/hopper/hopper_conv.cuh"
#include "cuda/hopper/hopper_launch.cuh"
#include "cuda/hopper/hopper_map.cuh"

static bool is_down(const tess_op *op)
{
    return op->kind == TESS_OP_CONV && op->kernel[TESS_HEIGHT] == 2;
}

/* A linear layer has one pixel, of which a tile would use nothing else: left to cuDNN. */
static bool is_point(const tess_op *op)
{
    return op->kind == TESS_OP_CONV && op->kernel[TESS_HEIGHT] == 1 && op->out[0].h * op->out[0].w > 1;
}

/* Both kinds write the four phases of an image of twice the size: with one tap each, or with 2x2. */
static bool is_up(const tess_op *op)
{
    return op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_UP_CONV;
}

/* Phases are counted from the first pixel of the image, so the padding must be that of a whole image. */
static bool fuses_upsampling(const tess_op *op)
{
    bool whole =
        op->kind == TESS_OP_UP_CONV && op->out[0].h == 2 * op->in[0].h && op->out[0].w == 2 * op->in[0].w;
    for (int s = TESS_HEIGHT; s <= TESS_WIDTH; s++)
        whole = whole && op->pad_before[s] == 1 && op->pad_after[s] == 1;
    return whole;
}

static const char *refuses(const tess_op *op, int capability)
{
    if (capability != 90)
        return "made for compute capability 9.0";
    if (op->kind != TESS_OP_CONV && !is_up(op))
        return "not a convolution";
    if ((op->in[0].dtype != TESS_F16 && op->in[0].dtype != TESS_BF16) || op->in[0].dtype != op->out[0].dtype)
        return "takes fp16 or bf16 at both ends";
    if (op->in[0].c % 8 || op->out[0].c % 8 || op->in[0].c < 16 || op->out[0].c < 16)
        return "takes multiples of 8 channels, 16 at least";
    const int side = op->kernel[TESS_HEIGHT], step = op->stride[TESS_HEIGHT];
    if (op->in[0].d != 1 || op->kernel[TESS_DEPTH] != 1 || op->kernel[TESS_WIDTH] != side ||
        op->stride[TESS_WIDTH] != step)
        return "takes square 2-D kernels";
    const bool padded = op->pad_before[TESS_HEIGHT] || op->pad_before[TESS_WIDTH] ||
                        op->pad_after[TESS_HEIGHT] || op->pad_after[TESS_WIDTH];
    const bool two = side == 2 && step == 2 && !padded, one = is_point(op) && step == 1 && !padded;
    const bool taken = op->kind == TESS_OP_UP_CONV ? fuses_upsampling(op) && tess_op_residuals(op) == 0
                                                   : one || two || (side == 3 && step == 1 && !is_up(op));
    if (!taken)
        return "takes 3x3, 1x1 and 2x2 with stride 2 without padding, and enlarging by 2 of whole images";
    if (!mappable(&op->in[0]) || !mappable(&op->out[0]))
        return "takes strides of 16 bytes";
    if (op->mapped &&
        (side != 3 || is_up(op) || tess_op_map(op)->dtype != TESS_F32 || tess_op_map(op)->stride_w != 1))
        return "adds maps of dense fp32 rows after 3x3";
    for (int r = 0; r < tess_op_residuals(op); r++)
        if (op->in[1 + r].dtype != op->out[0].dtype || !mappable(&op->in[1 + r]))
            return "takes residuals like the output";
    if (op->masked && (tess_op_mask(op)->dtype != op->out[0].dtype || !mappable(tess_op_mask(op)) ||
                       op->kind == TESS_OP_UP_CONV))
        return "takes a mask like the output";
    return NULL;
}

static int taps_of(const tess_op *op)
{
    const int side = op->kernel[TESS_HEIGHT];
    return op->kind == TESS_OP_UP_CONV ? 4 : op->kind == TESS_OP_CONV_TRANSPOSE ? 1 : side * side;
}

/* (in, tap, out, phase). */
static bool map_weights(CUtensorMap *map, const tess_op *op, const void *weights)
{
    const uint64_t in = (uint64_t)op->in[0].c, out = (uint64_t)op->out[0].c;
    const uint64_t taps = (uint64_t)taps_of(op);
    const uint64_t sizes[4] = {in, taps, out, (uint64_t)(is_up(op) ? PHASES : 1)};
    const uint64_t strides[3] = {2 * in, 2 * in * taps, 2 * in * taps * out};
    const uint32_t box[4] = {CHANNELS, 1, CHANNELS, 1};
    return tess_cuda_tensor_map(map, op->in[0].dtype, 4, (void *)weights, sizes, strides, box, NULL,
                                ROW_BYTES);
}

static int64_t steps_of(int64_t channels)
{
    return (channels + CHANNELS - 1) / CHANNELS;
}

template <int TAPS, int ROWS>
static bool describe(const tess_op *op, const tess_op_buffers *buffers, conv_geometry *g)
{
    typedef conv_tile<TAPS, ROWS> tile;
    const bool up = is_up(op), down = is_down(op);
    const tess_tensor *grid = up ? &op->in[0] : &op->out[0]; /* the tensor that is divided into tiles */
    bool good = map_weights(&g->weights, op, buffers->weights);
    for (int phase = 0; phase < PHASES; phase++) {
        if (phase == 0 || down)
            good &= map_pixels(&g->in[phase], &op->in[0], buffers->in[0], down ? 2 : 1, phase / 2, phase % 2,
                               tile::pitch, tile::stage_rows / tile::pitch);
        if (phase == 0 || up)
            good &= map_pixels(&g->out[phase], &op->out[0], buffers->out[0], up ? 2 : 1, phase / 2, phase % 2,
                               tile::width, tile::height);
        if (op->masked && (phase == 0 || up))
            good &= map_pixels(&g->mask[phase], tess_op_mask(op), buffers->in[op->inputs - 1], up ? 2 : 1,
                               phase / 2, phase % 2, tile::width, tile::height);
    }
    for (int r = 0; r < tess_op_residuals(op); r++)
        for (int phase = 0; phase < (up ? PHASES : 1); phase++)
            good &= map_pixels(&g->residual[r][phase], &op->in[1 + r], buffers->in[1 + r], up ? 2 : 1,
                               phase / 2, phase % 2, tile::width, tile::height);
    g->bias = tess_cuda_bias(op, buffers);
    g->map = (const float *)buffers->in[op->inputs - 1];
    g->map_image = tess_op_map(op)->stride_n;
    g->map_row = tess_op_map(op)->stride_h;
    g->height = (int)tess_op_map(op)->h;
    g->width = (int)tess_op_map(op)->w;
    g->tiles_x = (int)((grid->w + tile::width - 1) / tile::width);
    g->tiles_y = (int)((grid->h + tile::height - 1) / tile::height);
    g->groups_per_phase = (int)steps_of(op->out[0].c);
    g->groups = g->groups_per_phase * (up ? PHASES : 1);
    g->tiles = g->tiles_x * g->tiles_y * (tile::paired ? (g->groups + 1) / 2 : g->groups) * (int)grid->n;
    g->chunks_per_phase = (int)steps_of(op->in[0].c);
    g->chunks = g->chunks_per_phase * (down ? PHASES : 1);
    g->pad_y = op->pad_before[TESS_HEIGHT];
    g->pad_x = op->pad_before[TESS_WIDTH];
    g->outputs = (int)op->out[0].c;
    g->residuals = tess_op_residuals(op);
    g->relu = tess_op_relu(op);
    g->beside = op->beside;
    return good;
}

template <typename T, int TAPS, bool RESIDENT, conv_end END, int DEPTH, int ROWS>
static cudaError_t launch(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    typedef conv_tile<TAPS, ROWS> tile;
    conv_geometry g;
    if (!describe<TAPS, ROWS>(op, buffers, &g))
        return cudaErrorInvalidValue;
    return tess_hopper_launch(conv_kernel<T, TAPS, RESIDENT, END, DEPTH, ROWS>, g, g.tiles, 1,
                              (TEAMS + 1) * WARPGROUP, tile::shared_bytes, stream);
}

template <typename T, conv_end END, int ROWS>
static cudaError_t run_nine(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    if constexpr (ROWS == 8) /* a block rarely has a second tile, for which it would keep the weights */
        return launch<T, 9, false, END, CHANNELS, ROWS>(op, buffers, stream);
    else if (op->in[0].c > CHANNELS || op->out[0].c > CHANNELS)
        return launch<T, 9, false, END, CHANNELS, ROWS>(op, buffers, stream);
    else
        return op->in[0].c > CHANNELS / 2 ? launch<T, 9, true, END, CHANNELS, ROWS>(op, buffers, stream)
                                          : launch<T, 9, true, END, CHANNELS / 2, ROWS>(op, buffers, stream);
}

template <typename T, int ROWS>
static cudaError_t run_shape(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    if (op->kind == TESS_OP_UP_CONV)
        return launch<T, 4, false, PLAIN_END, CHANNELS, ROWS>(op, buffers, stream);
    if (is_up(op) || is_down(op) || is_point(op))
        return op->masked ? launch<T, 1, false, TAKES_MASK, CHANNELS, ROWS>(op, buffers, stream)
                          : launch<T, 1, false, PLAIN_END, CHANNELS, ROWS>(op, buffers, stream);
    return op->masked   ? run_nine<T, TAKES_MASK, ROWS>(op, buffers, stream)
           : op->mapped ? run_nine<T, ADDS_MAP, ROWS>(op, buffers, stream)
                        : run_nine<T, PLAIN_END, ROWS>(op, buffers, stream);
}

static int64_t tiles_of(const tess_op *op, int height)
{
    const tess_tensor *grid = is_up(op) ? &op->in[0] : &op->out[0];
    const int64_t groups = steps_of(op->out[0].c) * (is_up(op) ? PHASES : 1);
    const int64_t shares = taps_of(op) == 1 || is_down(op) ? (groups + 1) / 2 : groups;
    return (grid->w + 7) / 8 * ((grid->h + height - 1) / height) * grid->n * shares;
}

/* Number of rounds of tiles over all multiprocessors, times the tile height. */
static int64_t cost(const tess_op *op, int height)
{
    return (tiles_of(op, height) + tess_multiprocessors() - 1) / tess_multiprocessors() * height;
}

/* Tiles of a quarter, unless they would occupy most multiprocessors only now: the blocks of the next layer, which start
 * before this one ends, need some as well. */
static bool quarters(const tess_op *op)
{
    const int64_t few = tiles_of(op, 16), many = tiles_of(op, 8), all = tess_multiprocessors();
    return cost(op, 8) * 10 < cost(op, 16) * 9 && (2 * many <= all || few >= all);
}

/* With full tiles, a small image would leave multiprocessors idle, so it uses tiles of a half or a quarter. The sums do
 * not change. */
template <typename T>
static cudaError_t run_type(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    if (cost(op, 16) * 10 >= cost(op, 32) * 9)
        return run_shape<T, 32>(op, buffers, stream);
    return quarters(op) ? run_shape<T, 8>(op, buffers, stream) : run_shape<T, 16>(op, buffers, stream);
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    return op->in[0].dtype == TESS_BF16 ? run_type<__nv_bfloat16>(op, buffers, stream)
                                        : run_type<__half>(op, buffers, stream);
}

template <typename T, int TAPS, bool RESIDENT, conv_end END, int DEPTH, int ROWS>
static void load_one(cudaError_t *result)
{
    if (*result == cudaSuccess)
        *result = tess_cuda_load((const void *)conv_kernel<T, TAPS, RESIDENT, END, DEPTH, ROWS>,
                                 conv_tile<TAPS, ROWS>::shared_bytes);
}

template <typename T, conv_end END, int ROWS> static void load_nine(cudaError_t *result)
{
    if constexpr (ROWS > 8) {
        load_one<T, 9, true, END, CHANNELS, ROWS>(result);
        load_one<T, 9, true, END, CHANNELS / 2, ROWS>(result);
    }
    load_one<T, 9, false, END, CHANNELS, ROWS>(result);
}

template <typename T, int ROWS> static void load_shape(cudaError_t *result)
{
    load_nine<T, PLAIN_END, ROWS>(result);
    load_nine<T, ADDS_MAP, ROWS>(result);
    load_one<T, 4, false, PLAIN_END, CHANNELS, ROWS>(result);
    load_one<T, 1, false, PLAIN_END, CHANNELS, ROWS>(result);
}

template <typename T, int ROWS> static void load_masked(cudaError_t *result)
{
    load_nine<T, TAKES_MASK, ROWS>(result);
    load_one<T, 1, false, TAKES_MASK, CHANNELS, ROWS>(result);
}

extern "C" cudaError_t tess_hopper_conv_load_masked(void)
{
    cudaError_t result = cudaSuccess;
    load_masked<__half, 8>(&result);
    load_masked<__half, 16>(&result);
    load_masked<__half, 32>(&result);
    load_masked<__nv_bfloat16, 8>(&result);
    load_masked<__nv_bfloat16, 16>(&result);
    load_masked<__nv_bfloat16, 32>(&result);
    return result;
}

static cudaError_t load(int)
{
    cudaError_t result = cudaSuccess;
    load_shape<__half, 8>(&result);
    load_shape<__half, 16>(&result);
    load_shape<__half, 32>(&result);
    load_shape<__nv_bfloat16, 8>(&result);
    load_shape<__nv_bfloat16, 16>(&result);
    load_shape<__nv_bfloat16, 32>(&result);
    return result;
}

extern "C" const tess_cuda_launch tess_hopper_conv = {refuses, run, load, NULL};
