/* One image through the ring: the source reads rows, the worker runs the network over the windows of a strip,
 * the sink compares with the truth and writes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "job/denoise/run/image.h"
#include "tensor/samples.h"

tess_status tess_image_source(void *user, int64_t first, int64_t count, void *rows, tess_error *error)
{
    tess_image_job *job = user; /* rows are asked for in order */
    if (job->file->prepared)
        return tess_prepared_source(&job->prepared, count, rows, error);
    if (!job->row_samples)
        return tess_reader_rows(job->reader, count, rows, error);
    tess_pixels whole = job->pixels; /* rows are read in full width, also for a block */
    whole.image.width = job->file->info.width;
    whole.first_column = 0;
    for (int64_t y = 0; y < count; y++) {
        TESS_TRY(tess_reader_rows(job->reader, 1, job->row_samples, error));
        tess_pixels_noisy_row(&whole, first + y, job->row_samples, job->row_draws,
                              (float *)rows + y * whole.image.width * whole.image.channels);
    }
    return TESS_OK;
}

/* Drops alpha: `row` has `channels`, `colours` gets the channels that are compared. */
static void without_alpha(int64_t width, int64_t channels, int64_t count, const float *row, float *colours)
{
    for (int64_t x = 0; x < width; x++)
        for (int64_t c = 0; c < count; c++)
            *colours++ = row[x * channels + c];
}

/* Puts the colours of the truth in the order of the input's, if both files say which channel is red, green and blue. */
static void match_colours(const tess_image_info *input, const tess_image_info *truth, float *row)
{
    static const short usual[3] = {0, 1, 2};
    const short *mine = input->order[0] + input->order[1] + input->order[2] ? input->order : usual,
                *theirs = truth->order[0] + truth->order[1] + truth->order[2] ? truth->order : usual;
    const bool known = input->rgb && truth->rgb && tess_denoise_colours(truth) == 3;
    for (int64_t x = 0; x < truth->width && known; x++, row += 3) {
        const float from[3] = {row[0], row[1], row[2]};
        for (int c = 0; c < 3; c++)
            row[mine[c]] = from[theirs[c]];
    }
}

/* Figures are for values on the scale of the file, also in a slice that has its own. */
static void to_scale_of_file(const tess_image_job *job, float *values, int64_t count)
{
    const tess_scale own = job->prepared.scale, all = job->file->scale;
    const double span = all.high - all.low, factor = (own.high - own.low) / span,
                 shift = (own.low - all.low) / span;
    for (int64_t i = 0; i < count && job->file->prepared; i++)
        values[i] = (float)((double)values[i] * factor + shift);
}

/* Compares a row of results, all channels of the ring's image, with the next row of the truth. Holes of either are
 * ignored (`valid`: one byte per sample of the input, or NULL). */
static tess_status compare(tess_image_job *job, const float *result, const unsigned char *valid,
                           tess_error *error)
{
    const tess_denoise_file *file = job->file;
    const tess_image_info *truth = &file->truth_info;
    const int64_t width = truth->width, colours = tess_denoise_colours(truth);
    float *mine = job->rows.result_row, *theirs = job->rows.truth_row;
    unsigned char *truth_valid = (unsigned char *)mine; /* before the result is there */
    TESS_TRY(tess_denoise_read_rows(truth, job->truth, 1, job->rows.truth_samples, truth_valid, error));
    tess_denoise_row_values(truth, tess_denoise_truth_scale(file), job->rows.truth_samples, truth_valid,
                            theirs);
    match_colours(&file->info, truth, theirs);
    without_alpha(width, job->pixels.image.channels, colours, result, mine);
    if (file->own_scales)
        to_scale_of_file(job, mine, width * colours);
    for (int64_t i = 0; valid && i < width * colours; i++)
        if (!valid[i / colours * file->info.channels + i % colours])
            theirs[i] = NAN;
    tess_quality_row(&job->quality, mine, theirs);
    return TESS_OK;
}

tess_status tess_image_sink(void *user, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    tess_image_job *job = user;
    if (job->blocks->queue)
        TESS_TRY(tess_image_wait(job, first, error));
    const tess_denoise_file *file = job->file;
    if (!file->prepared && !job->truth)
        return tess_writer_rows(job->writer, count, rows, error);
    const int64_t samples = file->info.width * job->pixels.image.channels;
    for (int64_t y = 0; y < count; y++) {
        float *result = (float *)rows + y * samples; /* the ring no longer needs it */
        const char *out = job->rows.out_samples;
        const unsigned char *valid = NULL;
        if (file->prepared)
            TESS_TRY(
                tess_prepared_sink(&job->prepared, job->first_row + first + y, result, &out, &valid, error));
        else
            tess_samples_from_float(file->info.dtype, file->info.full_scale, result, samples,
                                    job->rows.out_samples);
        if (job->truth)
            TESS_TRY(compare(job, result, valid, error));
        TESS_TRY(tess_writer_rows(job->writer, 1, out, error));
    }
    return TESS_OK;
}

void *tess_image_carve(tess_image_job *job)
{
    char *at = job->blocks->io.data;
    const tess_denoise_file *file = job->file;
    void *ring = at;
    at += file->choice.ring_bytes;
    job->pixels.scratch = (float *)at;
    at += file->request.row_scratch_bytes * (size_t)tess_axis_largest_window(&file->choice.cols);
    const size_t sink_bytes = tess_denoise_carve_sink(file, at, &job->rows);
    if (job->blocks->queue && job->pixels.add_noise > 0) {
        job->row_samples = at + tess_align_size(sink_bytes, 64);
        job->row_draws = (float *)(job->row_samples + tess_denoise_row_bytes(&file->info));
    }
    if (file->prepared)
        tess_prepared_carve(file, at + tess_align_size(sink_bytes, 64), &job->prepared.rows);
    if (file->truth)
        tess_quality_begin(&job->quality, file->info.width, tess_denoise_colours(&file->info),
                           job->rows.lines);
    return ring;
}

/* The blocks were sized from the header; a file that was replaced since then must not be read into them. */
static tess_status reopen(tess_memory *memory, const char *path, tess_axes axes,
                          const tess_image_info *planned, tess_reader **reader, tess_error *error)
{
    TESS_TRY(tess_denoise_open(memory, path, axes, planned->dtype, reader, error));
    const tess_image_info *now = tess_reader_info(*reader);
    bool same = now->height == planned->height && now->width == planned->width &&
                now->depth == planned->depth && now->channels == planned->channels &&
                now->alpha == planned->alpha && now->dtype == planned->dtype &&
                now->full_scale == planned->full_scale && now->held_bytes == planned->held_bytes &&
                now->masked == planned->masked;
    return same ? TESS_OK
                : tess_fail(error, TESS_BAD_INPUT, "%s: changed while the job ran; run it again", path);
}

tess_status tess_image_open_source(tess_image_job *job, tess_error *error)
{
    tess_denoise_file *file = job->file;
    tess_prepared_image *p = &job->prepared;
    tess_memory *memory = job->engine->memory;
    TESS_TRY(reopen(memory, file->input, file->axes, &file->info, &job->reader, error));
    if (file->prepared && file->map_info.width)
        TESS_TRY(
            reopen(memory, p->settings->sigma_map, file->map_info.axes, &file->map_info, &p->map, error));
    p->file = file;
    p->reader = job->reader;
    p->noise = job->pixels.noise;
    return TESS_OK;
}

tess_status tess_image_open_sink(tess_image_job *job, tess_error *error)
{
    tess_denoise_file *file = job->file;
    tess_memory *memory = job->engine->memory;
    if (file->truth)
        TESS_TRY(reopen(memory, file->truth, file->axes, &file->truth_info, &job->truth, error));
    if (file->prepared)
        TESS_TRY(reopen(memory, file->input, file->axes, &file->info, &job->prepared.original, error));
    return TESS_OK;
}

tess_status tess_image_create(tess_image_job *job, tess_error *error)
{
    tess_denoise_file *file = job->file;
    TESS_TRY(tess_writer_open(job->engine->memory, file->output, &file->out_info, job->reader, &job->writer,
                              error));
    if (tess_writer_lost(job->writer))
        snprintf(file->lost, sizeof file->lost, "%s", tess_writer_lost(job->writer));
    return TESS_OK;
}

static tess_status open_files(tess_image_job *job, tess_error *error)
{
    TESS_TRY(tess_image_open_source(job, error));
    TESS_TRY(tess_image_open_sink(job, error));
    return tess_image_create(job, error);
}

/* A volume is processed slice by slice; each slice is an image. */
static tess_status run_slices(tess_image_job *job, tess_error *error)
{
    const tess_denoise_file *file = job->file;
    const tess_ring_settings ring = {.rows = file->choice.rows,
                                     .image_rows = file->info.height,
                                     .in_row_bytes = file->request.in_row_bytes,
                                     .out_row_bytes = file->request.out_row_bytes,
                                     .source = tess_image_source,
                                     .worker = job->blocks->queue ? tess_image_submit : tess_image_run,
                                     .sink = tess_image_sink,
                                     .user = job,
                                     .stop = &job->engine->stop};
    void *buffer = tess_image_carve(job);
    for (int64_t slice = 0; slice < tess_max_i64(file->info.depth, 1); slice++) {
        tess_denoise_set_slice(file, slice, &job->pixels);
        if (file->prepared)
            tess_prepared_begin_slice(&job->prepared, slice);
        job->quality.rows = 0; /* SSIM's windows stay inside a slice */
        TESS_TRY(tess_ring_run(&ring, buffer, error));
    }
    return TESS_OK;
}

void tess_image_conclude(tess_image_job *job)
{
    tess_denoise_file *file = job->file;
    file->cut_off = (double)job->prepared.cut_off / (double)tess_max_i64(job->prepared.written, 1);
    file->held_back = (double)job->prepared.held_back / (double)tess_max_i64(job->prepared.restored, 1);
    if (file->truth) {
        file->psnr = tess_quality_psnr(&job->quality);
        file->ssim = tess_quality_ssim(&job->quality);
        file->truth_outside = (double)job->quality.outside / (double)tess_max_i64(job->quality.values, 1);
    }
}

void tess_image_close(tess_image_job *job)
{
    tess_writer_close(job->writer);
    tess_reader_close(job->truth);
    tess_reader_close(job->prepared.original);
    tess_reader_close(job->prepared.map);
    tess_reader_close(job->reader);
}

static tess_status run_image(tess_image_job *job, tess_error *error)
{
    tess_denoise_file *file = job->file;
    TESS_TRY(open_files(job, error));
    TESS_TRY(file->model->model.volume ? tess_denoise_volume(job, error) : run_slices(job, error));
    TESS_TRY(tess_stop_check(&job->engine->stop, error)); /* results of an interrupted run are not kept */
    TESS_TRY(tess_writer_commit(job->writer, error));
    tess_image_conclude(job);
    return TESS_OK;
}

tess_status tess_denoise_image(tess_engine *engine, const tess_denoise_settings *settings,
                               tess_denoise_file *file, const tess_denoise_blocks *blocks, tess_error *error)
{
    tess_image_job job;
    memset(&job, 0, sizeof job);
    job.engine = engine;
    job.file = file;
    job.blocks = blocks;
    job.prepared.settings = settings;
    job.pixels = tess_denoise_pixels(engine, settings, file);
    tess_status status = run_image(&job, error);
    if (blocks->queue)
        tess_image_wait_all(&job);
    tess_image_close(&job);
    return status;
}
