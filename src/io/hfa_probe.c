/* hfa_probe.c: an Erdas Imagine file is a tree of entries. An entry of type ImgExternalRaster names the file
 * that holds the samples (NAME.ige, for large images). GDAL appends that name to the folder of the file, so
 * "../../x" could make any file the image. This file walks the tree and refuses such an entry with "..".
 *
 * An entry, little-endian: next, previous, parent, child, data, data's size (4 bytes each), name (64), type
 * (32). */
#define _XOPEN_SOURCE 700
#include "io/hfa_probe.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ENTRY = 24 + 64 + 32, DATA_MOST = 4096, ENTRIES_MOST = 200000, WAITING_MOST = 4096 };

static uint32_t four(const unsigned char *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool read_at(int fd, uint32_t offset, void *data, size_t bytes)
{
    return pread(fd, data, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool data_stays(int fd, const unsigned char *entry)
{
    unsigned char data[DATA_MOST];
    const uint32_t bytes = four(entry + 20);
    if (bytes > sizeof data || !read_at(fd, four(entry + 16), data, bytes))
        return false;
    for (uint32_t i = 1; i < bytes; i++)
        if (data[i - 1] == '.' && data[i] == '.')
            return false;
    return true;
}

/* GDAL reports entries that cannot be read; a tree without an end is refused here. */
static bool walk(int fd, uint32_t root)
{
    static const char external[] = "ImgExternalRaster";
    uint32_t waiting[WAITING_MOST];
    int count = 0;
    waiting[count++] = root;
    for (int seen = 0; count > 0; seen++) {
        unsigned char entry[ENTRY];
        const uint32_t at = waiting[--count];
        if (seen > ENTRIES_MOST || count + 2 > WAITING_MOST)
            return false;
        if (!read_at(fd, at, entry, sizeof entry))
            continue;
        if (strncasecmp((const char *)entry + 88, external, sizeof external) == 0 && !data_stays(fd, entry))
            return false;
        if (four(entry))
            waiting[count++] = four(entry);
        if (four(entry + 12))
            waiting[count++] = four(entry + 12);
    }
    return true;
}

bool tess_hfa_stays_in_folder(const char *path)
{
    unsigned char head[20], start[18];
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool good = true;
    if (fd >= 0 && read_at(fd, 0, head, sizeof head) && memcmp(head, "EHFA_HEADER_TAG", 15) == 0 &&
        read_at(fd, four(head + 16), start, sizeof start))
        good = walk(fd, four(start + 8));
    if (fd >= 0)
        close(fd);
    return good;
}
