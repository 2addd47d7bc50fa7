#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "job/denoise/ranks/part.h"

static const size_t PIECE = (size_t)1 << 20;

static tess_status fail(const tess_denoise_part *part, const char *what, tess_error *error)
{
    return tess_fail(error, TESS_IO_FAILED, "%s: rows that are to be written there cannot be %s (%s)",
                     part->job->files[0].output, what, errno ? strerror(errno) : "the file became shorter");
}

tess_status tess_spool_create(tess_denoise_part *part, tess_error *error)
{
    const tess_status status = tess_temp_create(part->job->files[0].output, &part->spool, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, part->job->files[0].output);
}

tess_status tess_spool_open(tess_denoise_part *part, const char *name, tess_error *error)
{
    part->spool_file = open(name, O_RDWR | O_CLOEXEC);
    return part->spool_file >= 0 ? TESS_OK : fail(part, "kept beside it", error);
}

void tess_spool_close(tess_denoise_part *part)
{
    if (part->spool_file >= 0)
        close(part->spool_file);
    tess_temp_remove(part->spool);
}

/* Moves all bytes of rows; row `first` of the slice. */
static bool move(const tess_denoise_part *part, bool out, int64_t first, int64_t count, char *rows)
{
    const tess_denoise_file *file = &part->job->files[0];
    const size_t row = file->request.out_row_bytes, bytes = (size_t)count * row;
    const int64_t at = (part->image.slice * file->info.height + first) * (int64_t)row;
    for (size_t done = 0; done < bytes;) {
        errno = 0;
        const ssize_t some =
            out ? pwrite(part->spool_file, rows + done, bytes - done, (off_t)(at + (int64_t)done))
                : pread(part->spool_file, rows + done, bytes - done, (off_t)(at + (int64_t)done));
        if (some <= 0 && errno != EINTR)
            return false;
        done += some > 0 ? (size_t)some : 0;
    }
    return true;
}

tess_status tess_spool_sink(void *user, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    tess_denoise_part *part = user;
    if (part->blocks.queue)
        TESS_TRY(tess_image_wait(&part->image, first, error));
    return move(part, true, first, count, (char *)rows) ? TESS_OK : fail(part, "kept beside it", error);
}

tess_status tess_spool_write(tess_denoise_part *part, tess_error *error)
{
    const tess_denoise_file *file = &part->job->files[0];
    const size_t row = file->request.out_row_bytes;
    const int64_t most =
        tess_max_i64((int64_t)((file->choice.ring_bytes < PIECE ? file->choice.ring_bytes : PIECE) / row), 1);
    for (int64_t y = 0, count; y < file->info.height; y += count) {
        count = tess_min_i64(most, file->info.height - y);
        if (!move(part, false, y, count, part->buffer))
            return fail(part, "read again", error);
        TESS_TRY(tess_part_sink(part, y, count, part->buffer, error));
    }
    return TESS_OK;
}
