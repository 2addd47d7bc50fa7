/* One image through the ring: the source reads rows, the worker runs the network over the windows of a strip, the sink
 * compares with the truth and writes. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "job/denoise.h"
#include "tensor/quality.h"
#include "tensor/samples.h"

enum { MOST_SHAPES = 64 };

typedef struct image_job {
    tess_engine *engine;
    tess_denoise_file *file;
    const tess_denoise_blocks *blocks;
    tess_denoise_progress *progress;
    tess_pixels pixels;
    tess_reader *reader, *truth;
    tess_writer *writer;
    tess_net_plan *plans[MOST_SHAPES];
    tess_plan_shape shapes[MOST_SHAPES];
    int shape_count;
    /* sink: */
    tess_quality quality;
    char *truth_samples, *out_samples;
    float *truth_row, *result_row;
} image_job;

static int64_t colours_of(const tess_image_info *info)
{
    return info->channels - info->alpha;
}

/* With a truth the sink needs a row of its samples, two rows of floats without alpha, a row of the output's samples,
 * and SSIM's lines. */
static size_t sink_bytes(const tess_denoise_file *file)
{
    if (!file->truth)
        return 0;
    const tess_image_info *info = &file->info;
    size_t row = (size_t)(info->width * info->channels) * sizeof(float);
    return 4 * tess_align_size(row + sizeof(float) * (size_t)info->width, 64) +
           tess_quality_bytes(info->width, colours_of(info));
}

static tess_status model_of(tess_engine *engine, const tess_denoise_settings *settings, tess_denoise_file *file,
                            tess_error *error)
{
    const int64_t colours = colours_of(&file->info);
    const char *name = settings->model ? settings->model : colours == 3 ? "drunet-color-small" : "drunet-gray-small";
    TESS_TRY(tess_engine_model_of(engine, name, &file->model, error));
    const tess_model *model = &file->model->model;
    if (model->channels != colours && model->channels != 1)
        return tess_fail(error, TESS_BAD_INPUT, "%s: has %lld colour channels, but the model %s takes %lld", file->input,
                         (long long)colours, name, (long long)model->channels);
    if (model->noise_map && settings->sigma < 0 && settings->add_noise <= 0)
        return tess_fail(error, TESS_BAD_OPTION,
                         "the model %s needs the noise level: give --sigma on the [0,1] scale, e.g. --sigma 25/255",
                         name);
    return TESS_OK;
}

static tess_pixels pixels_of(const tess_engine *engine, const tess_denoise_settings *settings,
                             const tess_denoise_file *file)
{
    const tess_model *model = &file->model->model;
    tess_pixels pixels = {.image = file->info, .colours = colours_of(&file->info), .planes = 1};
    if (model->channels == 1)
        pixels.planes = pixels.colours;
    pixels.noise_map = model->noise_map;
    pixels.float_out = file->truth != NULL;
    pixels.sigma = (float)(settings->sigma >= 0 ? settings->sigma : settings->add_noise);
    pixels.add_noise = (float)settings->add_noise;
    pixels.noise = (tess_rng_key){settings->common.seed, file->item, 0};
    pixels.pool = engine->host;
    return pixels;
}

tess_status tess_denoise_describe(tess_engine *engine, const tess_denoise_settings *settings, tess_denoise_file *file,
                                  tess_error *error)
{
    tess_reader *reader = NULL;
    TESS_TRY(tess_reader_open(file->input, &reader, error));
    file->info = *tess_reader_info(reader);
    tess_reader_close(reader);
    size_t held = file->info.held_bytes + tess_writer_held_bytes(file->output, &file->info);
    if (file->truth) {
        TESS_TRY(tess_reader_open(file->truth, &reader, error));
        tess_image_info truth = *tess_reader_info(reader);
        tess_reader_close(reader);
        held += truth.held_bytes;
        if (truth.height != file->info.height || truth.width != file->info.width ||
            colours_of(&truth) != colours_of(&file->info))
            return tess_fail(error, TESS_BAD_INPUT, "%s: is %lld x %lld with %lld channels, %s is %lld x %lld with %lld",
                             file->truth, (long long)truth.height, (long long)truth.width,
                             (long long)colours_of(&truth), file->input, (long long)file->info.height,
                             (long long)file->info.width, (long long)colours_of(&file->info));
    }
    TESS_TRY(model_of(engine, settings, file, error));
    tess_pixels pixels = pixels_of(engine, settings, file);
    const size_t samples = (size_t)(file->info.width * file->info.channels), size = tess_dtype_size(file->info.dtype);
    uint64_t limit = settings->common.memory_limit ? settings->common.memory_limit : engine->facts.memory_free / 10 * 9;
    file->wish = (tess_denoise_wish){.height = file->info.height,
                                     .width = file->info.width,
                                     .planes = pixels.planes,
                                     .in_row_bytes = samples * size,
                                     .out_row_bytes = samples * (pixels.float_out ? sizeof(float) : size),
                                     .row_scratch_bytes = tess_pixels_scratch(&pixels, tess_pool_threads(engine->host)),
                                     .fixed_io_bytes = sink_bytes(file),
                                     .held_bytes = held,
                                     .tile_height = settings->tile_height,
                                     .tile_width = settings->tile_width,
                                     .halo = settings->halo,
                                     .batch = settings->batch,
                                     .limit = limit};
    return TESS_OK;
}

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

/* Every shape that will occur is planned before the first pixel moves. */
static tess_status prepare_shapes(image_job *job, tess_error *error)
{
    const tess_denoise_choice *choice = &job->file->choice;
    for (int64_t r = 0; r < choice->rows.tiles; r++) {
        tess_span rows = tess_axis_span(&choice->rows, r);
        for (int64_t c = 0, n; c < choice->cols.tiles; c += n) {
            n = tess_axis_run(&choice->cols, c, choice->batch);
            tess_span cols = tess_axis_span(&choice->cols, c);
            tess_plan_shape shape = shape_of(n, &rows, &cols);
            if (plan_for(job, shape))
                continue;
            if (job->shape_count == MOST_SHAPES)
                return tess_fail(error, TESS_INTERNAL, "more than %d window shapes in one image", MOST_SHAPES);
            tess_net_plan **plan = &job->plans[job->shape_count];
            TESS_TRY(tess_net_plan_create(job->file->model->bound, shape, plan, error));
            job->shapes[job->shape_count++] = shape;
            TESS_TRY(tess_net_plan_prepare(*plan, error));
            if (tess_net_plan_arena_bytes(*plan) > job->blocks->arena.bytes ||
                tess_net_plan_workspace_bytes(*plan) > job->blocks->workspace.bytes)
                return tess_fail(error, TESS_INTERNAL, "a window of %lld x %lld needs more than was planned",
                                 (long long)shape.h, (long long)shape.w);
        }
    }
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
static tess_status run_batch(image_job *job, const tess_strip *strip, int64_t first, int64_t n, tess_error *error)
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
        for (int64_t c = 0; c < colours_of(info); c++)
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
        TESS_TRY(tess_reader_rows(job->truth, 1, job->truth_samples, error));
        tess_samples_to_float(truth->dtype, truth->full_scale, job->truth_samples, truth->width * truth->channels,
                              job->result_row); /* borrowed for a moment */
        without_alpha(truth, job->result_row, job->truth_row);
        without_alpha(info, result, job->result_row);
        tess_quality_row(&job->quality, job->result_row, job->truth_row);
        tess_samples_from_float(info->dtype, info->full_scale, result, samples, job->out_samples);
        TESS_TRY(tess_writer_rows(job->writer, 1, job->out_samples, error));
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
    if (file->truth) {
        size_t row = (size_t)(file->info.width * (file->info.channels + 1)) * sizeof(float);
        char **rows[4] = {&job->truth_samples, (char **)&job->truth_row, (char **)&job->result_row, &job->out_samples};
        for (int i = 0; i < 4; i++) {
            *rows[i] = at;
            at += tess_align_size(row, 64);
        }
        tess_quality_begin(&job->quality, file->info.width, colours_of(&file->info), at);
    }
    return ring;
}

static tess_status run_image(image_job *job, tess_error *error)
{
    tess_denoise_file *file = job->file;
    TESS_TRY(tess_reader_open(file->input, &job->reader, error));
    if (file->truth)
        TESS_TRY(tess_reader_open(file->truth, &job->truth, error));
    TESS_TRY(tess_writer_open(file->output, &file->info, job->reader, &job->writer, error));
    TESS_TRY(prepare_shapes(job, error));
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

tess_status tess_denoise_image(tess_engine *engine, const tess_denoise_settings *settings, tess_denoise_file *file,
                               const tess_denoise_blocks *blocks, tess_denoise_progress *progress, tess_error *error)
{
    image_job job;
    memset(&job, 0, sizeof job);
    job.engine = engine;
    job.file = file;
    job.blocks = blocks;
    job.progress = progress;
    job.pixels = pixels_of(engine, settings, file);
    tess_status status = run_image(&job, error);
    for (int i = 0; i < MOST_SHAPES; i++)
        tess_net_plan_destroy(job.plans[i]);
    tess_writer_close(job.writer);
    tess_reader_close(job.truth);
    tess_reader_close(job.reader);
    return status;
}
