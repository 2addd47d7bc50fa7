/* stage_run.c: the ops of a stage on the block that is loaded. */
#include <math.h>

#include "base/clock.h"
#include "tensor/moments.h"
#include "train/statistics/stage_impl.h"

static tess_op plain_op(tess_op_kind kind)
{
    return (tess_op){.kind = kind, .inputs = 1, .outputs = 1, .kernel = {1, 1, 1}, .stride = {1, 1, 1}};
}

tess_op tess_pixel_import_op(tess_dtype dtype, int64_t pixels, int channels)
{
    tess_op op = plain_op(TESS_OP_IMPORT);
    op.in[0] = tess_tensor_2d(dtype, 1, 1, pixels, channels);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, pixels, channels);
    op.samples.full_scale = 1;
    return op;
}

tess_op tess_pixel_moments_op(int64_t pixels, int channels, bool covariance, bool masked)
{
    tess_op op = plain_op(TESS_OP_MOMENTS);
    op.inputs = 1 + masked;
    op.in[0] = tess_tensor_2d(TESS_F32, 1, 1, pixels, channels);
    if (masked)
        op.in[1] = tess_tensor_2d(TESS_U8, 1, 1, pixels, 1);
    op.out[0] = tess_tensor_2d(TESS_F64, 1, 1, 1, (int64_t)tess_moments_values(channels, covariance));
    op.moments.covariance = covariance;
    return op;
}

tess_op tess_pixel_moments_each_op(int64_t images, int64_t pixels, int channels)
{
    tess_op op = tess_pixel_moments_op(pixels, channels, true, false);
    op.in[0] = tess_tensor_2d(TESS_F32, images, 1, pixels, channels);
    op.out[0] = tess_tensor_2d(TESS_F64, 1, 1, images, (int64_t)tess_moments_values(channels, true));
    op.moments.each = true;
    return op;
}

tess_op tess_pixel_score_op(int64_t pixels, int channels, int rank)
{
    tess_op op = plain_op(TESS_OP_SCORE);
    op.inputs = 3;
    op.in[0] = tess_tensor_2d(TESS_F32, 1, 1, pixels, channels);
    op.in[1] = tess_tensor_2d(TESS_F32, 1, 1, 1, channels);
    op.in[2] = tess_tensor_2d(TESS_F32, 1, 1, rank, channels);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, pixels, 1);
    return op;
}

tess_op tess_pixel_local_op(int64_t rows, int64_t width, int channels, int inner, int outer, double eps,
                            bool masked)
{
    tess_op op = plain_op(TESS_OP_LOCAL_RX);
    op.inputs = 1 + masked;
    op.in[0] = tess_tensor_2d(TESS_F32, 1, rows, width, channels);
    if (masked)
        op.in[1] = tess_tensor_2d(TESS_U8, 1, rows, width, 1);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, rows, width, 1);
    op.kernel[TESS_HEIGHT] = op.kernel[TESS_WIDTH] = outer;
    for (int side = TESS_HEIGHT; side <= TESS_WIDTH; side++)
        op.pad_before[side] = op.pad_after[side] = outer / 2;
    op.local_rx = (tess_op_local_rx){inner, eps};
    return op;
}

tess_status tess_pixel_stage_run(tess_pixel_stage *stage, const tess_op *op, tess_op_buffers buffers,
                                 tess_error *error)
{
    tess_device *device = stage->settings.device;
    tess_pixel_op *slot = &stage->ops[0];
    stage->calls++;
    for (int i = 0; i < TESS_PIXEL_OPS; i++) {
        tess_pixel_op *known = &stage->ops[i];
        if (known->prepared && tess_op_same(&known->op, op)) {
            slot = known;
            break;
        }
        if (slot->prepared && (!known->prepared || known->used < slot->used))
            slot = known;
    }
    if (slot->prepared && !tess_op_same(&slot->op, op)) {
        device->ops->release(device, slot->prepared);
        slot->prepared = NULL;
    }
    if (!slot->prepared) {
        tess_op_needs needs;
        TESS_TRY(device->ops->query(device, op, &needs, error));
        if (needs.workspace > stage->workspace.bytes)
            return tess_fail(error, TESS_INTERNAL,
                             "%s of a smaller block needs more workspace than of the largest",
                             tess_op_kind_name(op->kind));
        TESS_TRY(device->ops->prepare(device, op, &slot->prepared, error));
        slot->op = *op;
    }
    slot->used = stage->calls;
    buffers.workspace = stage->workspace.data;
    device->ops->run(device, slot->prepared, &buffers, NULL);
    return TESS_OK;
}

const void *tess_pixel_stage_send(tess_pixel_stage *stage, const void *host, tess_block *block, size_t bytes)
{
    tess_device *device = stage->settings.device;
    if (device->host_memory)
        return host;
    device->memory->copy(device, block->data, host, bytes, NULL);
    return block->data;
}

const float *tess_pixel_stage_behind(tess_pixel_stage *stage, const tess_path *path)
{
    if (path->count == 0)
        return stage->at;
    const double start = tess_clock();
    tess_path_run(path, stage->values.data, stage->pixels, stage->behind.data, stage->settings.pool);
    stage->path_seconds += tess_clock() - start;
    stage->path_values += (double)stage->pixels * (path->bands + path->out);
    return tess_pixel_stage_send(stage, stage->behind.data, &stage->d_behind,
                                 (size_t)stage->pixels * (size_t)path->out * sizeof(float));
}

tess_status tess_pixel_stage_moments(tess_pixel_stage *stage, const float *at, int64_t first, int64_t pixels,
                                     int channels, bool covariance, double *moments, tess_error *error)
{
    const tess_op op = tess_pixel_moments_op(pixels, channels, covariance, stage->masked);
    tess_op_buffers buffers = {.in = {at + first * channels}, .out = {moments}};
    if (stage->masked)
        buffers.in[1] = stage->d_keep + first;
    return tess_pixel_stage_run(stage, &op, buffers, error);
}

tess_status tess_pixel_stage_moments_each(tess_pixel_stage *stage, double *moments, tess_error *error)
{
    const int64_t images = stage->block.joined + 1;
    const tess_op op = tess_pixel_moments_each_op(images, stage->pixels / images, stage->set->bands);
    return tess_pixel_stage_run(stage, &op, (tess_op_buffers){.in = {stage->at}, .out = {moments}}, error);
}

void tess_pixel_stage_factor(tess_pixel_stage *stage, const float *centre, const float *factor, int channels,
                             int rank)
{
    tess_device *device = stage->settings.device;
    device->memory->copy(device, stage->d_centre.data, centre, (size_t)channels * sizeof(float), NULL);
    device->memory->copy(device, stage->d_factor.data, factor,
                         (size_t)channels * (size_t)rank * sizeof(float), NULL);
}

/* Copies the scores to the host and takes out those of pixels without a value. */
static tess_status fetch(tess_pixel_stage *stage, const float *from, int64_t first, int64_t pixels,
                         float *scores, tess_error *error)
{
    tess_device *device = stage->settings.device;
    if (from != scores)
        device->memory->copy(device, scores, from, (size_t)pixels * sizeof(float), NULL);
    TESS_TRY(device->streams->sync(device, NULL, error));
    for (int64_t p = 0; p < pixels && stage->masked; p++)
        if (!stage->keep[first + p])
            scores[p] = NAN;
    for (int64_t p = 0; p < pixels && stage->network.net; p++)
        if (!isfinite(scores[p]))
            scores[p] = NAN;
    return TESS_OK;
}

tess_status tess_pixel_stage_score(tess_pixel_stage *stage, const float *at, int64_t first, int64_t pixels,
                                   int channels, int rank, float *scores, tess_error *error)
{
    const bool direct = stage->settings.device->host_memory;
    float *out = direct ? scores : stage->d_scores.data;
    const tess_op op = tess_pixel_score_op(pixels, channels, rank);
    const tess_op_buffers buffers = {
        .in = {at + first * channels, stage->d_centre.data, stage->d_factor.data}, .out = {out}};
    if (stage->network.net)
        tess_pixel_network_run(&stage->network, at + first * channels, pixels, out);
    else
        TESS_TRY(tess_pixel_stage_run(stage, &op, buffers, error));
    return fetch(stage, out, first, pixels, scores, error);
}

tess_status tess_pixel_stage_trimmed(tess_pixel_stage *stage, const float *at, int channels, double limit,
                                     double *moments, tess_error *error)
{
    const float *scores = stage->scores.data;
    uint8_t *keep = stage->trimmed.data;
    for (int64_t p = 0; p < stage->pixels; p++)
        keep[p] = (double)scores[p] <= limit; /* not if it has no score */
    const tess_op op = tess_pixel_moments_op(stage->pixels, channels, true, true);
    const void *there = tess_pixel_stage_send(stage, keep, &stage->d_trimmed, (size_t)stage->pixels);
    return tess_pixel_stage_run(stage, &op, (tess_op_buffers){.in = {at, there}, .out = {moments}}, error);
}

tess_status tess_pixel_stage_local(tess_pixel_stage *stage, const float *at, int channels, int inner,
                                   int outer, double eps, float *scores, tess_error *error)
{
    float *out = stage->settings.device->host_memory ? scores : stage->d_scores.data;
    const tess_op op =
        tess_pixel_local_op(stage->loaded_rows, stage->width, channels, inner, outer, eps, stage->masked);
    tess_op_buffers buffers = {.in = {at}, .out = {out}};
    if (stage->masked)
        buffers.in[1] = stage->d_keep;
    TESS_TRY(tess_pixel_stage_run(stage, &op, buffers, error));
    return fetch(stage, out, 0, stage->pixels, scores, error);
}
