/* ring.h: reading, computing and writing overlap, strip by strip (a strip is one row of tiles). Rows of the
 * input slide through a circular buffer that holds one strip's window and what the next one adds; finished
 * rows go through two buffers. So the memory depends on the strip, not on the image. Who reads, computes and
 * writes is told by function pointers: this room knows neither files nor networks. */
#ifndef TESS_TILE_RING_H
#define TESS_TILE_RING_H

#include "base/mem.h"
#include "base/status.h"
#include "base/stop.h"
#include "tile/grid.h"

/* Rows [first, first + count) of the input are asked for in order, each once, about a MiB at a time; those of the output
 * are given likewise, and a call never has rows of two strips. */
typedef tess_status (*tess_source_fn)(void *user, int64_t first, int64_t count, void *rows,
                                      tess_error *error);
typedef tess_status (*tess_sink_fn)(void *user, int64_t first, int64_t count, const void *rows,
                                    tess_error *error);

/* What the worker sees of the ring. */
typedef struct tess_strip {
    int64_t index;
    tess_span span;       /* rows; `to` and the window may end beyond the image, in its padding */
    int64_t first, count; /* the image rows that must be written */
    char *out;            /* `count` rows */
    const char *in;       /* circular: use tess_strip_row */
    int64_t in_capacity, image_rows;
    size_t in_row_bytes, out_row_bytes;
} tess_strip;

typedef tess_status (*tess_strip_fn)(void *user, const tess_strip *strip, tess_error *error);

typedef struct tess_ring_settings {
    tess_axis rows; /* over the padded height */
    int64_t image_rows;
    size_t in_row_bytes, out_row_bytes;
    tess_source_fn source;
    tess_strip_fn worker;
    tess_sink_fn sink;
    void *user;
    tess_stop *stop; /* polled between pieces and while waiting; NULL: it runs to its end */
} tess_ring_settings;

/* Rows beyond the image repeat its last one. */
static inline const char *tess_strip_row(const tess_strip *strip, int64_t y)
{
    if (y >= strip->image_rows)
        y = strip->image_rows - 1;
    return strip->in + (size_t)(y % strip->in_capacity) * strip->in_row_bytes;
}

/* Bytes that `buffer` must have: planning and running share this. */
size_t tess_ring_bytes(const tess_axis *rows, int64_t image_rows, size_t in_row_bytes, size_t out_row_bytes);
tess_status tess_ring_run(const tess_ring_settings *settings, void *buffer,
                          tess_error *error) TESS_MUST_CHECK;

#endif
