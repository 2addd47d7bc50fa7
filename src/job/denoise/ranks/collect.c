/* Rows of the result on their way to the output. A piece is about a MiB. Rank 0 receives pieces into the memory of its own
 * rows, which are written before, and receives the next piece while it writes one: it never holds more than its strip. */
#include "base/checked.h"
#include "job/denoise/ranks/part.h"

enum { BUFFERS = TESS_PART_PIECES };
static const size_t PIECE = (size_t)1 << 20;

tess_status tess_part_sink(tess_denoise_part *part, int64_t first, int64_t count, const char *rows,
                           tess_error *error)
{
    TESS_TRY(tess_stop_check(&part->job->engine.stop, error));
    return tess_image_sink(&part->image, first, count, rows, error);
}

tess_status tess_part_write(tess_denoise_part *part, tess_error *error)
{
    const tess_strip *strip = &part->strip;
    const int64_t most = tess_max_i64((int64_t)(PIECE / strip->out_row_bytes), 1);
    for (int64_t y = 0, count; y < part->count; y += count) {
        count = tess_min_i64(most, part->count - y);
        TESS_TRY(tess_part_sink(part, y, count, strip->out + (size_t)y * strip->out_row_bytes, error));
    }
    return TESS_OK;
}

/* The pieces of all ranks but rank 0, in the order of rows. */
typedef struct pieces {
    const tess_denoise_job *job;
    int64_t most; /* rows of one, the same on all ranks */
    int64_t rank, first, count;
} pieces;

static bool next_piece(pieces *p)
{
    p->first += p->count;
    if (p->first == tess_denoise_strip_row(p->job, p->rank + 1))
        p->rank++;
    if (p->rank == p->job->strips.count)
        return false;
    p->count = tess_min_i64(p->most, tess_denoise_strip_row(p->job, p->rank + 1) - p->first);
    return true;
}

static pieces pieces_of(const tess_denoise_job *job)
{
    const int64_t own = tess_denoise_strip_row(job, 1),
                  rows = (int64_t)(PIECE / job->files[0].request.out_row_bytes);
    return (pieces){.job = job, .most = tess_max_i64(tess_min_i64(rows, own / BUFFERS), 1), .first = own};
}

/* A piece that is under way. */
typedef struct moving {
    pieces piece;
    tess_dist_exchange *exchange;
    char *data;
    bool begun;
} moving;

static tess_status begin(const tess_denoise_part *part, const pieces *piece, moving *m, tess_error *error)
{
    const size_t row = part->strip.out_row_bytes, bytes = (size_t)piece->count * row;
    const bool root = part->dist->rank == 0;
    char *mine = part->strip.out + (size_t)(piece->first - part->first) * row;
    const tess_dist_transfer transfer = {.peer = root ? (int)piece->rank : 0,
                                         .send = root ? NULL : mine,
                                         .send_bytes = root ? 0 : bytes,
                                         .receive = root ? m->data : NULL,
                                         .receive_bytes = root ? bytes : 0};
    m->piece = *piece;
    TESS_TRY(tess_dist_exchange_begin(m->exchange, &transfer, 1, error));
    m->begun = true;
    return TESS_OK;
}

/* After a failure rank 0 still receives what the others send. */
static tess_status end(tess_denoise_part *part, moving *m, tess_status before, tess_error *error)
{
    tess_error other;
    if (!m->begun)
        return before;
    m->begun = false;
    const tess_status moved = tess_dist_exchange_end(m->exchange, before == TESS_OK ? error : &other);
    if (before != TESS_OK || moved != TESS_OK || part->dist->rank > 0)
        return before != TESS_OK ? before : moved;
    return tess_part_sink(part, m->piece.first, m->piece.count, m->data, error);
}

static tess_status move_pieces(tess_denoise_part *part, moving *m, tess_status before, tess_error *error)
{
    const int64_t rank = part->dist->rank;
    pieces piece = pieces_of(part->job);
    tess_status status = before;
    int turn = 0;
    while (next_piece(&piece)) {
        if (rank > 0 && piece.rank != rank)
            continue;
        moving *now = &m[turn % BUFFERS], *last = &m[(turn + 1) % BUFFERS];
        tess_error other;
        const tess_status begun = begin(part, &piece, now, status == TESS_OK ? error : &other);
        status = status == TESS_OK ? begun : status;
        status = end(part, last, status, error);
        turn++;
    }
    for (int i = 0; i < BUFFERS; i++)
        status = end(part, &m[(turn + i) % BUFFERS], status, error);
    return status;
}

tess_status tess_part_collect(tess_denoise_part *part, tess_error *error)
{
    if (part->idle)
        return TESS_OK;
    const size_t bytes = (size_t)pieces_of(part->job).most * part->strip.out_row_bytes;
    moving m[BUFFERS] = {{.begun = false}};
    tess_status status = TESS_OK;
    for (int i = 0; i < BUFFERS; i++)
        m[i].data = part->strip.out + (size_t)i * bytes, m[i].exchange = part->collects[i];
    if (part->dist->rank == 0)
        status = tess_part_write(part, error);
    return move_pieces(part, m, status, error);
}
