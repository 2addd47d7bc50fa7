/* Between rows on the host and the stages on the device, through pinned chunks. A stage holds the samples of its
 * windows densely, one window after another, so a piece is a range of pixels that may begin and end inside a
 * row. */
#include <string.h>

#include "base/checked.h"
#include "job/common/lane_impl.h"
#include "tensor/samples.h"

tess_dtype tess_lane_in_dtype(const tess_pixels *pixels)
{
    return pixels->add_noise > 0 ? TESS_F32 : pixels->image.dtype; /* noise is added as rows are read */
}

tess_dtype tess_lane_out_dtype(const tess_pixels *pixels)
{
    return pixels->float_out ? TESS_F32 : pixels->image.dtype;
}

int64_t tess_lane_in_rows(const tess_lane_window *window)
{
    const tess_strip *strip = &window->strip;
    return tess_min_i64(strip->span.window_to, strip->image_rows) - strip->span.window_from;
}

tess_span tess_lane_core(const tess_lane_window *window, int64_t index)
{
    tess_span cols = tess_axis_span(&window->cols, index);
    cols.to = tess_min_i64(cols.to, window->pixels->image.width);
    return cols;
}

static size_t pixel_bytes(const tess_pixels *pixels, tess_dtype dtype)
{
    return (size_t)pixels->image.channels * tess_dtype_size(dtype);
}

/* `count` pixels of a row from column x on; columns beyond the image repeat its last one. */
static void copy_columns(const char *row, int64_t x, int64_t count, int64_t width, size_t pixel, char *to)
{
    const int64_t inside = tess_max_i64(tess_min_i64(count, width - x), 0);
    memcpy(to, row + (size_t)x * pixel, (size_t)inside * pixel);
    for (int64_t i = inside; i < count; i++)
        memcpy(to + (size_t)i * pixel, row + (size_t)(width - 1) * pixel, pixel);
}

/* Pixels [from, from + count) of the batch, as they lie in the stage. */
static void fill_chunk(const tess_lane_window *w, int64_t from, int64_t count, char *to)
{
    const size_t pixel = pixel_bytes(w->pixels, tess_lane_in_dtype(w->pixels));
    const int64_t rows = tess_lane_in_rows(w);
    tess_span cols = tess_axis_span(&w->cols, w->first);
    const int64_t width = cols.window_to - cols.window_from;
    for (int64_t at = from, run; at < from + count; at += run) {
        const int64_t row = at / width, x = at % width;
        run = tess_min_i64(width - x, from + count - at);
        cols = tess_axis_span(&w->cols, w->first + row / rows);
        copy_columns(tess_strip_row(&w->strip, w->strip.span.window_from + row % rows), cols.window_from + x,
                     run, w->pixels->image.width, pixel, to);
        to += (size_t)run * pixel;
    }
}

tess_status tess_lane_upload(tess_lane *lane, const tess_lane_window *w, tess_error *error)
{
    tess_device *device = lane->device;
    const size_t pixel = pixel_bytes(w->pixels, tess_lane_in_dtype(w->pixels));
    const tess_span cols = tess_axis_span(&w->cols, w->first);
    const int64_t total = w->n * tess_lane_in_rows(w) * (cols.window_to - cols.window_from);
    const int64_t most = (int64_t)(lane->up.bytes / pixel);
    if ((size_t)total * pixel > lane->in_stage.bytes || most == 0)
        return tess_fail(error, TESS_INTERNAL, "a window's samples need more than was planned");
    device->wait(device, lane->imported, lane->upload);
    for (int64_t at = 0, count; at < total; at += count) {
        lane_chunk *chunk = &lane->up.chunk[lane->up.next];
        lane->up.next = (lane->up.next + 1) % LANE_CHUNKS;
        count = tess_min_i64(most, total - at);
        const tess_status status = device->event_sync(device, chunk->over, error);
        if (status != TESS_OK) {
            tess_lane_lose(lane);
            return status;
        }
        fill_chunk(w, at, count, chunk->data);
        device->copy(device, (char *)lane->in_stage.data + (size_t)at * pixel, chunk->data,
                     (size_t)count * pixel, lane->upload);
        device->record(device, chunk->over, lane->upload);
    }
    return TESS_OK;
}

/* A piece of one tile on its way out: pixels [from, from + count) of its core. */
typedef struct piece {
    tess_span cols;
    int64_t from, count;
    size_t stage_at;
} piece;

/* Colours from the device; alpha from the strip's input, by the same conversions as everywhere. */
static void merge_alpha(const tess_lane_window *w, const char *in, const char *from, int64_t count, char *to)
{
    const tess_pixels *p = w->pixels;
    const tess_dtype in_dtype = tess_lane_in_dtype(p), out_dtype = tess_lane_out_dtype(p);
    const size_t in_size = tess_dtype_size(in_dtype), out_size = tess_dtype_size(out_dtype);
    const size_t in_pixel = pixel_bytes(p, in_dtype), out_pixel = pixel_bytes(p, out_dtype);
    for (int64_t i = 0; i < count; i++, in += in_pixel, from += out_pixel, to += out_pixel) {
        float alpha;
        memcpy(to, from, out_pixel - out_size);
        tess_samples_to_float(in_dtype, p->image.full_scale, in + in_pixel - in_size, 1, &alpha);
        tess_samples_from_float(out_dtype, p->image.full_scale, &alpha, 1, to + out_pixel - out_size);
    }
}

static void empty_chunk(const tess_lane_window *w, const piece *part, const char *from)
{
    const tess_pixels *p = w->pixels;
    const size_t pixel = pixel_bytes(p, tess_lane_out_dtype(p));
    const int64_t width = part->cols.to - part->cols.from;
    for (int64_t at = part->from, run; at < part->from + part->count; at += run) {
        const int64_t row = at / width, x = part->cols.from + at % width;
        run = tess_min_i64(width - at % width, part->from + part->count - at);
        char *to = w->strip.out + (size_t)row * w->strip.out_row_bytes + (size_t)x * pixel;
        if (p->image.alpha)
            merge_alpha(w,
                        tess_strip_row(&w->strip, w->strip.first + row) +
                            (size_t)x * pixel_bytes(p, tess_lane_in_dtype(p)),
                        from, run, to);
        else
            memcpy(to, from, (size_t)run * pixel);
        from += (size_t)run * pixel;
    }
}

/* The piece behind `part`; false at the end of the batch. */
static bool next_piece(const tess_lane_window *w, int64_t most, int64_t *tile, piece *part)
{
    const size_t pixel = pixel_bytes(w->pixels, tess_lane_out_dtype(w->pixels));
    part->stage_at += (size_t)part->count * pixel;
    part->from += part->count;
    int64_t left = (part->cols.to - part->cols.from) * w->strip.count - part->from;
    if (left == 0) {
        if (++*tile == w->n)
            return false;
        part->cols = tess_lane_core(w, w->first + *tile);
        part->from = 0;
        left = (part->cols.to - part->cols.from) * w->strip.count;
    }
    part->count = tess_min_i64(left, most);
    return true;
}

tess_status tess_lane_download(tess_lane *lane, const tess_lane_window *w, tess_error *error)
{
    tess_device *device = lane->device;
    const size_t pixel = pixel_bytes(w->pixels, tess_lane_out_dtype(w->pixels));
    const int64_t most = (int64_t)(lane->down.bytes / pixel);
    piece parts[LANE_CHUNKS], part = {.count = 0};
    int64_t tile = -1, started = 0, emptied = 0;
    bool more = next_piece(w, most, &tile, &part);
    while (more || emptied < started) {
        lane_chunk *chunk = &lane->down.chunk[started % LANE_CHUNKS];
        if (more && started - emptied < LANE_CHUNKS) {
            device->copy(device, chunk->data, (char *)lane->out_stage.data + part.stage_at,
                         (size_t)part.count * pixel, lane->download);
            device->record(device, chunk->over, lane->download);
            parts[started++ % LANE_CHUNKS] = part;
            more = next_piece(w, most, &tile, &part);
            continue;
        }
        chunk = &lane->down.chunk[emptied % LANE_CHUNKS];
        TESS_TRY(device->event_sync(device, chunk->over, error));
        empty_chunk(w, &parts[emptied % LANE_CHUNKS], chunk->data);
        emptied++;
    }
    return TESS_OK;
}
