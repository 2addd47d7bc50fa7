/* What the user is told of a plan that is not what was asked, or that a memory limit makes slow. */
#include "job/common/note.h"
#include "job/denoise/denoise.h"
#include "plan/limit.h"

static bool is_planned(const tess_denoise_file *file)
{
    return tess_denoise_todo(file) && file->choice.batch > 0;
}

/* Every file has the same rounding, so the first one that is cut speaks for all. */
static void remark_halo(const tess_denoise_job *job)
{
    const tess_common *common = &job->settings->common;
    const int64_t asked = job->settings->halo;
    const tess_denoise_file *uncut = NULL;
    if (asked <= 0)
        return;
    for (int64_t i = 0; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        if (!is_planned(file) || file->choice.halo == asked)
            continue;
        if (file->choice.halo == 0) {
            uncut = uncut ? uncut : file;
            continue;
        }
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: `halo` %lld asked, %lld used: halos are rounded up to a multiple of the network's grid",
            file->input, (long long)asked, (long long)file->choice.halo);
        return;
    }
    if (uncut)
        tess_note(common, TESS_NOTE_DETAIL,
                  "%s: `halo` %lld asked, none used: the image is not cut into tiles", uncut->input,
                  (long long)asked);
}

static void remark_batch(const tess_denoise_job *job)
{
    const int64_t asked = job->settings->batch;
    for (int64_t i = 0; i < job->count && asked > 0; i++) {
        const tess_denoise_file *file = &job->files[i];
        if (!is_planned(file) || file->choice.batch == asked)
            continue;
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "%s: `batch` %lld asked, %lld used: a batch has windows of one size that lie side by side, "
                  "and there are no more%s",
                  file->input, (long long)asked, (long long)file->choice.batch,
                  file->choice.cols.tiles > 1 ? "" : "; a smaller `tile` makes some");
        return;
    }
}

static bool plan_within(const tess_denoise_job *job, const tess_denoise_file *file, uint64_t limit,
                        tess_cut_plan *plan)
{
    tess_cut_request request = file->request;
    tess_error ignored;
    request.limit = limit;
    return tess_cut_choose(file->model->bound, &file->model->model, job->engine.rates, &request, plan,
                           &ignored) == TESS_OK;
}

/* Compares the plan of the slowest file with one that may have all free memory, and finds a limit that costs little time. */
static void remark_memory(const tess_denoise_job *job)
{
    static const double SLOW = 3, GOOD = 1.5, MORE = 1.25; /* times: seconds, seconds, memory */
    const tess_common *common = &job->settings->common;
    const uint64_t asked = common->memory_limit, most = tess_engine_free_limit(&job->engine);
    const tess_denoise_file *slowest = NULL;
    tess_cut_plan wide, good;
    for (int64_t i = 0; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        if (is_planned(file) && (!slowest || file->choice.seconds > slowest->choice.seconds))
            slowest = file;
    }
    if (!slowest || asked == 0 || asked >= most || job->settings->tile_height != 0 ||
        job->engine.dist->size > 1 || !plan_within(job, slowest, most, &wide) ||
        slowest->choice.seconds < SLOW * wide.seconds)
        return;
    uint64_t limit = asked;
    do
        limit = (uint64_t)(MORE * (double)limit);
    while (limit < most && !(plan_within(job, slowest, limit, &good) && good.seconds <= GOOD * wide.seconds));
    if (limit >= most)
        limit = most, good = wide;
    const uint64_t needs = tess_mem_total(&good.bytes) + slowest->request.other_weights +
                           tess_cut_reserve(job->engine.separate_memory);
    tess_note(common, TESS_NOTE_WARNING,
              "%s: with `memory_limit` %s it takes about %.4g s, without a limit %.4g s; with %s it would "
              "take %.4g s",
              slowest->input, tess_size_words(asked).text, slowest->choice.seconds, wide.seconds,
              tess_size_enough(needs).text, good.seconds);
}

void tess_denoise_note_plan(const tess_denoise_job *job)
{
    if (tess_denoise_in_strips(job) || job->volumes)
        return;
    remark_halo(job);
    remark_batch(job);
    remark_memory(job);
}
