/* The plan of a job from the plans of its files. In host memory files are processed one after another with blocks of
 * their own sizes, so the job's peak is that of its largest file. A queue is opened once for all files, so the
 * largest of each block counts, even if they come from different files. */
#include "base/checked.h"
#include "base/process.h"
#include "job/denoise/denoise.h"
#include "plan/limit.h"

enum { TRIES = 8 };

static uint64_t granted(const tess_denoise_job *job, size_t bytes)
{
    tess_device *device = job->engine.device;
    return device->memory->granted(device, bytes);
}

static void grow(size_t *most, size_t bytes)
{
    if (bytes > *most)
        *most = bytes;
}

/* How the files of a job are planned. */
typedef struct planning {
    uint64_t limit;
    bool least; /* every file takes the smallest plan */
} planning;

/* Adds a file's plan to the job's. */
static void add_choice(tess_denoise_job *job, const tess_denoise_file *file)
{
    const tess_cut_plan *choice = &file->choice;
    const uint64_t total = tess_mem_total(&choice->bytes) + file->request.other_weights;
    job->planned_total = total > job->planned_total ? total : job->planned_total;
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++) /* weights are counted for the job */
        if (choice->bytes.by[c] > job->planned.by[c])
            job->planned.by[c] = choice->bytes.by[c];
    grow(&job->queue_sizes.arena, choice->arena_bytes);
    grow(&job->queue_sizes.workspace, choice->workspace_bytes);
    grow(&job->queue_sizes.in_stage, choice->in_stage);
    grow(&job->queue_sizes.out_stage, choice->out_stage);
    job->planned_seconds += choice->seconds * (double)tess_max_i64(file->info.depth, 1);
}

/* Records that a file cannot be planned; what was tried is no plan. */
static tess_status refuse(const tess_denoise_job *job, tess_denoise_file *file, tess_status status,
                          tess_error *error)
{
    file->choice = (tess_cut_plan){0};
    return tess_denoise_settle(job, file, status, error);
}

/* Plans every file and counts those that do not fit. */
static tess_status plan_files(tess_denoise_job *job, planning how, int64_t *refused, tess_error *error)
{
    uint64_t weights = 0;
    for (int m = 0; m < job->engine.model_count; m++)
        weights += granted(job, tess_bound_weight_bytes(job->engine.models[m].bound));
    job->planned = (tess_mem_bytes){{[TESS_MEM_WEIGHTS] = weights}};
    job->planned_total = weights;
    job->planned_seconds = 0;
    job->queue_sizes = (tess_queue_sizes){0};
    *refused = 0;
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (!tess_denoise_todo(file))
            continue;
        file->request.other_weights = weights - granted(job, tess_bound_weight_bytes(file->model->bound));
        file->request.limit = how.limit;
        file->request.least = how.least;
        const tess_status status = tess_cut_choose(file->model->bound, &file->model->model, job->engine.rates,
                                                   &file->request, &file->choice, error);
        if (status == TESS_OK)
            add_choice(job, file);
        else if (status == TESS_OVER_LIMIT && !how.least)
            ++*refused;
        else
            TESS_TRY(refuse(job, file, status, error));
    }
    if (job->engine.separate_memory) {
        const tess_queue_sizes *sizes = &job->queue_sizes;
        job->planned.by[TESS_MEM_IO] = granted(job, sizes->in_stage) + granted(job, sizes->out_stage);
        job->planned_total = tess_mem_total(&job->planned);
        job->host_bytes = tess_block_granted(tess_queue_host_bytes(sizes));
    }
    tess_memory_plan(job->engine.memory, tess_engine_scope(&job->engine), job->planned_total);
    return TESS_OK;
}

/* Refuses the files that do not fit even with the smallest plan. The limit that the messages name is enough for all
 * files of the job. */
static tess_status refuse_files(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    int64_t refused;
    TESS_TRY(plan_files(job, (planning){UINT64_MAX, true}, &refused, error));
    const uint64_t needs = job->planned_total + tess_cut_reserve(job->engine.separate_memory);
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (!tess_denoise_todo(file))
            continue;
        file->request.limit = limit;
        file->request.job_needs = needs;
        if (tess_cut_fits(&file->request, &file->choice))
            continue;
        tess_status status = tess_cut_refuse(&file->request, &file->choice, error);
        TESS_TRY(refuse(job, file, status, error));
    }
    return TESS_OK;
}

/* The blocks of a queue are as large as the largest of each kind, so files that fit one by one may not fit together.
 * They are planned again with lower limits, and finally with the smallest plan of each. */
static tess_status plan_together(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    int64_t refused = 0;
    uint64_t within = limit;
    for (int i = 0; i < TRIES && refused == 0; i++) {
        if (job->planned_total <= limit || job->queue_sizes.arena == 0) /* 0: every file has failed */
            return TESS_OK;
        const uint64_t over = job->planned_total - limit;
        within = within > over ? within - over : 0;
        TESS_TRY(plan_files(job, (planning){within, false}, &refused, error));
    }
    TESS_TRY(plan_files(job, (planning){limit, true}, &refused, error));
    const uint64_t needs = job->planned_total + tess_cut_reserve(true);
    if (needs <= limit)
        return TESS_OK;
    const uint64_t asked = job->settings->common.memory_limit;
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "the files together need %s on the device, and %s are allowed; %s%s would do, or process "
        "images of different types separately",
        tess_size_enough(needs).text, tess_size_words(limit).text, asked ? "`memory_limit` " : "",
        tess_size_enough(needs).text);
}

tess_status tess_denoise_plan(tess_denoise_job *job, uint64_t limit, tess_error *error)
{
    int64_t refused;
    if (job->volumes)
        return tess_denoise_volume_plan(job, limit, error);
    TESS_TRY(plan_files(job, (planning){limit, false}, &refused, error));
    if (refused) {
        TESS_TRY(refuse_files(job, limit, error));
        TESS_TRY(plan_files(job, (planning){limit, false}, &refused, error)); /* the remaining files */
    }
    return job->engine.separate_memory ? plan_together(job, limit, error) : TESS_OK;
}
