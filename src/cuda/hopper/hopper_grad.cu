/* Host side of the gradient of a convolution's kernel on Hopper: the ops that it accepts, the division into parts, the
 * launch. An fp32 image at one end is first split into eight 16-bit channels, four rounded values and what rounding left
 * over, so that the same kernel does it; the sums of both are added at the end. A pair of layers is one launch. */
#include "base/checked.h"
#include "cuda/convgrad/conv_grad.h"
#include "cuda/core/load.h"
#include "cuda/hopper/hopper.h"
#include "cuda/hopper/hopper_grad.cuh"
#include "cuda/hopper/hopper_launch.cuh"
#include "cuda/hopper/hopper_map.cuh"

enum { IMAGE_CHANNELS = 4, SPLIT_CHANNELS = 8, SPLIT_THREADS = 256, ALIGNMENT = 256, MULTIPROCESSORS = 132 };

static bool is_image(const tess_tensor *t)
{
    return t->dtype == TESS_F32 && t->c <= IMAGE_CHANNELS;
}

/* Flip to refuse pairs: a training step then computes one layer at a time. */
enum { TAKES_PAIRS = 1 };

static int layers_of(const tess_op *op)
{
    return tess_op_is_pair(op) ? GRAD_LAYERS : 1;
}

static bool has_bias(const tess_op *op)
{
    return op->outputs > 1 && !tess_op_is_pair(op);
}

static bool is_nine(const tess_op *op)
{
    return op->kernel[TESS_HEIGHT] == 3;
}

/* The tensor that the kernel reads: the input, or the split image. */
static tess_tensor read_tensor(const tess_op *op, int input)
{
    const tess_tensor *t = &op->in[input];
    return is_image(t) ? tess_tensor_2d(tess_cuda_conv_grad_type(op), t->n, t->h, t->w, SPLIT_CHANNELS) : *t;
}

static const char *refuses(const tess_op *op, int capability)
{
    if (capability != 90)
        return "made for compute capability 9.0";
    const char *why = tess_cuda_conv_grad_refuses(op);
    if (why)
        return why;
    if (tess_cuda_conv_grad_type(op) == TESS_F32)
        return "takes fp16 or bf16";
    for (int i = 0; i < 2; i++)
        if (!is_image(&op->in[i]) &&
            (op->in[i].dtype == TESS_F32 || op->in[i].c % 8 || !mappable(&op->in[i])))
            return "takes multiples of 8 channels and strides of 16 bytes, or an fp32 image";
    const int side = op->kernel[TESS_HEIGHT], step = op->stride[TESS_HEIGHT];
    const bool square = op->kernel[TESS_WIDTH] == side && op->stride[TESS_WIDTH] == step;
    const bool padded = op->pad_before[TESS_HEIGHT] || op->pad_before[TESS_WIDTH] ||
                        op->pad_after[TESS_HEIGHT] || op->pad_after[TESS_WIDTH];
    if (!square || !((side == 3 && step == 1) || (side == 2 && step == 2 && !padded) ||
                     (side == 1 && step == 1 && !padded)))
        return "takes 3x3, and 2x2 with stride 2 or 1x1 without padding";
    if (tess_op_is_pair(op) && (!TAKES_PAIRS || side != 3 || is_image(&op->in[0]) || is_image(&op->in[1])))
        return "takes pairs of 3x3 without an image";
    return NULL;
}

/* How a layer is divided, by its sizes alone. */
typedef struct grad_division {
    int layers, tiles_x, tiles_y, tiles, row_groups, column_groups, parts;
    bool whole; /* one part, whose sums are the gradient */
    tess_tensor x, dy;
} grad_division;

/* A model of the time: blocks run in rounds, one on each multiprocessor; a block ends with writing its sums, which a
 * second kernel reads. In cycles. */
static double cost(const grad_division *d, int parts, bool nine)
{
    const double tile = nine ? 2600 : 1200, end = 8000, sum = nine ? 62 : 110;
    const int64_t blocks = (int64_t)d->layers * d->row_groups * d->column_groups * parts;
    const int64_t rounds = (blocks + MULTIPROCESSORS - 1) / MULTIPROCESSORS,
                  tiles = (d->tiles + parts - 1) / parts;
    return (double)rounds * ((double)tiles * tile + end) + (double)blocks * sum;
}

static grad_division divide(const tess_op *op)
{
    const bool nine = is_nine(op);
    const int height = nine ? grad_tile<true>::height : grad_tile<false>::height;
    grad_division d = {};
    d.layers = layers_of(op);
    d.x = read_tensor(op, 0);
    d.dy = read_tensor(op, 1);
    d.tiles_x = (int)((d.dy.w + GRAD_WIDTH - 1) / GRAD_WIDTH);
    d.tiles_y = (int)((d.dy.h + height - 1) / height);
    d.tiles = d.tiles_x * d.tiles_y * (int)d.dy.n;
    const int rows = CHANNELS * (nine ? grad_tile<true>::dy_boxes : grad_tile<false>::dy_boxes),
              columns = CHANNELS * (op->kernel[TESS_HEIGHT] == 1 ? GRAD_BOXES : 1);
    d.row_groups = (int)((d.dy.c + rows - 1) / rows);
    d.column_groups = (int)((d.x.c + columns - 1) / columns);
    d.parts = 1;
    for (int parts = 2; parts <= MULTIPROCESSORS && parts <= d.tiles; parts++)
        if (cost(&d, parts, nine) < cost(&d, d.parts, nine))
            d.parts = parts;
    d.whole = d.parts == 1 && nine && !has_bias(op) && !is_image(&op->in[0]) && !is_image(&op->in[1]);
    return d;
}

/* Offsets in the workspace. */
typedef struct grad_places {
    size_t bias, image, end; /* the partial sums of the kernel are at 0 */
} grad_places;

static grad_places places_of(const tess_op *op, const grad_division *d)
{
    grad_places p = {};
    const size_t values = d->whole ? 0
                                   : (size_t)(d->layers * d->parts) * (size_t)d->dy.c *
                                         (size_t)tess_op_taps(op) * (size_t)d->x.c;
    p.bias = tess_align_size(values * sizeof(float), ALIGNMENT);
    p.image =
        p.bias +
        (has_bias(op) ? tess_align_size((size_t)d->parts * (size_t)d->dy.c * sizeof(float), ALIGNMENT) : 0);
    p.end = p.image;
    for (int i = 0; i < 2; i++)
        if (is_image(&op->in[i]))
            p.end += (size_t)(op->in[i].n * op->in[i].h * op->in[i].w) * SPLIT_CHANNELS * 2;
    return p;
}

static size_t workspace(const tess_op *op)
{
    const grad_division d = divide(op);
    return places_of(op, &d).end;
}

/* One thread per pixel. */
template <typename T>
__global__ void __launch_bounds__(SPLIT_THREADS)
    split_kernel(const __grid_constant__ tess_tensor t, const float *from, uint4 *to)
{
    const int64_t i = (int64_t)blockIdx.x * SPLIT_THREADS + threadIdx.x;
    if (i >= t.n * t.h * t.w)
        return;
    const int64_t line = i / t.w, n = line / t.h;
    const float *pixel =
        from + n * t.stride_n + (line - n * t.h) * t.stride_h + (i - line * t.w) * t.stride_w;
    float high[IMAGE_CHANNELS], low[IMAGE_CHANNELS];
#pragma unroll
    for (int c = 0; c < IMAGE_CHANNELS; c++) {
        const float value = c < t.c ? pixel[c] : 0;
        high[c] = (float)(T)value;
        low[c] = value - high[c];
    }
    to[i] = make_uint4(pair(high[0], high[1], T()), pair(high[2], high[3], T()), pair(low[0], low[1], T()),
                       pair(low[2], low[3], T()));
}

/* The data that the kernel reads, split if it is an image. */
template <typename T>
static const void *read_data(const tess_op *op, int input, const tess_op_buffers *buffers,
                             const grad_places *p, cudaStream_t stream)
{
    const tess_tensor *t = &op->in[input];
    if (!is_image(t))
        return buffers->in[input];
    void *to = (char *)buffers->workspace + p->image;
    const int64_t pixels = t->n * t->h * t->w;
    split_kernel<T><<<(unsigned)((pixels + SPLIT_THREADS - 1) / SPLIT_THREADS), SPLIT_THREADS, 0, stream>>>(
        *t, (const float *)buffers->in[input], (uint4 *)to);
    return to;
}

template <bool NINE>
static bool describe(const tess_op *op, const grad_division *d, const void *const *x, const void *const *dy,
                     grad_geometry *g)
{
    typedef grad_tile<NINE> tile;
    bool good = true;
    g->phases = op->kernel[TESS_HEIGHT] == 2;
    for (int layer = 0; layer < d->layers; layer++) {
        good &= map_pixels(&g->dy[layer], &d->dy, dy[layer], 1, 0, 0, GRAD_WIDTH, tile::height);
        for (int phase = 0; phase < (g->phases ? GRAD_BOXES : 1); phase++)
            good &= map_pixels(&g->x[layer + phase], &d->x, x[layer], g->phases ? 2 : 1, phase / 2, phase % 2,
                               tile::pitch, tile::x_height);
    }
    g->tiles_x = d->tiles_x;
    g->tiles_y = d->tiles_y;
    g->tiles = d->tiles;
    g->parts = d->parts;
    g->row_groups = d->row_groups;
    g->column_groups = d->column_groups;
    g->rows = (int)d->dy.c;
    g->columns = (int)d->x.c;
    g->taps = (int)tess_op_taps(op);
    g->pad_y = op->pad_before[TESS_HEIGHT];
    g->pad_x = op->pad_before[TESS_WIDTH];
    return good;
}

template <typename T, bool NINE>
static cudaError_t launch(const tess_op *op, const grad_division *d, const grad_places *p,
                          const tess_op_buffers *buffers, cudaStream_t stream)
{
    typedef grad_tile<NINE> tile;
    enum { NO_LIMIT = 4096 }; /* blocks for each multiprocessor: every block does its own part */
    grad_geometry g = {};
    const void *x[GRAD_LAYERS] = {}, *dy[GRAD_LAYERS] = {};
    for (int layer = 0; layer < d->layers; layer++) {
        x[layer] = read_data<T>(op, 2 * layer, buffers, p, stream);
        dy[layer] = read_data<T>(op, 2 * layer + 1, buffers, p, stream);
        g.out[layer] = d->whole ? (float *)buffers->out[layer] : NULL;
    }
    if (!describe<NINE>(op, d, x, dy, &g))
        return cudaErrorInvalidValue;
    g.partials = (float *)buffers->workspace;
    g.bias = has_bias(op) ? (float *)((char *)buffers->workspace + p->bias) : NULL;
    g.accumulate = op->grad.accumulate;
    return tess_hopper_launch(grad_kernel<T, NINE>, g,
                              d->layers * d->row_groups * d->column_groups * d->parts, NO_LIMIT,
                              (tile::teams + 1) * WARPGROUP, tile::shared_bytes, stream);
}

/* Adds the parts, and the sums of the low parts of an image. */
static cudaError_t add_parts(const tess_op *op, const grad_division *d, const grad_places *p,
                             const tess_op_buffers *buffers, cudaStream_t stream)
{
    tess_sums sums = {};
    sums.count = op->outputs;
    sums.accumulate = op->grad.accumulate;
    sums.early = true;
    tess_partials *kernel = &sums.of[0], *bias = &sums.of[1];
    kernel->values = buffers->workspace;
    kernel->dtype = TESS_F32;
    kernel->parts = d->parts;
    kernel->rows = d->dy.c;
    kernel->taps = tess_op_taps(op);
    kernel->columns = d->x.c;
    kernel->row_low = is_image(&op->in[1]) ? IMAGE_CHANNELS : 0;
    kernel->column_low = is_image(&op->in[0]) ? IMAGE_CHANNELS : 0;
    kernel->out_rows = op->in[1].c;
    kernel->out_columns = op->in[0].c;
    kernel->out = (float *)buffers->out[0];
    if (tess_op_is_pair(op)) {
        sums.of[1] = *kernel;
        sums.of[1].values = (const float *)buffers->workspace +
                            (int64_t)d->parts * kernel->rows * kernel->taps * kernel->columns;
        sums.of[1].out = (float *)buffers->out[1];
        return tess_cuda_sum_parts(&sums, stream);
    }
    bias->values = (const char *)buffers->workspace + p->bias;
    bias->dtype = TESS_F32;
    bias->parts = d->parts;
    bias->rows = bias->taps = bias->out_rows = 1;
    bias->columns = d->dy.c;
    bias->column_low = kernel->row_low;
    bias->out_columns = op->in[1].c;
    bias->out = op->outputs > 1 ? (float *)buffers->out[1] : NULL;
    return tess_cuda_sum_parts(&sums, stream);
}

template <typename T>
static cudaError_t run_type(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    const grad_division d = divide(op);
    const grad_places p = places_of(op, &d);
    const cudaError_t result = is_nine(op) ? launch<T, true>(op, &d, &p, buffers, stream)
                                           : launch<T, false>(op, &d, &p, buffers, stream);
    return result == cudaSuccess && !d.whole ? add_parts(op, &d, &p, buffers, stream) : result;
}

static cudaError_t run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream)
{
    return tess_cuda_conv_grad_type(op) == TESS_BF16 ? run_type<__nv_bfloat16>(op, buffers, stream)
                                                     : run_type<__half>(op, buffers, stream);
}

template <typename T, bool NINE> static void load_one(cudaError_t *result)
{
    if (*result == cudaSuccess)
        *result = tess_cuda_load((const void *)grad_kernel<T, NINE>, grad_tile<NINE>::shared_bytes);
}

static cudaError_t load(int)
{
    cudaError_t result = cudaSuccess;
    load_one<__half, true>(&result);
    load_one<__half, false>(&result);
    load_one<__nv_bfloat16, true>(&result);
    load_one<__nv_bfloat16, false>(&result);
    return result;
}

extern "C" const tess_cuda_launch tess_hopper_grad = {refuses, run, load, workspace};
