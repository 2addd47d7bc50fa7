/* image.c: finds the format of a file and reads it row by row.
 *
 * The content decides where it can (a JPEG named .png is read as a JPEG), else the suffix: raw rasters have no
 * magic number. Everything common to all formats is here: checking that a path is a readable, non-empty file,
 * counting rows, and adding the file's name to each message. PNG and NPY never use GDAL. */
#define _XOPEN_SOURCE 700
#include "base/trace.h"
#include "io/format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* The suffixes for which tess_image_is_known returns true. GDAL is tried for any other name, since it reads
 * more formats. */
static const tess_suffix suffixes[] = {
    {".png", &tess_read_png, &tess_write_png},
    {".npy", &tess_read_npy, &tess_write_npy},
    {".tif", &tess_read_gdal, &tess_write_gdal},
    {".tiff", &tess_read_gdal, &tess_write_gdal},
    {".jpg", &tess_read_gdal, &tess_write_gdal},
    {".jpeg", &tess_read_gdal, &tess_write_gdal},
    {".jfif", &tess_read_gdal, &tess_write_gdal},
    {".bmp", &tess_read_gdal, &tess_write_gdal},
    {".img", &tess_read_gdal, &tess_write_gdal},
    {".bil", &tess_read_gdal, &tess_write_gdal},
    {".bip", &tess_read_gdal, &tess_write_gdal},
    {".bsq", &tess_read_gdal, &tess_write_gdal},
    {".jp2", &tess_read_gdal, NULL},
    {".webp", &tess_read_gdal, NULL},
    {".hgt", &tess_read_gdal, NULL},
    {".pgm", &tess_read_gdal, NULL},
    {".ppm", &tess_read_gdal, NULL},
};

static const struct {
    const char *bytes;
    size_t count;
    const tess_read_format *read;
} magics[] = {
    {"\x89PNG\r\n\x1a\n", 8, &tess_read_png},
    {"\x93NUMPY", 6, &tess_read_npy},
    {"\xff\xd8\xff", 3, &tess_read_gdal},
    {"II*\0", 4, &tess_read_gdal},
    {"MM\0*", 4, &tess_read_gdal},
    {"II+\0", 4, &tess_read_gdal},
    {"MM\0+", 4, &tess_read_gdal},
};

bool tess_suffix_is(const char *path, const char *suffix)
{
    size_t length = strlen(path), tail = strlen(suffix);
    return length > tail && strcasecmp(path + length - tail, suffix) == 0;
}

const tess_suffix *tess_suffix_of(const char *path)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (tess_suffix_is(path, suffixes[i].suffix))
            return &suffixes[i];
    return NULL;
}

void tess_suffix_list(char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && used < bytes; i++)
        if (suffixes[i].write)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", suffixes[i].suffix);
}

tess_status tess_fail_beyond_float(tess_error *error)
{
    return tess_fail(
        error, TESS_BAD_INPUT,
        "holds values beyond 3.4e38, the range of float32 in which images are restored; scale it first");
}

tess_status tess_axes_of(const char *name, tess_axes *axes, tess_error *error)
{
    static const tess_axes known[] = {TESS_AXES_HW, TESS_AXES_HWC, TESS_AXES_CHW, TESS_AXES_DHW,
                                      TESS_AXES_DHWC};
    *axes = TESS_AXES_AUTO;
    if (!name || strcasecmp(name, "auto") == 0)
        return TESS_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(name, tess_axes_name(known[i])) == 0) {
            *axes = known[i];
            return TESS_OK;
        }
    return tess_fail(error, TESS_BAD_OPTION, "`axes` %s: use auto, HW, HWC, CHW, DHW or DHWC", name);
}

bool tess_image_is_known(const char *path)
{
    return tess_suffix_of(path) != NULL;
}

const char *tess_image_written_as(const char *path)
{
    const tess_suffix *known = tess_suffix_of(path);
    if (!known || known->write)
        return NULL;
    const bool raster = tess_suffix_is(path, ".jp2") || tess_suffix_is(path, ".hgt");
    return raster ? ".tif" : ".png";
}

tess_status tess_image_load_library(const char *path, tess_error *error)
{
    const tess_suffix *known = tess_suffix_of(path);
    const tess_read_format *format = known ? known->read : &tess_read_gdal;
    if (!format->load)
        return TESS_OK;
    tess_status status = format->load(path, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

/* Reads the first bytes of the file, after the checks that need no format. */
static tess_status look_at(const char *path, unsigned char head[8], size_t *count, tess_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return tess_fail(error, TESS_BAD_INPUT, errno == ENOENT ? "no such file; check the name" : "%s",
                         strerror(errno));
    if (S_ISDIR(about.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "is a folder; name one image file in it");
    if (!S_ISREG(about.st_mode))
        return tess_fail(error, TESS_BAD_INPUT, "is not a regular file; images are read from files");
    if (about.st_size == 0)
        return tess_fail(error, TESS_BAD_INPUT, "is empty (0 bytes); copy the file again");
    FILE *file = fopen(path, "rb");
    if (!file)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
    *count = fread(head, 1, 8, file);
    bool failed = ferror(file);
    fclose(file);
    return failed ? tess_fail(error, TESS_IO_FAILED, "cannot be read (%s)", strerror(errno)) : TESS_OK;
}

tess_status tess_choose_format(const char *path, const tess_read_format **out, tess_error *error)
{
    unsigned char head[8] = {0};
    size_t count = 0;
    TESS_TRY(look_at(path, head, &count, error));
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (count >= magics[i].count && memcmp(head, magics[i].bytes, magics[i].count) == 0) {
            *out = magics[i].read;
            return TESS_OK;
        }
    const tess_suffix *known = tess_suffix_of(path);
    *out = known ? known->read : &tess_read_gdal;
    if (*out != &tess_read_gdal)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "is not a %s file (it begins with the bytes %02x %02x %02x %02x); copy it again or give it the "
            "suffix of its true format",
            (*out)->name, head[0], head[1], head[2], head[3]);
    return TESS_OK;
}

/* Keeps only the size of the extras: a writer that needs them loads them. */
static tess_status measure_extras(tess_reader *reader, tess_error *error)
{
    tess_extras extras;
    tess_status status = tess_extras_load(reader->path, &extras, error);
    reader->info.extras_bytes = tess_extras_held(&extras);
    reader->info.premultiplied = reader->info.alpha && extras.associated;
    tess_extras_free(&extras);
    if (status != TESS_OK)
        reader->format->close(reader->state);
    return status;
}

/* `wanted` has the axes, the type and the labels that are asked for. */
static tess_status open_reader(tess_memory *memory, const char *path, const tess_image_info *wanted,
                               tess_reader **out, tess_error *error)
{
    *out = NULL;
    const tess_read_format *format = NULL;
    tess_status status = tess_choose_format(path, &format, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, path);
    tess_reader *reader = tess_small_alloc(1, sizeof *reader);
    if (reader)
        reader->path = tess_small_strdup(path);
    if (!reader || !reader->path) {
        tess_small_free(reader);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    }
    reader->memory = memory;
    reader->format = format;
    reader->info = *wanted;
    status = format->open(memory, path, &reader->info, &reader->state, error);
    if (status == TESS_OK)
        status = measure_extras(reader, error);
    if (status != TESS_OK) {
        tess_small_free(reader->path);
        tess_small_free(reader);
        return tess_fail_prefix(error, status, path);
    }
    *out = reader;
    return TESS_OK;
}

tess_status tess_reader_open_axes(tess_memory *memory, const char *path, tess_axes axes, tess_reader **out,
                                  tess_error *error)
{
    const tess_image_info wanted = {.axes = axes, .dtype = TESS_F32};
    return open_reader(memory, path, &wanted, out, error);
}

tess_status tess_reader_open_doubles(tess_memory *memory, const char *path, tess_axes axes, tess_reader **out,
                                     tess_error *error)
{
    const tess_image_info wanted = {.axes = axes, .dtype = TESS_F64};
    return open_reader(memory, path, &wanted, out, error);
}

tess_status tess_reader_open_labels(tess_memory *memory, const char *path, tess_reader **out,
                                    tess_error *error)
{
    const tess_image_info wanted = {.axes = TESS_AXES_AUTO, .dtype = TESS_F64, .labels = true};
    return open_reader(memory, path, &wanted, out, error);
}

tess_status tess_reader_open(tess_memory *memory, const char *path, tess_reader **out, tess_error *error)
{
    return tess_reader_open_axes(memory, path, TESS_AXES_AUTO, out, error);
}

const tess_image_info *tess_reader_info(const tess_reader *reader)
{
    return &reader->info;
}

static size_t row_bytes(const tess_image_info *info)
{
    return (size_t)(info->width * info->channels) * tess_dtype_size(info->dtype);
}

tess_status tess_reader_rows(tess_reader *reader, int64_t count, void *rows, tess_error *error)
{
    const int64_t all = tess_image_rows(&reader->info);
    if (count < 0 || count > all - reader->next_row)
        return tess_fail(error, TESS_INTERNAL, "%s: rows %lld to %lld asked of an image of %lld",
                         reader->path, (long long)reader->next_row, (long long)(reader->next_row + count),
                         (long long)all);
    if (count == 0)
        return TESS_OK;
    const double start = tess_trace_begin(reader->memory->trace);
    tess_status status = reader->format->rows(reader->state, reader->next_row, count, rows, error);
    tess_trace_end(reader->memory->trace, TESS_TRACE_READ, "read rows", start);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, reader->path);
    reader->next_row += count;
    reader->seen_rows = rows == reader->seen_end ? reader->seen_rows + count : count;
    reader->seen_end = (char *)rows + (size_t)count * row_bytes(&reader->info);
    return TESS_OK;
}

tess_status tess_reader_seek(tess_reader *reader, int64_t row, void *scratch, tess_error *error)
{
    if (row < reader->next_row || row > tess_image_rows(&reader->info))
        return tess_fail(error, TESS_INTERNAL, "%s: asked to go from row %lld to %lld", reader->path,
                         (long long)reader->next_row, (long long)row);
    while (!reader->format->any_order && reader->next_row < row)
        TESS_TRY(tess_reader_rows(reader, 1, scratch, error));
    reader->next_row = row;
    reader->seen_rows = 0;
    reader->seen_end = NULL;
    return TESS_OK;
}

tess_status tess_reader_valid(tess_reader *reader, int64_t count, unsigned char *valid, tess_error *error)
{
    const tess_image_info *info = &reader->info;
    if (count < 0 || count > reader->seen_rows)
        return tess_fail(error, TESS_INTERNAL, "%s: %lld rows asked about, %lld were read together",
                         reader->path, (long long)count, (long long)reader->seen_rows);
    if (!info->masked || !reader->format->valid) {
        memset(valid, 1, (size_t)(count * info->width * info->channels));
        return TESS_OK;
    }
    tess_status status =
        reader->format->valid(reader->state, reader->next_row - count, count,
                              reader->seen_end - (size_t)count * row_bytes(info), valid, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, reader->path);
}

void tess_reader_close(tess_reader *reader)
{
    if (!reader)
        return;
    reader->format->close(reader->state);
    tess_small_free(reader->path);
    tess_small_free(reader);
}
