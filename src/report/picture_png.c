/* The room of files writes PNG to a name, so a picture goes through a temporary file. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/temp.h"
#include "io/image.h"
#include "report/picture.h"

enum { MOST_BYTES = 4 << 20 };

static tess_status write_png(tess_memory *memory, const char *path, int64_t height, int64_t width,
                             const unsigned char *pixels, tess_error *error)
{
    const tess_image_info info = {
        .height = height, .width = width, .channels = 3, .rgb = true, .dtype = TESS_U8, .full_scale = 255};
    tess_writer *writer = NULL;
    TESS_TRY(tess_writer_open(memory, path, &info, NULL, &writer, error));
    tess_status status = tess_writer_rows(writer, height, pixels, error);
    if (status == TESS_OK)
        status = tess_writer_commit(writer, error);
    tess_writer_close(writer);
    return status;
}

static tess_status read_all(const char *path, unsigned char **data, size_t *bytes, tess_error *error)
{
    FILE *file = NULL;
    TESS_TRY(tess_file_open(path, &file, error));
    *data = tess_small_alloc(MOST_BYTES, 1);
    *bytes = *data ? fread(*data, 1, MOST_BYTES, file) : 0;
    const bool whole = *data && !ferror(file) && getc(file) == EOF;
    fclose(file);
    if (whole)
        return TESS_OK;
    tess_small_free(*data);
    *data = NULL;
    return tess_fail(error, TESS_IO_FAILED, "a picture cannot be read back");
}

tess_status tess_encode_png(tess_memory *memory, const char *near, int64_t height, int64_t width,
                            const unsigned char *pixels, unsigned char **png, size_t *bytes,
                            tess_error *error)
{
    tess_temp *temp = NULL;
    char path[4096];
    *png = NULL;
    *bytes = 0;
    TESS_TRY(tess_temp_create(near, &temp, error));
    tess_status status = TESS_OK;
    if (snprintf(path, sizeof path, "%s.png", tess_temp_path(temp)) >= (int)sizeof path)
        status = tess_fail(error, TESS_IO_FAILED, "the name of the page is too long");
    if (status == TESS_OK)
        status = write_png(memory, path, height, width, pixels, error);
    if (status == TESS_OK)
        status = read_all(path, png, bytes, error);
    tess_temp_remove(temp);
    return status;
}
