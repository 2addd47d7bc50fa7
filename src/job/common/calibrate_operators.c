#include "job/common/calibrate_operators.h"

#include <math.h>

#include "base/clock.h"
#include "base/trace.h"
#include "physics/blur.h"
#include "physics/radon.h"
#include "physics/rays.h"

enum { SIZE = 256, VIEWS = 100, BLURS = 2, DEPTH = 64, CONES = 16, REPEATS = 5 };

typedef struct blocks {
    tess_block image, measurement, scratch;
} blocks;

/* Runs what a plan counts as one run: a step if the operator has one, otherwise the mean of forward and adjoint. */
static tess_status run_once(tess_operator *op, const blocks *b, double *seconds, tess_error *error)
{
    static const tess_normal_step gradient = {0, 1, -1, 1, 0};
    tess_device *device = op->device;
    const double start = tess_clock();
    if (op->table->step) {
        op->table->step(op, &gradient, b->image.data, b->image.data, b->scratch.data, NULL);
    } else {
        op->table->forward(op, b->image.data, b->measurement.data, b->scratch.data, NULL);
        op->table->adjoint(op, b->measurement.data, b->image.data, b->scratch.data, NULL);
    }
    TESS_TRY(device->streams->sync(device, NULL, error));
    *seconds = fmin(*seconds, (tess_clock() - start) / (op->table->step ? 1 : 2));
    return TESS_OK;
}

static tess_status run_all(tess_operator *op, blocks *b, double *seconds, tess_error *error)
{
    tess_device *device = op->device;
    size_t image, measurement;
    if (!tess_tensor_bytes(&op->image, &image) || !tess_tensor_bytes(&op->measurement, &measurement))
        return tess_fail(error, TESS_INTERNAL, "an operator to be timed is too large");
    TESS_TRY(device->memory->alloc(device, &b->image, TESS_MEM_WORKSPACE, image, error));
    TESS_TRY(device->memory->alloc(device, &b->measurement, TESS_MEM_WORKSPACE, measurement, error));
    TESS_TRY(device->memory->alloc(device, &b->scratch, TESS_MEM_WORKSPACE, op->scratch_bytes, error));
    if (op->table->absorb)
        op->table->absorb(op, b->measurement.data, b->scratch.data, NULL);
    for (int i = 0; i < REPEATS; i++)
        TESS_TRY(run_once(op, b, seconds, error));
    return TESS_OK;
}

static tess_status measure(tess_engine *engine, tess_operator *op, tess_error *error)
{
    tess_device *device = engine->device;
    blocks b = {0};
    double seconds = INFINITY;
    tess_trace_hush(engine->memory->trace, true);
    const tess_status status = run_all(op, &b, &seconds, error);
    tess_trace_hush(engine->memory->trace, false);
    device->memory->free(device, &b.image);
    device->memory->free(device, &b.measurement);
    device->memory->free(device, &b.scratch);
    if (status == TESS_OK)
        tess_rates_set_operator(
            engine->rates, op->name,
            seconds / (op->forward_flops / engine->facts.flops + op->forward_bytes / engine->facts.bytes));
    tess_operator_destroy(op);
    return status;
}

tess_status tess_calibrate_operators(tess_engine *engine, tess_error *error)
{
    double angles[VIEWS];
    tess_operator *op = NULL;
    for (int i = 0; i < VIEWS; i++)
        angles[i] = 180.0 * i / VIEWS;
    TESS_TRY(tess_radon_create(engine->device, SIZE, VIEWS, angles, true, &op, error));
    TESS_TRY(measure(engine, op, error));
    const tess_blur_settings blurs = {.height = SIZE,
                                      .width = SIZE,
                                      .channels = 3,
                                      .count = BLURS,
                                      .angles = angles,
                                      .sigma_rows = 3,
                                      .sigma_columns = 1};
    TESS_TRY(tess_blur_create(engine->device, &blurs, &op, error));
    TESS_TRY(measure(engine, op, error));
    double vectors[CONES * 12];
    tess_rays_circle(CONES, 2 * DEPTH, DEPTH, 1.5, vectors);
    const tess_rays_settings cone = {.geometry = TESS_CONE_3D,
                                     .depth = DEPTH,
                                     .height = DEPTH,
                                     .width = DEPTH,
                                     .spacing = 1,
                                     .views = CONES,
                                     .rows = DEPTH + DEPTH / 8,
                                     .columns = DEPTH + DEPTH / 8,
                                     .vectors = vectors};
    TESS_TRY(tess_rays_create(engine->device, &cone, &op, error));
    return measure(engine, op, error);
}
