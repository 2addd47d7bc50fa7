/* op_table.h: the ops with which every device is compared with the plain reference kernels: odd sizes, strides,
 * padding on single sides, residuals that share memory with the output. */
#ifndef TESS_TESTS_OP_TABLE_H
#define TESS_TESTS_OP_TABLE_H

#include "base/mem.h"
#include "cpu/reference/reference.h"
#include "device/device.h"
#include "fields.h"

typedef struct op_case {
    const char *name;
    tess_op_kind kind;
    int64_t n, h, w, cin, cout;
    int kernel, stride, pad[4]; /* top, bottom, left, right */
    bool bias, relu;
    int residuals;
    bool in_place; /* out is residual[0] */
    int gap;       /* channels between pixels that belong to somebody else */
    int ends;      /* in bf16: 1 = the input is an fp32 image, 2 = the output and its residuals are */
    bool silu;
} op_case;

#define PAD1                                                                                                 \
    {                                                                                                        \
        1, 1, 1, 1                                                                                           \
    }

static const op_case cases[] = {
    {"head", TESS_OP_CONV, 1, 19, 23, 4, 64, 3, 1, PAD1, false, false, 0, false, 0, 0},
    {"head-gray", TESS_OP_CONV, 2, 9, 13, 2, 32, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"tail", TESS_OP_CONV, 1, 17, 21, 64, 3, 3, 1, PAD1, true, false, 1, false, 0, 0},
    {"tail-gray", TESS_OP_CONV, 1, 8, 11, 64, 1, 3, 1, PAD1, false, false, 0, false, 0, 0},
    {"wide", TESS_OP_CONV, 1, 21, 30, 64, 64, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"wide-residual", TESS_OP_CONV, 2, 13, 18, 64, 64, 3, 1, PAD1, false, false, 2, true, 0, 0},
    {"wide-strided", TESS_OP_CONV, 1, 16, 16, 64, 128, 3, 1, PAD1, true, true, 0, false, 64, 0},
    {"deep", TESS_OP_CONV, 1, 8, 8, 256, 512, 3, 1, PAD1, false, false, 1, false, 0, 0},
    {"small-net", TESS_OP_CONV, 3, 12, 20, 32, 32, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"odd-channels", TESS_OP_CONV, 1, 10, 9, 37, 53, 3, 1, PAD1, true, true, 1, false, 3, 0},
    {"open-edges", TESS_OP_CONV, 1, 14, 15, 32, 32, 3, 1, {0, 1, 1, 0}, true, false, 0, false, 0, 0},
    {"no-padding", TESS_OP_CONV, 1, 14, 15, 32, 64, 3, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"one-pixel", TESS_OP_CONV, 1, 1, 1, 64, 64, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"five", TESS_OP_CONV, 1, 11, 12, 16, 24, 5, 1, {2, 2, 2, 2}, true, true, 0, false, 0, 0},
    {"point", TESS_OP_CONV, 1, 15, 17, 64, 3, 1, 1, {0, 0, 0, 0}, true, false, 1, false, 0, 0},
    {"spectra", TESS_OP_CONV, 3, 17, 19, 50, 20, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"spectra-wide", TESS_OP_CONV, 1, 7, 9, 100, 101, 1, 1, {0, 0, 0, 0}, false, true, 0, false, 0, 0},
    {"spectra-view", TESS_OP_CONV, 1, 7, 9, 20, 50, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 2, 0},
    {"spectra-in", TESS_OP_CONV, 1, 11, 41, 50, 10, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 1},
    {"spectra-out", TESS_OP_CONV, 1, 11, 41, 10, 50, 1, 1, {0, 0, 0, 0}, true, true, 0, false, 0, 2},
    {"down", TESS_OP_CONV, 2, 12, 14, 64, 128, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"down-deep", TESS_OP_CONV, 1, 8, 10, 256, 512, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"stride3", TESS_OP_CONV, 1, 17, 17, 8, 16, 3, 2, PAD1, true, true, 0, false, 0, 0},
    {"up", TESS_OP_CONV_TRANSPOSE, 2, 7, 9, 128, 64, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"up-residual", TESS_OP_CONV_TRANSPOSE, 1, 5, 6, 64, 32, 2, 2, {0, 0, 0, 0}, true, true, 1, false, 32, 0},
    {"pool", TESS_OP_MAX_POOL, 2, 12, 14, 64, 64, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 16, 0},
    {"upsample", TESS_OP_UPSAMPLE, 2, 6, 7, 128, 128, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"add", TESS_OP_ADD, 1, 9, 7, 64, 64, 1, 1, {0, 0, 0, 0}, false, false, 2, false, 0, 0},
    {"add-in-place", TESS_OP_ADD, 2, 5, 7, 24, 24, 1, 1, {0, 0, 0, 0}, false, false, 2, true, 8, 0},
    {"add-odd", TESS_OP_ADD, 2, 6, 5, 3, 3, 1, 1, {0, 0, 0, 0}, false, false, 1, false, 0, 0},
    {"relu", TESS_OP_ACTIVATE, 2, 9, 7, 64, 64, 1, 1, {0, 0, 0, 0}, false, true, 0, false, 16, 0},
    {"silu", TESS_OP_ACTIVATE, 2, 9, 7, 64, 64, 1, 1, {0, 0, 0, 0}, false, false, 0, false, 0, 0, true},
    {"silu-odd", TESS_OP_ACTIVATE, 1, 5, 11, 13, 13, 1, 1, {0, 0, 0, 0}, false, false, 0, false, 3, 0, true},
    {"image-in", TESS_OP_CONV, 2, 19, 700, 4, 64, 3, 1, PAD1, false, false, 0, false, 2, 1},
    {"image-in-strided", TESS_OP_CONV, 1, 12, 90, 3, 32, 2, 2, {0, 0, 0, 0}, true, true, 0, false, 0, 1},
    {"image-out", TESS_OP_CONV, 1, 17, 41, 64, 3, 3, 1, PAD1, true, false, 1, true, 0, 2},
    {"image-out-wide", TESS_OP_CONV, 1, 9, 41, 64, 64, 3, 1, PAD1, true, true, 1, false, 0, 2},
};

/* More ops, for devices whose kernels depend on channels and sizes in other ways. */
static const op_case wide_cases[] = {
    {"64-odd", TESS_OP_CONV, 1, 33, 65, 64, 64, 3, 1, PAD1, false, true, 0, false, 0, 0},
    {"64-plain", TESS_OP_CONV, 2, 19, 45, 64, 64, 3, 1, PAD1, false, false, 0, false, 0, 0},
    {"64-residual", TESS_OP_CONV, 1, 40, 24, 64, 64, 3, 1, PAD1, true, true, 1, false, 0, 0},
    {"64-two-residuals", TESS_OP_CONV, 1, 19, 45, 64, 64, 3, 1, PAD1, true, false, 2, false, 0, 0},
    {"64-in-place", TESS_OP_CONV, 1, 33, 65, 64, 64, 3, 1, PAD1, false, true, 1, true, 0, 0},
    {"64-strip", TESS_OP_CONV, 1, 21, 45, 64, 64, 3, 1, {0, 1, 0, 1}, true, true, 1, false, 0, 0},
    {"64-view", TESS_OP_CONV, 1, 19, 45, 64, 64, 3, 1, PAD1, true, true, 1, false, 64, 0},
    {"64>128", TESS_OP_CONV, 1, 19, 45, 64, 128, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"128>64", TESS_OP_CONV, 1, 40, 24, 128, 64, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"128", TESS_OP_CONV, 2, 19, 45, 128, 128, 3, 1, PAD1, false, true, 0, false, 0, 0},
    {"128-residual", TESS_OP_CONV, 1, 33, 65, 128, 128, 3, 1, PAD1, false, false, 1, true, 0, 0},
    {"128-strip", TESS_OP_CONV, 1, 20, 24, 128, 128, 3, 1, {1, 0, 1, 0}, true, true, 2, false, 0, 0},
    {"256>128", TESS_OP_CONV, 1, 19, 45, 256, 128, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"256", TESS_OP_CONV, 1, 19, 45, 256, 256, 3, 1, PAD1, false, true, 1, false, 0, 0},
    {"512", TESS_OP_CONV, 1, 11, 17, 512, 512, 3, 1, PAD1, false, true, 1, false, 0, 0},
    {"down-64", TESS_OP_CONV, 1, 40, 90, 64, 128, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"down-128", TESS_OP_CONV, 2, 38, 24, 128, 256, 2, 2, {0, 0, 0, 0}, true, true, 0, false, 0, 0},
    {"up-128", TESS_OP_CONV_TRANSPOSE, 1, 19, 45, 128, 64, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"up-256", TESS_OP_CONV_TRANSPOSE, 1, 20, 12, 256, 128, 2, 2, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"up-view", TESS_OP_CONV_TRANSPOSE, 1, 10, 12, 128, 64, 2, 2, {0, 0, 0, 0}, true, false, 0, false, 64, 0},
    {"up-conv", TESS_OP_UP_CONV, 1, 19, 45, 128, 64, 3, 1, PAD1, true, true, 0, false, 0, 0},
    {"up-conv-view", TESS_OP_UP_CONV, 2, 12, 9, 64, 128, 3, 1, PAD1, true, true, 0, false, 64, 0},
    {"up-conv-deep", TESS_OP_UP_CONV, 1, 16, 10, 512, 256, 3, 1, PAD1, false, false, 0, false, 0, 0},
    {"32", TESS_OP_CONV, 1, 33, 65, 32, 32, 3, 1, PAD1, true, true, 1, false, 0, 0},
    {"32>64", TESS_OP_CONV, 2, 19, 45, 32, 64, 3, 1, PAD1, false, true, 0, false, 0, 0},
    {"96", TESS_OP_CONV, 1, 19, 45, 96, 96, 3, 1, PAD1, true, false, 2, false, 0, 0},
    {"down-32", TESS_OP_CONV, 1, 40, 90, 32, 64, 2, 2, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"up-64>32", TESS_OP_CONV_TRANSPOSE, 1, 19, 45, 64, 32, 2, 2, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"point-64>32", TESS_OP_CONV, 2, 33, 65, 64, 32, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"point-96>32", TESS_OP_CONV, 1, 19, 45, 96, 32, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"point-32>64", TESS_OP_CONV, 1, 19, 45, 32, 64, 1, 1, {0, 0, 0, 0}, true, true, 1, false, 0, 0},
    {"point-128>384", TESS_OP_CONV, 1, 32, 32, 128, 384, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"point-128", TESS_OP_CONV, 3, 32, 32, 128, 128, 1, 1, {0, 0, 0, 0}, true, false, 1, true, 0, 0},
    {"point-192>64", TESS_OP_CONV, 1, 40, 24, 192, 64, 1, 1, {0, 0, 0, 0}, true, false, 2, false, 0, 0},
    {"point-256>768", TESS_OP_CONV, 2, 8, 8, 256, 768, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"point-512>256", TESS_OP_CONV, 1, 16, 16, 512, 256, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"point-24>40", TESS_OP_CONV, 2, 7, 11, 24, 40, 1, 1, {0, 0, 0, 0}, false, true, 1, false, 0, 0},
    {"point-view", TESS_OP_CONV, 1, 19, 45, 64, 128, 1, 1, {0, 0, 0, 0}, true, true, 1, false, 64, 0},
    {"linear", TESS_OP_CONV, 5, 1, 1, 64, 128, 1, 1, {0, 0, 0, 0}, true, false, 0, false, 0, 0},
    {"image-3", TESS_OP_CONV, 1, 33, 65, 3, 64, 3, 1, PAD1, true, true, 0, false, 0, 1},
    {"image-4", TESS_OP_CONV, 2, 19, 45, 4, 64, 3, 1, PAD1, false, false, 0, false, 0, 1},
    {"image-2", TESS_OP_CONV, 1, 40, 24, 2, 64, 3, 1, PAD1, false, false, 0, false, 0, 1},
    {"image-1", TESS_OP_CONV, 1, 19, 45, 1, 64, 3, 1, {0, 1, 1, 0}, true, true, 0, false, 0, 1},
    {"image-small", TESS_OP_CONV, 1, 33, 65, 4, 32, 3, 1, PAD1, false, false, 0, false, 0, 1},
    {"image-wide", TESS_OP_CONV, 1, 40, 24, 4, 128, 3, 1, PAD1, false, true, 0, false, 0, 1},
    {"tail-3", TESS_OP_CONV, 1, 33, 65, 64, 3, 3, 1, PAD1, true, false, 1, false, 0, 2},
    {"tail-4", TESS_OP_CONV, 2, 19, 45, 64, 4, 3, 1, PAD1, false, false, 1, false, 0, 2},
    {"tail-1", TESS_OP_CONV, 1, 40, 24, 64, 1, 3, 1, {0, 1, 1, 0}, true, false, 1, false, 0, 2},
    {"tail-small", TESS_OP_CONV, 1, 33, 65, 32, 3, 3, 1, PAD1, true, false, 1, true, 0, 2},
    {"tail-deep", TESS_OP_CONV, 1, 19, 45, 128, 3, 3, 1, PAD1, true, false, 0, false, 0, 2},
    {"tail-point", TESS_OP_CONV, 1, 33, 65, 64, 3, 1, 1, {0, 0, 0, 0}, true, false, 1, false, 0, 2},
    {"tail-same", TESS_OP_CONV, 1, 19, 45, 64, 3, 3, 1, PAD1, true, false, 1, false, 0, 0},
    {"pool-odd", TESS_OP_MAX_POOL, 1, 6, 10, 5, 5, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 2, 0},
    {"upsample-odd", TESS_OP_UPSAMPLE, 1, 5, 7, 9, 9, 2, 2, {0, 0, 0, 0}, false, false, 0, false, 0, 0},
    {"add-odd", TESS_OP_ADD, 2, 9, 7, 13, 13, 1, 1, {0, 0, 0, 0}, false, false, 1, true, 3, 0},
};

static tess_op op_of(const op_case *c, tess_dtype dtype)
{
    tess_op op = {.kind = c->kind,
                  .outputs = 1,
                  .bias = c->bias,
                  .activation = c->silu   ? TESS_SILU
                                : c->relu ? TESS_RELU
                                          : TESS_LINEAR,
                  .inputs = 1 + c->residuals};
    int64_t h = c->h, w = c->w;
    op.kernel[0] = op.stride[0] = 1;
    for (int s = 1; s < TESS_SPATIAL; s++) {
        op.kernel[s] = c->kernel;
        op.stride[s] = c->stride;
        op.pad_before[s] = c->pad[2 * s - 2];
        op.pad_after[s] = c->pad[2 * s - 1];
    }
    if (c->kind == TESS_OP_CONV || c->kind == TESS_OP_MAX_POOL) {
        h = (h + c->pad[0] + c->pad[1] - c->kernel) / c->stride + 1;
        w = (w + c->pad[2] + c->pad[3] - c->kernel) / c->stride + 1;
    } else if (c->kind != TESS_OP_ADD) {
        h *= c->kind == TESS_OP_UP_CONV ? 2 : c->stride;
        w *= c->kind == TESS_OP_UP_CONV ? 2 : c->stride;
    }
    op.in[0] = strided(c->ends == 1 ? TESS_F32 : dtype, c->n, c->h, c->w, c->cin, c->gap);
    op.out[0] = strided(c->ends == 2 ? TESS_F32 : dtype, c->n, h, w, c->cout, c->gap);
    for (int r = 0; r < c->residuals; r++)
        op.in[1 + r] = op.out[0];
    return op;
}

/* The weights of a case, as kernels of that type will see them. */
static void random_weights(const op_case *c, tess_dtype dtype, float **kernel, float **bias)
{
    int64_t taps = (int64_t)c->kernel * c->kernel, count = c->cin * c->cout * taps;
    *kernel = malloc((size_t)count * sizeof **kernel);
    *bias = malloc((size_t)c->cout * sizeof **bias);
    tess_rng_normal((tess_rng_key){7, 5, 0}, 0, count, *kernel);
    tess_rng_normal((tess_rng_key){7, 6, 0}, 0, c->cout, *bias);
    float scale = 1.0f / sqrtf((float)(c->cin * taps));
    for (int64_t i = 0; i < count; i++)
        (*kernel)[i] = seen_as(dtype, (*kernel)[i] * scale);
}

#endif
