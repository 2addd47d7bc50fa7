#include "job/denoise/denoise.h"

static bool is_used(const tess_denoise_job *job, const tess_engine_model *model)
{
    for (int64_t i = 0; i < job->count; i++)
        if (tess_denoise_todo(&job->files[i]) && job->files[i].model == model)
            return true;
    return false;
}

void tess_denoise_close_unused_models(tess_denoise_job *job)
{
    tess_engine *engine = &job->engine;
    tess_engine_model *first = &engine->models[0], *second = &engine->models[1];
    if (engine->model_count != 2 || is_used(job, first) == is_used(job, second))
        return;
    const bool keep_first = is_used(job, first);
    tess_engine_model_close(engine, keep_first ? second : first);
    if (!keep_first) {
        *first = *second;
        *second = (tess_engine_model){0};
    }
    engine->model_count = 1;
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (file->model)
            file->model = file->model == (keep_first ? first : second) ? first : NULL;
    }
}
