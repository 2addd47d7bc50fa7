#include "job/fill/fill_look.h"

#include <math.h>

#include "base/checked.h"

enum { ROWS = 64, ROOM = 16 << 20 };

void tess_fill_count_zeros(tess_zeros *zeros, const tess_raster_info *info, const double *values,
                           int64_t rows, double *scratch)
{
    const int64_t width = zeros->width;
    for (int64_t y = 0; y < rows && !tess_zeros_hopeless(zeros); y++) {
        for (int64_t x = 0; x < width; x++)
            scratch[x] = (values[y * width + x] - info->offset) / info->scale;
        tess_zeros_row(zeros, scratch);
    }
}

/* `room`: a row of scratch, then `rows` of values and of flags. */
static tess_status look(tess_raster *raster, int64_t rows, void *room, tess_stop *stop, tess_zeros *zeros,
                        tess_error *error)
{
    const tess_raster_info *info = tess_raster_describe(raster);
    double *scratch = room, *values = scratch + info->own_width;
    uint8_t *flags = (uint8_t *)(values + rows * info->own_width);
    for (int64_t y = 0; y < info->own_height; y += rows) {
        const int64_t some = tess_min_i64(rows, info->own_height - y);
        TESS_TRY(tess_stop_check(stop, error));
        TESS_TRY(tess_raster_read_own(raster, y, some, values, flags, error));
        tess_fill_count_zeros(zeros, info, values, some, scratch);
    }
    return TESS_OK;
}

tess_status tess_fill_look_at(tess_raster *raster, tess_memory *memory, tess_stop *stop,
                              tess_fill_look *found, tess_error *error)
{
    const tess_raster_info *info = tess_raster_describe(raster);
    const int64_t row = info->own_width * (int64_t)(sizeof(double) + 1),
                  rows = tess_min_i64(ROWS, tess_max_i64(1, ROOM / row));
    tess_block room = {0};
    TESS_TRY(tess_block_alloc(memory, &room, TESS_MEM_HOST,
                              (size_t)(rows * row) + (size_t)info->own_width * sizeof(double), error));
    tess_void_watch_begin(&found->marks);
    tess_zeros_begin(&found->zeros, info->dtype, info->own_height, info->own_width, 1, 1);
    tess_raster_watch(raster, &found->marks);
    const tess_status status = look(raster, rows, room.data, stop, &found->zeros, error);
    tess_raster_watch(raster, NULL);
    tess_block_free(&room);
    if (status == TESS_OK && tess_void_watch_end(&found->marks, &info->rule))
        tess_raster_add_marks(raster, &found->marks);
    return status;
}
