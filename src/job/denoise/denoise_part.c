/* Runs a rank's strip of an image. Whatever can fail on one rank is followed by an agreement before the next collective
 * call: reading before the network, whose exchanges all ranks make; the network before writing; writing before the
 * output gets its name. A rank without a strip only agrees. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/process.h"
#include "job/denoise/denoise_part.h"

static tess_status agree(tess_denoise_part *part, tess_status mine, tess_error *error)
{
    return tess_dist_agree(part->dist, mine, error);
}

static bool sinks(const tess_denoise_part *part)
{
    return part->count > 0 && (part->dist->rank == 0 || part->job->strips.in_place);
}

static tess_status alloc_blocks(tess_denoise_part *part, tess_error *error)
{
    const tess_denoise_file *file = &part->job->files[0];
    const tess_cut_plan *choice = &file->choice;
    tess_engine *engine = &part->job->engine;
    const tess_windows_settings settings = {.device = engine->device, .keep = 1};
    const tess_cut cut = tess_cut_of(choice);
    TESS_TRY(tess_engine_load(engine, error));
    part->job->loaded = tess_process_resident();
    const tess_window_net net = {file->model->bound, file->model->weights.data, part->image.pixels.planes};
    TESS_TRY(tess_windows_create(&settings, &part->blocks.windows, error));
    TESS_TRY(tess_windows_alloc(part->blocks.windows, choice->arena_bytes, choice->workspace_bytes, error));
    TESS_TRY(tess_windows_prepare(part->blocks.windows, &net, &cut, error));
    return tess_block_alloc(engine->memory, &part->blocks.io, TESS_MEM_HOST, choice->io_block, error);
}

/* Allocates and opens what this rank alone needs. */
static tess_status open_part(tess_denoise_part *part, tess_error *error)
{
    const tess_denoise_file *file = &part->job->files[0];
    const int rank = part->dist->rank;
    if (part->count == 0)
        return TESS_OK;
    TESS_TRY(alloc_blocks(part, error));
    for (int i = 0; i < TESS_PART_PIECES; i++)
        TESS_TRY(tess_dist_exchange_create(part->dist, 1, &part->collects[i], error));
    TESS_TRY(tess_neighbours_open(&part->neighbours, part->dist, rank - 1, rank + 1, error));
    part->ring = (tess_ring_settings){.rows = file->choice.rows,
                                      .image_rows = part->count,
                                      .in_row_bytes = file->request.in_row_bytes,
                                      .out_row_bytes = file->request.out_row_bytes};
    part->strip = tess_ring_only_strip(&part->ring, tess_image_carve(&part->image));
    TESS_TRY(tess_image_open_source(&part->image, error));
    return sinks(part) ? tess_image_open_sink(&part->image, error) : TESS_OK;
}

/* Rank 0 creates the output; ranks that write their own rows open its file. */
static tess_status open_output(tess_denoise_part *part, tess_error *error)
{
    tess_denoise_file *file = &part->job->files[0];
    char name[4096] = "";
    tess_status status = TESS_OK;
    if (part->dist->rank == 0)
        status = tess_image_create(&part->image, error);
    if (part->dist->rank == 0 && status == TESS_OK)
        snprintf(name, sizeof name, "%s", tess_writer_file(part->image.writer));
    TESS_TRY(agree(part, status, error));
    if (!part->job->strips.in_place)
        return TESS_OK;
    TESS_TRY(tess_dist_broadcast(part->dist, 0, name, sizeof name, error));
    if (part->dist->rank > 0 && sinks(part))
        status = tess_writer_open_part(part->job->engine.memory, file->output, &file->out_info,
                                       part->image.reader, name, &part->image.writer, error);
    return agree(part, status, error);
}

/* Goes to the strip's rows of a slice in all files that are open. */
static tess_status go_to(tess_denoise_part *part, int64_t slice, tess_error *error)
{
    tess_image_job *image = &part->image;
    tess_denoise_file *file = image->file;
    const int64_t row = slice * file->info.height + part->first;
    tess_denoise_set_slice(file, slice, &image->pixels);
    if (sinks(part) && part->job->strips.in_place)
        tess_writer_seek(image->writer, row);
    image->quality.rows = 0; /* SSIM's windows stay inside a slice */
    if (!file->prepared)
        return tess_reader_seek(image->reader, row, part->strip.out, error);
    tess_prepared_begin_slice(&image->prepared, slice);
    TESS_TRY(tess_prepared_source_at(&image->prepared, part->first, error));
    return sinks(part) ? tess_prepared_sink_at(&image->prepared, part->first, error) : TESS_OK;
}

static tess_status read_part(tess_denoise_part *part, int64_t slice, tess_error *error)
{
    const tess_strip *strip = &part->strip;
    const int64_t most = tess_max_i64(((int64_t)1 << 20) / (int64_t)strip->in_row_bytes, 1);
    if (part->count == 0)
        return TESS_OK;
    TESS_TRY(go_to(part, slice, error));
    for (int64_t y = 0, count; y < part->count; y += count) {
        count = tess_min_i64(most, part->count - y);
        TESS_TRY(tess_stop_check(&part->job->engine.stop, error));
        TESS_TRY(tess_image_source(&part->image, y, count, (char *)tess_strip_row(strip, y), error));
    }
    return TESS_OK;
}

static tess_status compute(tess_denoise_part *part, tess_error *error)
{
    tess_neighbours *n = &part->neighbours;
    if (part->count == 0)
        return TESS_OK;
    const tess_status status = tess_image_run(&part->image, &part->strip, error);
    return n->status == TESS_OK ? status : tess_fail(error, n->status, "%s", n->error.text);
}

static tess_status write_part(tess_denoise_part *part, tess_error *error)
{
    if (!part->job->strips.in_place)
        return tess_part_collect(part, error);
    return part->count ? tess_part_write(part, error) : TESS_OK;
}

/* Rank 0 renames the output after all ranks have written their rows. */
static tess_status commit(tess_denoise_part *part, tess_error *error)
{
    tess_writer *writer = part->image.writer;
    tess_status status = tess_stop_check(&part->job->engine.stop, error);
    if (status == TESS_OK && writer && part->dist->rank > 0)
        status = tess_writer_commit(writer, error);
    TESS_TRY(agree(part, status, error));
    if (part->dist->rank == 0)
        status = tess_writer_commit(writer, error);
    return agree(part, status, error);
}

/* Adds up what the sinks have counted; the time is that of the slowest rank. */
static tess_status share_figures(tess_denoise_part *part, tess_error *error)
{
    typedef struct figures {
        int64_t written, cut_off;
        double seconds;
    } figures;
    tess_prepared_image *p = &part->image.prepared;
    tess_denoise_file *file = &part->job->files[0];
    const figures mine = {p->written, p->cut_off, file->seconds};
    p->written = p->cut_off = 0;
    for (int r = 0; r < part->dist->size; r++) {
        figures theirs = mine;
        TESS_TRY(tess_dist_broadcast(part->dist, r, &theirs, sizeof theirs, error));
        p->written += theirs.written;
        p->cut_off += theirs.cut_off;
        file->seconds = theirs.seconds > file->seconds ? theirs.seconds : file->seconds;
    }
    if (part->dist->rank == 0)
        tess_image_conclude(&part->image);
    file->done = true;
    file->fresh = part->dist->rank == 0;
    return TESS_OK;
}

static tess_status run_part(tess_denoise_part *part, tess_error *error)
{
    TESS_TRY(agree(part, open_part(part, error), error));
    TESS_TRY(open_output(part, error));
    for (int64_t slice = 0; slice < tess_max_i64(part->job->files[0].info.depth, 1); slice++) {
        TESS_TRY(agree(part, read_part(part, slice, error), error));
        TESS_TRY(agree(part, compute(part, error), error));
        TESS_TRY(agree(part, write_part(part, error), error));
    }
    TESS_TRY(commit(part, error));
    return share_figures(part, error);
}

tess_status tess_denoise_run_strips(tess_denoise_job *job, tess_error *error)
{
    tess_denoise_file *file = &job->files[0];
    tess_denoise_part part;
    memset(&part, 0, sizeof part);
    part.job = job;
    part.dist = job->engine.dist;
    if (part.dist->rank < job->strips.count) {
        part.first = tess_denoise_strip_row(job, part.dist->rank);
        part.count = tess_denoise_strip_row(job, part.dist->rank + 1) - part.first;
    }
    tess_image_job *image = &part.image;
    image->engine = &job->engine;
    image->file = file;
    image->blocks = &part.blocks;
    image->prepared.settings = job->settings;
    image->pixels = tess_denoise_pixels(&job->engine, job->settings, file);
    image->pixels.image.height = part.count;
    image->pixels.first_row = image->first_row = part.first;
    image->exchanger = job->strips.count > 1 ? &tess_neighbours_exchanger : NULL;
    image->exchange_user = &part.neighbours;
    if (part.dist->rank == 0)
        tess_denoise_announce(job, 0);
    const tess_status status = run_part(&part, error);
    tess_image_close(image);
    tess_neighbours_close(&part.neighbours);
    for (int i = 0; i < TESS_PART_PIECES; i++)
        tess_dist_exchange_destroy(part.collects[i]);
    tess_windows_destroy(part.blocks.windows);
    tess_block_free(&part.blocks.io);
    return status;
}
