/* ring.h: overlaps reading, computing and writing, strip by strip (a strip is one row of tiles). Input rows
 * pass through a circular buffer that holds one strip's window and the rows that the next strip adds; finished
 * rows pass through two buffers. So the memory depends on the strip, not on the image. Function pointers read,
 * compute and write: this room depends neither on files nor on networks. */
#ifndef TESS_TILE_RING_H
#define TESS_TILE_RING_H

#include "base/mem.h"
#include "base/status.h"
#include "base/stop.h"
#include "tile/grid.h"

/* Input rows [first, first + count) are requested in order, each once, about a MiB at a time. Output rows are
 * delivered in the same way, and a call never has rows of two strips. */
typedef tess_status (*tess_source_fn)(void *user, int64_t first, int64_t count, void *rows,
                                      tess_error *error);
typedef tess_status (*tess_sink_fn)(void *user, int64_t first, int64_t count, const void *rows,
                                    tess_error *error);

/* What the compute function sees of the ring. */
typedef struct tess_strip {
    int64_t index;
    tess_span span;       /* rows; `to` and the window may extend beyond the image, into its padding */
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
    int64_t first_strip, end_strip; /* the strips that are computed here; both 0: all */
    size_t in_row_bytes, out_row_bytes;
    tess_source_fn source;
    tess_strip_fn worker;
    tess_sink_fn sink;
    void *user;
    tess_stop *stop; /* polled between pieces and while waiting; NULL: never stops */
} tess_ring_settings;

/* Rows beyond the image repeat its last row. */
static inline const char *tess_strip_row(const tess_strip *strip, int64_t y)
{
    if (y >= strip->image_rows)
        y = strip->image_rows - 1;
    return strip->in + (size_t)(y % strip->in_capacity) * strip->in_row_bytes;
}

/* Size of `buffer`, used by planning and running. */
size_t tess_ring_bytes(const tess_axis *rows, int64_t image_rows, size_t in_row_bytes, size_t out_row_bytes);
/* The one strip of an image that is not cut, in the same buffer, for callers that read, compute and write by themselves. */
tess_strip tess_ring_only_strip(const tess_ring_settings *settings, void *buffer);
tess_status tess_ring_run(const tess_ring_settings *settings, void *buffer,
                          tess_error *error) TESS_MUST_CHECK;

#endif
