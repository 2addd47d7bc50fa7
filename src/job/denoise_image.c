/* One image through the ring: the source reads rows, the worker runs the network over the windows of a strip,
 * the sink compares with the truth and writes. */
#include <string.h>

#include "base/checked.h"
#include "job/denoise_image.h"
#include "tensor/samples.h"

static tess_status source(void *user, int64_t first, int64_t count, void *rows, tess_error *error)
{
    tess_image_job *job = user; /* rows are asked for in order */
    if (!job->row_samples)
        return tess_reader_rows(job->reader, count, rows, error);
    for (int64_t y = 0; y < count; y++) {
        TESS_TRY(tess_reader_rows(job->reader, 1, job->row_samples, error));
        tess_pixels_noisy_row(&job->pixels, first + y, job->row_samples, job->row_draws,
                              (float *)((char *)rows + (size_t)y * job->file->wish.in_row_bytes));
    }
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
    tess_image_job *job = user;
    if (job->blocks->lane)
        TESS_TRY(tess_lane_strip_settle(job, first, error));
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
static void *carve(tess_image_job *job)
{
    char *at = job->blocks->io.data;
    const tess_denoise_file *file = job->file;
    void *ring = at;
    at += file->choice.ring_bytes;
    job->pixels.scratch = (float *)at;
    at += file->wish.row_scratch_bytes * (size_t)tess_axis_largest_window(&file->choice.cols);
    const size_t sink_bytes = tess_denoise_carve_sink(file, at, &job->rows);
    if (job->blocks->lane && job->pixels.add_noise > 0) {
        job->row_samples = at + tess_align_size(sink_bytes, 64);
        job->row_draws = (float *)(job->row_samples + tess_denoise_row_bytes(&file->info));
    }
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

static tess_status run_image(tess_image_job *job, tess_error *error)
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
                               .worker = job->blocks->lane ? tess_lane_strip : tess_direct_strip,
                               .sink = sink,
                               .user = job,
                               .stop = &job->engine->stop};
    TESS_TRY(tess_ring_run(&ring, carve(job), error));
    TESS_TRY(tess_stop_check(&job->engine->stop, error)); /* what was left early is not kept */
    TESS_TRY(tess_writer_commit(job->writer, error));
    if (file->truth) {
        file->psnr = tess_quality_psnr(&job->quality);
        file->ssim = tess_quality_ssim(&job->quality);
    }
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
    job.pixels = tess_denoise_pixels(engine, settings, file);
    tess_status status = run_image(&job, error);
    if (blocks->lane)
        tess_lane_strips_end(&job);
    tess_direct_drop(&job);
    tess_small_free(job.plans);
    tess_small_free(job.shapes);
    tess_writer_close(job.writer);
    tess_reader_close(job.truth);
    tess_reader_close(job.reader);
    return status;
}
