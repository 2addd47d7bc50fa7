/* What the user is told of a plan that is not what was asked. */
#include "job/common/note.h"
#include "job/denoise/denoise.h"

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
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: `halo` %lld asked, %lld used: windows lie on the network's grid, so that halos are "
                  "rounded up to "
                  "a multiple of it",
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
                  "and there "
                  "are no more%s",
                  file->input, (long long)asked, (long long)file->choice.batch,
                  file->choice.cols.tiles > 1 ? "" : "; a smaller `tile` makes some");
        return;
    }
}

void tess_denoise_note_plan(const tess_denoise_job *job)
{
    if (tess_denoise_in_strips(job) || job->volumes)
        return;
    remark_halo(job);
    remark_batch(job);
}
