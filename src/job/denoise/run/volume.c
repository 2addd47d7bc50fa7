/* Volumes with a 3-D network: windows are also cut in depth, so the device holds the whole volume twice, input
 * and output. A model made for images processes slices one by one instead, and the volume need not fit
 * (image.c). */
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "job/common/prior.h"
#include "job/denoise/run/image.h"

static tess_prior prior_of(tess_engine *engine, const tess_denoise_file *file)
{
    const tess_image_info *info = &file->info;
    return (tess_prior){.engine = engine,
                        .model = file->model,
                        .image = tess_tensor_3d(TESS_F32, 1, info->depth, info->height, info->width,
                                                tess_denoise_colours(info)),
                        .choice = file->cut};
}

static size_t slice_bytes(const tess_denoise_file *file)
{
    return tess_align_size((size_t)file->info.height * file->request.in_row_bytes, 64);
}

static tess_status plan_file(tess_denoise_job *job, tess_denoise_file *file, uint64_t limit,
                             tess_error *error)
{
    tess_engine *engine = &job->engine;
    tess_device *device = engine->device;
    tess_prior prior = prior_of(engine, file);
    size_t volume;
    if (!tess_tensor_bytes(&prior.image, &volume))
        return tess_fail(error, TESS_BAD_INPUT, "%s: is larger than can be planned for", file->input);
    const size_t io_block = slice_bytes(file) + file->request.fixed_io_bytes;
    const uint64_t volumes = 2 * (uint64_t)device->memory->granted(device, volume),
                   rows = tess_block_granted(io_block) + file->request.held_bytes;
    const tess_denoise_settings *s = job->settings;
    const tess_prior_request request = {.tile_depth = s->tile_height > 0 ? TESS_TILE_CUBE : 0,
                                        .tile_height = s->tile_height,
                                        .tile_width = s->tile_width,
                                        .halo = s->halo,
                                        .batch = s->batch,
                                        .limit = limit,
                                        .others = volumes + (engine->separate_memory ? 0 : rows),
                                        .asked_limit = s->common.memory_limit};
    TESS_TRY(tess_prior_choose(&prior, &request, error));
    file->cut = file->choice = prior.choice;
    file->choice.arena_bytes = file->choice.workspace_bytes = 0; /* the prior allocates its own */
    file->choice.ring_bytes = slice_bytes(file);
    file->choice.io_block = io_block;
    file->choice.bytes.by[TESS_MEM_WORKSPACE] += volumes;
    file->choice.bytes.by[TESS_MEM_IO] += engine->separate_memory ? 0 : rows;
    return TESS_OK;
}

tess_status tess_denoise_volume_plan(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    job->planned = (tess_mem_bytes){{0}};
    job->planned_total = 0;
    job->planned_seconds = 0;
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (!tess_denoise_todo(file))
            continue;
        file->request.row_scratch_bytes = 0; /* windows are moved by the device */
        const tess_status status = plan_file(job, file, limit, error);
        TESS_TRY(tess_denoise_settle(job, file, status, error));
        if (status != TESS_OK)
            continue;
        const tess_mem_bytes *bytes = &file->choice.bytes;
        for (int c = 0; c < TESS_MEM_CATEGORIES; c++)
            if (bytes->by[c] > job->planned.by[c])
                job->planned.by[c] = bytes->by[c];
        if (tess_mem_total(bytes) > job->planned_total)
            job->planned_total = tess_mem_total(bytes);
        job->planned_seconds += file->choice.seconds;
    }
    return TESS_OK;
}

static tess_status run_volume(tess_image_job *job, tess_prior *prior, tess_block volumes[2],
                              tess_error *error)
{
    tess_device *device = job->engine->device;
    const tess_denoise_file *file = job->file;
    const tess_image_info *info = &file->info;
    const size_t slice = (size_t)info->height * file->request.in_row_bytes;
    char *rows = tess_image_carve(job);
    for (int64_t z = 0; z < info->depth; z++) {
        tess_prepared_begin_slice(&job->prepared, z);
        TESS_TRY(tess_image_source(job, 0, info->height, rows, error));
        device->memory->copy(device, (char *)volumes[0].data + (size_t)z * slice, rows, slice, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
    }
    const double start = tess_clock();
    TESS_TRY(tess_prior_denoise(prior, volumes[0].data, volumes[1].data, file->sigma, error));
    job->file->seconds += tess_clock() - start;
    for (int64_t z = 0; z < info->depth; z++) {
        tess_prepared_begin_slice(&job->prepared, z);
        job->quality.rows = 0; /* SSIM's windows stay inside a slice */
        device->memory->copy(device, rows, (const char *)volumes[1].data + (size_t)z * slice, slice, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
        TESS_TRY(tess_image_sink(job, 0, info->height, rows, error));
    }
    return TESS_OK;
}

tess_status tess_denoise_volume(tess_image_job *job, tess_error *error)
{
    tess_device *device = job->engine->device;
    tess_prior prior = prior_of(job->engine, job->file);
    tess_block volumes[2] = {{0}};
    size_t bytes;
    tess_status status = tess_tensor_bytes(&prior.image, &bytes) ? TESS_OK : TESS_INTERNAL;
    for (int i = 0; i < 2 && status == TESS_OK; i++)
        status = device->memory->alloc(device, &volumes[i], TESS_MEM_WORKSPACE, bytes, error);
    if (status == TESS_OK)
        status = tess_prior_open(&prior, error);
    if (status == TESS_OK)
        status = run_volume(job, &prior, volumes, error);
    tess_prior_close(&prior);
    for (int i = 0; i < 2; i++)
        device->memory->free(device, &volumes[i]);
    return status;
}
