/* Files one after another, in the host's memory. */
#include "base/process.h"
#include "job/denoise/denoise.h"

static void free_blocks(tess_device *device, tess_denoise_blocks *blocks)
{
    device->free(device, &blocks->arena);
    device->free(device, &blocks->workspace);
    tess_block_free(&blocks->io);
}

/* Blocks of just the file's sizes; images of one size keep them. */
static tess_status fit_blocks(tess_device *device, tess_denoise_blocks *b, const tess_cut_plan *choice,
                              tess_error *error)
{
    if (b->arena.bytes == device->granted(device, choice->arena_bytes) &&
        b->workspace.bytes == device->granted(device, choice->workspace_bytes) &&
        b->io.bytes == tess_block_granted(choice->io_block))
        return TESS_OK;
    free_blocks(device, b);
    if (choice->arena_bytes)
        TESS_TRY(device->alloc(device, &b->arena, TESS_MEM_ACTIVATIONS, choice->arena_bytes, error));
    if (choice->workspace_bytes)
        TESS_TRY(device->alloc(device, &b->workspace, TESS_MEM_WORKSPACE, choice->workspace_bytes, error));
    return tess_block_alloc(device->memory, &b->io, TESS_MEM_HOST, choice->io_block, error);
}

tess_status tess_denoise_run_direct(tess_denoise_job *job, tess_error *error)
{
    tess_device *device = job->engine.device;
    tess_denoise_blocks blocks = {.lane = NULL};
    TESS_TRY(tess_engine_load(&job->engine, error));
    job->loaded = tess_process_resident();
    tess_status result = TESS_OK;
    for (int64_t i = 0; i < job->count && result == TESS_OK; i++) {
        tess_denoise_file *file = &job->files[i];
        if (!tess_denoise_todo(file))
            continue;
        tess_denoise_announce(job, i);
        tess_status status = fit_blocks(device, &blocks, &file->choice, error);
        if (status == TESS_OK)
            status = tess_denoise_make_folder(job, file, error);
        if (status == TESS_OK)
            status = tess_denoise_image(&job->engine, job->settings, file, &blocks, error);
        file->done = status == TESS_OK;
        result = tess_denoise_settle(job, file, status, error);
    }
    free_blocks(device, &blocks);
    return result;
}
