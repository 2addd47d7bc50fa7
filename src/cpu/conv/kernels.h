/* kernels.h: tables of vector kernels, one per instruction set. The sources simd_*.c are compiled once for
 * each, with the vector width as a constant. An output value never depends on the blocking: the order of its
 * sum is (ky, kx, channel) in the direct kernel and the channel order in Winograd's products. */
#ifndef TESS_CPU_KERNELS_H
#define TESS_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

enum { TESS_MAX_TAPS = 16 }; /* most taps per side of a kernel */

/* One output row of a convolution. Weights: [cout block][ky][kx][cin][block]. */
typedef struct tess_direct_row {
    const float *rows[TESS_MAX_TAPS]; /* input row for each ky; NULL outside the image */
    int taps_y, taps_x, stride_x, pad_x;
    int64_t in_w, in_pixel, cin;
    const float *weights, *bias,
        *zeros; /* zeros: cin of them, read outside the image; bias: padded, or NULL */
    float *out;
    int64_t out_w, out_pixel, cout;
    int residuals;
    const float *residual[2];
    int64_t residual_pixel[2];
    const float *map; /* one value per pixel, added to all its channels; or NULL */
    int64_t map_pixel;
    const float *mask; /* values that are not positive make the output zero; or NULL */
    int64_t mask_pixel;
    bool relu;
} tess_direct_row;

/* One block of output pixels; pixels outside the image are NULL. */
enum { TESS_WINOGRAD_MOST = 16, TESS_WINOGRAD_POINTS = 36 };
typedef struct tess_winograd_out {
    void *out[TESS_WINOGRAD_MOST];
    const void *residual[2][TESS_WINOGRAD_MOST];
    int residuals;
    const float *bias; /* or NULL */
    bool relu;
    bool mapped; /* one value per pixel, added to all its channels */
    float map[TESS_WINOGRAD_MOST];
    bool masked; /* where the mask is not positive, the output is zero */
    const void *mask[TESS_WINOGRAD_MOST];
} tess_winograd_out;

/* Winograd convolution F(side x side, 3x3): images, transformed input v and weights u in elements of one
 * size, products in fp32. Channel counts are multiples of `block`. */
typedef struct tess_winograd_kernels {
    int side;    /* output pixels per side of a block; (side + 2)^2 points */
    int rows;    /* tiles per register block */
    int block;   /* output channels per register block */
    int element; /* bytes */
    /* Transforms weights [cout block][cin][9][block] to u[point][blocks][cin * block], for the (block, cin)
     * pairs first..last. The points are `step` elements apart. */
    void (*weights)(const void *weights, void *u, int64_t step, int64_t cin, int64_t first, int64_t last);
    /* Transforms the (side + 2)^2 input pixels of tile `tile` of a group to v[point][tiles * cin]. */
    void (*input)(const void *const *pixel, int64_t cin, void *v, int64_t step, int64_t tile);
    /* m[rows][blocks * block] = v * u for one point and `blocks` consecutive blocks of u. The argument `rows`
     * is a multiple of the member `rows`. */
    void (*multiply)(const void *v, const void *u, float *m, int64_t rows, int64_t cin, int64_t blocks);
    /* Transforms the points of one tile, `step` floats apart, to output pixels. */
    void (*output)(const float *m, int64_t step, int64_t channels, const tess_winograd_out *out);
} tess_winograd_kernels;

/* A sum of outer products: `depth` rows of a and b, a_step and b_step floats apart. */
typedef struct tess_outer {
    const float *a, *b;
    int64_t a_step, b_step, depth;
    int64_t rows, columns; /* multiples of the register block */
} tess_outer;

/* Gradients of a convolution's kernel. */
typedef struct tess_grad_kernels {
    int rows, block; /* the register block */
    /* m[rows / register rows][columns / block][register rows][block] = a'b, or += if `add`. */
    void (*outer)(const tess_outer *p, float *m, bool add);
    /* Transforms the 4x4 pixels of a gradient's tile to u[36][group][channels] for Winograd's algorithm, and adds
     * them to `bias` if that is not NULL. The input is transformed as in the forward pass. */
    void (*gradient)(const float *const *pixel, int64_t channels, float *u, int64_t group, int64_t tile,
                     float *bias);
    /* Transforms m[36][count] to taps[9][count]. */
    void (*taps)(const float *m, int64_t count, float *taps);
    /* bf16 to fp32. */
    void (*widen)(const uint16_t *from, int64_t count, float *to);
} tess_grad_kernels;

/* Symmetric matrices in fp64, for statistics. A matrix lies in panels of `block` columns, panel after panel, each
 * [row][block]; pixels lie in panels as well, [pixel][block]: what a product reads has no gaps. Only blocks on and above the
 * diagonal are used. */
typedef struct tess_f64_kernels {
    int block;
    /* m[block][block] += sign * the sum over k < depth of a[k][row] * b[k][column]. */
    void (*outer)(const double *a, const double *b, int64_t depth, double sign, double *m);
    /* A pixel minus `mean`: `block` channels each to `to`, to + step, ...; channels that are missing are zero. */
    void (*centre)(const float *pixel, const double *mean, int64_t channels, double *to, int64_t step);
    /* to[row][block] = from - row_factor[row] * factor[block]. */
    void (*subtract)(const double *from, const double *row_factor, const double *factor, int64_t rows,
                     double *to);
    /* The first `pivots` rows of a block on the diagonal become those of u, with u'u = m; the others, what is left.
     * inverse[i] = 1 / u[i][i]. False if a pivot is not positive. */
    bool (*factor)(double *m, int pivots, double *inverse);
    /* m becomes inv(u') m. */
    void (*solve)(const double *u, const double *inverse, double *m);
} tess_f64_kernels;

/* Pixels of one row of a normalised image; fp32 or bf16 (`half`). */
typedef struct tess_norm_run {
    const void *in;
    void *out;
    int64_t in_pixel, out_pixel; /* elements from pixel to pixel */
    int64_t pixels, channels;
    bool in_half, out_half, relu, silu;
    const float *table; /* [centre, factor, offset][channel] */
} tess_norm_run;

typedef struct tess_norm_kernels {
    /* Adds the sums of the values and of their squares of each channel; at most 32 pixels. */
    void (*sum)(const tess_norm_run *run, double *values, double *squares);
    /* out = activation((in - centre) * factor + offset). */
    void (*apply)(const tess_norm_run *run);
} tess_norm_kernels;

typedef struct tess_f32_kernels {
    const char *isa;
    int vector; /* floats per vector */
    int block;  /* output channels per register block */
    void (*direct_row)(const tess_direct_row *row);
    tess_winograd_kernels winograd;
    const tess_grad_kernels *grad;
    const tess_f64_kernels *f64;
    const tess_norm_kernels *norm;
} tess_f32_kernels;

/* The destination of one pixel of a register block, and the values added to it. */
typedef struct tess_bf16_pixel {
    void *out;
    const void *residual[2]; /* or NULL */
    bool f32;                /* out and residuals are fp32 */
    const float *bias;       /* or NULL */
    int64_t channels;        /* at most the block */
    const float *map;        /* one value, added to all channels; or NULL */
    const void *mask;        /* of the type of out; values that are not positive make it zero; or NULL */
    bool relu;
} tess_bf16_pixel;

/* bf16 matrix instructions: a segment of `count` output pixels of one row is a product of staged input rows
 * with packed weights. A stage holds count + extra pixels in the order that the instruction needs; a tap reads
 * it from pixel `shift` on. */
typedef struct tess_bf16_kernels {
    const char *name;
    int depth;  /* channels are padded to this */
    int block;  /* output channels per register block */
    int pixels; /* output pixels per register block; count is a multiple of it */
    /* Pixel i of the stage is pixel start + i * stride of the row; zeros outside [0, row_w) and if row is
     * NULL. */
    void (*stage)(const uint16_t *row, int64_t row_w, int64_t pixel, int64_t cin, int64_t start, int stride,
                  int64_t count, int extra, uint16_t *staged);
    int64_t (*stage_elements)(int64_t cin, int64_t count, int extra);
    /* Computes sums[pixels][block] of register block `at` of the segment. */
    void (*multiply)(const uint16_t *const *tap, const int *shift, int taps, int64_t cin, int64_t at,
                     const uint16_t *panel, float *sums);
    void (*finish)(const tess_bf16_pixel *pixel, const float *sums);
    /* The pixel of the segment in row i of sums. */
    int64_t (*pixel_of)(int64_t count, int64_t at, int i);
    /* The position of element (tap, cin i, cout lane) in a panel of `block` output channels. */
    int64_t (*panel_place)(int64_t cin, int64_t tap, int64_t i, int lane);
    /* 3x3 convolutions with fewer products; NULL if the transforms would cost more than they save. */
    const tess_winograd_kernels *winograd;
} tess_bf16_kernels;

/* The best table that this CPU supports, or the named one; NULL if the CPU or the build lacks it. */
const tess_f32_kernels *tess_cpu_f32_kernels(const char *isa);
const tess_bf16_kernels *tess_cpu_bf16_kernels(void);

#endif
