/* vrt_check.c: a VRT is a mosaic of other rasters, written in XML. GDAL follows everything that it names: files
 * anywhere, network addresses, programs of pixel functions.
 *
 * Only a plain mosaic of files in the VRT's own folder is accepted: every element must be one of those below,
 * and every source a regular file in that folder or under it, also after links are followed. The scanner
 * accepts a strict subset of XML (no comments, no entities in names, double quotes), so that it cannot read a
 * text differently from GDAL's parser. */
#define _XOPEN_SOURCE 700
#include "io/vrt_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { LARGEST = 4 << 20, HEAD = 64 << 10 };

typedef struct scan {
    const char *at;
    char folder[PATH_MAX]; /* real path, with its slash */
    tess_status (*source)(const char *path, tess_error *error);
    tess_error *error;
} scan;

static const char *const elements[] = {
    "VRTDataset",   "SRS",           "GeoTransform",   "Metadata",      "MDI",      "GCPList",
    "GCP",          "BlockXSize",    "BlockYSize",     "VRTRasterBand", "MaskBand", "NoDataValue",
    "ColorInterp",  "Description",   "UnitType",       "Offset",        "Scale",    "HideNoDataValue",
    "SimpleSource", "ComplexSource", "SourceFilename", "SourceBand",    "SrcRect",  "SourceProperties",
    "DstRect",      "NODATA",        "ScaleOffset",    "ScaleRatio",    "LUT",      "UseMaskBand",
};

static tess_status refuse(const scan *s, const char *what)
{
    return tess_fail(
        s->error, TESS_BAD_INPUT,
        "is a VRT that %s; only plain mosaics of files in its own folder are read: make it a TIFF "
        "with gdal_translate",
        what);
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* GDAL ignores the case of attributes. */
static bool is_attribute(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(text, name, length) == 0;
}

static size_t word_length(const char *text)
{
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:-.");
}

static void skip_space(scan *s)
{
    s->at += strspn(s->at, " \t\r\n");
}

/* A nested VRT would not have been checked. GDAL recognises one by this text near the beginning of the file. */
static bool is_vrt(const char *path)
{
    bool found = true; /* a file that cannot be read is refused */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *head = tess_small_alloc(HEAD + 1, 1);
    const ssize_t got = fd >= 0 && head ? read(fd, head, HEAD) : -1;
    if (got >= 0) {
        for (ssize_t i = 0; i < got; i++)
            head[i] = head[i] ? head[i] : ' ';
        found = strstr(head, "<VRT") != NULL;
    }
    tess_small_free(head);
    if (fd >= 0)
        close(fd);
    return found;
}

static tess_status check_source(scan *s, const char *name, size_t length)
{
    char path[PATH_MAX], real[PATH_MAX];
    struct stat about;
    bool plain = length > 0 && name[0] != '/' && name[0] != ' ' && name[length - 1] != ' ';
    for (size_t i = 0; i < length; i++)
        plain = plain && (unsigned char)name[i] >= ' ' && !strchr("&\"<>\\:?*|", name[i]) &&
                !(name[i] == '.' && name[i + 1] == '.');
    if (!plain || snprintf(path, sizeof path, "%s%.*s", s->folder, (int)length, name) >= (int)sizeof path)
        return refuse(s, "names a source outside its folder, or in an unusual way");
    if (!realpath(path, real) || stat(real, &about) != 0)
        return refuse(s, "names a source that is not there");
    if (strncmp(real, s->folder, strlen(s->folder)) != 0 || !S_ISREG(about.st_mode))
        return refuse(s, "names a source outside its folder, or one that is no regular file");
    if (is_vrt(real))
        return refuse(s, "has another VRT as a source");
    return s->source ? s->source(real, s->error) : TESS_OK;
}

/* Reads the attributes up to the end of the tag. `relative`: one of them is relativeToVRT="1". */
static tess_status read_attributes(scan *s, bool *relative, bool *closed)
{
    *relative = *closed = false;
    for (;;) {
        skip_space(s);
        if (*s->at == '>' || (s->at[0] == '/' && s->at[1] == '>')) {
            *closed = *s->at == '/';
            s->at += *closed ? 2 : 1;
            return TESS_OK;
        }
        const char *name = s->at, *value;
        const size_t length = word_length(name);
        if (length == 0 || name[length] != '=' || name[length + 1] != '"')
            return refuse(s, "is not written as GDAL writes it");
        value = name + length + 2;
        const size_t bytes = strcspn(value, "\"<>");
        if (value[bytes] != '"' || is_attribute(name, length, "subClass"))
            return refuse(s, "computes its pixels, or is not written as GDAL writes it");
        if (is_attribute(name, length, "relativeToVRT")) {
            if (*relative || bytes != 1 || value[0] != '1')
                return refuse(s, "names a source outside its folder");
            *relative = true;
        }
        s->at = value + bytes + 1;
    }
}

static tess_status read_element(scan *s)
{
    const char *name = s->at;
    const size_t length = word_length(name);
    bool known = false, relative, closed;
    for (size_t i = 0; i < sizeof elements / sizeof *elements && !known; i++)
        known = is_word(name, length, elements[i]);
    if (!known)
        return refuse(s, "does more than place other files");
    s->at += length;
    TESS_TRY(read_attributes(s, &relative, &closed));
    const char *text = s->at;
    const size_t bytes = strcspn(text, "<");
    if (is_word(name, length, "SourceFilename")) {
        if (closed || !relative || strncmp(text + bytes, "</SourceFilename>", 17) != 0)
            return refuse(s, "names a source outside its folder");
        return check_source(s, text, bytes);
    }
    /* GDAL would read a coordinate system from a network address or a file. */
    if (is_word(name, length, "SRS") && !closed)
        for (size_t i = 0; i + 2 < bytes; i++)
            if (memcmp(text + i, "://", 3) == 0 || text[0] == '/' || text[0] == '.')
                return refuse(s, "takes its coordinate system from elsewhere");
    return TESS_OK;
}

static tess_status scan_text(scan *s)
{
    skip_space(s);
    if (strncmp(s->at, "<?xml", 5) == 0) {
        const char *end = strstr(s->at, "?>");
        if (!end)
            return refuse(s, "is not written as GDAL writes it");
        s->at = end + 2;
        skip_space(s);
    }
    if (strncmp(s->at, "<VRTDataset", 11) != 0)
        return refuse(s, "does not begin with <VRTDataset");
    while (*(s->at += strcspn(s->at, "<"))) {
        s->at++;
        if (*s->at == '/')
            s->at++;
        else
            TESS_TRY(read_element(s));
    }
    return TESS_OK;
}

static tess_status read_text(const char *path, char **out, tess_error *error)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    char *text = tess_small_alloc(LARGEST + 1, 1);
    ssize_t got = fd >= 0 && text ? read(fd, text, LARGEST) : -1;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (got >= 0 && got < LARGEST && strlen(text) == (size_t)got) {
        *out = text;
        return TESS_OK;
    }
    tess_small_free(text);
    if (!text)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to read the file");
    return got < 0 ? tess_fail(error, TESS_IO_FAILED, "cannot be read (%s)", strerror(why))
                   : tess_fail(error, TESS_BAD_INPUT, "is no VRT: it is larger than %d bytes, or no text",
                               LARGEST);
}

tess_status tess_vrt_check(const char *path, tess_status (*source)(const char *path, tess_error *error),
                           char **text, tess_error *error)
{
    char real[PATH_MAX];
    *text = NULL;
    if (!realpath(path, real))
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
    scan s = {.source = source, .error = error};
    snprintf(s.folder, sizeof s.folder, "%.*s", (int)(strrchr(real, '/') - real) + 1, real);
    TESS_TRY(read_text(path, text, error));
    s.at = *text;
    tess_status status = scan_text(&s);
    if (status != TESS_OK) {
        tess_small_free(*text);
        *text = NULL;
    }
    return status;
}
