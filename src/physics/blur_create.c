/* Making a stack of blurs: its ops, its kernels, and where everything lies. */
#include <math.h>

#include "base/checked.h"
#include "physics/blur_impl.h"
#include "physics/gaussian.h"

enum { ALIGNMENT = 256 };

static tess_blur_side side_of(int64_t image, int64_t reach)
{
    const bool fits = 2 * reach + 1 <= image;
    return (tess_blur_side){image, reach, fits ? 2 * reach + 1 : image, fits ? reach : 0};
}

static int64_t folded(const tess_blur_side *s, int64_t offset)
{
    return ((offset + s->origin) % s->image + s->image) % s->image;
}

static tess_op combine(tess_tensor in, tess_tensor out, double a, int residuals)
{
    return (tess_op){.kind = TESS_OP_COMBINE,
                     .in = in,
                     .out = out,
                     .combine = {.a = a, .b = residuals, .low = -INFINITY, .high = INFINITY},
                     .residuals = residuals,
                     .residual = {out}};
}

/* A quarter of the kernel: before or from its centre on, in each direction. An empty one has no height or width. */
static tess_op place(const tess_blur *b, int quarter, tess_blur_piece *p)
{
    const tess_blur_side *rows = &b->rows, *columns = &b->columns;
    const bool below = quarter & 2, right = quarter & 1;
    tess_tensor in = tess_tensor_2d(TESS_F32, 1, rows->length, columns->length, 1),
                out = tess_tensor_2d(TESS_F32, 1, rows->image, columns->image, 1);
    in.h = out.h = below ? rows->length - rows->origin : rows->origin;
    in.w = out.w = right ? columns->length - columns->origin : columns->origin;
    p->from = (below ? rows->origin : 0) * columns->length + (right ? columns->origin : 0);
    p->to = (below ? 0 : rows->image - rows->origin) * columns->image +
            (right ? 0 : columns->image - columns->origin);
    return combine(in, out, 1, 0);
}

static void describe(tess_blur *b, tess_op ops[BLUR_STEPS])
{
    const tess_tensor image = b->op.image;
    const int64_t h = image.h, bins = image.w / 2 + 1;
    const tess_tensor spectrum = tess_tensor_2d(TESS_F32, 1, h, bins, 2 * image.c),
                      one = tess_tensor_2d(TESS_F32, 1, h, image.w, 1),
                      response = tess_tensor_2d(TESS_F32, 1, h, bins, 2),
                      power = tess_tensor_2d(TESS_F32, 1, h, bins, 1);
    ops[BLUR_CLEAR] = combine(one, one, 0, 0);
    for (int k = 0; k < 4; k++)
        ops[BLUR_PLACE + k] = place(b, k, &b->pieces[k]);
    ops[BLUR_KERNEL_SPECTRUM] = (tess_op){.kind = TESS_OP_FFT, .in = one, .out = response};
    ops[BLUR_KEEP_REAL] = combine(tess_tensor_channels(response, 1), power, 1, 0);
    ops[BLUR_FILTER] = (tess_op){
        .kind = TESS_OP_FILTER, .in = image, .out = image, .residuals = 2, .residual = {power, spectrum}};
    ops[BLUR_TRANSFORM] = (tess_op){.kind = TESS_OP_FFT, .in = image, .out = spectrum};
    ops[BLUR_ADD] = combine(image, image, 1, 1);
    ops[BLUR_COPY] = combine(image, image, 1, 0);
    ops[BLUR_SQUARE] =
        (tess_op){.kind = TESS_OP_SPECTRUM, .in = power, .out = power, .residuals = 1, .residual = {power}};
    ops[BLUR_KEEP_SQUARE] = combine(power, power, 1, 0);
    ops[BLUR_ADD_SQUARE] = combine(power, power, 1, 1);
    for (int i = 0; i < BLUR_STEPS; i++)
        for (int k = 0; k < TESS_SPATIAL; k++)
            ops[i].kernel[k] = ops[i].stride[k] = 1;
}

static tess_status prepare(tess_blur *b, const tess_op ops[BLUR_STEPS], size_t workspace[BLUR_STEPS],
                           tess_error *error)
{
    tess_device *device = b->op.device;
    for (int i = 0; i < BLUR_STEPS; i++) {
        tess_op_needs needs;
        if (ops[i].in.h == 0 || ops[i].in.w == 0)
            continue;
        TESS_TRY(device->query(device, &ops[i], &needs, error));
        TESS_TRY(device->prepare(device, &ops[i], &b->step[i], error));
        workspace[i] = tess_align_size(needs.workspace, ALIGNMENT);
    }
    return TESS_OK;
}

/* The kernels, folded, into the device's memory. */
static tess_status hold_kernels(tess_blur *b, const tess_blur_settings *s, tess_error *error)
{
    tess_device *device = b->op.device;
    const int64_t reach = b->rows.reach, width = 2 * reach + 1, floats = tess_blur_kernel_floats(b);
    double *kernel = tess_small_alloc((size_t)(width * width), sizeof *kernel);
    double *sums = tess_small_alloc((size_t)floats, sizeof *sums);
    float *values = tess_small_alloc((size_t)floats, sizeof *values);
    tess_status status = kernel && sums && values
                             ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for kernels of %lldx%lld pixels",
                                         (long long)width, (long long)width);
    for (int64_t i = 0; i < s->count && status == TESS_OK; i++) {
        tess_gaussian_kernel(&(tess_gaussian){s->sigma_rows, s->sigma_columns, s->angles[i]}, kernel);
        for (int64_t k = 0; k < floats; k++)
            sums[k] = 0;
        for (int64_t k = 0; k < width * width; k++)
            sums[folded(&b->rows, k / width - reach) * b->columns.length +
                 folded(&b->columns, k % width - reach)] += kernel[k];
        for (int64_t k = 0; k < floats; k++)
            values[k] = (float)sums[k];
        device->copy(device, (float *)b->held.data + i * floats, values, (size_t)floats * sizeof *values,
                     NULL);
        status = device->sync(device, NULL, error);
    }
    tess_small_free(kernel), tess_small_free(sums), tess_small_free(values);
    return status;
}

static tess_status build(tess_blur *b, const tess_blur_settings *s, tess_error *error)
{
    tess_op ops[BLUR_STEPS];
    describe(b, ops);
    size_t all, spectrum, response, image, workspace[BLUR_STEPS] = {0};
    if (!tess_tensor_bytes(&b->op.measurement, &all) || !tess_tensor_bytes(&b->op.image, &image) ||
        !tess_tensor_bytes(&ops[BLUR_TRANSFORM].out, &spectrum) ||
        !tess_tensor_bytes(&ops[BLUR_KERNEL_SPECTRUM].out, &response))
        return tess_fail(error, TESS_OVER_LIMIT, "%lld blurs of %lldx%lld pixels are too many",
                         (long long)s->count, (long long)s->height, (long long)s->width);
    TESS_TRY(prepare(b, ops, workspace, error));
    spectrum = tess_align_size(spectrum, ALIGNMENT);
    response = tess_align_size(response, ALIGNMENT);
    b->op.step_scratch_bytes = workspace[BLUR_FILTER];
    b->response_at = workspace[BLUR_KERNEL_SPECTRUM];
    b->real_at = b->response_at + response;
    for (int i = 0; i < BLUR_STEPS; i++)
        b->real_at = workspace[i] > b->real_at ? workspace[i] : b->real_at;
    b->image_at = b->real_at + tess_align_size(response / 2, ALIGNMENT);
    b->op.scratch_bytes = b->image_at + tess_align_size(image, ALIGNMENT);
    b->power_at =
        tess_align_size((size_t)s->count * (size_t)tess_blur_kernel_floats(b) * sizeof(float), ALIGNMENT);
    b->data_at = b->power_at + tess_align_size(response / 2, ALIGNMENT);
    tess_device *device = b->op.device;
    TESS_TRY(device->alloc(device, &b->held, TESS_MEM_WORKSPACE, b->data_at + spectrum, error));
    b->op.held_bytes = b->held.bytes;
    return hold_kernels(b, s, error);
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

tess_status tess_blur_create(tess_device *device, const tess_blur_settings *s, tess_operator **out,
                             tess_error *error)
{
    *out = NULL;
    TESS_TRY(check(s, error));
    tess_blur *b = tess_small_alloc(1, sizeof *b);
    if (!b)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a blur");
    const int64_t reach = tess_gaussian_reach(&(tess_gaussian){s->sigma_rows, s->sigma_columns, 0});
    const double pixels = (double)s->height * (double)s->width,
                 transforms = (double)s->count * (double)(2 * s->channels + 1);
    b->op =
        (tess_operator){.table = &tess_blur_table,
                        .device = device,
                        .name = "blur",
                        .image = tess_tensor_2d(TESS_F32, 1, s->height, s->width, s->channels),
                        .measurement = tess_tensor_2d(TESS_F32, s->count, s->height, s->width, s->channels),
                        .forward_flops = transforms * 2.5 * pixels * log2(pixels + 1),
                        .forward_bytes = transforms * 8 * sizeof(float) * pixels,
                        /* Kernels are not negative and sum to 1: no |H| is above that at frequency 0. */
                        .norm_squared = (double)s->count};
    b->rows = side_of(s->height, reach);
    b->columns = side_of(s->width, reach);
    tess_status status = build(b, s, error);
    if (status != TESS_OK) {
        tess_operator_destroy(&b->op);
        return status;
    }
    *out = &b->op;
    return TESS_OK;
}
