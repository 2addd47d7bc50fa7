/* Copies between an image on the host and the stages on the device, through pinned chunks. A stage holds the
 * samples of its windows densely, one window after another, so a piece is a range of pixels that may begin and
 * end inside a row. */
#include <string.h>

#include "base/checked.h"
#include "base/trace.h"
#include "window/queue_impl.h"

int64_t tess_queue_in_rows(const queue_batch *b, const tess_window_batch *w)
{
    return tess_min_i64(w->rows.window_to, b->image->height) - w->rows.window_from;
}

int64_t tess_queue_out_rows(const queue_batch *b, const tess_window_batch *w)
{
    return tess_min_i64(w->rows.to, b->image->height) - w->rows.from;
}

tess_span tess_queue_core(const queue_batch *b, const tess_window_batch *w, int64_t item)
{
    tess_span cols = tess_batch_cols(w, item);
    cols.to = tess_min_i64(cols.to, b->image->width);
    return cols;
}

static size_t pixel_bytes(const tess_queue_image *image, tess_dtype dtype)
{
    return (size_t)image->channels * tess_dtype_size(dtype);
}

/* Reads `count` pixels of row y from column x on; columns beyond the image repeat its last one. */
static void read_columns(const tess_queue_image *image, int64_t y, int64_t x, int64_t count, char *to)
{
    const size_t pixel = pixel_bytes(image, image->in);
    const int64_t inside = tess_max_i64(tess_min_i64(count, image->width - x), 0);
    if (inside > 0)
        image->read(image->user, y, x, inside, to);
    else
        image->read(image->user, y, image->width - 1, 1, to);
    for (int64_t i = tess_max_i64(inside, 1); i < count; i++)
        memcpy(to + (size_t)i * pixel, to + (size_t)(i - 1) * pixel, pixel);
}

/* Copies pixels [from, from + count) of the batch in the order of the stage. */
static void fill_chunk(const queue_batch *b, const tess_window_batch *w, int64_t from, int64_t count,
                       char *to)
{
    const int64_t rows = tess_queue_in_rows(b, w);
    tess_span cols = tess_batch_cols(w, 0);
    const int64_t width = cols.window_to - cols.window_from;
    for (int64_t at = from, run; at < from + count; at += run) {
        const int64_t row = at / width, x = at % width;
        run = tess_min_i64(width - x, from + count - at);
        cols = tess_batch_cols(w, row / rows);
        read_columns(b->image, w->rows.window_from + row % rows, cols.window_from + x, run, to);
        to += (size_t)run * pixel_bytes(b->image, b->image->in);
    }
}

static tess_status upload(const queue_batch *b, const tess_window_batch *w, tess_error *error)
{
    tess_queue *q = b->queue;
    tess_device *device = q->device;
    const size_t pixel = pixel_bytes(b->image, b->image->in);
    const tess_span cols = tess_batch_cols(w, 0);
    const int64_t total = w->n * tess_queue_in_rows(b, w) * (cols.window_to - cols.window_from);
    const int64_t most = (int64_t)(q->up.bytes / pixel);
    if ((size_t)total * pixel > q->in_stage.bytes || most == 0)
        return tess_fail(error, TESS_INTERNAL, "a window's samples need more than was planned");
    device->streams->wait(device, q->imported, q->upload);
    for (int64_t at = 0, count; at < total; at += count) {
        queue_chunk *chunk = &q->up.chunk[q->up.next];
        q->up.next = (q->up.next + 1) % QUEUE_CHUNKS;
        count = tess_min_i64(most, total - at);
        const tess_status status = device->streams->event_sync(device, chunk->over, error);
        if (status != TESS_OK) {
            tess_queue_lose(q);
            return status;
        }
        fill_chunk(b, w, at, count, chunk->data);
        device->memory->copy(device, (char *)q->in_stage.data + (size_t)at * pixel, chunk->data,
                             (size_t)count * pixel, q->upload);
        device->streams->record(device, chunk->over, q->upload);
    }
    return TESS_OK;
}

tess_status tess_queue_upload(const queue_batch *b, const tess_window_batch *w, tess_error *error)
{
    tess_trace *trace = b->queue->device->counter->trace;
    const double start = tess_trace_begin(trace);
    const tess_status status = upload(b, w, error);
    tess_trace_end(trace, TESS_TRACE_UPLOAD, "upload windows", start);
    return status;
}

/* A piece of one tile to download: pixels [from, from + count) of its core. */
typedef struct piece {
    tess_span cols;
    int64_t from, count;
    size_t stage_at;
} piece;

static void empty_chunk(const queue_batch *b, const piece *part, const char *from)
{
    const int64_t width = part->cols.to - part->cols.from;
    for (int64_t at = part->from, run; at < part->from + part->count; at += run) {
        run = tess_min_i64(width - at % width, part->from + part->count - at);
        b->image->write(b->image->user, b->windows.rows.from + at / width, part->cols.from + at % width, run,
                        from);
        from += (size_t)run * pixel_bytes(b->image, b->image->out);
    }
}

/* Finds the piece after `part`; false at the end of the batch. */
static bool next_piece(const queue_batch *b, int64_t most, int64_t *tile, piece *part)
{
    const int64_t rows = tess_queue_out_rows(b, &b->windows);
    part->stage_at += (size_t)part->count * pixel_bytes(b->image, b->image->out);
    part->from += part->count;
    int64_t left = (part->cols.to - part->cols.from) * rows - part->from;
    if (left == 0) {
        if (++*tile == b->windows.n)
            return false;
        part->cols = tess_queue_core(b, &b->windows, *tile);
        part->from = 0;
        left = (part->cols.to - part->cols.from) * rows;
    }
    part->count = tess_min_i64(left, most);
    return true;
}

tess_status tess_queue_download(const queue_batch *b, tess_error *error)
{
    tess_queue *q = b->queue;
    tess_device *device = q->device;
    const size_t pixel = pixel_bytes(b->image, b->image->out);
    const int64_t most = (int64_t)(q->down.bytes / pixel);
    piece parts[QUEUE_CHUNKS], part = {.count = 0};
    int64_t tile = -1, started = 0, emptied = 0;
    bool more = next_piece(b, most, &tile, &part);
    while (more || emptied < started) {
        queue_chunk *chunk = &q->down.chunk[started % QUEUE_CHUNKS];
        if (more && started - emptied < QUEUE_CHUNKS) {
            device->memory->copy(device, chunk->data, (char *)q->out_stage.data + part.stage_at,
                                 (size_t)part.count * pixel, q->download);
            device->streams->record(device, chunk->over, q->download);
            parts[started++ % QUEUE_CHUNKS] = part;
            more = next_piece(b, most, &tile, &part);
            continue;
        }
        chunk = &q->down.chunk[emptied % QUEUE_CHUNKS];
        TESS_TRY(device->streams->event_sync(device, chunk->over, error));
        empty_chunk(b, &parts[emptied % QUEUE_CHUNKS], chunk->data);
        emptied++;
    }
    return TESS_OK;
}
