/* The windows of a strip through the lane. The worker only submits: the next strip follows at once, and the sink
 * waits for its own before it writes, so the device's queue does not run dry between strips. Input rows are read
 * while submitting; only alpha is needed until the window is back, so such images wait for each strip. */
#include "base/checked.h"
#include "job/denoise/denoise_image.h"

tess_status tess_lane_strip(void *user, const tess_strip *strip, tess_error *error)
{
    tess_image_job *job = user;
    const tess_cut_plan *choice = &job->file->choice;
    tess_flight *flight = &job->flights[strip->index % 2];
    for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
        n = tess_axis_run(&choice->cols, c, choice->batch);
        const tess_lane_window window = {.bound = job->file->model->bound,
                                         .weights = job->file->model->weights.data,
                                         .pixels = &job->pixels,
                                         .strip = *strip,
                                         .cols = choice->cols,
                                         .first = c,
                                         .n = n};
        TESS_TRY(tess_lane_submit(job->blocks->lane, &window, flight, error));
        const tess_span last = tess_axis_span(&choice->cols, c + n - 1);
        const int64_t columns =
            tess_min_i64(last.to, job->file->info.width) - tess_axis_span(&choice->cols, c).from;
        tess_stop_add(&job->engine->stop, columns * strip->count);
        TESS_TRY(tess_stop_check(&job->engine->stop, error));
    }
    return job->pixels.image.alpha ? tess_lane_settle(job->blocks->lane, flight, error) : TESS_OK;
}

tess_status tess_lane_strip_settle(tess_image_job *job, int64_t first, tess_error *error)
{
    const tess_axis *rows = &job->file->choice.rows;
    int64_t index = 0;
    while (index < rows->tiles && tess_axis_span(rows, index).to <= first)
        index++;
    return tess_lane_settle(job->blocks->lane, &job->flights[index % 2], error);
}

void tess_lane_strips_end(tess_image_job *job)
{
    for (int i = 0; i < 2; i++) {
        (void)!tess_lane_settle(job->blocks->lane, &job->flights[i], NULL); /* told already */
        job->file->seconds += job->flights[i].seconds;
    }
}
