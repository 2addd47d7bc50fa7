/* op.h: the description of one operation for a device. It is plain data, so it can be hashed, printed, costed
 * and replayed without a device.
 *
 * An op has a kind, inputs, outputs, and parameters that the device packs once. The properties of a kind
 * (number of inputs, shape rule, reach, operation count, backward pass) are in its row: op/row.h.
 * The kinds and their rows are generated from one list, op/rows.def, so that neither can exist without the
 * other.
 *
 * A convolution pads each side separately, so that the inner edge of a strip can read stored rows while only a
 * true image edge is zero. Its last steps are fused: out = activation(conv + bias + in[1] + in[2] + map); out
 * may be the same memory as in[1] or in[2], or as a mask. Depth is for 3-D; an op whose kernel has depth 1 works on each
 * slice of a volume separately. */
#ifndef TESS_OP_OP_H
#define TESS_OP_OP_H

#include "op/channels.h"
#include "op/statistics.h"
#include "op/training.h"
#include "tensor/tensor.h"

typedef enum tess_op_kind {
#define TESS_OP_ROW(kind, ...) TESS_OP_##kind,
#include "op/rows.def"
#undef TESS_OP_ROW
    TESS_OP_KINDS
} tess_op_kind;

enum { TESS_DEPTH, TESS_HEIGHT, TESS_WIDTH, TESS_SPATIAL };
enum { TESS_OP_INPUTS = 4, TESS_OP_OUTPUTS = 3, TESS_OP_PARAMS = 2 };
/* Parameters of convolutions; a norm has its weight in place of the kernel. */
enum { TESS_PARAM_KERNEL, TESS_PARAM_BIAS };
/* Tensors that a convolution can add at its end, besides a map. */
enum { TESS_OP_RESIDUALS = 2 };

typedef enum tess_activation { TESS_LINEAR, TESS_RELU, TESS_SILU } tess_activation;

/* Conversion between a file's samples and a network's values on the device, so that the bus carries the
 * samples of the file.
 *
 * IMPORT: out[y][x][c] = value(in[min(y, in.h - 1)][min(x, in.w - 1)][first + c]), by tess_samples_to_float.
 * With `level_channel` the last channel of `out` is `level`, or channel `level_from` of `in` if that is not 0.
 *
 * EXPORT: out[y][x][first + c] = sample(in[y + top][x + left][c]), by tess_samples_from_float; top and left
 * are pad_before. Channels of `out` outside [first, first + in.c) are not written. */
typedef struct tess_op_samples {
    double full_scale;
    int32_t first;
    bool level_channel;
    float level;
    int32_t level_from;
} tess_op_samples;

/* out = min(max(a in + b in[1] + c in[2], low), high), fp32; out may alias any input. An input with factor
 * zero is not read. Rows may be strided, so this op also clears, copies and places windows. NaN stays NaN. */
typedef struct tess_op_combine {
    double a, b, c, low, high; /* low = -infinity, high = infinity: no clamp */
} tess_op_combine;

/* Transforms each channel of each image, over height and width or over the width alone. A spectrum has w / 2 +
 * 1 columns and 2 c channels: channel i is (2 i, 2 i + 1) = (re, im). The inverse is divided by the number of
 * pixels and may overwrite its input. Every size must be fast, primes included.
 *
 * columns_only: the other half, for an image whose rows lie on several ranks. `in` and `out` are some columns of a
 * spectrum, with all rows, in the same memory; they are transformed over the height and not divided by anything. */
typedef struct tess_op_fft {
    bool inverse, rows_only, columns_only;
    int64_t rows; /* rows_only: the inverse is also divided by this number of rows; 0: it is not */
} tess_op_fft;

/* Elementwise product of spectra; with a real factor also of images. out may alias any input. in[1] is the
 * factor: real (c = 1) or complex (c = 2), shared by all channels and images of in[0], and by all rows if its
 * height is 1. in[2], if present, is subtracted. */
typedef struct tess_op_spectrum {
    bool complex_factor, conjugate; /* conjugate: uses the conjugate of the factor */
} tess_op_spectrum;

/* FILTER: out = the inverse FFT of ((a + b S) X + c B) / (d + e S), over height and width. X is the FFT of
 * in[0]; S is in[1], real, shared by all channels and images; B is in[2], an optional spectrum. The five
 * factors change from call to call, so they are passed with the buffers. `out` may be `in`. The device keeps
 * the intermediate spectrum in its own layout. product_only: in[0] and out are spectra, in the same memory, and there are no
 * transforms. */
enum { TESS_FILTER_FACTORS = 5 };
typedef struct tess_op_filter {
    bool product_only;
} tess_op_filter;

/* Geometry of rays. The table of views is in the buffers' `weights`, fp64, as physics/ makes it.
 *
 * PARALLEL_2D: image (1,1,N,N,1), of which a backprojection may compute only some rows, from `first` on; views (1,1,views,columns,1), defined as `Radon` in physics/radon.h. Table:
 * cos, sin, and the detector position of the image centre, in columns.
 *
 * PARALLEL_3D, CONE_3D: volume (1,D,H,W,1) centred on the origin, voxels of `spacing`; views
 * (1,views,rows,cols,1). Table: 12 numbers a view: source (or the direction of the rays), detector centre,
 * step between columns, step between rows.
 *
 * RAY_COSINE: multiplies each value by the cosine between its ray and the shortest ray; columns of `out` that
 * `in` lacks are zero. RAY_SPREAD: each voxel sums the views at the point where it is projected, bilinear,
 * times (depth of the origin / depth of the voxel)^2. */
typedef enum tess_ray_geometry { TESS_PARALLEL_2D, TESS_PARALLEL_3D, TESS_CONE_3D } tess_ray_geometry;
typedef struct tess_op_rays {
    tess_ray_geometry geometry;
    double spacing;
    bool circle;   /* PARALLEL_2D: pixels outside the inscribed circle are zero */
    int64_t along; /* PARALLEL_2D: samples along a ray; 0: the number of image rows */
    /* PARALLEL_2D: see above. 3-D: the volume may be a slab, slices [first, first + d) of `depth`; depth 0: the whole volume. */
    int64_t first, depth;
    bool accumulate; /* 3-D: adds to the contents of `out` */
    double scale;    /* RAY_SPREAD: factor of the sum */
} tess_op_rays;

/* out[z][y][x], one fp32 channel, = value * the sum of `in` over all channels and the window of `kernel`
 * around (z, y, x), without slice z itself. Values outside are zero. Strides 1, odd kernels, padding kernel /
 * 2; none in depth where slices of neighbours are part of `in`. */
typedef struct tess_op_side {
    double value;
    bool sums; /* only the first half: out[z][y][x] = the sum of the pixel's channels */
} tess_op_side;

/* GROUP_NORM: y = (in[0] - mean) / sqrt(variance + epsilon) * weight + bias. The channels are divided into
 * `groups` equal groups of neighbours; mean and variance are taken over a group's channels, depth, height and
 * width, for each image separately. With in[1], of shape (n, 1, 1, 1, 2 c), whose first c channels are scales
 * and the others shifts: y * (1 + scale) + shift; one vector (n = 1) serves all images. out = activation(y), and may
 * be in[0]. The size alone fixes the order of the sums.
 *
 * GROUP_NORM_GRAD, in: the gradient of the output, GROUP_NORM's in[0], its parameters as one fp32 vector of weights
 * then biases (2 c), and GROUP_NORM's in[1] if it had one. out: the gradient of in[0], that of the parameters (2 c,
 * fp32; added to what is there with `accumulate`), and that of in[1] if there is one. `activation` is GROUP_NORM's. */
typedef struct tess_op_group_norm {
    int32_t groups;
    double epsilon;
    bool accumulate;
} tess_op_group_norm;

/* ATTENTION: in[0], of 3 c channels, holds the query, the key and the value of every pixel for `heads` heads
 * of c / heads channels each. by_head: each head has its query, key and value channels together, head after
 * head (the legacy order of guided-diffusion); else all queries come first, head after head, then all keys,
 * then all values. out, of c channels, head after head, is at each pixel the sum of the values of all pixels,
 * weighted by softmax(query . key / sqrt(c / heads)). The matrix of pixels by pixels is never stored. */
typedef struct tess_op_attention {
    int32_t heads;
    bool by_head;
} tess_op_attention;

/* CONV_GRAD: in[0] is the input of a convolution, in[1] the gradient of its output; kernel, stride and padding are the
 * convolution's. out[0] is the gradient of its kernel, fp32, flat, in the order of the weight file; out[1], if
 * present, that of its bias. With `accumulate` both are added to what is there. The sizes alone fix the order of
 * the sums. A transposed convolution swaps the two inputs, and CHANNEL_SUM gives the gradient of its bias.
 *
 * With four inputs it is a pair: the gradients of the kernels of two convolutions that are alike, without biases. in[2],
 * in[3] and out[1] belong to the second. A device that takes pairs does them faster than two ops. */
typedef struct tess_op_grad {
    bool accumulate;
} tess_op_grad;

/* FLIP: in, flat, is [outer][inner][taps]; out is [inner][outer][taps] with the taps in reverse order. */
typedef struct tess_op_flip {
    int64_t outer, inner, taps;
} tess_op_flip;

/* BATCH_NORM_TRAIN: in[1] is a vector of c weights then c biases, fp32. out[0] = activation((in - mean) / sqrt(variance
 * + epsilon) * weight + bias), with the mean and the (biased) variance of this batch for each channel. out[1] = c
 * means, then c values of 1 / sqrt(variance + epsilon), fp32, for the backward pass. out[2], read and written: the
 * running means, then the running (unbiased) variances, fp32: running += momentum * (batch - running).
 *
 * BATCH_NORM_GRAD, in: gradient of BATCH_NORM_TRAIN's result before its activation, its in[0], its out[1], its in[1].
 * out: gradient of in[0]; gradient of in[1], added to what is there with `accumulate`. */
typedef struct tess_op_batch_norm {
    double epsilon, momentum;
    bool accumulate;
} tess_op_batch_norm;

/* Random numbers by counter: tess_rng_normal and tess_rng_uniform of base/rng.h, whose element is the dense index
 * within one image (after n).
 *
 * DROPOUT: in[1] is an I64 vector (n, 1, 1, 1, 2) of item and step. A value whose uniform number is below `rate`
 * becomes zero, others are divided by 1 - rate. out may be in[0].
 *
 * NOISE: in[0] fp32, in[1] an F64 vector (n, 1, 1, 1, 4): scale, deviation, item, step for each image.
 * out = scale * in[0] + deviation * normal. If out has one channel more, that channel is the deviation. */
typedef struct tess_op_random {
    uint64_t seed; /* layers that must differ have different seeds */
    double rate;
} tess_op_random;

/* The two ops of a diffusion sampler's step. Numbers that change from step to step are read on the device.
 *
 * SELECT: in[0] is a table (rows, 1, 1, 1, c), F32 or F64, dense; in[1] is one I64. out (n, 1, 1, 1, c) = row in[1] of the
 * table, for every n; below 0 the first row, past the end the last.
 *
 * DIFFUSE, in: predicted noise e (n, 1, h, w, 1); known (n, 1, h, w, 2): clean value k, and mask m, 1 where y is
 * computed, 0 where it is k, values between for a gradual border; `control`, F64, TESS_DIFFUSE_CONTROLS values; items, I64
 * (n, 1, 1, 1, 5): sample, row and column of the window's first pixel in the map, pixels from row to row of the map, and 1 if
 * its noise is that of the sample with the sign turned, else 0.
 * out, all read and written: y (n, 1, h, w, 1); previous (the same), x0 of the step before; one I64, which is counted up.
 *     x0 = min(max(Y y + E e, LOW), HIGH);  y' = CLEAN x0 + KEEP y + PREVIOUS previous + NOISE z
 *     y = k (1 - m) + m y', or y' itself if OPEN is not 0;  previous = x0
 * in fp64; x0 and y' are rounded to fp32. What has factor zero is not read. If Y y + E e is not finite, x0 is NaN, so that
 * clamping does not hide it. z = tess_rng_normal of (seed, sample, STEP) at the element (row + y) * width + column + x, or -z: a
 * pixel of the map gets the same noise in every window, batch and tile. Row, column and width are not negative. */
enum {
    TESS_DIFFUSE_Y,
    TESS_DIFFUSE_E,
    TESS_DIFFUSE_LOW,
    TESS_DIFFUSE_HIGH,
    TESS_DIFFUSE_CLEAN,
    TESS_DIFFUSE_KEEP,
    TESS_DIFFUSE_PREVIOUS,
    TESS_DIFFUSE_NOISE,
    TESS_DIFFUSE_STEP,
    TESS_DIFFUSE_OPEN,
    TESS_DIFFUSE_CONTROLS = 12
};
enum { TESS_DIFFUSE_ITEMS = 5 };
typedef struct tess_op_diffuse {
    uint64_t seed;
} tess_op_diffuse;

typedef struct tess_op {
    tess_op_kind kind;
    int inputs, outputs;
    /* Two ops that follow each other in a stream, of which the second (`beside`) reads the one input of the first
     * (`leads`), and nothing that the first writes: a device may run both at once. */
    bool leads, beside;
    tess_tensor in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS];
    int32_t kernel[TESS_SPATIAL], stride[TESS_SPATIAL];
    int32_t pad_before[TESS_SPATIAL], pad_after[TESS_SPATIAL];
    tess_activation activation;
    bool bias;   /* there is a second parameter, for kinds that allow one */
    bool tf32;   /* products of fp32 values may be computed in TF32 */
    bool mapped; /* CONV: the last input, fp32 and of one channel, is added to every channel at the end */
    /* CONV, CONV_TRANSPOSE: the last input has the shape and type of the output; where it is not positive (or NaN), the
     * output is zero: the gradient of a ReLU whose output it is. Not together with `mapped`. */
    bool masked;
    union { /* attributes of the kinds that need more */
        tess_op_samples samples;
        tess_op_combine combine;
        tess_op_fft fft;
        tess_op_spectrum spectrum;
        tess_op_filter filter;
        tess_op_rays rays;
        tess_op_side side;
        tess_op_group_norm group_norm;
        tess_op_attention attention;
        tess_op_grad grad;
        tess_op_flip flip;
        tess_op_batch_norm batch_norm;
        tess_op_random random;
        tess_op_loss loss;
        tess_op_optimize optimize;
        tess_op_diffuse diffuse;
        tess_op_moments moments;
        tess_op_local_rx local_rx;
        tess_op_channel_map channel_map;
        tess_op_channel_dot channel_dot;
        tess_op_penalty penalty;
    };
} tess_op;

/* The tensors of one call. Pointers are to the first element, in the device's memory. */
/* The first `before` and the last `after` rows of in[0] are written while the op runs, and are there after `wait`. Only for kernels that
 * ask for it (tess_op_needs: waits), which call it once, from the thread that runs the op. */
typedef struct tess_op_arrival {
    void (*wait)(void *user); /* NULL: all rows are there */
    void *user;
    int64_t before, after;
} tess_op_arrival;

typedef struct tess_op_buffers {
    const void *in[TESS_OP_INPUTS];
    void *out[TESS_OP_OUTPUTS];
    const void *weights; /* the parameters, packed by the device */
    void *workspace;
    const double *factors; /* FILTER: in host memory, read during the call */
    tess_op_arrival arrival;
} tess_op_buffers;

/* Inputs that a convolution or an addition adds at its end, without the map or mask. */
static inline int tess_op_residuals(const tess_op *op)
{
    return op->inputs - 1 - (op->mapped || op->masked ? 1 : 0);
}

static inline const tess_tensor *tess_op_mask(const tess_op *op)
{
    return &op->in[op->inputs - 1];
}

static inline bool tess_op_takes_mask(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE;
}

static inline const tess_tensor *tess_op_map(const tess_op *op)
{
    return &op->in[op->inputs - 1];
}

static inline bool tess_op_relu(const tess_op *op)
{
    return op->activation == TESS_RELU;
}

/* True for layers of networks on images. Passes over the slices of a volume can do them as well. */
static inline bool tess_op_is_layer(const tess_op *op)
{
    return op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE || op->kind == TESS_OP_UP_CONV ||
           op->kind == TESS_OP_MAX_POOL || op->kind == TESS_OP_UPSAMPLE || op->kind == TESS_OP_ADD ||
           op->kind == TESS_OP_ACTIVATE;
}

static inline bool tess_op_is_pair(const tess_op *op)
{
    return op->kind == TESS_OP_CONV_GRAD && op->inputs > 2;
}

static inline int64_t tess_op_taps(const tess_op *op)
{
    return (int64_t)op->kernel[0] * op->kernel[1] * op->kernel[2];
}

/* The type of the arithmetic: bf16 (fp16) if the input or the output (its gradient) has it; the other may be an fp32
 * image. */
tess_dtype tess_op_precision(const tess_op *op);
const char *tess_op_kind_name(tess_op_kind kind);
/* Equal in everything that a kernel can see: kind, tensors, window, attributes. */
bool tess_op_same(const tess_op *a, const tess_op *b);
/* A multiply-add counts as two. */
double tess_op_flops(const tess_op *op);
/* The least number of bytes that the op must read and write. */
double tess_op_traffic(const tess_op *op);
/* The class of ops that share one measured rate: everything that selects the algorithm, but not the image
 * size. Writes e.g. "conv3x3/1 64>64 F32" into text. */
void tess_op_class(const tess_op *op, char *text, size_t size);

#endif
