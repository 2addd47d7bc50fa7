/* The 2-D Radon transform as an op: conditions and needs; each direction has its own file. */
#include "cpu/rays/radon.h"

static void radon_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    const int64_t views = op->kind == TESS_OP_PROJECT ? op->out[0].h : op->in[0].h;
    *needs = (tess_op_needs){.weights = (size_t)views * TESS_RAY2_NUMBERS * sizeof(double), .block = 1};
}

static void radon_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                      tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const bool forward = op->kind == TESS_OP_PROJECT;
    const tess_tensor *image = forward ? &op->in[0] : &op->out[0],
                      *views = forward ? &op->out[0] : &op->in[0];
    tess_radon_job job = {.in = buffers->in[0],
                          .out = buffers->out[0],
                          .table = buffers->weights,
                          .size = image->w,
                          .first = op->rays.first,
                          .rows = image->h,
                          .views = views->h,
                          .columns = views->w,
                          .along = op->rays.along ? op->rays.along : image->w,
                          .image_row = image->stride_h,
                          .view_row = views->stride_h,
                          .circle = op->rays.circle};
    if (forward)
        tess_cpu_radon_project(cpu, &job);
    else
        tess_cpu_radon_backproject(cpu, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *error)
{
    (void)device;
    const bool forward = op->kind == TESS_OP_PROJECT;
    const tess_tensor *image = forward ? &op->in[0] : &op->out[0],
                      *views = forward ? &op->out[0] : &op->in[0];
    if ((!forward && op->kind != TESS_OP_BACKPROJECT) || op->rays.geometry != TESS_PARALLEL_2D)
        return tess_kernel_refuse(error, NULL);
    if (image->dtype != TESS_F32 || views->dtype != TESS_F32)
        return tess_fail(error, TESS_UNSUPPORTED, "the Radon transform takes fp32 values");
    const bool single = image->n == 1 && image->d == 1 && image->c == 1 && views->n == 1 && views->d == 1 &&
                        views->c == 1 && image->stride_w == 1 && views->stride_w == 1;
    const bool whole = image->h == image->w && op->rays.first == 0,
               strip = !forward && op->rays.first >= 0 && image->h <= image->w - op->rays.first;
    if (!single || !(whole || strip) || image->w < 2)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "the Radon transform takes one square image, at least 2 x 2, and its views");
    if (image->stride_h > INT32_MAX / (2 * TESS_RADON_LANES))
        return tess_fail(error, TESS_UNSUPPORTED, "the Radon transform takes rows of at most %d values",
                         INT32_MAX / (2 * TESS_RADON_LANES));
    return TESS_OK;
}

const tess_kernel tess_cpu_radon = {
    .name = "radon", .refuses = refuses, .needs = radon_needs, .run = radon_run};
