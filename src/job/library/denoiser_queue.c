/* Images on the host and a network on a card: samples are transferred in pinned chunks while the card computes. The
 * slices of a volume pass through the queue one after another. */
#include <string.h>

#include "base/checked.h"
#include "job/library/library.h"

typedef struct queue_run {
    tess_denoiser *plan;
    const tess_strided *out;
    tess_stage stage;
    int64_t slice;
    bool values; /* values are transferred instead of samples */
} queue_run;

static void read_pixels(void *user, int64_t y, int64_t x, int64_t count, void *to)
{
    const queue_run *run = user;
    const tess_run_of_pixels pixels = tess_stage_run(&run->stage, run->slice, y, x, count);
    if (run->values)
        tess_strided_read(&run->stage.rows, &pixels, to, pixels.channels);
    else
        tess_strided_copy_out(&run->stage.rows, &pixels, to);
}

/* Writes channel by channel, without those that stay as they are. */
static void write_some(const queue_run *run, tess_run_of_pixels pixels, const char *from)
{
    enum { PIXELS = 64 };
    const size_t size = tess_dtype_size(run->values ? TESS_F32 : run->out->type.dtype);
    const int64_t all = pixels.count, channels = pixels.channels, x = pixels.x;
    _Alignas(8) char samples[PIXELS * 8];
    pixels.channels = 1;
    for (pixels.first = 0; pixels.first < channels; pixels.first++)
        for (int64_t at = 0; at < all && !tess_denoiser_keeps(run->plan, pixels.first); at += PIXELS) {
            pixels.x = x + at;
            pixels.count = tess_min_i64(PIXELS, all - at);
            for (int64_t i = 0; i < pixels.count; i++)
                memcpy(samples + (size_t)i * size, from + (size_t)((at + i) * channels + pixels.first) * size,
                       size);
            if (run->values)
                tess_strided_write(run->out, &pixels, (const float *)(const void *)samples, 1);
            else
                tess_strided_copy_in(run->out, &pixels, samples);
        }
}

static void write_pixels(void *user, int64_t y, int64_t x, int64_t count, const void *from)
{
    const queue_run *run = user;
    const tess_run_of_pixels pixels = {
        .z = run->slice, .y = y, .x = x, .count = count, .channels = run->out->channels};
    bool some = false;
    for (int64_t c = 0; c < pixels.channels; c++)
        some = some || tess_denoiser_keeps(run->plan, c);
    if (some)
        write_some(run, pixels, from);
    else if (run->values)
        tess_strided_write(run->out, &pixels, from, pixels.channels);
    else
        tess_strided_copy_in(run->out, &pixels, from);
}

static tess_status submit_slice(queue_run *run, const tess_queue_image *image, tess_ticket *ticket,
                                tess_error *error)
{
    tess_denoiser *plan = run->plan;
    const tess_cut cut =
        tess_cut_image(&plan->cut.axis[TESS_HEIGHT], &plan->cut.axis[TESS_WIDTH], plan->cut.batch);
    for (int64_t strip = 0; strip < cut.axis[TESS_HEIGHT].tiles; strip++) {
        const tess_span rows = tess_axis_span(&cut.axis[TESS_HEIGHT], strip);
        tess_stage_strip(&run->stage, run->slice, &rows);
        TESS_TRY(tess_queue_submit(plan->queue, &plan->net, &cut, strip, image, ticket, error));
    }
    return TESS_OK;
}

tess_status tess_denoiser_run_queue(tess_denoiser *plan, const tess_strided *in, const tess_strided *out,
                                    tess_error *error)
{
    queue_run run = {
        .plan = plan, .out = out, .stage = tess_stage_of(plan, in, out), .values = !plan->type.plain};
    const tess_queue_image image = {.height = in->height,
                                    .width = in->width,
                                    .channels = in->channels,
                                    .in = tess_denoiser_moved(plan),
                                    .out = tess_denoiser_moved(plan),
                                    .full_scale = run.values ? 1 : plan->type.scale.high,
                                    .level_channel = plan->model->loaded.model.noise_map,
                                    .levels = plan->level,
                                    .level_count = TESS_NOISE_CHANNELS,
                                    .read = read_pixels,
                                    .write = write_pixels,
                                    .user = &run};
    tess_status status = TESS_OK;
    for (run.slice = 0; run.slice < in->depth && status == TESS_OK; run.slice++) {
        tess_ticket ticket = {0};
        tess_error waiting;
        status = submit_slice(&run, &image, &ticket, error);
        const tess_status waited = tess_queue_wait(plan->queue, &ticket, &waiting);
        if (status == TESS_OK && waited != TESS_OK) {
            *error = waiting;
            status = waited;
        }
    }
    return status;
}
