/* A result may overwrite its input. With one window all input is read before. With several, windows to the right and
 * below still read a halo of it, so a strip of the input is copied before its windows run, and the rows that it
 * shares with the next strip are kept. */
#include <string.h>

#include "base/checked.h"
#include "job/library/library.h"

static bool same_place(const tess_strided *a, const tess_strided *b)
{
    return a->data == b->data && a->step_depth == b->step_depth && a->step_height == b->step_height &&
           a->step_width == b->step_width && a->step_channel == b->step_channel;
}

tess_stage tess_stage_of(const tess_denoiser *plan, const tess_strided *in, const tess_strided *out)
{
    tess_stage stage = {.in = in, .rows = *in, .slab = -1};
    if (!plan->stage.data || !same_place(in, out))
        return stage;
    const int64_t size = (int64_t)tess_dtype_size(in->type.dtype), pixel = in->channels * size;
    stage.copied = true;
    stage.rows.data = plan->stage.data;
    stage.rows.step_channel = size;
    stage.rows.step_width = pixel;
    stage.rows.step_height = pixel * in->width;
    stage.rows.step_depth = 0;
    return stage;
}

void tess_stage_strip(tess_stage *s, int64_t slab, const tess_span *rows)
{
    if (!s->copied)
        return;
    const int64_t from = rows->window_from, to = tess_min_i64(rows->window_to, s->in->height),
                  kept = slab == s->slab && s->to > from ? s->to - from : 0;
    const size_t row = (size_t)s->rows.step_height;
    if (kept > 0)
        memmove(s->rows.data, s->rows.data + (size_t)(from - s->from) * row, (size_t)kept * row);
    for (int64_t y = from + kept; y < to; y++) {
        const tess_run_of_pixels run = {
            .z = slab, .y = y, .count = s->in->width, .channels = s->in->channels};
        tess_strided_copy_out(s->in, &run, s->rows.data + (size_t)(y - from) * row);
    }
    s->slab = slab;
    s->from = from;
    s->to = to;
}

tess_run_of_pixels tess_stage_run(const tess_stage *s, int64_t z, int64_t y, int64_t x, int64_t count)
{
    return (tess_run_of_pixels){
        .z = z, .y = s->copied ? y - s->from : y, .x = x, .count = count, .channels = s->in->channels};
}
