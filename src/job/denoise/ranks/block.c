/* The columns of a block in the rows of files. Preparing and finishing rows needs whole ones (holes, local means, weak noise, the
 * truth), and so do formats. So each rank reads its rows in full width, about a MiB at a time, and keeps its columns; and one rank for
 * each row of blocks, or rank 0 for all, gets the columns of the others in pieces, puts rows together and writes them. No two
 * ranks write the same row, and none holds more of other columns than a few pieces. */
#include <string.h>

#include "base/checked.h"
#include "job/denoise/ranks/part.h"

enum { BUFFERS = TESS_PART_PIECES };
static const size_t PIECE = (size_t)1 << 20, ALIGN = 64;

/* Bytes of a pixel in the rows that are read, and in those of the result. */
typedef struct pixel_bytes {
    size_t in, out;
} pixel_bytes;

static pixel_bytes pixel_of(const tess_denoise_job *job)
{
    const tess_denoise_file *file = &job->files[0];
    const tess_pixels pixels = tess_denoise_pixels(&job->engine, job->settings, file);
    const size_t channels = (size_t)pixels.image.channels, sample = tess_dtype_size(pixels.image.dtype);
    const bool noisy = job->engine.separate_memory && pixels.add_noise > 0; /* as rows are read */
    return (pixel_bytes){channels * (noisy ? sizeof(float) : sample),
                         channels * (pixels.float_out ? sizeof(float) : sample)};
}

/* Rows of a piece, the same on all ranks. */
static int64_t piece_rows(const tess_denoise_job *job, size_t row_bytes)
{
    return tess_max_i64(tess_min_i64((int64_t)(PIECE / row_bytes), job->strips.most), 1);
}

static size_t piece_bytes(const tess_denoise_job *job, size_t pixel)
{
    const size_t row = (size_t)job->files[0].info.width * pixel;
    return tess_align_size((size_t)piece_rows(job, row) * row, ALIGN);
}

size_t tess_block_io_bytes(const tess_denoise_job *job, int64_t rank)
{
    const pixel_bytes pixel = pixel_of(job);
    const size_t read = piece_bytes(job, pixel.in),
                 written = tess_denoise_writes(job, rank) ? (BUFFERS + 1) * piece_bytes(job, pixel.out) : 0;
    return ALIGN + (read > written ? read : written);
}

tess_status tess_block_open(tess_denoise_part *part, tess_error *error)
{
    const size_t io = part->job->files[0].choice.io_block,
                 own = tess_block_io_bytes(part->job, part->dist->rank);
    part->rows = (char *)part->blocks.io.data + tess_align_size(io - own, ALIGN);
    part->transfers =
        tess_small_alloc((size_t)part->job->strips.blocks.columns.count, sizeof *part->transfers);
    return part->transfers ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for rows of other ranks");
}

tess_status tess_block_read(tess_denoise_part *part, tess_error *error)
{
    const tess_strip *strip = &part->strip;
    const size_t pixel = pixel_of(part->job).in, row = (size_t)part->job->files[0].info.width * pixel;
    const int64_t most = piece_rows(part->job, row);
    for (int64_t y = 0, count; y < part->count; y += count) {
        count = tess_min_i64(most, part->count - y);
        TESS_TRY(tess_stop_check(&part->job->engine.stop, error));
        TESS_TRY(tess_image_source(&part->image, y, count, part->rows, error));
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)tess_strip_row(strip, y + i),
                   part->rows + (size_t)i * row + (size_t)part->first_column * pixel, strip->in_row_bytes);
    }
    return TESS_OK;
}

/* Some rows of one row of blocks, on their way to the rank that writes them. */
typedef struct piece {
    int64_t band; /* row of blocks */
    int64_t first, count;
} piece;

/* A piece that is under way. */
typedef struct moving {
    piece piece;
    tess_dist_exchange *exchange;
    char *data; /* the columns of one block after those of another */
    bool begun;
} moving;

static int64_t across(const tess_denoise_part *part)
{
    return part->job->strips.blocks.columns.count;
}

static int64_t writer_of(const tess_denoise_part *part, int64_t band)
{
    return part->job->strips.in_place ? band * across(part) : 0;
}

static bool takes_part(const tess_denoise_part *part, int64_t band)
{
    return part->dist->rank / across(part) == band || part->dist->rank == writer_of(part, band);
}

/* The next piece that this rank sends or writes. */
static bool next_piece(const tess_denoise_part *part, int64_t most, piece *p)
{
    const tess_strips *rows = &part->job->strips.blocks.rows;
    p->first += p->count;
    while (p->band < rows->count &&
           (!takes_part(part, p->band) || p->first >= tess_strips_row(rows, p->band + 1))) {
        p->band++;
        p->first = p->band < rows->count ? tess_strips_row(rows, p->band) : 0;
    }
    if (p->band == rows->count)
        return false;
    p->count = tess_min_i64(most, tess_strips_row(rows, p->band + 1) - p->first);
    return true;
}

static tess_status begin(const tess_denoise_part *part, const piece *p, moving *m, tess_error *error)
{
    const tess_strip *strip = &part->strip;
    const int64_t rank = part->dist->rank, to = writer_of(part, p->band), first = p->band * across(part);
    const size_t pixel = pixel_of(part->job).out;
    tess_dist_transfer *list = part->transfers;
    int count = 0;
    m->piece = *p;
    if (rank != to)
        list[count++] =
            (tess_dist_transfer){.peer = (int)to,
                                 .send = strip->out + (size_t)(p->first - part->first) * strip->out_row_bytes,
                                 .send_bytes = (size_t)p->count * strip->out_row_bytes};
    for (int64_t r = first; r < first + across(part) && rank == to; r++) {
        const tess_blocks_part theirs = tess_denoise_part_of(part->job, r);
        if (r != rank)
            list[count++] =
                (tess_dist_transfer){.peer = (int)r,
                                     .receive = m->data + (size_t)(p->count * theirs.column) * pixel,
                                     .receive_bytes = (size_t)(p->count * theirs.columns) * pixel};
    }
    TESS_TRY(tess_dist_exchange_begin(m->exchange, list, count, error));
    m->begun = true;
    return TESS_OK;
}

/* Puts the columns of all blocks side by side, this rank's own from its block. */
static void put_together(const tess_denoise_part *part, const moving *m, char *rows)
{
    const tess_strip *strip = &part->strip;
    const piece *p = &m->piece;
    const size_t pixel = pixel_of(part->job).out, row = (size_t)part->job->files[0].info.width * pixel;
    for (int64_t x = 0; x < across(part); x++) {
        const int64_t rank = p->band * across(part) + x;
        const tess_blocks_part block = tess_denoise_part_of(part->job, rank);
        const size_t bytes = (size_t)block.columns * pixel;
        const char *from = rank == part->dist->rank
                               ? strip->out + (size_t)(p->first - part->first) * strip->out_row_bytes
                               : m->data + (size_t)(p->count * block.column) * pixel;
        for (int64_t y = 0; y < p->count; y++)
            memcpy(rows + (size_t)y * row + (size_t)block.column * pixel, from + (size_t)y * bytes, bytes);
    }
}

/* After a failure the others' pieces are still received. */
static tess_status end(tess_denoise_part *part, moving *m, tess_status before, tess_error *error)
{
    tess_error other;
    if (!m->begun)
        return before;
    m->begun = false;
    const tess_status moved = tess_dist_exchange_end(m->exchange, before == TESS_OK ? error : &other);
    if (before != TESS_OK || moved != TESS_OK || part->dist->rank != writer_of(part, m->piece.band))
        return before != TESS_OK ? before : moved;
    char *rows = part->rows + BUFFERS * piece_bytes(part->job, pixel_of(part->job).out);
    put_together(part, m, rows);
    return tess_part_sink(part, m->piece.first - part->first, m->piece.count, rows, error);
}

tess_status tess_block_collect(tess_denoise_part *part, tess_error *error)
{
    if (part->idle)
        return TESS_OK;
    const size_t pixel = pixel_of(part->job).out;
    const int64_t most = piece_rows(part->job, (size_t)part->job->files[0].info.width * pixel);
    moving m[BUFFERS] = {{.begun = false}};
    for (int i = 0; i < BUFFERS; i++)
        m[i].data = part->rows + (size_t)i * piece_bytes(part->job, pixel), m[i].exchange = part->collects[i];
    tess_status status = TESS_OK;
    piece next = {0};
    int turn = 0;
    for (; next_piece(part, most, &next); turn++) {
        tess_error other;
        const tess_status begun = begin(part, &next, &m[turn % BUFFERS], status == TESS_OK ? error : &other);
        status = status == TESS_OK ? begun : status;
        status = end(part, &m[(turn + 1) % BUFFERS], status, error);
    }
    for (int i = 0; i < BUFFERS; i++)
        status = end(part, &m[(turn + i) % BUFFERS], status, error);
    return status;
}
