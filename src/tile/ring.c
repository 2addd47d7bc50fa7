#include "tile/ring.h"

#include "base/checked.h"
#include "base/pool.h"

static const size_t PIECE = (size_t)1 << 20; /* bytes read or written between two checks of `stop` */

typedef struct ring {
    const tess_ring_settings *settings;
    char *in, *out[2];
    int64_t in_capacity;
    int64_t read_from, read_to;     /* the reader's task */
    int64_t write_from, write_rows; /* the writer's */
    const char *write_data;
} ring;

/* Rows of the image that strip `index` reads and writes. */
static tess_span image_span(const tess_axis *rows, int64_t image_rows, int64_t index)
{
    tess_span span = tess_axis_span(rows, index);
    span.window_to = tess_min_i64(span.window_to, image_rows);
    span.to = tess_min_i64(span.to, image_rows);
    return span;
}

/* Rows of one strip's window and those that the next strip adds. */
static int64_t in_rows(const tess_axis *rows, int64_t image_rows)
{
    int64_t most = 0;
    for (int64_t i = 0; i < rows->tiles; i++) {
        int64_t ahead = tess_min_i64(i + 1, rows->tiles - 1);
        int64_t span =
            image_span(rows, image_rows, ahead).window_to - image_span(rows, image_rows, i).window_from;
        most = tess_max_i64(most, span);
    }
    return most;
}

static int64_t out_buffers(const tess_axis *rows)
{
    return rows->tiles > 1 ? 2 : 1;
}

static size_t in_bytes(const tess_axis *rows, int64_t image_rows, size_t in_row_bytes)
{
    return tess_align_size((size_t)in_rows(rows, image_rows) * in_row_bytes, 64);
}

static size_t out_bytes(const tess_axis *rows, int64_t image_rows, size_t out_row_bytes)
{
    return tess_align_size((size_t)tess_min_i64(tess_axis_largest_tile(rows), image_rows) * out_row_bytes,
                           64);
}

size_t tess_ring_bytes(const tess_axis *rows, int64_t image_rows, size_t in_row_bytes, size_t out_row_bytes)
{
    return in_bytes(rows, image_rows, in_row_bytes) +
           (size_t)out_buffers(rows) * out_bytes(rows, image_rows, out_row_bytes);
}

static int64_t piece_rows(size_t row_bytes)
{
    return tess_max_i64((int64_t)(PIECE / (row_bytes ? row_bytes : 1)), 1);
}

/* Runs on the reader's thread: reads the rows up to the end of the buffer, then those that wrap around. */
static tess_status read_rows(void *arg, tess_error *error)
{
    const ring *r = arg;
    const int64_t most = piece_rows(r->settings->in_row_bytes);
    for (int64_t y = r->read_from; y < r->read_to;) {
        int64_t slot = y % r->in_capacity, count = tess_min_i64(r->read_to - y, r->in_capacity - slot);
        count = tess_min_i64(count, most);
        TESS_TRY(tess_stop_check(r->settings->stop, error));
        TESS_TRY(r->settings->source(r->settings->user, y, count,
                                     r->in + (size_t)slot * r->settings->in_row_bytes, error));
        y += count;
    }
    return TESS_OK;
}

static tess_status write_rows(void *arg, tess_error *error)
{
    const ring *r = arg;
    const tess_ring_settings *s = r->settings;
    const int64_t most = piece_rows(s->out_row_bytes);
    for (int64_t y = 0, count; y < r->write_rows; y += count) {
        count = tess_min_i64(most, r->write_rows - y);
        TESS_TRY(tess_stop_check(s->stop, error));
        TESS_TRY(
            s->sink(s->user, r->write_from + y, count, r->write_data + (size_t)y * s->out_row_bytes, error));
    }
    return TESS_OK;
}

static void set_written(ring *r, const tess_strip *strip)
{
    r->write_from = strip->first;
    r->write_rows = strip->count;
    r->write_data = strip->out;
}

/* Waits and polls `stop`, which only the caller's thread may ask. */
static tess_status wait_for(const ring *r, tess_worker *worker, tess_error *error)
{
    while (tess_worker_busy(worker, TESS_STOP_SECONDS))
        (void)tess_stop_poll(r->settings->stop); /* the worker sees the flag too, and ends */
    return tess_worker_wait(worker, error);
}

static tess_strip strip_at(const ring *r, int64_t index)
{
    const tess_ring_settings *s = r->settings;
    const tess_span own = image_span(&s->rows, s->image_rows, index);
    return (tess_strip){.index = index,
                        .span = tess_axis_span(&s->rows, index),
                        .first = own.from,
                        .count = own.to - own.from,
                        .out = r->out[index % out_buffers(&s->rows)],
                        .in = r->in,
                        .in_capacity = r->in_capacity,
                        .image_rows = s->image_rows,
                        .in_row_bytes = s->in_row_bytes,
                        .out_row_bytes = s->out_row_bytes};
}

static void set_read(ring *r, int64_t from, int64_t strip)
{
    r->read_from = from;
    r->read_to = image_span(&r->settings->rows, r->settings->image_rows, strip).window_to;
}

/* The whole image is one strip: nothing overlaps, so no thread is needed. */
static tess_status run_one(ring *r, tess_error *error)
{
    const tess_ring_settings *s = r->settings;
    const tess_strip strip = strip_at(r, 0);
    set_read(r, 0, 0);
    TESS_TRY(read_rows(r, error));
    TESS_TRY(s->worker(s->user, &strip, error));
    set_written(r, &strip);
    return write_rows(r, error);
}

static tess_status run_strips(ring *r, tess_worker *reader, tess_worker *writer, tess_error *error)
{
    const tess_ring_settings *s = r->settings;
    const int64_t first = s->first_strip, end = s->end_strip ? s->end_strip : s->rows.tiles;
    set_read(r, image_span(&s->rows, s->image_rows, first).window_from, first);
    TESS_TRY(read_rows(r, error));
    for (int64_t i = first; i < end; i++) {
        if (i + 1 < end) {
            set_read(r, r->read_to, i + 1);
            tess_worker_start(reader, read_rows, r);
        }
        const tess_strip strip = strip_at(r, i);
        TESS_TRY(s->worker(s->user, &strip, error));
        TESS_TRY(wait_for(r, writer, error));
        set_written(r, &strip);
        tess_worker_start(writer, write_rows, r);
        TESS_TRY(wait_for(r, reader, error));
    }
    return wait_for(r, writer, error);
}

static ring ring_in(const tess_ring_settings *settings, void *buffer)
{
    ring r = {
        .settings = settings, .in = buffer, .in_capacity = in_rows(&settings->rows, settings->image_rows)};
    r.out[0] = r.in + in_bytes(&settings->rows, settings->image_rows, settings->in_row_bytes);
    r.out[1] = r.out[0] + out_bytes(&settings->rows, settings->image_rows, settings->out_row_bytes);
    return r;
}

tess_strip tess_ring_only_strip(const tess_ring_settings *settings, void *buffer)
{
    const ring r = ring_in(settings, buffer);
    return strip_at(&r, 0);
}

tess_status tess_ring_run(const tess_ring_settings *settings, void *buffer, tess_error *error)
{
    ring r = ring_in(settings, buffer);
    if (settings->rows.tiles == 1)
        return run_one(&r, error);
    tess_worker *reader = NULL, *writer = NULL;
    tess_status status = tess_worker_create(&reader, error);
    if (status == TESS_OK)
        status = tess_worker_create(&writer, error);
    if (status == TESS_OK)
        status = run_strips(&r, reader, writer, error);
    tess_worker_destroy(reader); /* waits for a running call */
    tess_worker_destroy(writer);
    return status;
}
