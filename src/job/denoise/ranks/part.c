/* Runs a rank's part of an image: a strip or block, whose neighbours it exchanges rows with, or rows of tiles. Whatever can fail on one rank is followed by an agreement before the next collective
 * call: reading before the network, whose exchanges all ranks make; the network before writing; writing before the
 * output gets its name. A rank without a part only agrees. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/process.h"
#include "job/denoise/ranks/part.h"

static tess_status agree(tess_denoise_part *part, tess_status mine, tess_error *error)
{
    return tess_dist_agree(part->dist, mine, error);
}

static bool sinks(const tess_denoise_part *part)
{
    return !part->idle && tess_denoise_writes(part->job, part->dist->rank);
}

static bool spools(const tess_denoise_part *part)
{
    return part->job->strips.tiles && !part->job->strips.in_place;
}

static tess_status open_windows(tess_denoise_part *part, tess_error *error)
{
    enum { SHAPES = 16 }; /* of windows, whose plans are kept */
    const tess_denoise_file *file = &part->job->files[0];
    const tess_cut_plan *choice = &file->choice;
    const tess_windows_settings settings = {.device = part->job->engine.device, .keep = SHAPES};
    const tess_cut cut = tess_cut_of(choice);
    const tess_window_net net = {file->model->bound, file->model->weights.data, part->image.pixels.planes};
    TESS_TRY(tess_windows_create(&settings, &part->blocks.windows, error));
    TESS_TRY(tess_windows_alloc(part->blocks.windows, choice->arena_bytes, choice->workspace_bytes, error));
    return part->job->strips.tiles /* else nothing may fail between exchanges */
               ? TESS_OK
               : tess_windows_prepare(part->blocks.windows, &net, &cut, error);
}

static tess_status alloc_blocks(tess_denoise_part *part, tess_error *error)
{
    tess_engine *engine = &part->job->engine;
    if (!part->job->strips.tiles)
        tess_engine_help(engine);
    TESS_TRY(tess_engine_load(engine, error));
    part->job->loaded = tess_process_resident();
    TESS_TRY((engine->separate_memory ? tess_card_open : open_windows)(part, error));
    return tess_block_alloc(engine->memory, &part->blocks.io, TESS_MEM_HOST,
                            part->job->files[0].choice.io_block, error);
}

/* Allocates and opens what this rank alone needs. */
static tess_status open_part(tess_denoise_part *part, tess_error *error)
{
    if (part->idle)
        return TESS_OK;
    const bool blocks = tess_denoise_in_blocks(part->job);
    const int across = blocks ? (int)part->job->strips.blocks.columns.count : 1;
    TESS_TRY(tess_neighbours_open(&part->neighbours, part->dist, across, error));
    TESS_TRY(alloc_blocks(part, error));
    for (int i = 0; i < TESS_PART_PIECES; i++)
        TESS_TRY(tess_dist_exchange_create(part->dist, across, &part->collects[i], error));
    part->buffer = tess_image_carve(&part->image);
    if (blocks)
        TESS_TRY(tess_block_open(part, error));
    if (!part->job->strips.tiles)
        part->strip = tess_ring_only_strip(&part->ring, part->buffer);
    TESS_TRY(tess_image_open_source(&part->image, error));
    return sinks(part) ? tess_image_open_sink(&part->image, error) : TESS_OK;
}

static tess_status create_output(tess_denoise_part *part, char *name, size_t bytes, tess_error *error)
{
    if (part->dist->rank > 0)
        return TESS_OK;
    TESS_TRY(tess_image_create(&part->image, error));
    if (spools(part))
        TESS_TRY(tess_spool_create(part, error));
    snprintf(name, bytes, "%s",
             part->spool ? tess_temp_path(part->spool) : tess_writer_file(part->image.writer));
    return TESS_OK;
}

/* Rank 0 creates the output, and tells the others where they write. */
static tess_status open_output(tess_denoise_part *part, tess_error *error)
{
    tess_denoise_file *file = &part->job->files[0];
    char name[4096] = "";
    tess_status status = TESS_OK;
    TESS_TRY(agree(part, create_output(part, name, sizeof name, error), error));
    TESS_TRY(tess_dist_broadcast(part->dist, 0, name, sizeof name, error));
    if (spools(part) && !part->idle)
        status = tess_spool_open(part, name, error);
    else if (part->dist->rank > 0 && sinks(part))
        status = tess_writer_open_part(part->job->engine.memory, file->output, &file->out_info,
                                       part->image.reader, name, &part->image.writer, error);
    return agree(part, status, error);
}

static void begin_slice(tess_denoise_part *part, int64_t slice)
{
    tess_image_job *image = &part->image;
    image->slice = slice;
    image->quality.rows = 0; /* SSIM's windows stay inside a slice */
    tess_denoise_set_slice(image->file, slice, &image->pixels);
    if (image->file->prepared)
        tess_prepared_begin_slice(&image->prepared, slice);
}

/* Goes to the part's rows of a slice in all files that are open. Tiles also need rows before the part. */
static tess_status go_to(tess_denoise_part *part, int64_t slice, tess_error *error)
{
    tess_image_job *image = &part->image;
    const tess_denoise_file *file = image->file;
    const int64_t top = slice * file->info.height,
                  from = part->job->strips.tiles
                             ? tess_axis_span(&part->ring.rows, part->ring.first_strip).window_from
                             : part->first;
    begin_slice(part, slice);
    const bool sinks_own = part->job->strips.in_place && sinks(part);
    if (sinks_own)
        tess_writer_seek(image->writer, top + part->first);
    if (!file->prepared)
        return tess_reader_seek(image->reader, top + from, part->rows ? part->rows : part->buffer, error);
    TESS_TRY(tess_prepared_source_at(&image->prepared, from, error));
    return sinks_own ? tess_prepared_sink_at(&image->prepared, part->first, error) : TESS_OK;
}

static tess_status read_strip(tess_denoise_part *part, int64_t slice, tess_error *error)
{
    const tess_strip *strip = &part->strip;
    if (part->idle)
        return TESS_OK;
    const int64_t most = tess_max_i64(((int64_t)1 << 20) / (int64_t)strip->in_row_bytes, 1);
    TESS_TRY(go_to(part, slice, error));
    if (part->rows)
        return tess_block_read(part, error);
    for (int64_t y = 0, count; y < part->count; y += count) {
        count = tess_min_i64(most, part->count - y);
        TESS_TRY(tess_stop_check(&part->job->engine.stop, error));
        TESS_TRY(tess_image_source(&part->image, y, count, (char *)tess_strip_row(strip, y), error));
    }
    return TESS_OK;
}

static tess_status compute_strip(tess_denoise_part *part, tess_error *error)
{
    if (part->idle)
        return TESS_OK;
    const tess_status status =
        part->blocks.queue ? tess_card_run(part, error) : tess_image_run(&part->image, &part->strip, error);
    return tess_card_links_check(part->dist, &part->neighbours, status, error);
}

static tess_status write_strip(tess_denoise_part *part, tess_error *error)
{
    if (tess_denoise_in_blocks(part->job))
        return tess_block_collect(part, error);
    if (!part->job->strips.in_place)
        return tess_part_collect(part, error);
    return part->idle ? TESS_OK : tess_part_write(part, error);
}

static tess_status run_strip(tess_denoise_part *part, int64_t slice, tess_error *error)
{
    TESS_TRY(agree(part, read_strip(part, slice, error), error));
    TESS_TRY(agree(part, compute_strip(part, error), error));
    return agree(part, write_strip(part, error), error);
}

/* The functions of the ring have the part as their user. */
static tess_status source(void *user, int64_t first, int64_t count, void *rows, tess_error *error)
{
    tess_denoise_part *part = user;
    return tess_image_source(&part->image, first, count, rows, error);
}

static tess_status work(void *user, const tess_strip *strip, tess_error *error)
{
    tess_denoise_part *part = user;
    part->drained = part->drained || tess_dist_next(part->dist, part->counter) == INT64_MAX;
    if (part->drained)
        return tess_fail(error, TESS_INTERRUPTED, "another rank has failed");
    return (part->blocks.queue ? tess_image_submit : tess_image_run)(&part->image, strip, error);
}

static tess_status sink(void *user, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    tess_denoise_part *part = user;
    return tess_image_sink(&part->image, first, count, rows, error);
}

/* A rank that fails drains a counter, so that the others end early; the error is its own. */
static tess_status run_tiles(tess_denoise_part *part, int64_t slice, tess_error *error)
{
    tess_status status = TESS_OK;
    part->counter = tess_dist_counter(part->dist);
    if (!part->idle)
        status = go_to(part, slice, error);
    if (status == TESS_OK && !part->idle)
        status = tess_ring_run(&part->ring, part->buffer, error);
    if (status != TESS_OK)
        tess_dist_drain(part->dist, part->counter);
    TESS_TRY(agree(part, part->drained ? TESS_OK : status, error));
    if (spools(part) && part->dist->rank == 0) {
        begin_slice(part, slice);
        status = tess_spool_write(part, error);
    }
    return agree(part, status, error);
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
        int64_t written, cut_off, restored, held_back;
        double seconds;
    } figures;
    tess_prepared_image *p = &part->image.prepared;
    tess_denoise_file *file = &part->job->files[0];
    const figures mine = {p->written, p->cut_off, p->restored, p->held_back, file->seconds};
    p->written = p->cut_off = p->restored = p->held_back = 0;
    for (int r = 0; r < part->dist->size; r++) {
        figures theirs = mine;
        TESS_TRY(tess_dist_broadcast(part->dist, r, &theirs, sizeof theirs, error));
        p->written += theirs.written;
        p->cut_off += theirs.cut_off;
        p->restored += theirs.restored;
        p->held_back += theirs.held_back;
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
    for (int64_t slice = 0; slice < tess_max_i64(part->job->files[0].info.depth, 1); slice++)
        TESS_TRY((part->job->strips.tiles ? run_tiles : run_strip)(part, slice, error));
    TESS_TRY(commit(part, error));
    if (part->blocks.queue)
        tess_image_wait_all(&part->image); /* counts the seconds of the device */
    return share_figures(part, error);
}

/* A strip or block is an image of its own; rows of tiles keep their places in the image. */
static void set_part(tess_denoise_part *part)
{
    const tess_denoise_strips *s = &part->job->strips;
    const tess_denoise_file *file = &part->job->files[0];
    const int64_t rank = part->dist->rank;
    tess_image_job *image = &part->image;
    const tess_blocks_part own = tess_denoise_part_of(part->job, rank);
    part->first = own.row;
    part->count = own.rows;
    part->first_column = own.column;
    part->ring = (tess_ring_settings){.rows = file->choice.rows,
                                      .image_rows = s->tiles ? file->info.height : part->count,
                                      .in_row_bytes = file->request.in_row_bytes,
                                      .out_row_bytes = file->request.out_row_bytes,
                                      .source = source,
                                      .worker = work,
                                      .sink = s->in_place ? sink : tess_spool_sink,
                                      .user = part,
                                      .stop = &part->job->engine.stop};
    if (s->tiles) {
        part->ring.first_strip = tess_denoise_strip_tile(part->job, rank);
        part->ring.end_strip = tess_denoise_strip_tile(part->job, rank + 1);
        return;
    }
    image->pixels.image.height = part->count;
    image->pixels.first_row = image->first_row = part->first;
    image->pixels.file_width = image->pixels.image.width;
    image->pixels.first_column = own.column;
    image->pixels.image.width = own.columns;
    image->exchanger = s->count > 1 ? &tess_neighbours_exchanger : NULL;
    image->exchange_user = &part->neighbours;
}

tess_status tess_denoise_run_strips(tess_denoise_job *job, tess_error *error)
{
    tess_denoise_part part;
    memset(&part, 0, sizeof part);
    part.job = job;
    part.dist = job->engine.dist;
    part.spool_file = -1;
    part.idle = part.dist->rank >= job->strips.count;
    tess_image_job *image = &part.image;
    image->engine = &job->engine;
    image->file = &job->files[0];
    image->blocks = &part.blocks;
    image->prepared.settings = job->settings;
    image->pixels = tess_denoise_pixels(&job->engine, job->settings, image->file);
    if (!part.idle)
        set_part(&part);
    if (part.dist->rank == 0)
        tess_denoise_announce(job, 0);
    const tess_status status = run_part(&part, error);
    tess_card_close(&part);
    tess_spool_close(&part);
    tess_image_close(image);
    tess_neighbours_close(&part.neighbours);
    for (int i = 0; i < TESS_PART_PIECES; i++)
        tess_dist_exchange_destroy(part.collects[i]);
    tess_small_free(part.transfers);
    tess_windows_destroy(part.blocks.windows);
    tess_block_free(&part.blocks.io);
    return status;
}
