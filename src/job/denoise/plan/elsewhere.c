/* A plan for other ranks on another machine: of the largest image, as strips. */
#include "base/checked.h"
#include "job/denoise/denoise.h"

tess_status tess_denoise_elsewhere(tess_denoise_job *job, tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    const tess_denoise_file *file = tess_denoise_largest(job);
    if (!s->machine || !tess_denoise_todo(file))
        return TESS_OK;
    if (job->volumes)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "%s is a 3-D model, which `machine` does not plan for; use bench scaling",
                         file->model->path);
    const tess_elsewhere_request request = {
        .machine = s->machine,
        .ranks = s->ranks,
        .model = file->model->path,
        .precision = s->common.precision,
        .problem = {.kind = TESS_SCALE_DENOISE,
                    .depth = 1,
                    .height = file->info.height,
                    .width = file->info.width,
                    .channels = 1},
        .times = (double)(tess_max_i64(file->info.depth, 1) * tess_max_i64(file->request.planes, 1))};
    return tess_elsewhere_predict(&request, &job->elsewhere, error);
}
