/* op.h: what a device is asked to do, as plain data: hashable, printable, costed and replayed without a device.
 *
 * An op has a kind, inputs, outputs, and parameters that the device packs once. What is known of a kind (how many inputs, the
 * shape rule, how far an output looks, operations, what a backward pass will keep) stands in its row: op/row.h. The kinds and
 * their rows come from one list, op/rows.def, so that none can be without the other.
 *
 * Convolutions pad each side on its own, so that a strip's inner edge can read stored rows while only a true image edge is
 * zero. The end of a convolution is fused: out = activation(conv + bias + in[1] + in[2] + map); out may be the same memory as
 * in[1] or in[2]. Depth is there for 3-D; an op whose kernel has depth 1 works on every slice of a volume by itself. */
#ifndef TESS_OP_OP_H
#define TESS_OP_OP_H

#include "tensor/tensor.h"

typedef enum tess_op_kind {
#define TESS_OP_ROW(kind, ...) TESS_OP_##kind,
#include "op/rows.def"
#undef TESS_OP_ROW
    TESS_OP_KINDS
} tess_op_kind;

enum { TESS_DEPTH, TESS_HEIGHT, TESS_WIDTH, TESS_SPATIAL };
enum { TESS_OP_INPUTS = 4, TESS_OP_OUTPUTS = 3, TESS_OP_PARAMS = 2 };
enum {
    TESS_PARAM_KERNEL,
    TESS_PARAM_BIAS
};                              /* of convolutions; a norm's weight stands in the kernel's place */
enum { TESS_OP_RESIDUALS = 2 }; /* what a convolution can add at its end, besides a map */

typedef enum tess_activation { TESS_LINEAR, TESS_RELU, TESS_SILU } tess_activation;

/* Between a file's samples and a network's values, so that what crosses the bus is what the file holds.
 *
 * IMPORT: out[y][x][c] = value(in[min(y, in.h - 1)][min(x, in.w - 1)][first + c]), by tess_samples_to_float;
 * with `level_channel` the last channel of `out` is `level`, or channel `level_from` of `in` where that is not 0. EXPORT: out[y][x][first + c] = sample(in[y + top]
 * [x + left][c]), by tess_samples_from_float, top and left being pad_before; channels of `out` outside
 * [first, first + in.c) are left alone. */
typedef struct tess_op_samples {
    double full_scale;
    int32_t first;
    bool level_channel;
    float level;
    int32_t level_from;
} tess_op_samples;

/* out = min(max(a in + b in[1] + c in[2], low), high), fp32; out may be any of the others. What has a
 * factor of zero is not read. Rows may be strided, so this also clears, copies and places windows. NaN stays. */
typedef struct tess_op_combine {
    double a, b, c, low, high; /* low = -infinity, high = infinity: no clamp */
} tess_op_combine;

/* Of every channel of every image: over height and width, or over the width alone. A spectrum has w / 2 + 1
 * columns and 2 c channels: channel i is (2 i, 2 i + 1) = (re, im). The inverse is divided by the number of
 * pixels, and may overwrite what it reads; any size must be fast, primes too. */
typedef struct tess_op_fft {
    bool inverse, rows_only;
} tess_op_fft;

/* Elementwise on spectra, with a real factor on images as well; out may be any of the others. in[1] is the
 * factor: real (c = 1) or complex (c = 2), shared by all channels and images of `in` (and by all rows when its
 * height is 1); in[2], if there, is subtracted. */
typedef struct tess_op_spectrum {
    bool complex_factor, conjugate; /* conjugate: of the factor */
} tess_op_spectrum;

/* FILTER: out = the inverse FFT of ((a + b S) X + c B) / (d + e S), X being the FFT of `in`, over height and width. S is
 * in[1], real, shared by all channels and images; B, if there, is in[2], a spectrum. The five factors change
 * from call to call, so they come with the buffers. `out` may be `in`; a device keeps the spectrum to itself, in the
 * layout that suits it. */
enum { TESS_FILTER_FACTORS = 5 };

/* Geometry of rays; the table of views is in the buffers' `weights`, fp64, as physics/ makes it.
 * PARALLEL_2D: image (1,1,N,N,1), views (1,1,views,columns,1), as `Radon` in physics/radon.h defines; table: cos, sin and
 * where the middle of the image is seen, in columns.
 * PARALLEL_3D, CONE_3D: volume (1,D,H,W,1) centred on the origin, voxels of `spacing`; views (1,views,rows,cols,1);
 * table: 12 numbers a view: source (or the rays' direction), detector centre, step between columns, between rows.
 * RAY_COSINE: each value times the cosine between its ray and the shortest one; columns of `out` that `in` lacks are
 * zero. RAY_SPREAD: each voxel sums the views where it is seen, bilinear, times (depth of the origin / its own)^2. */
typedef enum tess_ray_geometry { TESS_PARALLEL_2D, TESS_PARALLEL_3D, TESS_CONE_3D } tess_ray_geometry;
typedef struct tess_op_rays {
    tess_ray_geometry geometry;
    double spacing;
    bool circle;   /* PARALLEL_2D: what lies outside the inscribed circle is zero */
    int64_t along; /* PARALLEL_2D: samples of a ray; 0: as many as the image has rows */
    /* 3-D: the op's volume may be a slab, slices [first, first + d) of `depth`; depth 0: it is the whole. */
    int64_t first, depth;
    bool accumulate; /* 3-D: added to what `out` holds */
    double scale;    /* RAY_SPREAD: of the sum */
} tess_op_rays;

/* out[z][y][x], one fp32 channel, = value * the sum of `in` over all channels and the window of `kernel` around
 * (z, y, x), the slice z itself left out; zero outside. Strides 1, odd kernels, padding kernel / 2. */
typedef struct tess_op_side {
    double value;
} tess_op_side;

/* GROUP_NORM: y = (in[0] - mean) / sqrt(variance + epsilon) * weight + bias, with the mean and the variance of `groups` equal
 * groups of neighbouring channels over depth, height and width, of each image by itself. With in[1], (n, 1, 1, 1, 2 c), whose
 * first c channels are scales and whose others are shifts: y * (1 + scale) + shift. out = activation(y), and may be in[0]. Sums
 * are taken in an order that the size alone fixes. */
typedef struct tess_op_group_norm {
    int32_t groups;
    double epsilon;
} tess_op_group_norm;

/* ATTENTION: in[0], of 3 c channels, holds the query, the key and the value of every pixel for `heads` heads of c / heads channels
 * each. by_head: the channels of a head lie together, its query, its key, its value, head after head (what guided-diffusion calls
 * the legacy order); else all queries come first, head after head, then all keys, then all values. out, of c channels, head after
 * head: at each pixel the sum of the values of all pixels, by softmax(query . key / sqrt(c / heads)). A matrix of pixels by
 * pixels is never stored. */
typedef struct tess_op_attention {
    int32_t heads;
    bool by_head;
} tess_op_attention;

typedef struct tess_op {
    tess_op_kind kind;
    int inputs, outputs;
    tess_tensor in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS];
    int32_t kernel[TESS_SPATIAL], stride[TESS_SPATIAL];
    int32_t pad_before[TESS_SPATIAL], pad_after[TESS_SPATIAL];
    tess_activation activation;
    bool bias;   /* of the kinds that may have one: there is a second parameter */
    bool tf32;   /* products of fp32 values may be taken in TF32 */
    bool mapped; /* CONV: the last input, fp32 and of one channel, is added to every channel at the end */
    union {      /* attributes of the kinds that have more to say */
        tess_op_samples samples;
        tess_op_combine combine;
        tess_op_fft fft;
        tess_op_spectrum spectrum;
        tess_op_rays rays;
        tess_op_side side;
        tess_op_group_norm group_norm;
        tess_op_attention attention;
    };
} tess_op;

/* Where the tensors of one call are. Pointers are to the first element, in the device's memory. */
typedef struct tess_op_buffers {
    const void *in[TESS_OP_INPUTS];
    void *out[TESS_OP_OUTPUTS];
    const void *weights; /* the parameters, packed by the device */
    void *workspace;
    const double *factors; /* FILTER: the host's, looked at during the call */
} tess_op_buffers;

/* Inputs that a convolution or an addition adds at its end; the map is not one of them. */
static inline int tess_op_residuals(const tess_op *op)
{
    return op->inputs - 1 - (op->mapped ? 1 : 0);
}

static inline const tess_tensor *tess_op_map(const tess_op *op)
{
    return &op->in[op->inputs - 1];
}

static inline bool tess_op_relu(const tess_op *op)
{
    return op->activation == TESS_RELU;
}

/* An op of networks on images, which passes over the slices of a volume can do as well. */
static inline bool tess_op_is_layer(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_UP_CONV ||
           op->kind == TESS_OP_MAX_POOL || op->kind == TESS_OP_UPSAMPLE || op->kind == TESS_OP_ADD ||
           op->kind == TESS_OP_ACTIVATE;
}

static inline int64_t tess_op_taps(const tess_op *op)
{
    return (int64_t)op->kernel[0] * op->kernel[1] * op->kernel[2];
}

/* What it computes in: bf16 (fp16) where either end is; the other end may be an fp32 image. */
tess_dtype tess_op_precision(const tess_op *op);
const char *tess_op_kind_name(tess_op_kind kind);
/* The same in every respect that a kernel can see: kind, tensors, window, attributes. */
bool tess_op_same(const tess_op *a, const tess_op *b);
/* Multiply-adds count as two. */
double tess_op_flops(const tess_op *op);
/* Bytes that the op must read and write at the least. */
double tess_op_traffic(const tess_op *op);
/* The class whose rate is measured once: everything that chooses the algorithm, nothing of the image's size.
 * Writes e.g. "conv3x3/1 64>64 F32" into text. */
void tess_op_class(const tess_op *op, char *text, size_t size);

#endif
