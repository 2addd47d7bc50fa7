/* Runs the windows of a strip on a device that computes in host memory: values are gathered directly into the
 * network's input and scattered from its output. */
#include "base/clock.h"
#include "job/denoise/run/image.h"

typedef struct strip_pixels {
    const tess_pixels *pixels;
    const tess_strip *strip;
} strip_pixels;

static tess_status gather(void *user, const tess_window_batch *batch, int64_t plane,
                          const tess_window_end *input, tess_error *error)
{
    (void)error;
    const strip_pixels *s = user;
    for (int64_t i = 0; i < batch->n; i++) {
        const tess_span cols = tess_batch_cols(batch, i);
        tess_pixels_gather(s->pixels, s->strip, &cols, plane, &input->tensor, i, input->data);
    }
    return TESS_OK;
}

static tess_status scatter(void *user, const tess_window_batch *batch, int64_t plane,
                           const tess_window_end *output, tess_error *error)
{
    (void)error;
    const strip_pixels *s = user;
    for (int64_t i = 0; i < batch->n; i++) {
        const tess_span cols = tess_batch_cols(batch, i);
        tess_pixels_scatter(s->pixels, s->strip, &cols, plane, &output->tensor, i, output->data);
    }
    return TESS_OK;
}

tess_status tess_image_run(void *user, const tess_strip *strip, tess_error *error)
{
    static const tess_mover mover = {.gather = gather, .scatter = scatter, .wait = true, .under_way = 1};
    tess_image_job *job = user;
    const tess_denoise_file *file = job->file;
    const tess_cut cut = tess_cut_of(&file->choice);
    const tess_window_net net = {file->model->bound, file->model->weights.data, job->pixels.planes};
    strip_pixels pixels = {&job->pixels, strip};
    const tess_window_run run = {.net = &net,
                                 .cut = &cut,
                                 .strip = strip->index,
                                 .size = {1, job->pixels.image.height, job->pixels.image.width},
                                 .mover = &mover,
                                 .user = &pixels,
                                 .exchanger = job->exchanger,
                                 .exchange_user = job->exchange_user};
    const double start = tess_clock();
    TESS_TRY(tess_windows_run(job->blocks->windows, &run, error));
    job->file->seconds += tess_clock() - start;
    return TESS_OK;
}
