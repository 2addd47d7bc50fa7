/* raster_files.c: a result begins as a copy of the input's files, so that what is not changed stays as it was.
 *
 * The description that GDAL programs keep beside a raster (.aux.xml) may contain statistics and a histogram,
 * which filled pixels make wrong. They are cut out of the text; the rest stays byte for byte. */
#define _GNU_SOURCE
#include "io/raster_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/temp.h"

enum { PIECE = 1 << 20, LARGEST_TEXT = 16 << 20 };

/* Names beside NAME.tif: NAME.tif.ovr, or NAME.tfw when `stem` is set. */
static const struct side {
    const char *suffix;
    bool stem;
} sides[] = {{".ovr", false},    {".msk", false},    {".msk.ovr", false}, {".aux.xml", false}, {".tfw", true},
             {".tifw", true},    {".tiffw", true},   {".wld", true},      {".prj", true},      {".tab", true},
             {"_rpc.txt", true}, {"_RPC.TXT", true}, {".rpb", true},      {".RPB", true}};
enum { SIDES = sizeof sides / sizeof *sides, SAMPLES = 4 }; /* the first describe the samples */

static bool side_name(const char *raster, const struct side *side, char name[PATH_MAX])
{
    const char *slash = strrchr(raster, '/'), *dot = strrchr(raster, '.');
    const bool cut = side->stem && dot && !(slash && dot < slash);
    const int length = cut ? (int)(dot - raster) : (int)strlen(raster);
    return snprintf(name, PATH_MAX, "%.*s%s", length, raster, side->suffix) < PATH_MAX;
}

int64_t tess_raster_free_bytes(const char *path)
{
    struct statvfs about;
    if (statvfs(path, &about) != 0)
        return -1;
    int64_t bytes;
    return tess_mul_i64((int64_t)about.f_bavail, (int64_t)about.f_frsize, &bytes) ? bytes : -1;
}

/* Copies [at, end), which holds data. Returns 0, an errno, or -1 when the file ended early. */
static int copy_range(int in, int out, int64_t at, int64_t end, char *piece, tess_stop *stop)
{
    while (at < end && !tess_stop_poll(stop)) {
        const ssize_t got = pread(in, piece, (size_t)tess_min_i64(PIECE, end - at), at);
        if (got <= 0)
            return got < 0 ? errno : -1;
        for (ssize_t done = 0; done < got;) {
            const ssize_t put = pwrite(out, piece + done, (size_t)(got - done), at + done);
            if (put < 0)
                return errno;
            done += put;
        }
        at += got;
    }
    return 0;
}

static int copy_all(int in, int out, int64_t bytes, char *piece, tess_stop *stop)
{
    struct stat about;
    if (fstat(in, &about) != 0 || ftruncate(out, bytes) != 0)
        return errno;
    if (about.st_size != bytes)
        return -1;
    for (int64_t at = 0; at < bytes && !tess_stop_wanted(stop);) {
        const off_t data = lseek(in, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break; /* the rest is a hole */
        const int64_t first = data < 0 ? at : data;
        const off_t hole = data < 0 ? -1 : lseek(in, first, SEEK_HOLE);
        const int64_t end = hole < 0 ? bytes : tess_min_i64(hole, bytes);
        const int why = copy_range(in, out, first, end, piece, stop);
        if (why != 0)
            return why;
        at = end;
    }
    return 0;
}

tess_status tess_raster_copy_file(const char *from, const char *to, int64_t bytes, tess_stop *stop,
                                  tess_error *error)
{
    const int in = open(from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (in < 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
    const int out = open(to, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    char *piece = tess_small_alloc(PIECE, 1);
    int why = out < 0 ? errno : piece ? copy_all(in, out, bytes, piece, stop) : ENOMEM;
    if (out >= 0 && close(out) != 0 && why == 0)
        why = errno;
    close(in);
    tess_small_free(piece);
    if (why == -1)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: changed while it was read; start again when it is complete", from);
    if (why != 0)
        return tess_temp_fail(why, error);
    return tess_stop_check(stop, error);
}

/* Removes elements whose tag begins like this, with what is in them up to the end tag. */
static void cut_elements(char *text, const char *begin, const char *end)
{
    for (char *at = text; (at = strstr(at, begin));) {
        char *close = strstr(at, end);
        if (!close)
            return;
        close += strlen(end);
        memmove(at, close, strlen(close) + 1);
    }
}

static tess_status copy_description(const char *from, const char *to, int64_t bytes, tess_error *error)
{
    static const char *const kinds[][2] = {
        {"<MDI key=\"STATISTICS_", "</MDI>"},
        {"<Histograms>", "</Histograms>"},
        {"<GDALRasterAttributeTable tableType=\"statistics", "</GDALRasterAttributeTable>"}};
    if (bytes > LARGEST_TEXT)
        return tess_raster_copy_file(from, to, bytes, NULL, error);
    char *text = tess_small_alloc((size_t)bytes + 1, 1);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    bool good = text && in && out && fread(text, 1, (size_t)bytes, in) == (size_t)bytes;
    const int why = errno;
    if (good && strlen(text) == (size_t)bytes)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            cut_elements(text, kinds[i][0], kinds[i][1]);
    good = good && fputs(text, out) >= 0;
    if (in)
        fclose(in);
    if (out && fclose(out) != 0)
        good = false;
    tess_small_free(text);
    return good ? TESS_OK : tess_temp_fail(why ? why : EIO, error);
}

tess_status tess_raster_copy_description(const char *raster, const char *temp, bool *copied,
                                         tess_error *error)
{
    static const struct side description = {".aux.xml", false};
    char from[PATH_MAX], to[PATH_MAX];
    struct stat about;
    *copied = side_name(raster, &description, from) && side_name(temp, &description, to) &&
              stat(from, &about) == 0 && S_ISREG(about.st_mode);
    return *copied ? copy_description(from, to, about.st_size, error) : TESS_OK;
}

tess_status tess_raster_copy_sides(const char *raster, const char *temp, tess_stop *stop, tess_error *error)
{
    for (int i = 0; i < SIDES; i++) {
        char from[PATH_MAX], to[PATH_MAX];
        struct stat about;
        if (!side_name(raster, &sides[i], from) || !side_name(temp, &sides[i], to) ||
            stat(from, &about) != 0 || !S_ISREG(about.st_mode))
            continue;
        if (strcmp(sides[i].suffix, ".aux.xml") == 0)
            TESS_TRY(copy_description(from, to, about.st_size, error));
        else
            TESS_TRY(tess_raster_copy_file(from, to, about.st_size, stop, error));
    }
    return TESS_OK;
}

tess_status tess_raster_place_sides(const char *temp, const char *target, bool only_description,
                                    tess_error *error)
{
    for (int i = 0; i < SIDES; i++) {
        char from[PATH_MAX], to[PATH_MAX];
        struct stat about;
        const bool wanted = !only_description || strcmp(sides[i].suffix, ".aux.xml") == 0;
        if (!side_name(temp, &sides[i], from) || !side_name(target, &sides[i], to))
            continue;
        if (wanted && lstat(from, &about) == 0)
            TESS_TRY(tess_temp_place(from, to, error));
        else if (i < SAMPLES && lstat(to, &about) == 0 && S_ISREG(about.st_mode))
            (void)unlink(to);
    }
    return TESS_OK;
}
