/* The plan of a job out of the plans of its files. In the host's memory files are done one after another with
 * blocks of their own sizes, so the job's peak is that of its largest file. A lane is opened once for all, so there
 * the largest of each block counts, even when they come from different files. */
#include "base/process.h"
#include "job/denoise.h"

enum { TRIES = 8 };

static uint64_t granted(const tess_denoise_job *job, size_t bytes)
{
    tess_device *device = job->engine.device;
    return device->granted(device, bytes);
}

uint64_t tess_denoise_free_limit(const tess_engine *engine)
{
    /* On the host as it is now: libraries and threads have taken address space since the engine was opened. */
    if (!engine->apart)
        return tess_host_memory_left() / 10 * 9;
    const uint64_t left = engine->facts.memory_free;
    const uint64_t reserve = left / 50 + ((uint64_t)64 << 20); /* for the driver's own tables */
    return left > reserve ? left - reserve : 0;
}

static void grow(size_t *most, size_t bytes)
{
    if (bytes > *most)
        *most = bytes;
}

static tess_status plan_files(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    uint64_t weights = 0;
    for (int m = 0; m < job->engine.model_count; m++)
        weights += granted(job, tess_bound_weight_bytes(job->engine.models[m].bound));
    job->planned = (tess_mem_bytes){{[TESS_MEM_WEIGHTS] = weights}};
    job->planned_total = weights;
    job->planned_seconds = 0;
    job->lane_sizes = (tess_lane_sizes){0};
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (file->status != TESS_OK)
            continue;
        /* What the weights of the other models leave. */
        uint64_t others = weights - granted(job, tess_bound_weight_bytes(file->model->bound));
        file->wish.limit = limit > others ? limit - others : 0;
        tess_status status = tess_denoise_choose(file->model->bound, &file->model->model, job->engine.rates,
                                                 &file->wish, &file->choice, error);
        TESS_TRY(tess_denoise_settle(job, file, status, error));
        if (status != TESS_OK)
            continue;
        const tess_denoise_choice *choice = &file->choice;
        uint64_t total = tess_mem_total(&choice->bytes) + others;
        job->planned_total = total > job->planned_total ? total : job->planned_total;
        for (int c = TESS_MEM_ACTIVATIONS; c < TESS_MEM_CATEGORIES; c++)
            if (choice->bytes.by[c] > job->planned.by[c])
                job->planned.by[c] = choice->bytes.by[c];
        grow(&job->lane_sizes.arena, choice->arena_bytes);
        grow(&job->lane_sizes.workspace, choice->workspace_bytes);
        grow(&job->lane_sizes.in_stage, choice->in_stage);
        grow(&job->lane_sizes.out_stage, choice->out_stage);
        job->planned_seconds += choice->seconds;
    }
    return TESS_OK;
}

tess_status tess_denoise_plan(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    uint64_t within = limit;
    for (int attempt = 0; attempt < TRIES; attempt++) {
        TESS_TRY(plan_files(job, within, error));
        if (!job->engine.apart)
            return TESS_OK;
        const tess_lane_sizes *sizes = &job->lane_sizes;
        job->planned.by[TESS_MEM_IO] = granted(job, sizes->in_stage) + granted(job, sizes->out_stage);
        job->planned_total = tess_mem_total(&job->planned);
        job->host_bytes = tess_block_granted(tess_lane_host_bytes(sizes));
        if (job->planned_total <= limit || sizes->arena == 0) /* 0: every file has its own trouble */
            return TESS_OK;
        const uint64_t over = job->planned_total - limit;
        within = within > over ? within - over : 0;
    }
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "the files together need %.0fM on the device and %.0fM are allowed; allow more, or do the "
        "files of a kind apart",
        (double)job->planned_total / (1 << 20), (double)limit / (1 << 20));
}
