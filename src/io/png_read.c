/* png_read.c: reads PNG files with libpng, one row at a time.
 *
 * Palettes, grays below 8 bits and transparent colours are expanded, so that a caller gets 8 or 16 bits and 1
 * to 4 channels. libpng holds two rows. For an interlaced file the whole image is held, since its first row is
 * complete only after the last pass. A header that claims more pixels than the file's bytes could inflate to
 * (deflate reaches at most 1032:1) is refused at opening, before memory is planned for it. Texts and EXIF data
 * are skipped: extras_png.c reads them, within bounds. */
#define _XOPEN_SOURCE 700
#include "io/png.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/side_void.h"
#include "io/world.h"

typedef struct png_reader {
    tess_memory *memory;
    FILE *file;
    png_structp png;
    png_infop info;
    tess_png_say say;
    int64_t height, at; /* `at`: rows finished by libpng, for messages */
    size_t row_bytes;
    bool interlaced, started;
    size_t accounted;
    tess_block image; /* for interlaced files only */
    tess_side_void empty;
} png_reader;

void tess_png_on_error(png_structp png, png_const_charp text)
{
    tess_png_say *say = png_get_error_ptr(png);
    snprintf(say->text, sizeof say->text, "%s", text);
    png_longjmp(png, 1);
}

void tess_png_on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

png_voidp tess_png_malloc(png_structp png, png_alloc_size_t bytes)
{
    void *data = tess_small_alloc(bytes, 1);
    tess_png_say *say = png_get_mem_ptr(png);
    if (!data && say)
        say->no_memory = true;
    return data;
}

void tess_png_free(png_structp png, png_voidp data)
{
    (void)png;
    tess_small_free(data);
}

static void read_bytes(png_structp png, png_bytep data, size_t bytes)
{
    png_reader *reader = png_get_io_ptr(png);
    if (fread(data, 1, bytes, reader->file) == bytes)
        return;
    reader->say.ended = true;
    reader->say.system = ferror(reader->file) ? errno : 0;
    png_error(png, "end of file");
}

/* Describes the error in words that a user understands. */
static tess_status explain(const png_reader *reader, tess_error *error)
{
    const tess_png_say *say = &reader->say;
    if (say->no_memory)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for libpng");
    if (say->ended && say->system)
        return tess_fail(error, TESS_IO_FAILED, "cannot be read (%s)", strerror(say->system));
    if (!reader->started)
        return say->ended
                   ? tess_fail(error, TESS_BAD_INPUT, "truncated inside its header; copy the file again")
                   : tess_fail(error, TESS_BAD_INPUT, "damaged PNG header (%s); copy the file again",
                               say->text);
    return tess_fail(error, TESS_BAD_INPUT, "%s after row %lld of %lld%s%s%s; copy the file again",
                     say->ended ? "truncated" : "damaged", (long long)reader->at, (long long)reader->height,
                     say->ended ? "" : " (", say->ended ? "" : say->text, say->ended ? "" : ")");
}

static tess_status read_header(png_reader *reader, tess_error *error)
{
    static const png_byte skipped[] = "tEXt\0zTXt\0iTXt\0sPLT\0hIST\0eXIf";
    png_structp png = reader->png;
    if (setjmp(png_jmpbuf(png)))
        return explain(reader, error);
    png_set_read_fn(png, reader, read_bytes);
    png_set_user_limits(png, TESS_PNG_SIDE, TESS_PNG_SIDE);
    png_set_chunk_malloc_max(png, 16u << 20);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, skipped, sizeof skipped / 5);
    png_read_info(png, reader->info);
    if (png_get_color_type(png, reader->info) == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (png_get_bit_depth(png, reader->info) < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (png_get_valid(png, reader->info, PNG_INFO_tRNS))
        png_set_tRNS_to_alpha(png);
    if (png_get_bit_depth(png, reader->info) == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        png_set_swap(png);
    return TESS_OK;
}

/* Compares the size of the whole image before compression with the size of the file. */
static tess_status check_promise(png_reader *reader, tess_error *error)
{
    struct stat about;
    size_t row = png_get_rowbytes(reader->png, reader->info), image;
    if (fstat(fileno(reader->file), &about) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be read (%s)", strerror(errno));
    if (!tess_mul_size(row, (size_t)png_get_image_height(reader->png, reader->info), &image) ||
        image / 1040 > (size_t)about.st_size)
        return tess_fail(
            error, TESS_BAD_INPUT, "promises %lu x %lu pixels but has only %lld bytes; copy the file again",
            (unsigned long)png_get_image_height(reader->png, reader->info),
            (unsigned long)png_get_image_width(reader->png, reader->info), (long long)about.st_size);
    return TESS_OK;
}

static tess_status describe(png_reader *reader, tess_image_info *info, tess_error *error)
{
    TESS_TRY(check_promise(reader, error));
    png_structp png = reader->png;
    if (setjmp(png_jmpbuf(png)))
        return explain(reader, error);
    reader->interlaced = png_set_interlace_handling(png) > 1;
    png_read_update_info(png, reader->info);
    reader->height = png_get_image_height(png, reader->info);
    reader->row_bytes = png_get_rowbytes(png, reader->info);
    bool deep = png_get_bit_depth(png, reader->info) == 16;
    *info = (tess_image_info){
        .height = reader->height,
        .width = png_get_image_width(png, reader->info),
        .channels = png_get_channels(png, reader->info),
        .alpha = png_get_color_type(png, reader->info) & PNG_COLOR_MASK_ALPHA,
        .rgb = png_get_color_type(png, reader->info) & PNG_COLOR_MASK_COLOR,
        .dtype = deep ? TESS_U16 : TESS_U8,
        .full_scale = deep ? 65535 : 255,
    };
    reader->accounted = 2 * tess_block_granted(reader->row_bytes);
    info->held_bytes = reader->accounted;
    if (reader->interlaced)
        info->held_bytes += tess_block_granted(reader->row_bytes * (size_t)reader->height);
    return TESS_OK;
}

static void close_reader(void *state)
{
    png_reader *reader = state;
    if (reader->png)
        png_destroy_read_struct(&reader->png, &reader->info, NULL);
    if (reader->file)
        fclose(reader->file);
    if (reader->started)
        tess_memory_count(reader->memory, TESS_MEM_HOST, -(int64_t)reader->accounted);
    tess_block_free(&reader->image);
    tess_side_void_close(&reader->empty);
    tess_small_free(reader);
}

static tess_status open_reader(tess_memory *memory, const char *path, tess_image_info *info, void **state,
                               tess_error *error)
{
    png_reader *reader = tess_small_alloc(1, sizeof *reader);
    if (!reader)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    reader->memory = memory;
    tess_status status = TESS_OK;
    reader->file = fopen(path, "rb");
    if (!reader->file) {
        status = tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
        goto cleanup;
    }
    reader->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &reader->say, tess_png_on_error,
                                           tess_png_on_warning, &reader->say, tess_png_malloc, tess_png_free);
    reader->info = reader->png ? png_create_info_struct(reader->png) : NULL;
    if (!reader->info) {
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for libpng");
        goto cleanup;
    }
    status = read_header(reader, error);
    if (status == TESS_OK)
        status = describe(reader, info, error);
    if (status == TESS_OK)
        status = tess_side_void_open(&reader->empty, memory, path, info, error);
    if (status == TESS_OK)
        tess_world_read(path, info);
cleanup:
    if (status == TESS_OK)
        *state = reader;
    else
        close_reader(reader);
    return status;
}

/* Reads rows into `rows`, or all passes into the held image. Checks the end of the file after the last row. */
static tess_status decode(png_reader *reader, int64_t count, unsigned char *rows, tess_error *error)
{
    png_structp png = reader->png;
    if (setjmp(png_jmpbuf(png)))
        return explain(reader, error);
    if (reader->interlaced) {
        for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++)
            for (int64_t y = 0; y < reader->height; y++)
                png_read_row(png, rows + (size_t)y * reader->row_bytes, NULL);
        reader->at = reader->height;
    } else {
        for (int64_t y = 0; y < count; y++, reader->at++)
            png_read_row(png, rows + (size_t)y * reader->row_bytes, NULL);
    }
    if (reader->at == reader->height)
        png_read_end(png, NULL);
    return TESS_OK;
}

static tess_status read_rows(void *state, int64_t first, int64_t count, void *rows, tess_error *error)
{
    png_reader *reader = state;
    if (!reader->started) {
        if (reader->interlaced)
            TESS_TRY(tess_block_alloc(reader->memory, &reader->image, TESS_MEM_HOST,
                                      reader->row_bytes * (size_t)reader->height, error));
        tess_memory_count(reader->memory, TESS_MEM_HOST, (int64_t)reader->accounted);
        reader->started = true;
        if (reader->interlaced)
            TESS_TRY(decode(reader, reader->height, reader->image.data, error));
    }
    if (!reader->interlaced)
        return decode(reader, count, rows, error);
    if (reader->at != reader->height)
        return tess_fail(error, TESS_BAD_INPUT, "damaged interlaced PNG; copy the file again");
    memcpy(rows, (unsigned char *)reader->image.data + (size_t)first * reader->row_bytes,
           (size_t)count * reader->row_bytes);
    return TESS_OK;
}

static tess_status valid_rows(void *state, int64_t first, int64_t count, const void *rows,
                              unsigned char *valid, tess_error *error)
{
    return tess_side_void_rows(&((png_reader *)state)->empty, first, count, rows, valid, error);
}

/* Only a mask beside the image needs a library. */
static tess_status load_for(const char *path, tess_error *error)
{
    char mask[PATH_MAX];
    return tess_side_mask(path, mask) ? tess_read_gdal.load(mask, error) : TESS_OK;
}

void tess_png_copy_metadata(void *reader_state, png_structp png, png_infop info)
{
    png_reader *from = reader_state;
    int kind;
    double g, w[8];
    if (png_get_valid(png, info, PNG_INFO_iCCP))
        return;
    if (png_get_sRGB(from->png, from->info, &kind)) {
        png_set_sRGB_gAMA_and_cHRM(png, info, kind);
        return;
    }
    if (png_get_gAMA(from->png, from->info, &g))
        png_set_gAMA(png, info, g);
    if (png_get_cHRM(from->png, from->info, w, w + 1, w + 2, w + 3, w + 4, w + 5, w + 6, w + 7))
        png_set_cHRM(png, info, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
}

const tess_read_format tess_read_png = {.name = "PNG",
                                        .load = load_for,
                                        .open = open_reader,
                                        .rows = read_rows,
                                        .valid = valid_rows,
                                        .close = close_reader};
