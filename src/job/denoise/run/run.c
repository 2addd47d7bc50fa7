/* Processes files one after another in host memory. */
#include "base/process.h"
#include "job/denoise/denoise.h"

enum { SHAPES = 16 }; /* window shapes kept: a strip has few, and its neighbours have the same */

/* Allocates blocks of exactly the file's sizes; images of one size keep the blocks and the plans of their windows. */
static tess_status fit_blocks(tess_memory *memory, tess_denoise_blocks *b, const tess_cut_plan *choice,
                              tess_error *error)
{
    if (tess_windows_holds(b->windows, choice->arena_bytes, choice->workspace_bytes) &&
        b->io.bytes == tess_block_granted(choice->io_block))
        return TESS_OK;
    /* free everything before allocating: the plan counts the largest file only */
    tess_windows_free(b->windows);
    tess_block_free(&b->io);
    TESS_TRY(tess_windows_alloc(b->windows, choice->arena_bytes, choice->workspace_bytes, error));
    return tess_block_alloc(memory, &b->io, TESS_MEM_HOST, choice->io_block, error);
}

tess_status tess_denoise_run_host(tess_denoise_job *job, tess_error *error)
{
    tess_denoise_blocks blocks = {.windows = NULL};
    const tess_windows_settings settings = {.device = job->engine.device, .keep = SHAPES};
    TESS_TRY(tess_engine_load(&job->engine, error));
    TESS_TRY(tess_windows_create(&settings, &blocks.windows, error));
    job->loaded = tess_process_resident();
    tess_status result = TESS_OK;
    for (int64_t i; result == TESS_OK && (i = tess_denoise_take(job)) >= 0;) {
        tess_denoise_file *file = &job->files[i];
        tess_denoise_announce(job, i);
        tess_status status = fit_blocks(job->engine.memory, &blocks, &file->choice, error);
        if (status == TESS_OK)
            status = tess_denoise_make_folder(job, file, error);
        if (status == TESS_OK)
            status = tess_denoise_image(&job->engine, job->settings, file, &blocks, error);
        file->done = status == TESS_OK;
        result = tess_denoise_settle(job, file, status, error);
    }
    tess_windows_destroy(blocks.windows);
    tess_block_free(&blocks.io);
    return result;
}
