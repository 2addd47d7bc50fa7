/* png_write.c: writes PNG files with libpng, one row at a time.
 *
 * zlib level 1 with only the filter "difference to the left neighbour": on photographs within a few percent of
 * the size at the default level, in a fifth of the time, and libpng holds only two rows. Write errors (a full
 * disk) are found in write_bytes or at fclose; both give the same message. */
#include "io/png.h"

#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "io/world.h"

typedef struct png_writer {
    tess_memory *memory;
    FILE *file;
    png_structp png;
    png_infop info;
    tess_png_say say;
    size_t row_bytes, accounted;
    bool started;
} png_writer;

static void write_bytes(png_structp png, png_bytep data, size_t bytes)
{
    png_writer *writer = png_get_io_ptr(png);
    if (fwrite(data, 1, bytes, writer->file) == bytes)
        return;
    writer->say.ended = true;
    writer->say.system = errno;
    png_error(png, "write failed");
}

static void flush_bytes(png_structp png)
{
    (void)png;
}

static tess_status explain(const png_writer *writer, tess_error *error)
{
    const tess_png_say *say = &writer->say;
    if (say->no_memory)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for libpng");
    if (say->ended)
        return tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(say->system));
    return tess_fail(error, TESS_IO_FAILED, "cannot be written (libpng: %s)", say->text);
}

static tess_status accepts(const char *target, const tess_image_info *info, tess_error *error)
{
    (void)target;
    bool kind = info->dtype == TESS_U8 || info->dtype == TESS_U16;
    /* Two channels without alpha would be read back as gray with alpha, and four as RGB with alpha. */
    if (!kind || info->channels > 4 || info->alpha != (info->channels % 2 == 0))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "PNG holds gray or RGB, with or without alpha, of uint8 or uint16, not %d channels of %s; "
            "write .tif or .npy",
            info->channels, tess_dtype_word(info->dtype));
    if (info->premultiplied)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "its colours are multiplied by alpha (associated alpha), which PNG cannot say; write .tif");
    if (info->height > TESS_PNG_SIDE || info->width > TESS_PNG_SIDE)
        return tess_fail(error, TESS_BAD_OPTION,
                         "PNG holds at most %d pixels a side, not %lld x %lld; write .tif", TESS_PNG_SIDE,
                         (long long)info->height, (long long)info->width);
    return TESS_OK;
}

static size_t row_bytes_of(const tess_image_info *info)
{
    return (size_t)info->width * (size_t)info->channels * tess_dtype_size(info->dtype);
}

static bool only_rgb(const char *target)
{
    (void)target;
    return true;
}

static size_t held_bytes(const char *target, const tess_image_info *info)
{
    return accepts(target, info, NULL) == TESS_OK ? 2 * tess_block_granted(row_bytes_of(info)) : 0;
}

static tess_status write_header(png_writer *writer, const tess_create *create, tess_error *error)
{
    const tess_image_info *info = create->info;
    png_structp png = writer->png;
    if (setjmp(png_jmpbuf(png)))
        return explain(writer, error);
    png_set_write_fn(png, writer, write_bytes, flush_bytes);
    png_set_compression_level(png, 1);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
    tess_png_set_header(info, png, writer->info);
    tess_png_set_extras(create->extras, info, png, writer->info);
    if (create->like)
        tess_png_copy_metadata(create->like, png, writer->info);
    png_write_info(png, writer->info);
    tess_png_write_extras(create->extras, info, png);
    png_free_data(png, writer->info, PNG_FREE_ICCP, 0);
    if (info->dtype == TESS_U16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    return TESS_OK;
}

static unsigned holds(const char *target, const tess_image_info *info)
{
    return tess_world_holds(target, info) | TESS_SAYS_TEXTS | TESS_SAYS_CODES;
}

static bool holds_exif(const char *target, const tess_extras *extras)
{
    (void)target, (void)extras;
    return true;
}

static void close_writer(void *state)
{
    png_writer *writer = state;
    if (writer->png)
        png_destroy_write_struct(&writer->png, &writer->info);
    if (writer->file)
        fclose(writer->file);
    if (writer->started)
        tess_memory_count(writer->memory, TESS_MEM_HOST, -(int64_t)writer->accounted);
    tess_small_free(writer);
}

static tess_status create_writer(const tess_create *create, void **state, tess_error *error)
{
    png_writer *writer = tess_small_alloc(1, sizeof *writer);
    if (!writer)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    tess_status status = TESS_OK;
    writer->memory = create->memory;
    writer->row_bytes = row_bytes_of(create->info);
    writer->accounted = held_bytes(create->target, create->info);
    writer->file = fopen(create->temp, "wb");
    if (!writer->file) {
        status = tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(errno));
        goto cleanup;
    }
    writer->png =
        png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &writer->say, tess_png_on_error, tess_png_on_warning,
                                  &writer->say, tess_png_malloc, tess_png_free);
    writer->info = writer->png ? png_create_info_struct(writer->png) : NULL;
    status = writer->info ? write_header(writer, create, error)
                          : tess_fail(error, TESS_NO_MEMORY, "no memory for libpng");
cleanup:
    if (status == TESS_OK)
        *state = writer;
    else
        close_writer(writer);
    return status;
}

static tess_status write_rows(void *state, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    (void)first;
    png_writer *writer = state;
    if (!writer->started)
        tess_memory_count(writer->memory, TESS_MEM_HOST, (int64_t)writer->accounted);
    writer->started = true;
    if (setjmp(png_jmpbuf(writer->png)))
        return explain(writer, error);
    for (int64_t y = 0; y < count; y++)
        png_write_row(writer->png, (png_const_bytep)rows + (size_t)y * writer->row_bytes);
    return TESS_OK;
}

static tess_status finish(void *state, tess_error *error)
{
    png_writer *writer = state;
    if (setjmp(png_jmpbuf(writer->png)))
        return explain(writer, error);
    png_write_end(writer->png, NULL);
    FILE *file = writer->file;
    writer->file = NULL;
    if (fclose(file) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(errno));
    return TESS_OK;
}

const tess_write_format tess_write_png = {
    .name = "PNG",
    .like_format = &tess_read_png,
    .holds_exif = holds_exif,
    .holds = holds,
    .accepts = accepts,
    .only_rgb = only_rgb,
    .held_bytes = held_bytes,
    .create = create_writer,
    .rows = write_rows,
    .finish = finish,
    .close = close_writer,
};
