/* stage_load.c: a walk over blocks, each of which is sent to the device while the one before is computed.
 *
 * On a device with separate memory, a block's samples are copied on the stream `upload`, as soon as what was computed of
 * the block before the last one is done, whose place they take. The slot of the host is released when the copy behind it has
 * been queued, so that the link always has the next copy; of many slots when half of them are behind it, so that nobody sleeps
 * until a short copy is done. */
#include <math.h>

#include "base/clock.h"
#include "tensor/samples.h"
#include "train/statistics/stage_impl.h"

static int64_t default_rows(const void *user, const tess_pixel_image *image, int64_t row)
{
    (void)row;
    return tess_pixel_stage_rows(user, image);
}

/* Everything that will be computed of the loaded block has been queued. */
static void leave_block(tess_pixel_stage *stage)
{
    tess_device *device = stage->settings.device;
    if (stage->sizes.uploads && stage->at)
        device->streams->record(device, stage->used[stage->upload_at], NULL);
    stage->at = NULL;
}

tess_status tess_pixel_stage_begin(tess_pixel_stage *stage, const tess_pixel_walk *walk, tess_error *error)
{
    tess_device *device = stage->settings.device;
    tess_pixel_walk own = *walk;
    leave_block(stage);
    if (stage->sizes.in_place && !walk->set->at)
        return tess_fail(error, TESS_INTERNAL, "pixels that must be read were planned to be in place");
    if (stage->sizes.uploads) /* the walk before may still have a copy under way */
        TESS_TRY(device->streams->sync(device, stage->upload, error));
    if (!own.rows) {
        own.rows = default_rows;
        own.user = stage;
    }
    stage->set = walk->set;
    stage->loaded = 0;
    stage->walk = own;
    stage->place = tess_pixel_walk_begin(&stage->walk);
    if (!stage->sizes.in_place)
        tess_pixel_blocks_begin(&stage->blocks, &own);
    return TESS_OK;
}

/* Of a set whose pixels are where the device computes. */
static void next_in_place(tess_pixel_stage *stage, const tess_pixel_block **block)
{
    if (!tess_pixel_walk_next(&stage->walk, &stage->place, &stage->block))
        return;
    const tess_pixel_block *b = *block = &stage->block;
    stage->width = stage->set->image[b->image].width, stage->loaded_rows = b->read.rows;
    if (stage->walk.joins)
        tess_pixel_stage_join(stage);
    stage->pixels = stage->width * stage->loaded_rows;
    stage->masked = false;
    stage->at = stage->set->at(stage->set->user, b->image, b->read.first);
    stage->loaded++;
    stage->bytes_read += stage->pixels * stage->set->bands * (int64_t)sizeof(float);
}

/* When its copy is done. */
static tess_status release_slot(tess_pixel_stage *stage, int64_t index, tess_error *error)
{
    tess_device *device = stage->settings.device;
    if (stage->sizes.uploads)
        TESS_TRY(device->streams->event_sync(device, stage->uploaded[index], error));
    tess_pixel_blocks_release(&stage->blocks);
    return TESS_OK;
}

/* Copies that are queued behind that of a slot before it is released. */
static int64_t behind_of(int64_t slots)
{
    return slots > 4 ? slots / 2 : 1;
}

/* Sends the samples of a slot, and releases one before it. */
static tess_status send_slot(tess_pixel_stage *stage, const tess_pixel_slot *slot, size_t bytes,
                             tess_error *error)
{
    tess_device *device = stage->settings.device;
    const int64_t index = slot - stage->blocks.slot, slots = stage->blocks.slots;
    stage->upload_at = (stage->upload_at + 1) % stage->sizes.uploads;
    char *to = stage->d_samples[stage->upload_at].data;
    device->streams->wait(device, stage->used[stage->upload_at], stage->upload);
    device->memory->copy(device, to, slot->samples, bytes, stage->upload);
    if (stage->masked)
        device->memory->copy(device, to + stage->sizes.keep_at, slot->keep, (size_t)stage->pixels,
                             stage->upload);
    stage->d_keep = (const uint8_t *)to + stage->sizes.keep_at;
    device->streams->record(device, stage->uploaded[index], stage->upload);
    device->streams->wait(device, stage->uploaded[index], NULL);
    const int64_t behind = behind_of(slots);
    return stage->loaded >= behind && slots > 1 ? release_slot(stage, (index + slots - behind) % slots, error)
                                                : TESS_OK;
}

/* The values on the host, NaN where a pixel has none. */
static void fill_values(tess_pixel_stage *stage, tess_dtype dtype, const void *samples)
{
    const int64_t bands = stage->set->bands;
    const double start = tess_clock();
    float *values = stage->values.data;
    tess_samples_to_float(dtype, 1, samples, stage->pixels * bands, values);
    for (int64_t p = 0; p < stage->pixels && stage->masked; p++)
        if (!stage->keep[p])
            values[p * bands] = NAN; /* a pixel with one such value has none */
    stage->path_seconds += tess_clock() - start;
}

tess_status tess_pixel_stage_next(tess_pixel_stage *stage, const tess_pixel_block **block, tess_error *error)
{
    tess_pixel_slot *slot;
    *block = NULL;
    TESS_TRY(tess_stop_check(stage->settings.stop, error));
    leave_block(stage);
    if (stage->sizes.in_place) {
        next_in_place(stage, block);
        return TESS_OK;
    }
    if (stage->loaded > 0 && (!stage->sizes.uploads || stage->blocks.slots == 1))
        TESS_TRY(release_slot(stage, 0, error));
    TESS_TRY(tess_pixel_blocks_next(&stage->blocks, &slot, error));
    if (!slot)
        return TESS_OK;
    const tess_pixel_image *image = &stage->set->image[slot->block.image];
    stage->width = image->width, stage->loaded_rows = slot->block.read.rows;
    stage->pixels = stage->width * stage->loaded_rows;
    stage->masked = tess_pixel_has_gaps(image);
    stage->keep = stage->d_keep = slot->keep;
    const size_t bytes = (size_t)stage->pixels * (size_t)stage->set->bands * tess_dtype_size(image->dtype);
    const void *samples = slot->samples;
    if (stage->sizes.uploads) {
        TESS_TRY(send_slot(stage, slot, bytes, error));
        samples = stage->d_samples[stage->upload_at].data;
    }
    stage->loaded++;
    stage->bytes_read += (int64_t)bytes;
    stage->at = image->dtype == TESS_F32 ? samples : stage->d_values.data;
    *block = &slot->block;
    if (stage->sizes.on_host)
        fill_values(stage, image->dtype, slot->samples);
    if (image->dtype == TESS_F32)
        return TESS_OK;
    const tess_op op = tess_pixel_import_op(image->dtype, stage->pixels, stage->set->bands);
    return tess_pixel_stage_run(stage, &op, (tess_op_buffers){.in = {samples}, .out = {stage->d_values.data}},
                                error);
}
