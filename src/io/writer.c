/* writer.c: writing an image row by row, all or nothing.
 *
 * The rows go to TARGET.tmp-PID-N in the target's folder, so that a folder that cannot be written shows at
 * opening and the rename at commit stays inside one file system and is atomic. Closing without commit removes
 * the temporary. A link is followed first: the file behind it is replaced, not the link. Devices and folders
 * are refused as targets, since a rename would replace them. */
#define _XOPEN_SOURCE 700
#include "io/format.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"

struct tess_writer {
    const tess_write_format *format;
    void *state;
    char *path;   /* as the caller named it */
    char *target; /* links resolved */
    char *temp;   /* "" once renamed */
    tess_image_info info;
    int64_t next_row;
    bool failed, counted;
    size_t held;        /* counted for the extras */
    tess_extras extras; /* of the file that is restored */
    char lost[96];
};

static tess_status format_for(const char *path, const tess_write_format **out, tess_error *error)
{
    const tess_suffix *known = tess_suffix_of(path);
    *out = known ? known->write : NULL;
    if (*out)
        return TESS_OK;
    char list[160];
    tess_suffix_list(list, sizeof list);
    return tess_fail(error, TESS_BAD_OPTION, "%s: images cannot be written with this suffix; use one of %s",
                     path, list);
}

/* Also the promise to the formats that the image's bytes fit an int64_t. */
static tess_status check_info(const char *path, const tess_image_info *info, tess_error *error)
{
    int64_t bytes, rows = info->height;
    if (info->depth < 0 || info->depth > INT32_MAX ||
        (info->depth > 0 && !tess_mul_i64(info->depth, info->height, &rows)) || info->height < 1 ||
        info->width < 1 || info->channels < 1 || info->height > INT32_MAX || info->width > INT32_MAX ||
        !tess_mul_i64(rows, info->width, &bytes) || !tess_mul_i64(bytes, info->channels, &bytes) ||
        !tess_mul_i64(bytes, 8, &bytes))
        return tess_fail(error, TESS_BAD_OPTION, "%s: an image of %lld x %lld x %d cannot be written", path,
                         (long long)info->height, (long long)info->width, info->channels);
    return TESS_OK;
}

size_t tess_writer_held_bytes(const char *path, const tess_image_info *info)
{
    const tess_suffix *known = tess_suffix_of(path);
    bool possible = known && known->write && check_info(path, info, NULL) == TESS_OK;
    return possible ? known->write->held_bytes(path, info) + info->extras_bytes : 0;
}

bool tess_image_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Of a file that need not be there yet: the name after its folder. */
static const char *split_name(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

bool tess_image_same_target(const char *one, const char *other)
{
    char folder[2][4096]; /* no system opens a longer name */
    const char *name = split_name(one, folder[0], sizeof folder[0]);
    const bool alike = strcmp(name, split_name(other, folder[1], sizeof folder[1])) == 0;
    return tess_image_same_file(one, other) ||
           (alike && (strcmp(folder[0], folder[1]) == 0 || tess_image_same_file(folder[0], folder[1])));
}

/* The file that commit will replace: `path`, or what it links to. */
static tess_status resolve_target(const char *path, char **target, tess_error *error)
{
    struct stat about;
    char *real = NULL;
    if (stat(path, &about) == 0) {
        if (S_ISDIR(about.st_mode))
            return tess_fail(error, TESS_BAD_OPTION, "%s: is a folder; name a file in it", path);
        if (!S_ISREG(about.st_mode))
            return tess_fail(error, TESS_BAD_OPTION, "%s: is not a regular file; images are written to files",
                             path);
        real = realpath(path, NULL);
    }
    *target = tess_small_strdup(real ? real : path);
    free(real);
    return *target ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
}

static tess_status cannot_write(const char *path, int why, tess_error *error)
{
    return tess_fail(error, TESS_IO_FAILED, "%s: cannot be written: %s%s", path, strerror(why),
                     why == ENOENT                   ? "; make its folder first"
                     : why == EACCES || why == EROFS ? "; its folder must be writable"
                                                     : "");
}

tess_status tess_writer_check_folder(const char *path, tess_error *error)
{
    char folder[4096], *target = NULL;
    TESS_TRY(resolve_target(path, &target, error));
    (void)split_name(target, folder, sizeof folder);
    tess_small_free(target);
    return access(folder, W_OK | X_OK) == 0 ? TESS_OK : cannot_write(path, errno, error);
}

/* Makes the empty temporary file, which proves that the folder takes one. */
static tess_status make_temp(tess_writer *writer, tess_error *error)
{
    static _Atomic unsigned counter;
    size_t bytes = strlen(writer->target) + 48;
    writer->temp = tess_small_alloc(bytes, 1);
    if (!writer->temp)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", writer->path);
    FILE *file = NULL;
    for (int attempt = 0; attempt < 100 && !file; attempt++) {
        snprintf(writer->temp, bytes, "%s.tmp-%ld-%u", writer->target, (long)getpid(),
                 atomic_fetch_add(&counter, 1));
        file = fopen(writer->temp, "wbx");
        if (!file && errno != EEXIST)
            break;
    }
    if (file && fclose(file) == 0)
        return TESS_OK;
    int why = errno;
    if (!file)
        writer->temp[0] = '\0';
    return cannot_write(writer->path, why, error);
}

/* The format that the suffix names, if it can hold such an image. */
static tess_status find_format(const char *path, const tess_image_info *info,
                               const tess_write_format **format, tess_error *error)
{
    TESS_TRY(format_for(path, format, error));
    TESS_TRY(check_info(path, info, error));
    if (info->depth > 0 && *format != &tess_write_npy)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s: a volume of %lld slices is written to .npy only; write NAME.npy", path,
                         (long long)info->depth);
    tess_status status = (*format)->accepts(path, info, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

tess_status tess_writer_check(const char *path, const tess_image_info *info, tess_error *error)
{
    const tess_write_format *format = NULL;
    return find_format(path, info, &format, error);
}

static tess_status take_extras(tess_writer *writer, const tess_reader *like, tess_error *error)
{
    const tess_write_format *format = writer->format;
    tess_status status = tess_extras_load(like->path, &writer->extras, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, writer->path);
    const int orientation = tess_extras_orientation(&writer->extras);
    if (orientation != 1 && !(format->holds_exif && format->holds_exif(writer->target, &writer->extras)))
        snprintf(writer->lost, sizeof writer->lost, "orientation %d of the EXIF data", orientation);
    return TESS_OK;
}

const char *tess_writer_lost(const tess_writer *writer)
{
    return writer->lost[0] ? writer->lost : NULL;
}

tess_status tess_writer_open(const char *path, const tess_image_info *info, const tess_reader *like,
                             tess_writer **out, tess_error *error)
{
    *out = NULL;
    const tess_write_format *format = NULL;
    TESS_TRY(find_format(path, info, &format, error));
    tess_writer *writer = tess_small_alloc(1, sizeof *writer);
    if (!writer || !(writer->path = tess_small_strdup(path))) {
        tess_small_free(writer);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    }
    writer->format = format;
    writer->info = *info;
    if (info->axes == TESS_AXES_AUTO && like && info->depth == like->info.depth)
        writer->info.axes = like->info.axes;
    tess_status status = resolve_target(path, &writer->target, error);
    if (status == TESS_OK)
        status = make_temp(writer, error);
    if (status == TESS_OK && like)
        status = take_extras(writer, like, error);
    if (status == TESS_OK) {
        bool related = like && like->format == format->like_format;
        tess_create create = {writer->target, writer->temp, &writer->info, related ? like->state : NULL,
                              &writer->extras};
        status = format->create(&create, &writer->state, error);
        if (status != TESS_OK)
            tess_fail_prefix(error, status, path);
    }
    if (status != TESS_OK) {
        tess_writer_close(writer);
        return status;
    }
    *out = writer;
    return TESS_OK;
}

tess_status tess_writer_rows(tess_writer *writer, int64_t count, const void *rows, tess_error *error)
{
    if (writer->failed || count < 0 || count > tess_image_rows(&writer->info) - writer->next_row)
        return tess_fail(error, TESS_INTERNAL, "%s: more rows than the image has, or rows after a failure",
                         writer->path);
    if (count == 0)
        return TESS_OK;
    if (!writer->counted)
        tess_mem_account(TESS_MEM_HOST, (int64_t)(writer->held = tess_extras_held(&writer->extras)));
    writer->counted = true;
    tess_status status = writer->format->rows(writer->state, writer->next_row, count, rows, error);
    if (status != TESS_OK) {
        writer->failed = true;
        return tess_fail_prefix(error, status, writer->path);
    }
    writer->next_row += count;
    return TESS_OK;
}

tess_status tess_writer_commit(tess_writer *writer, tess_error *error)
{
    if (writer->failed || writer->next_row != tess_image_rows(&writer->info))
        return tess_fail(error, TESS_INTERNAL, "%s: commit after %lld of %lld rows", writer->path,
                         (long long)writer->next_row, (long long)tess_image_rows(&writer->info));
    writer->failed = true; /* nothing may follow, whatever happens */
    tess_status status = writer->format->finish(writer->state, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, writer->path);
    if (rename(writer->temp, writer->target) != 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: cannot take its final name: %s", writer->path,
                         strerror(errno));
    writer->temp[0] = '\0';
    return TESS_OK;
}

void tess_writer_close(tess_writer *writer)
{
    if (!writer)
        return;
    if (writer->state)
        writer->format->close(writer->state);
    if (writer->temp && writer->temp[0])
        unlink(writer->temp);
    tess_mem_account(TESS_MEM_HOST, -(int64_t)writer->held);
    tess_extras_free(&writer->extras);
    tess_small_free(writer->temp);
    tess_small_free(writer->target);
    tess_small_free(writer->path);
    tess_small_free(writer);
}
