/* The ops of a stack of convolutions, as descriptions. With halos, those of the blurs are of a strip with the rows of its neighbours,
 * and those of S and the filter are of a rank's columns of the whole spectrum; otherwise all have one shape. */
#include <math.h>

#include "physics/convolve_impl.h"

static tess_op combine(tess_tensor in, tess_tensor out, double a, double b)
{
    return (tess_op){.kind = TESS_OP_COMBINE,
                     .outputs = 1,
                     .in = {in, in},
                     .out = {out},
                     .combine = {.a = a, .b = b, .low = -INFINITY, .high = INFINITY},
                     .inputs = b != 0 ? 2 : 1};
}

static tess_op product(tess_tensor waves, tess_tensor response, bool conjugate)
{
    return (tess_op){.kind = TESS_OP_SPECTRUM,
                     .outputs = 1,
                     .in = {waves, response},
                     .out = {waves},
                     .spectrum = {.complex_factor = true, .conjugate = conjugate},
                     .inputs = 2};
}

/* A part of the image in the image's storage; an empty part has no op. */
static tess_tensor window(tess_tensor image, int64_t height, int64_t width)
{
    image.h = height;
    image.w = width;
    return image;
}

static tess_tensor side_by_side(tess_tensor image)
{
    image.w *= image.c;
    image.c = image.stride_w = 1;
    return image;
}

static void describe_margins(tess_convolve *v, const tess_convolve_settings *s, tess_op ops[CONVOLVE_STEPS])
{
    const tess_tensor image = v->op.image, *seen = &v->op.measurement;
    const tess_tensor middle = window(image, seen->h, seen->w),
                      dense = tess_tensor_2d(TESS_F32, 1, seen->h, seen->w, image.c);
    const int64_t rows = v->margin_rows, columns = s->margin_columns, below = image.h - rows - seen->h,
                  right = image.w - columns - seen->w;
    v->margins = s->seen_height > 0;
    v->middle = rows * image.stride_h + columns * image.stride_w;
    ops[CONVOLVE_CROP] = combine(middle, dense, 1, 0);
    ops[CONVOLVE_PAD] = combine(dense, middle, 1, 0);
    const tess_tensor edges[4] = {window(image, rows, image.w), window(image, below, image.w),
                                  window(image, seen->h, columns), window(image, seen->h, right)};
    const int64_t at[4] = {0, (rows + seen->h) * image.stride_h, rows * image.stride_h,
                           v->middle + seen->w * image.stride_w};
    if (s->masked) /* all channels side by side: each has its own factor */
        ops[CONVOLVE_MASK] = (tess_op){.kind = TESS_OP_SPECTRUM,
                                       .inputs = 2,
                                       .outputs = 1,
                                       .in = {side_by_side(middle), side_by_side(dense)},
                                       .out = {side_by_side(middle)}};
    for (int k = 0; k < 4; k++) {
        ops[CONVOLVE_EDGE + k] = combine(edges[k], edges[k], 0, 0);
        v->edge_at[k] = at[k];
    }
}

void tess_convolve_describe(tess_convolve *v, const tess_convolve_settings *s, tess_op ops[CONVOLVE_STEPS])
{
    const tess_tensor image = v->op.image, blurred = v->halo ? v->overlap.rows : image;
    const bool many = tess_share_many(s->share);
    const int64_t columns_h = many ? v->waves.columns.h : image.h,
                  columns_w = many ? v->waves.columns.w : image.w / 2 + 1,
                  h = v->halo ? blurred.h : columns_h, bins = v->halo ? image.w / 2 + 1 : columns_w;
    const tess_tensor waves = tess_tensor_2d(TESS_F32, 1, h, bins, 2 * image.c),
                      one = tess_tensor_2d(TESS_F32, 1, h, image.w, 1),
                      response = tess_tensor_2d(TESS_F32, 1, h, bins, 2),
                      whole = tess_tensor_2d(TESS_F32, 1, columns_h, columns_w, 2 * image.c),
                      factor = tess_tensor_2d(TESS_F32, 1, columns_h, columns_w, 2),
                      power = tess_tensor_2d(TESS_F32, 1, columns_h, columns_w, 1),
                      real = tess_tensor_channels(factor, 1);
    ops[CONVOLVE_MASK] = (tess_op){0};
    ops[CONVOLVE_KERNEL_SPECTRUM] =
        (tess_op){.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {one}, .out = {response}};
    ops[CONVOLVE_TRANSFORM] =
        (tess_op){.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {blurred}, .out = {waves}};
    ops[CONVOLVE_BACK] = (tess_op){.kind = TESS_OP_FFT,
                                   .inputs = 1,
                                   .outputs = 1,
                                   .in = {waves},
                                   .out = {blurred},
                                   .fft = {.inverse = true}};
    ops[CONVOLVE_TIMES] = product(waves, response, false);
    ops[CONVOLVE_TIMES_CONJUGATE] = product(waves, response, true);
    ops[CONVOLVE_KEEP_WAVES] = combine(waves, waves, 1, 0);
    ops[CONVOLVE_ADD_WAVES] = combine(waves, waves, 1, 1);
    ops[CONVOLVE_CLEAR] = combine(image, image, 0, 0);
    ops[CONVOLVE_SQUARE] = product(factor, factor, true);
    ops[CONVOLVE_KEEP_POWER] = combine(real, power, 1, 0);
    ops[CONVOLVE_ADD_POWER] = combine(real, power, 1, 1);
    ops[CONVOLVE_ADD_POWER].in[1] = power;
    ops[CONVOLVE_LESS] = combine(image, image, 1, -1);
    describe_margins(v, s, ops);
    ops[CONVOLVE_FILTER] = (tess_op){.kind = TESS_OP_FILTER,
                                     .outputs = 1,
                                     .in = {image, power, whole},
                                     .out = {image},
                                     .inputs = v->margins ? 2 : 3};
    if (many) { /* a product in place */
        ops[CONVOLVE_FILTER].in[0] = ops[CONVOLVE_FILTER].out[0] = whole;
        ops[CONVOLVE_FILTER].filter.product_only = true;
    }
    for (int i = 0; i < CONVOLVE_STEPS; i++)
        for (int k = 0; k < TESS_SPATIAL; k++)
            ops[i].kernel[k] = ops[i].stride[k] = 1;
}
