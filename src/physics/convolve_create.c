/* Creates a stack of convolutions. As for blurs, sizes are computed first. */
#include <math.h>

#include "base/checked.h"
#include "physics/convolve_impl.h"

enum { ALIGNMENT = 256, LONGEST = 1 << 20 };

int64_t tess_convolve_side(int64_t seen, int64_t reach)
{
    static const int factors[] = {2, 3, 5, 7};
    for (int64_t side = seen + 2 * reach;; side++) {
        int64_t rest = side;
        for (int i = 0; i < 4; i++)
            while (rest % factors[i] == 0)
                rest /= factors[i];
        if (rest == 1)
            return side;
    }
}

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
    for (int k = 0; k < 4; k++) {
        ops[CONVOLVE_EDGE + k] = combine(edges[k], edges[k], 0, 0);
        v->edge_at[k] = at[k];
    }
}

static void describe(tess_convolve *v, const tess_convolve_settings *s, tess_op ops[CONVOLVE_STEPS])
{
    const tess_tensor image = v->op.image;
    const bool many = tess_share_many(s->share);
    const int64_t h = many ? v->waves.columns.h : image.h, bins = many ? v->waves.columns.w : image.w / 2 + 1;
    const tess_tensor waves = tess_tensor_2d(TESS_F32, 1, h, bins, 2 * image.c),
                      one = tess_tensor_2d(TESS_F32, 1, h, image.w, 1),
                      response = tess_tensor_2d(TESS_F32, 1, h, bins, 2),
                      power = tess_tensor_2d(TESS_F32, 1, h, bins, 1),
                      real = tess_tensor_channels(response, 1);
    ops[CONVOLVE_KERNEL_SPECTRUM] =
        (tess_op){.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {one}, .out = {response}};
    ops[CONVOLVE_TRANSFORM] =
        (tess_op){.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {image}, .out = {waves}};
    ops[CONVOLVE_BACK] = (tess_op){.kind = TESS_OP_FFT,
                                   .inputs = 1,
                                   .outputs = 1,
                                   .in = {waves},
                                   .out = {image},
                                   .fft = {.inverse = true}};
    ops[CONVOLVE_TIMES] = product(waves, response, false);
    ops[CONVOLVE_TIMES_CONJUGATE] = product(waves, response, true);
    ops[CONVOLVE_KEEP_WAVES] = combine(waves, waves, 1, 0);
    ops[CONVOLVE_ADD_WAVES] = combine(waves, waves, 1, 1);
    ops[CONVOLVE_CLEAR] = combine(image, image, 0, 0);
    ops[CONVOLVE_SQUARE] = product(response, response, true);
    ops[CONVOLVE_KEEP_POWER] = combine(real, power, 1, 0);
    ops[CONVOLVE_ADD_POWER] = combine(real, power, 1, 1);
    ops[CONVOLVE_ADD_POWER].in[1] = power;
    ops[CONVOLVE_LESS] = combine(image, image, 1, -1);
    describe_margins(v, s, ops);
    ops[CONVOLVE_FILTER] = (tess_op){.kind = TESS_OP_FILTER,
                                     .outputs = 1,
                                     .in = {image, power, waves},
                                     .out = {image},
                                     .inputs = v->margins ? 2 : 3};
    if (many) { /* a product in place */
        ops[CONVOLVE_FILTER].in[0] = ops[CONVOLVE_FILTER].out[0] = waves;
        ops[CONVOLVE_FILTER].filter.product_only = true;
    }
    for (int i = 0; i < CONVOLVE_STEPS; i++)
        for (int k = 0; k < TESS_SPATIAL; k++)
            ops[i].kernel[k] = ops[i].stride[k] = 1;
}

/* Parts of an image may be empty, and ranks transform with `waves`. */
static bool runs(const tess_convolve *v, const tess_op *op)
{
    return op->in[0].h > 0 && op->in[0].w > 0 && !(tess_share_many(v->op.share) && op->kind == TESS_OP_FFT);
}

/* Computes the layout of the memory and its size. */
static tess_status lay_out(tess_convolve *v, const tess_op ops[CONVOLVE_STEPS], tess_error *error)
{
    tess_device *device = v->op.device;
    size_t all, waves, response, image, workspace = 0, plans = 0, filter = 0;
    if (!tess_tensor_bytes(&v->op.measurement, &all) || !tess_tensor_bytes(&v->op.image, &image) ||
        !tess_tensor_bytes(&ops[CONVOLVE_TRANSFORM].out[0], &waves) ||
        !tess_tensor_bytes(&ops[CONVOLVE_KERNEL_SPECTRUM].out[0], &response))
        return tess_fail(error, TESS_OVER_LIMIT, "%lld blurs of %lldx%lld pixels are too many",
                         (long long)v->op.measurement.n, (long long)v->op.image.h, (long long)v->op.image.w);
    for (int i = 0; i < CONVOLVE_STEPS; i++) {
        tess_op_needs needs;
        if (!runs(v, &ops[i]))
            continue;
        TESS_TRY(device->ops->query(device, &ops[i], &needs, error));
        workspace = needs.workspace > workspace ? needs.workspace : workspace;
        plans += needs.held;
        filter = i == CONVOLVE_FILTER ? tess_align_size(needs.workspace, ALIGNMENT) : filter;
    }
    waves = tess_align_size(waves, ALIGNMENT);
    response = tess_align_size(response, ALIGNMENT);
    if (tess_share_many(v->op.share)) {
        const size_t one = v->kernel_waves.scratch_bytes, colours = v->waves.scratch_bytes;
        v->workspace_at = one > colours ? one : colours;
        plans += v->waves.held_bytes + v->kernel_waves.held_bytes;
    }
    v->response_at = v->workspace_at + tess_align_size(workspace, ALIGNMENT);
    v->waves_at[0] = v->response_at + response;
    v->waves_at[1] = tess_share_many(v->op.share) ? 0 : v->waves_at[0] + waves;
    v->waves_at[2] = (v->waves_at[1] ? v->waves_at[1] : v->waves_at[0]) + waves;
    v->image_at = v->waves_at[2] + waves;
    v->op.scratch_bytes = v->image_at + tess_align_size(image, ALIGNMENT);
    v->op.step_scratch_bytes = v->margins ? v->op.scratch_bytes : v->workspace_at + filter;
    v->power_at = tess_align_size(tess_kernels_bytes(&v->kernels), ALIGNMENT);
    v->data_at = v->power_at + tess_align_size(response / 2, ALIGNMENT);
    v->held_bytes = v->data_at + (v->margins ? tess_align_size(image, ALIGNMENT) : waves);
    v->op.held_bytes = device->memory->granted(device, v->held_bytes) + plans;
    v->op.making_bytes = tess_block_granted(tess_kernels_making_bytes(&v->kernels));
    return TESS_OK;
}

static tess_status check(const tess_convolve_settings *s, tess_error *error)
{
    if (s->height < 1 || s->width < 1 || s->channels < 1 || s->count < 1)
        return tess_fail(error, TESS_BAD_OPTION, "a blur needs an image and at least one kernel");
    if (s->height > LONGEST || s->width > LONGEST)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%lldx%lld pixels, margins included, are too many; a side has at most %d",
                         (long long)s->height, (long long)s->width, (int)LONGEST);
    const bool whole =
                   s->seen_height == 0 && s->seen_width == 0 && s->margin_rows == 0 && s->margin_columns == 0,
               inside = s->seen_height > 0 && s->seen_width > 0 && s->margin_rows >= 0 &&
                        s->margin_columns >= 0 && s->margin_rows <= s->height - s->seen_height &&
                        s->margin_columns <= s->width - s->seen_width;
    if (!whole && !inside)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%lldx%lld pixels behind margins of %lld and %lld do not lie in %lldx%lld",
                         (long long)s->seen_height, (long long)s->seen_width, (long long)s->margin_rows,
                         (long long)s->margin_columns, (long long)s->height, (long long)s->width);
    for (int64_t i = 0; i < s->count; i++)
        TESS_TRY(tess_kernel_check(&s->kernels[i], i, error));
    return TESS_OK;
}

static tess_status sketch(tess_convolve *v, tess_device *device, const tess_convolve_settings *s,
                          tess_op ops[CONVOLVE_STEPS], tess_error *error)
{
    const bool margins = s->seen_height > 0;
    const int64_t first = tess_share_first(s->share), rows = tess_share_rows(s->share, s->height),
                  seen_first = tess_max_i64(first, s->margin_rows),
                  seen_height = margins ? s->seen_height : s->height,
                  seen_end = tess_min_i64(first + rows, s->margin_rows + seen_height);
    const double pixels = (double)s->height * (double)s->width,
                 transforms =
                     (double)rows / (double)s->height * (double)(s->count * (s->channels + 1) + s->channels);
    double norm = 0;
    for (int64_t i = 0; i < s->count; i++)
        norm += tess_kernel_gain(&s->kernels[i]) * tess_kernel_gain(&s->kernels[i]);
    /* an upper bound; exact if no kernel has negative values */
    v->op = (tess_operator){.table = margins ? &tess_convolve_margins : &tess_convolve_circular,
                            .device = device,
                            .name = "blur",
                            .image = tess_tensor_2d(TESS_F32, 1, rows, s->width, s->channels),
                            .measurement =
                                tess_tensor_2d(TESS_F32, s->count, tess_max_i64(seen_end - seen_first, 0),
                                               margins ? s->seen_width : s->width, s->channels),
                            .share = s->share,
                            .image_first = first * s->width * s->channels,
                            .forward_flops = transforms * 2.5 * pixels * log2(pixels + 1),
                            .forward_bytes = transforms * 8 * sizeof(float) * pixels,
                            .norm_squared = norm};
    v->margin_rows = tess_min_i64(seen_first - first, rows);
    tess_kernels_lay_out(&v->kernels, device, s->height, s->width, s->kernels, s->count);
    if (tess_share_many(s->share)) {
        tess_kernels_take_rows(&v->kernels, first, rows);
        TESS_TRY(tess_waves_lay_out(&v->waves, device, s->share, s->width, s->channels, error));
        TESS_TRY(tess_waves_lay_out(&v->kernel_waves, device, s->share, s->width, 1, error));
    }
    describe(v, s, ops);
    return lay_out(v, ops, error);
}

static tess_status make(tess_convolve *v, const tess_blur_kernel *list, const tess_op ops[CONVOLVE_STEPS],
                        tess_error *error)
{
    tess_device *device = v->op.device;
    for (int i = 0; i < CONVOLVE_STEPS; i++)
        if (runs(v, &ops[i]))
            TESS_TRY(device->ops->prepare(device, &ops[i], &v->step[i], error));
    if (tess_share_many(v->op.share)) {
        TESS_TRY(tess_waves_open(&v->waves, error));
        TESS_TRY(tess_waves_open(&v->kernel_waves, error));
    }
    TESS_TRY(device->memory->alloc(device, &v->held, TESS_MEM_WORKSPACE, v->held_bytes, error));
    return tess_kernels_open(&v->kernels, list, v->held.data, error);
}

tess_status tess_convolve_sketch(tess_device *device, const tess_convolve_settings *s, tess_operator *out,
                                 tess_error *error)
{
    TESS_TRY(check(s, error));
    tess_convolve v = {0};
    tess_op ops[CONVOLVE_STEPS];
    const tess_status status = sketch(&v, device, s, ops, error);
    *out = v.op;
    return status;
}

tess_status tess_convolve_create(tess_device *device, const tess_convolve_settings *s, tess_operator **out,
                                 tess_error *error)
{
    *out = NULL;
    TESS_TRY(check(s, error));
    tess_convolve *v = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a blur");
    tess_op ops[CONVOLVE_STEPS];
    tess_status status = sketch(v, device, s, ops, error);
    if (status == TESS_OK)
        status = make(v, s->kernels, ops, error);
    if (status == TESS_OK)
        *out = &v->op;
    else
        tess_operator_destroy(&v->op);
    return status;
}
