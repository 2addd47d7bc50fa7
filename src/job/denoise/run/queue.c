/* Sends the windows of a strip through the queue to a device with separate memory. The ring's worker only submits:
 * the next strip follows at once, and the sink waits for its strip before it writes, so the device has work between
 * strips. Input rows are read during the submission; only alpha is needed until the result is back, so images with
 * alpha wait for each strip. */
#include <string.h>

#include "base/checked.h"
#include "job/denoise/run/image.h"
#include "tensor/samples.h"

static size_t pixel_bytes(const tess_queue_image *image, tess_dtype dtype)
{
    return (size_t)image->channels * tess_dtype_size(dtype);
}

static const char *input_at(const tess_image_strip *s, int64_t y, int64_t x)
{
    return tess_strip_row(&s->strip, y) + (size_t)x * pixel_bytes(&s->image, s->image.in);
}

static void read_pixels(void *user, int64_t y, int64_t x, int64_t count, void *to)
{
    const tess_image_strip *s = user;
    memcpy(to, input_at(s, y, x), (size_t)count * pixel_bytes(&s->image, s->image.in));
}

/* Takes colours from the device and alpha from the strip's input, with the usual conversions. */
static void merge_alpha(const tess_queue_image *image, const char *in, const char *from, int64_t count,
                        char *to)
{
    const size_t in_size = tess_dtype_size(image->in), out_size = tess_dtype_size(image->out);
    const size_t in_pixel = pixel_bytes(image, image->in), out_pixel = pixel_bytes(image, image->out);
    for (int64_t i = 0; i < count; i++, in += in_pixel, from += out_pixel, to += out_pixel) {
        float alpha;
        memcpy(to, from, out_pixel - out_size);
        tess_samples_to_float(image->in, image->full_scale, in + in_pixel - in_size, 1, &alpha);
        tess_samples_from_float(image->out, image->full_scale, &alpha, 1, to + out_pixel - out_size);
    }
}

static void write_pixels(void *user, int64_t y, int64_t x, int64_t count, const void *from)
{
    const tess_image_strip *s = user;
    const size_t pixel = pixel_bytes(&s->image, s->image.out);
    char *to = s->strip.out + (size_t)(y - s->strip.first) * s->strip.out_row_bytes + (size_t)x * pixel;
    if (s->alpha)
        merge_alpha(&s->image, input_at(s, y, x), from, count, to);
    else
        memcpy(to, from, (size_t)count * pixel);
}

void tess_image_strip_set(tess_image_strip *s, const tess_pixels *p, const tess_strip *strip)
{
    s->strip = *strip;
    s->alpha = p->image.alpha;
    s->image = (tess_queue_image){
        .height = strip->image_rows,
        .width = p->image.width,
        .channels = p->image.channels,
        .in = p->add_noise > 0 ? TESS_F32 : p->image.dtype, /* noise is added as rows are read */
        .out = p->float_out ? TESS_F32 : p->image.dtype,
        .full_scale = p->image.full_scale,
        .level_channel = p->noise_map,
        .levels = p->all_sigma ? p->all_sigma : p->sigma,
        .level_count = p->all_sigma ? (int)p->planes : TESS_NOISE_CHANNELS,
        .level_from = p->sigma_channel ? (int32_t)p->colours : 0,
        .read = read_pixels,
        .write = write_pixels,
        .user = s};
}

tess_status tess_image_submit(void *user, const tess_strip *strip, tess_error *error)
{
    tess_image_job *job = user;
    const tess_engine_model *model = job->file->model;
    tess_image_strip *s = &job->strips[strip->index % 2];
    const tess_cut cut = tess_cut_of(&job->file->choice);
    const tess_window_net net = {model->bound, model->weights.data, job->pixels.planes};
    tess_image_strip_set(s, &job->pixels, strip);
    s->image.exchanger = job->exchanger;
    s->image.exchange_user = job->exchange_user;
    TESS_TRY(tess_queue_submit(job->blocks->queue, &net, &cut, strip->index, &s->image, &s->ticket, error));
    TESS_TRY(tess_stop_check(&job->engine->stop, error));
    return s->alpha ? tess_queue_wait(job->blocks->queue, &s->ticket, error) : TESS_OK;
}

tess_status tess_image_wait(tess_image_job *job, int64_t first, tess_error *error)
{
    const tess_axis *rows = &job->file->choice.rows;
    int64_t index = 0;
    while (index < rows->tiles && tess_axis_span(rows, index).to <= first)
        index++;
    return tess_queue_wait(job->blocks->queue, &job->strips[index % 2].ticket, error);
}

void tess_image_wait_all(tess_image_job *job)
{
    for (int i = 0; i < 2; i++) {
        tess_ticket *ticket = &job->strips[i].ticket;
        (void)!tess_queue_wait(job->blocks->queue, ticket, NULL); /* the error was reported already */
        job->file->seconds += ticket->seconds;
        ticket->seconds = 0; /* counted once */
    }
}
