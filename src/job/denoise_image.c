/* One image through the ring: the source reads rows, the worker runs the network over the windows of a strip,
 * the sink compares with the truth and writes. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "job/denoise.h"
#include "tensor/quality.h"
#include "tensor/samples.h"

typedef struct image_job {
    tess_engine *engine;
    tess_denoise_file *file;
    const tess_denoise_blocks *blocks;
    tess_denoise_progress *progress;
    tess_pixels pixels;
    tess_reader *reader, *truth;
    tess_writer *writer;
    tess_net_plan **plans; /* of the strip's windows, one for each shape */
    tess_plan_shape *shapes;
    int shape_count;
    int64_t strip_height; /* of the windows that `plans` are for */
    /* sink: */
    tess_quality quality;
    tess_denoise_sink rows;
} image_job;

static tess_net_plan *plan_for(image_job *job, tess_plan_shape shape)
{
    for (int i = 0; i < job->shape_count; i++)
        if (job->shapes[i].n == shape.n && job->shapes[i].h == shape.h && job->shapes[i].w == shape.w)
            return job->plans[i];
    return NULL;
}

static tess_plan_shape shape_of(int64_t batch, const tess_span *rows, const tess_span *cols)
{
    return (tess_plan_shape){batch, rows->window_to - rows->window_from, cols->window_to - cols->window_from,
                             TESS_INFER};
}

static void drop_shapes(image_job *job)
{
    for (int i = 0; i < job->shape_count; i++)
        tess_net_plan_destroy(job->plans[i]);
    job->shape_count = 0;
    job->strip_height = 0;
}

static tess_status add_shape(image_job *job, tess_plan_shape shape, tess_error *error)
{
    tess_net_plan **plan = &job->plans[job->shape_count];
    TESS_TRY(tess_net_plan_create(job->file->model->bound, shape, plan, error));
    job->shapes[job->shape_count++] = shape;
    TESS_TRY(tess_net_plan_prepare(*plan, error));
    if (tess_net_plan_arena_bytes(*plan) > job->blocks->arena.bytes ||
        tess_net_plan_workspace_bytes(*plan) > job->blocks->workspace.bytes)
        return tess_fail(error, TESS_INTERNAL, "a window of %lld x %lld needs more than was planned",
                         (long long)shape.h, (long long)shape.w);
    return TESS_OK;
}

/* Every shape of a strip is planned before its first window runs. Most strips have the shapes of the one
 * before. */
static tess_status prepare_strip(image_job *job, const tess_span *rows, tess_error *error)
{
    const tess_axis *axis = &job->file->choice.cols;
    if (job->strip_height == rows->window_to - rows->window_from)
        return TESS_OK;
    drop_shapes(job);
    for (int64_t c = 0, n; c < axis->tiles; c += n) {
        n = tess_axis_run(axis, c, job->file->choice.batch);
        tess_span cols = tess_axis_span(axis, c);
        tess_plan_shape shape = shape_of(n, rows, &cols);
        if (!plan_for(job, shape))
            TESS_TRY(add_shape(job, shape, error));
    }
    job->strip_height = rows->window_to - rows->window_from;
    return TESS_OK;
}

static tess_status source(void *user, int64_t first, int64_t count, void *rows, tess_error *error)
{
    (void)first; /* rows are asked for in order */
    return tess_reader_rows(((image_job *)user)->reader, count, rows, error);
}

static tess_status tell_progress(tess_denoise_progress *progress, int64_t pixels, tess_error *error)
{
    const tess_common *common = progress->common;
    progress->done += pixels;
    if (common->progress && !common->progress(common->progress_user, progress->done, progress->total,
                                              tess_clock() - progress->start))
        return tess_fail(error, TESS_INTERRUPTED, "stopped; no half-written output is left");
    return TESS_OK;
}

/* A batch of windows side by side: in, network, out. */
static tess_status run_batch(image_job *job, const tess_strip *strip, int64_t first, int64_t n,
                             tess_error *error)
{
    const tess_denoise_choice *choice = &job->file->choice;
    tess_device *device = job->engine->device;
    tess_span cols = tess_axis_span(&choice->cols, first);
    tess_net_plan *plan = plan_for(job, shape_of(n, &strip->span, &cols));
    size_t in_at, out_at;
    tess_tensor in = tess_net_plan_input(plan, &in_at), out = tess_net_plan_output(plan, &out_at);
    char *arena = job->blocks->arena.data;
    int64_t pixels = 0;
    for (int64_t plane = 0; plane < job->pixels.planes; plane++) {
        for (int64_t i = 0; i < n; i++) {
            cols = tess_axis_span(&choice->cols, first + i);
            tess_pixels_gather(&job->pixels, strip, &cols, plane, &in, i, arena + in_at);
            pixels += (tess_min_i64(cols.to, job->file->info.width) - cols.from) * strip->count;
        }
        tess_net_plan_run(plan, arena, job->blocks->workspace.data, job->file->model->weights.data, NULL);
        TESS_TRY(device->sync(device, NULL, error));
        for (int64_t i = 0; i < n; i++) {
            cols = tess_axis_span(&choice->cols, first + i);
            tess_pixels_scatter(&job->pixels, strip, &cols, plane, &out, i, arena + out_at);
        }
    }
    return tell_progress(job->progress, pixels / job->pixels.planes, error);
}

static tess_status worker(void *user, const tess_strip *strip, tess_error *error)
{
    image_job *job = user;
    const tess_denoise_choice *choice = &job->file->choice;
    double start = tess_clock();
    TESS_TRY(prepare_strip(job, &strip->span, error));
    for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
        n = tess_axis_run(&choice->cols, c, choice->batch);
        TESS_TRY(run_batch(job, strip, c, n, error));
    }
    job->file->seconds += tess_clock() - start;
    return TESS_OK;
}

/* Drops alpha: `row` has all channels, `colours` gets those that are compared. */
static void without_alpha(const tess_image_info *info, const float *row, float *colours)
{
    for (int64_t x = 0; x < info->width; x++)
        for (int64_t c = 0; c < tess_denoise_colours(info); c++)
            *colours++ = row[x * info->channels + c];
}

static tess_status sink(void *user, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    (void)first;
    image_job *job = user;
    if (!job->truth)
        return tess_writer_rows(job->writer, count, rows, error);
    const tess_image_info *info = &job->file->info, *truth = tess_reader_info(job->truth);
    const int64_t samples = info->width * info->channels;
    for (int64_t y = 0; y < count; y++) {
        const float *result = (const float *)rows + y * samples;
        TESS_TRY(tess_reader_rows(job->truth, 1, job->rows.truth_samples, error));
        tess_samples_to_float(truth->dtype, truth->full_scale, job->rows.truth_samples,
                              truth->width * truth->channels,
                              job->rows.result_row); /* borrowed for a moment */
        without_alpha(truth, job->rows.result_row, job->rows.truth_row);
        without_alpha(info, result, job->rows.result_row);
        tess_quality_row(&job->quality, job->rows.result_row, job->rows.truth_row);
        tess_samples_from_float(info->dtype, info->full_scale, result, samples, job->rows.out_samples);
        TESS_TRY(tess_writer_rows(job->writer, 1, job->rows.out_samples, error));
    }
    return TESS_OK;
}

/* Carves the io block: ring, rows of scratch, the sink's rows. */
static void *carve(image_job *job)
{
    char *at = job->blocks->io.data;
    const tess_denoise_file *file = job->file;
    void *ring = at;
    at += file->choice.ring_bytes;
    job->pixels.scratch = (float *)at;
    at += file->wish.row_scratch_bytes * (size_t)tess_axis_largest_window(&file->choice.cols);
    tess_denoise_carve_sink(file, at, &job->rows);
    if (file->truth)
        tess_quality_begin(&job->quality, file->info.width, tess_denoise_colours(&file->info),
                           job->rows.lines);
    return ring;
}

/* The blocks were sized for what the header said; a file that was replaced meanwhile must not be read into
 * them. */
static tess_status reopen(const char *path, const tess_image_info *planned, tess_reader **reader,
                          tess_error *error)
{
    TESS_TRY(tess_reader_open(path, reader, error));
    const tess_image_info *now = tess_reader_info(*reader);
    bool same = now->height == planned->height && now->width == planned->width &&
                now->channels == planned->channels && now->alpha == planned->alpha &&
                now->dtype == planned->dtype && now->full_scale == planned->full_scale &&
                now->held_bytes == planned->held_bytes;
    return same ? TESS_OK
                : tess_fail(error, TESS_BAD_INPUT, "%s: changed while the job ran; run it again", path);
}

static tess_status run_image(image_job *job, tess_error *error)
{
    tess_denoise_file *file = job->file;
    TESS_TRY(reopen(file->input, &file->info, &job->reader, error));
    if (file->truth)
        TESS_TRY(reopen(file->truth, &file->truth_info, &job->truth, error));
    TESS_TRY(tess_writer_open(file->output, &file->info, job->reader, &job->writer, error));
    const size_t most = (size_t)file->choice.cols.tiles;
    job->plans = tess_small_alloc(most, sizeof *job->plans);
    job->shapes = tess_small_alloc(most, sizeof *job->shapes);
    if (!job->plans || !job->shapes)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the plans of %zu windows", most);
    tess_ring_settings ring = {.rows = file->choice.rows,
                               .image_rows = file->info.height,
                               .in_row_bytes = file->wish.in_row_bytes,
                               .out_row_bytes = file->wish.out_row_bytes,
                               .source = source,
                               .worker = worker,
                               .sink = sink,
                               .user = job};
    TESS_TRY(tess_ring_run(&ring, carve(job), error));
    TESS_TRY(tess_writer_commit(job->writer, error));
    if (file->truth) {
        file->psnr = tess_quality_psnr(&job->quality);
        file->ssim = tess_quality_ssim(&job->quality);
    }
    return TESS_OK;
}

tess_status tess_denoise_image(tess_engine *engine, const tess_denoise_settings *settings,
                               tess_denoise_file *file, const tess_denoise_blocks *blocks,
                               tess_denoise_progress *progress, tess_error *error)
{
    image_job job;
    memset(&job, 0, sizeof job);
    job.engine = engine;
    job.file = file;
    job.blocks = blocks;
    job.progress = progress;
    job.pixels = tess_denoise_pixels(engine, settings, file);
    tess_status status = run_image(&job, error);
    drop_shapes(&job);
    tess_small_free(job.plans);
    tess_small_free(job.shapes);
    tess_writer_close(job.writer);
    tess_reader_close(job.truth);
    tess_reader_close(job.reader);
    return status;
}
