/* Images in the memory that the device computes in: values are written directly to the network's input and read from
 * its output. */
#include "base/checked.h"
#include "base/pool.h"
#include "job/library/library.h"

typedef struct host_run {
    const tess_denoiser *plan;
    const tess_strided *in, *out;
    tess_stage stage;
} host_run;

/* One window, for the loop over its rows. */
typedef struct move {
    const host_run *run;
    const tess_window_batch *batch;
    tess_span cols;
    int64_t plane;
    const tess_tensor *tensor;
    float *data; /* of the window */
    int64_t rows;
} move;

static tess_status begin(void *user, const tess_window_batch *batch, tess_error *error)
{
    (void)error;
    host_run *run = user;
    if (batch->first == 0)
        tess_stage_strip(&run->stage, batch->slab, &batch->rows);
    return TESS_OK;
}

/* Chooses the channels of one run of the network. */
static void choose_channels(const host_run *run, int64_t plane, tess_run_of_pixels *pixels)
{
    const bool planes = run->plan->net.planes > 1;
    pixels->first = planes ? plane : 0;
    pixels->channels = planes ? 1 : run->in->channels;
}

/* Beyond the image, the last slice, row and column are repeated. */
static void gather_row(void *arg, int64_t index, int thread)
{
    (void)thread;
    const move *m = arg;
    const host_run *run = m->run;
    const tess_tensor *t = m->tensor;
    const int64_t z = index / m->rows, row = index % m->rows, x0 = m->cols.window_from,
                  width = m->cols.window_to - x0, inside = tess_min_i64(width, run->in->width - x0);
    tess_run_of_pixels pixels =
        tess_stage_run(&run->stage, tess_min_i64(m->batch->depth.window_from + z, run->in->depth - 1),
                       tess_min_i64(m->batch->rows.window_from + row, run->in->height - 1), x0, inside);
    choose_channels(run, m->plane, &pixels);
    float *to = m->data + z * t->stride_d + row * t->stride_h;
    tess_strided_read(&run->stage.rows, &pixels, to, t->stride_w);
    const float *last = to + (inside - 1) * t->stride_w;
    for (int64_t x = inside; x < width; x++)
        for (int64_t c = 0; c < pixels.channels; c++)
            to[x * t->stride_w + c] = last[c];
    if (run->plan->model->loaded.model.noise_map)
        for (int64_t x = 0; x < width; x++)
            to[x * t->stride_w + pixels.channels] = tess_denoiser_level(run->plan, m->plane);
}

static void scatter_row(void *arg, int64_t index, int thread)
{
    (void)thread;
    const move *m = arg;
    const host_run *run = m->run;
    const tess_tensor *t = m->tensor;
    const tess_window_batch *b = m->batch;
    const int64_t z = b->depth.from + index / m->rows, y = b->rows.from + index % m->rows;
    tess_run_of_pixels pixels = {
        .z = z, .y = y, .x = m->cols.from, .count = tess_min_i64(m->cols.to, run->out->width) - m->cols.from};
    choose_channels(run, m->plane, &pixels);
    const float *from = m->data + (z - b->depth.window_from) * t->stride_d +
                        (y - b->rows.window_from) * t->stride_h +
                        (m->cols.from - m->cols.window_from) * t->stride_w;
    tess_strided_write(run->out, &pixels, from, t->stride_w);
}

static tess_status move_windows(const host_run *run, const tess_window_batch *batch, int64_t plane,
                                const tess_window_end *end, bool in, tess_error *error)
{
    const tess_tensor *t = &end->tensor;
    if (t->dtype != TESS_F32)
        return tess_fail(error, TESS_INTERNAL, "the ends of a network are not float32");
    const int64_t slices = in ? t->d : tess_min_i64(batch->depth.to, run->out->depth) - batch->depth.from,
                  rows = in ? t->h : tess_min_i64(batch->rows.to, run->out->height) - batch->rows.from;
    for (int64_t i = 0; i < batch->n && (in || !tess_denoiser_keeps(run->plan, plane)); i++) {
        move m = {.run = run,
                  .batch = batch,
                  .cols = tess_batch_cols(batch, i),
                  .plane = plane,
                  .tensor = t,
                  .data = (float *)end->data + i * t->stride_n,
                  .rows = rows};
        tess_pool_run(run->plan->model->opened->engine.host, slices * rows, in ? gather_row : scatter_row,
                      &m);
    }
    return TESS_OK;
}

static tess_status gather(void *user, const tess_window_batch *batch, int64_t plane,
                          const tess_window_end *input, tess_error *error)
{
    return move_windows(user, batch, plane, input, true, error);
}

static tess_status scatter(void *user, const tess_window_batch *batch, int64_t plane,
                           const tess_window_end *output, tess_error *error)
{
    return move_windows(user, batch, plane, output, false, error);
}

tess_status tess_denoiser_run_host(tess_denoiser *plan, const tess_strided *in, const tess_strided *out,
                                   tess_error *error)
{
    static const tess_mover mover = {.begin = begin, .gather = gather, .scatter = scatter, .wait = true};
    host_run user = {plan, in, out, tess_stage_of(plan, in, out)};
    const tess_cut *whole = &plan->cut;
    const tess_cut slice = tess_cut_image(&whole->axis[TESS_HEIGHT], &whole->axis[TESS_WIDTH], whole->batch);
    const tess_window_run run = {.net = &plan->net,
                                 .cut = in->depth < plan->settings.depth ? &slice : whole,
                                 .strip = TESS_ALL_STRIPS,
                                 .size = {in->depth, in->height, in->width},
                                 .mover = &mover,
                                 .user = &user};
    return tess_windows_run(plan->windows, &run, error);
}
