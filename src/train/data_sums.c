/* data_sums.c: notices that a list of images changed. A sample is chosen by its place in the list, so a run that is resumed
 * with one image more draws others from there on. A sum a file, and not one of all, so that the message can name one. */
#define _XOPEN_SOURCE 700
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "train/checksum.h"
#include "train/data_images.h"

enum { DIGITS = 8 };

/* The name inside of the folder: a data set may be moved. */
static const char *name_of(const tess_images_settings *s, const char *path)
{
    size_t skipped = 0;
    for (int i = 0; i < s->path_count; i++) {
        size_t length = strlen(s->paths[i]);
        while (length > 1 && s->paths[i][length - 1] == '/')
            length--;
        if (length > skipped && strncmp(path, s->paths[i], length) == 0 && path[length] == '/')
            skipped = length;
    }
    return path + skipped + strspn(path + skipped, "/");
}

void tess_images_set_sum(const tess_images_settings *s, tess_images_file *file)
{
    struct stat facts;
    char sizes[96];
    const char *name = name_of(s, file->path);
    const long long bytes = stat(file->path, &facts) == 0 ? (long long)facts.st_size : 0;
    const int length = snprintf(sizes, sizeof sizes, "%" PRId64 " %" PRId64 " %d %lld", file->height,
                                file->width, file->channels, bytes);
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    tess_xxh64_add(&sum, name, strlen(name) + 1);
    tess_xxh64_add(&sum, sizes, (size_t)length);
    file->sum = (uint32_t)tess_xxh64_end(&sum);
}

char *tess_images_sums(const tess_images *images)
{
    const int64_t count = tess_images_count(images);
    char *text = tess_small_alloc((size_t)count * DIGITS + 1, 1);
    for (int64_t i = 0; text && i < count; i++)
        snprintf(text + i * DIGITS, DIGITS + 1, "%08" PRIx32, tess_images_at(images, i)->sum);
    return text;
}

static bool has(const char *sums, const char *sum)
{
    for (const char *at = sums; *at; at += DIGITS)
        if (memcmp(at, sum, DIGITS) == 0)
            return true;
    return false;
}

tess_status tess_images_unchanged(const tess_images *images, const char *before, tess_error *error)
{
    char *now = tess_images_sums(images);
    if (!now)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to compare the lists of images");
    const int64_t count = tess_images_count(images), had = (int64_t)(strlen(before) / DIGITS);
    int64_t i = 0;
    while (i < count && i < had && memcmp(now + i * DIGITS, before + i * DIGITS, DIGITS) == 0)
        i++;
    const bool gone = i == count || has(before, now + i * DIGITS);
    tess_status status = TESS_OK;
    if (i < count || i < had)
        status =
            tess_fail(error, TESS_BAD_INPUT,
                      "the images are not those of the run's start (%lld then, %lld now): %s%s%s; set them "
                      "back, or start a new run with another checkpoint.folder",
                      (long long)had, (long long)count,
                      !gone       ? ""
                      : i < count ? "one before "
                                  : "one after ",
                      tess_images_at(images, i < count ? i : i - 1)->path,
                      gone ? " is gone" : " is new or was changed");
    tess_small_free(now);
    return status;
}
