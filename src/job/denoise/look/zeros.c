/* Finds zeros that mean "no data" without being declared. A network would smear them into their surroundings, and they set the
 * range and disturb the estimate of the noise. */
#include "job/common/zeros.h"

#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/denoise/denoise.h"

enum { ROWS = 16 };

static void to_doubles(tess_dtype dtype, const char *from, int64_t count, double *to)
{
    float some[64];
    const int64_t most = sizeof some / sizeof some[0];
    if (dtype == TESS_F64) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i += most) {
        const int64_t part = tess_min_i64(count - i, most);
        tess_samples_to_float(dtype, 1, from + (size_t)i * tess_dtype_size(dtype), part, some);
        for (int64_t k = 0; k < part; k++)
            to[i + k] = (double)some[k];
    }
}

static tess_status count_zeros(tess_zeros *z, const tess_image_info *info, tess_reader *reader,
                               tess_stop *stop, tess_error *error)
{
    const int64_t rows = tess_denoise_rows(info), samples = info->width * info->channels;
    char *bytes = tess_small_alloc((size_t)(ROWS * samples), tess_dtype_size(info->dtype));
    double *values = tess_small_alloc((size_t)samples, sizeof *values);
    tess_status status =
        bytes && values ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
    for (int64_t y = 0, count; y < rows && status == TESS_OK && !tess_zeros_hopeless(z); y += count) {
        count = tess_min_i64(ROWS, rows - y);
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_reader_rows(reader, count, bytes, error);
        for (int64_t i = 0; i < count && status == TESS_OK; i++) {
            to_doubles(info->dtype, bytes + (size_t)(i * samples) * tess_dtype_size(info->dtype), samples,
                       values);
            tess_zeros_row(z, values);
        }
    }
    tess_small_free(bytes);
    tess_small_free(values);
    return status;
}

tess_status tess_denoise_find_zeros(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error)
{
    tess_image_info info = file->info;
    tess_zeros z;
    tess_reader *reader = NULL;
    if (settings->zeros_are_data || file->two_values || info.masked || info.alpha ||
        (info.dtype == TESS_U8 && info.depth))
        return TESS_OK;
    TESS_TRY(tess_reader_open_doubles(engine->memory, file->input, file->axes, &reader, error));
    info = *tess_reader_info(reader);
    tess_zeros_begin(&z, info.dtype, tess_denoise_rows(&info), info.width, info.channels,
                     tess_denoise_colours(&info));
    const tess_status status = count_zeros(&z, &info, reader, &engine->stop, error);
    tess_reader_close(reader);
    TESS_TRY(status);
    if (!tess_zeros_are_holes(&z))
        return TESS_OK;
    file->info.zeros_are_holes = true;
    tess_note(&settings->common, TESS_NOTE_WARNING,
              "%s: %lld of %lld pixels are 0, far from all others: they are taken for missing data and kept; "
              "with `zeros_are_data` they are values",
              file->input, (long long)z.count, (long long)z.pixels);
    return TESS_OK;
}
