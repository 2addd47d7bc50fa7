/* Creates a stack of blurs: its ops, its kernels, and the layout of its memory. Sizes are computed first, so that a
 * plan can refuse them before anything is allocated. */
#include <math.h>

#include "base/checked.h"
#include "physics/blur_impl.h"

enum { ALIGNMENT = 256 };

static tess_op combine(tess_tensor in, tess_tensor out, double a, int residuals)
{
    return (tess_op){.kind = TESS_OP_COMBINE,
                     .outputs = 1,
                     .in = {in, out},
                     .out = {out},
                     .combine = {.a = a, .b = residuals, .low = -INFINITY, .high = INFINITY},
                     .inputs = 1 + residuals};
}

static void describe(const tess_blur *b, tess_op ops[BLUR_STEPS])
{
    const bool many = tess_share_many(b->op.share);
    const tess_tensor image = b->op.image;
    const int64_t h = many ? b->waves.columns.h : image.h, bins = many ? b->waves.columns.w : image.w / 2 + 1;
    const tess_tensor spectrum = tess_tensor_2d(TESS_F32, 1, h, bins, 2 * image.c),
                      one = tess_tensor_2d(TESS_F32, 1, h, image.w, 1),
                      response = tess_tensor_2d(TESS_F32, 1, h, bins, 2),
                      power = tess_tensor_2d(TESS_F32, 1, h, bins, 1);
    ops[BLUR_KERNEL_SPECTRUM] =
        (tess_op){.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {one}, .out = {response}};
    ops[BLUR_KEEP_REAL] = combine(tess_tensor_channels(response, 1), power, 1, 0);
    ops[BLUR_FILTER] = (tess_op){
        .kind = TESS_OP_FILTER, .outputs = 1, .in = {image, power, spectrum}, .out = {image}, .inputs = 3};
    if (many) { /* a product in place */
        ops[BLUR_FILTER].in[0] = ops[BLUR_FILTER].out[0] = spectrum;
        ops[BLUR_FILTER].filter.product_only = true;
    }
    ops[BLUR_TRANSFORM] =
        (tess_op){.kind = TESS_OP_FFT, .inputs = 1, .outputs = 1, .in = {image}, .out = {spectrum}};
    ops[BLUR_ADD] = combine(image, image, 1, 1);
    ops[BLUR_COPY] = combine(image, image, 1, 0);
    ops[BLUR_SQUARE] =
        (tess_op){.kind = TESS_OP_SPECTRUM, .outputs = 1, .in = {power, power}, .out = {power}, .inputs = 2};
    ops[BLUR_KEEP_SQUARE] = combine(power, power, 1, 0);
    ops[BLUR_ADD_SQUARE] = combine(power, power, 1, 1);
    for (int i = 0; i < BLUR_STEPS; i++)
        for (int k = 0; k < TESS_SPATIAL; k++)
            ops[i].kernel[k] = ops[i].stride[k] = 1;
}

/* Ranks transform with `waves`. */
static bool runs(const tess_blur *b, int step)
{
    return !tess_share_many(b->op.share) || (step != BLUR_KERNEL_SPECTRUM && step != BLUR_TRANSFORM);
}

/* Computes the layout of the memory and its size. */
static tess_status lay_out(tess_blur *b, const tess_op ops[BLUR_STEPS], tess_error *error)
{
    tess_device *device = b->op.device;
    size_t all, spectrum, response, image, workspace[BLUR_STEPS] = {0}, plans = 0;
    if (!tess_tensor_bytes(&b->op.measurement, &all) || !tess_tensor_bytes(&b->op.image, &image) ||
        !tess_tensor_bytes(&ops[BLUR_TRANSFORM].out[0], &spectrum) ||
        !tess_tensor_bytes(&ops[BLUR_KERNEL_SPECTRUM].out[0], &response))
        return tess_fail(error, TESS_OVER_LIMIT, "%lld blurs of %lldx%lld pixels are too many",
                         (long long)b->op.measurement.n, (long long)b->op.image.h, (long long)b->op.image.w);
    for (int i = 0; i < BLUR_STEPS; i++) {
        tess_op_needs needs;
        if (!runs(b, i))
            continue;
        TESS_TRY(device->ops->query(device, &ops[i], &needs, error));
        workspace[i] = tess_align_size(needs.workspace, ALIGNMENT);
        plans += needs.held;
    }
    spectrum = tess_align_size(spectrum, ALIGNMENT);
    response = tess_align_size(response, ALIGNMENT);
    b->op.step_scratch_bytes = workspace[BLUR_FILTER];
    b->response_at = workspace[BLUR_KERNEL_SPECTRUM];
    b->real_at = b->response_at + response;
    if (tess_share_many(b->op.share)) {
        const size_t one = b->kernel_waves.scratch_bytes, colours = b->waves.scratch_bytes;
        b->op.step_scratch_bytes = colours;
        b->real_at = one > colours ? one : colours;
        plans += b->waves.held_bytes + b->kernel_waves.held_bytes;
        spectrum = spectrum > image ? spectrum : tess_align_size(image, ALIGNMENT); /* see blur_absorb */
    }
    for (int i = 0; i < BLUR_STEPS; i++)
        b->real_at = workspace[i] > b->real_at ? workspace[i] : b->real_at;
    b->image_at = b->real_at + tess_align_size(response / 2, ALIGNMENT);
    b->op.scratch_bytes = b->image_at + tess_align_size(image, ALIGNMENT);
    b->power_at = tess_align_size(tess_kernels_bytes(&b->kernels), ALIGNMENT);
    b->data_at = b->power_at + tess_align_size(response / 2, ALIGNMENT);
    b->held_bytes = b->data_at + spectrum;
    b->op.held_bytes = device->memory->granted(device, b->held_bytes) + plans;
    b->op.making_bytes = tess_block_granted(tess_kernels_making_bytes(&b->kernels));
    return TESS_OK;
}

static tess_status check(const tess_blur_settings *s, tess_error *error)
{
    if (s->height < 1 || s->width < 1 || s->channels < 1 || s->count < 1)
        return tess_fail(error, TESS_BAD_OPTION, "a blur needs an image and at least one angle");
    const double least = fmin(s->sigma_rows, s->sigma_columns), most = fmax(s->sigma_rows, s->sigma_columns),
                 longest = (double)tess_max_i64(s->height, s->width);
    if (isnan(s->sigma_rows + s->sigma_columns) || !(least > 0) || !(most <= longest))
        return tess_fail(error, TESS_BAD_OPTION,
                         "blurs of %g and %g pixels: each must be above 0 and at most the image's side, %g",
                         s->sigma_rows, s->sigma_columns, longest);
    for (int64_t i = 0; i < s->count; i++)
        if (!isfinite(s->angles[i]))
            return tess_fail(error, TESS_BAD_OPTION, "angle %lld of the blurs is not a number", (long long)i);
    return TESS_OK;
}

/* The kernels of the settings; owned by the caller. */
static tess_blur_kernel *kernels_of(const tess_blur_settings *s)
{
    tess_blur_kernel *list = tess_small_alloc((size_t)s->count, sizeof *list);
    for (int64_t i = 0; list && i < s->count; i++)
        list[i].gaussian = (tess_gaussian){s->sigma_rows, s->sigma_columns, s->angles[i]};
    return list;
}

static tess_status sketch(tess_blur *b, tess_device *device, const tess_blur_settings *s,
                          const tess_blur_kernel *list, tess_op ops[BLUR_STEPS], tess_error *error)
{
    const bool many = tess_share_many(s->share);
    const int64_t rows = tess_share_rows(s->share, s->height);
    const double pixels = (double)s->height * (double)s->width, part = (double)rows / (double)s->height,
                 transforms = part * (double)s->count * (double)(2 * s->channels + 1);
    b->op = (tess_operator){.table = &tess_blur_table,
                            .device = device,
                            .name = "blur",
                            .image = tess_tensor_2d(TESS_F32, 1, rows, s->width, s->channels),
                            .measurement = tess_tensor_2d(TESS_F32, s->count, rows, s->width, s->channels),
                            .share = s->share,
                            .image_first = tess_share_first(s->share) * s->width * s->channels,
                            .forward_flops = transforms * 2.5 * pixels * log2(pixels + 1),
                            .forward_bytes = transforms * 8 * sizeof(float) * pixels,
                            /* Kernels are not negative and sum to 1, so |H| is largest at frequency 0. */
                            .norm_squared = (double)s->count};
    tess_kernels_lay_out(&b->kernels, device, s->height, s->width, list, s->count);
    if (many) {
        tess_kernels_take_rows(&b->kernels, tess_share_first(s->share), rows);
        TESS_TRY(tess_waves_lay_out(&b->waves, device, s->share, s->width, s->channels, error));
        TESS_TRY(tess_waves_lay_out(&b->kernel_waves, device, s->share, s->width, 1, error));
    }
    describe(b, ops);
    return lay_out(b, ops, error);
}

static tess_status make(tess_blur *b, const tess_blur_kernel *list, const tess_op ops[BLUR_STEPS],
                        tess_error *error)
{
    tess_device *device = b->op.device;
    for (int i = 0; i < BLUR_STEPS; i++)
        if (runs(b, i))
            TESS_TRY(device->ops->prepare(device, &ops[i], &b->step[i], error));
    if (tess_share_many(b->op.share)) {
        TESS_TRY(tess_waves_open(&b->waves, error));
        TESS_TRY(tess_waves_open(&b->kernel_waves, error));
    }
    TESS_TRY(device->memory->alloc(device, &b->held, TESS_MEM_WORKSPACE, b->held_bytes, error));
    return tess_kernels_open(&b->kernels, list, b->held.data, error);
}

tess_status tess_blur_sketch(tess_device *device, const tess_blur_settings *s, tess_operator *out,
                             tess_error *error)
{
    TESS_TRY(check(s, error));
    tess_blur_kernel *list = kernels_of(s);
    if (!list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a blur");
    tess_blur b = {0};
    tess_op ops[BLUR_STEPS];
    const tess_status status = sketch(&b, device, s, list, ops, error);
    *out = b.op;
    tess_small_free(list);
    return status;
}

tess_status tess_blur_create(tess_device *device, const tess_blur_settings *s, tess_operator **out,
                             tess_error *error)
{
    *out = NULL;
    TESS_TRY(check(s, error));
    tess_blur_kernel *list = kernels_of(s);
    tess_blur *b = tess_small_alloc(1, sizeof *b);
    tess_op ops[BLUR_STEPS];
    tess_status status = list && b ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a blur");
    if (status == TESS_OK)
        status = sketch(b, device, s, list, ops, error);
    if (status == TESS_OK)
        status = make(b, list, ops, error);
    tess_small_free(list);
    if (status == TESS_OK)
        *out = &b->op;
    else if (b && b->op.table)
        tess_operator_destroy(&b->op);
    else
        tess_small_free(b);
    return status;
}
