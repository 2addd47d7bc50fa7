/* npy_planes.c: (C, H, W) arrays, whose channels are stored one after another, as rows of interleaved samples.
 *
 * A few rows of one plane are read at a time, and their samples are stored at every C-th place of the caller's
 * rows; writing does the reverse. Only these few rows are held, whatever the size of the image. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/format.h"
#include "io/npy.h"

enum { ABOUT = 256 << 10 };

static int64_t rows_at_once(int64_t width, int sample_bytes)
{
    return tess_max_i64(1, ABOUT / (width * sample_bytes));
}

size_t tess_npy_plane_bytes(int64_t width, int sample_bytes)
{
    return tess_block_granted((size_t)(rows_at_once(width, sample_bytes) * width * sample_bytes));
}

static tess_status start(tess_npy_file *npy, tess_error *error)
{
    const int size = npy->header.size;
    if (npy->plane.data)
        return TESS_OK;
    return tess_block_alloc(npy->memory, &npy->plane, TESS_MEM_HOST,
                            (size_t)(rows_at_once(npy->width, size) * npy->width * size), error);
}

/* Reads or writes all bytes; else returns false with errno (0 at the end of the file). */
static bool move(tess_npy_file *npy, bool out, int64_t offset, size_t bytes)
{
    const int file = fileno(npy->file);
    char *at = npy->plane.data;
    while (bytes > 0) {
        errno = 0;
        ssize_t moved = out ? pwrite(file, at, bytes, (off_t)offset) : pread(file, at, bytes, (off_t)offset);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return false;
        at += moved;
        offset += moved;
        bytes -= (size_t)moved;
    }
    return true;
}

static int64_t place(const tess_npy_file *npy, int channel, int64_t row)
{
    return npy->offset + ((int64_t)channel * npy->height + row) * npy->width * npy->header.size;
}

/* Copies samples of the plane to every `step`-th place of `to`, in the caller's type. Returns false when one is
 * too large for a float. */
static bool spread(const tess_npy_file *npy, int64_t samples, int64_t step, unsigned char *to)
{
    const int size = npy->header.size;
    const unsigned char *from = npy->plane.data;
    bool fits = true;
    for (int64_t i = 0; i < samples; i++, from += size) {
        float value;
        double wide;
        uint16_t half;
        if (npy->as_float) {
            memcpy(size == 8 ? (void *)&wide : (void *)&half, from, (size_t)size);
            value = size == 8 ? (float)wide : tess_half_to_float(half);
            memcpy(to + i * step * 4, &value, 4);
            fits = fits && !(size == 8 && tess_beyond_float(wide));
        } else {
            memcpy(to + i * step * size, from, (size_t)size);
        }
    }
    return fits;
}

tess_status tess_npy_read_planes(tess_npy_file *npy, int64_t first, int64_t count, void *rows,
                                 tess_error *error)
{
    const int size = npy->header.size, given = npy->as_float ? 4 : size;
    TESS_TRY(start(npy, error));
    while (count > 0) {
        const int64_t some = tess_min_i64(count, rows_at_once(npy->width, size)), samples = some * npy->width;
        for (int c = 0; c < npy->channels; c++) {
            if (!move(npy, false, place(npy, c, first), (size_t)(samples * size)))
                return tess_fail(error, TESS_IO_FAILED, "cannot be read after row %lld of %lld (%s)",
                                 (long long)first, (long long)npy->height,
                                 errno ? strerror(errno) : "the file became shorter");
            tess_npy_swap(&npy->header, npy->plane.data, samples);
            if (!spread(npy, samples, npy->channels, (unsigned char *)rows + c * given))
                return tess_fail_beyond_float(error);
        }
        rows = (char *)rows + samples * npy->channels * given;
        first += some;
        count -= some;
    }
    return TESS_OK;
}

tess_status tess_npy_write_planes(tess_npy_file *npy, int64_t first, int64_t count, const void *rows,
                                  tess_error *error)
{
    const int size = npy->header.size;
    TESS_TRY(start(npy, error));
    if (fflush(npy->file) != 0) /* write the header before the samples after it */
        return tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(errno));
    while (count > 0) {
        const int64_t some = tess_min_i64(count, rows_at_once(npy->width, size)), samples = some * npy->width;
        for (int c = 0; c < npy->channels; c++) {
            const unsigned char *from = (const unsigned char *)rows + c * size;
            for (int64_t i = 0; i < samples; i++)
                memcpy((char *)npy->plane.data + i * size, from + i * npy->channels * size, (size_t)size);
            if (!move(npy, true, place(npy, c, first), (size_t)(samples * size)))
                return tess_fail(error, TESS_IO_FAILED, "cannot be written after row %lld of %lld (%s)",
                                 (long long)first, (long long)npy->height, strerror(errno));
        }
        rows = (const char *)rows + samples * npy->channels * size;
        first += some;
        count -= some;
    }
    return TESS_OK;
}
