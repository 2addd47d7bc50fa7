#define _XOPEN_SOURCE 700
#include "job/common/same_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"

enum { PIECE = 1024, PIECES = 64, FEW_PIECES = 8, FILES = 64 };

static void add_pieces(tess_xxh64 *sum, const char *path, int64_t pieces)
{
    struct stat about;
    char data[PIECE];
    const int file = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    int64_t bytes = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) ? about.st_size : -1;
    tess_xxh64_add(sum, &bytes, sizeof bytes);
    const int64_t last = bytes - PIECE; /* where the last piece begins */
    for (int64_t i = 0; i < pieces && bytes > 0; i++) {
        const int64_t at = last > 0 ? (int64_t)((double)last * (double)i / (double)(pieces - 1)) : 0;
        const ssize_t got = pread(file, data, sizeof data, (off_t)at);
        if (got > 0)
            tess_xxh64_add(sum, data, (size_t)got);
    }
    if (file >= 0)
        close(file);
}

void tess_same_file(tess_xxh64 *sum, const char *path)
{
    add_pieces(sum, path, PIECES);
}

void tess_same_file_of(tess_xxh64 *sum, const char *path, int64_t index, int64_t count)
{
    const int64_t step = (count + FILES - 1) / FILES;
    if (step <= 1 || index % step == 0)
        add_pieces(sum, path, count <= FEW_PIECES ? PIECES : FEW_PIECES);
}

void tess_same_model(tess_xxh64 *sum, const char *name)
{
    static const char *const bundled[] = {"drunet-color-small", "drunet-gray-small"};
    char path[4096];
    for (int i = 0; i < (name ? 1 : 2); i++) {
        const char *one = name ? name : bundled[i];
        if (!tess_model_is_random(one))
            tess_same_file(sum, tess_model_find(one, path, sizeof path, NULL) == TESS_OK ? path : NULL);
    }
}
