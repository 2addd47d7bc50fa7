/* Reads image files row by row and keeps averages of squares of pixels, so that a large raster costs no memory. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "io/cube.h"
#include "io/image.h"
#include "report/picture.h"
#include "tensor/samples.h"

enum { MOST_PIXELS = 100000000, MOST_BANDS = 4096 };

typedef struct reducing {
    tess_reduced *out;
    int64_t factor;
    float *counts; /* of the values in each place */
} reducing;

static tess_status begin(reducing *r, tess_reduced *out, int64_t height, int64_t width, int64_t side,
                         tess_error *error)
{
    if (height < 1 || width < 1 || height > MOST_PIXELS / width)
        return tess_fail(error, TESS_UNSUPPORTED, "too large for a picture");
    r->out = out;
    r->factor = tess_ceil_div(tess_max_i64(height, width), side);
    out->full_height = height;
    out->full_width = width;
    out->height = tess_ceil_div(height, r->factor);
    out->width = tess_ceil_div(width, r->factor);
    const size_t count = (size_t)(out->height * out->width * out->channels);
    out->values = tess_small_alloc(count, sizeof *out->values);
    r->counts = tess_small_alloc(count, sizeof *r->counts);
    return out->values && r->counts ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a picture");
}

static void add(reducing *r, int64_t y, int64_t x, int c, float value)
{
    const size_t at = (size_t)((y / r->factor * r->out->width + x / r->factor) * r->out->channels + c);
    if (!isfinite(value))
        return;
    r->out->values[at] += value;
    r->counts[at]++;
}

/* Sums become means. A place is without a value if most of its pixels are. */
static void finish(reducing *r)
{
    const tess_reduced *out = r->out;
    for (int64_t i = 0; i < out->height * out->width * out->channels; i++) {
        const int64_t place = i / out->channels, y = place / out->width, x = place % out->width;
        const int64_t rows = tess_min_i64(r->factor, out->full_height - y * r->factor),
                      columns = tess_min_i64(r->factor, out->full_width - x * r->factor);
        out->values[i] = 2 * r->counts[i] > (float)(rows * columns) ? out->values[i] / r->counts[i] : NAN;
    }
}

static tess_status read_image(reducing *r, tess_reader *reader, tess_stop *stop, tess_error *error)
{
    const tess_image_info *info = tess_reader_info(reader);
    const int all = info->channels, kept = r->out->channels;
    const size_t count = (size_t)info->width * (size_t)all;
    void *samples = tess_small_alloc(count, tess_dtype_size(info->dtype));
    float *values = tess_small_alloc(count, sizeof *values);
    unsigned char *valid = tess_small_alloc(count, 1);
    tess_status status = samples && values && valid
                             ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for a row of a picture");
    for (int64_t y = 0; y < info->height && status == TESS_OK; y++) {
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_reader_rows(reader, 1, samples, error);
        if (status == TESS_OK && info->masked)
            status = tess_reader_valid(reader, 1, valid, error);
        if (status != TESS_OK)
            break;
        tess_samples_to_float(info->dtype, info->full_scale > 0 ? info->full_scale : 1, samples,
                              (int64_t)count, values);
        for (int64_t x = 0; x < info->width; x++)
            for (int c = 0; c < kept; c++) {
                const int from =
                    kept == 3 && info->rgb && (info->order[1] || info->order[2] || info->order[0])
                        ? info->order[c]
                        : c;
                const size_t at = (size_t)(x * all + from);
                add(r, y, x, c, info->masked && !valid[at] ? NAN : values[at]);
            }
    }
    tess_small_free(samples);
    tess_small_free(values);
    tess_small_free(valid);
    return status;
}

tess_status tess_reduce_image(tess_memory *memory, const char *path, int64_t side, tess_stop *stop,
                              tess_reduced *out, tess_error *error)
{
    tess_reader *reader = NULL;
    reducing r = {0};
    memset(out, 0, sizeof *out);
    TESS_TRY(tess_reader_open(memory, path, &reader, error));
    const tess_image_info *info = tess_reader_info(reader);
    out->channels = info->channels - info->alpha >= 3 ? 3 : 1;
    out->fraction = info->dtype == TESS_U8 || info->dtype == TESS_U16;
    tess_status status = info->channels > MOST_BANDS
                             ? tess_fail(error, TESS_UNSUPPORTED, "too many channels for a picture")
                             : begin(&r, out, info->height, info->width, side, error);
    if (status == TESS_OK)
        status = read_image(&r, reader, stop, error);
    if (status == TESS_OK)
        finish(&r);
    tess_small_free(r.counts);
    tess_reader_close(reader);
    return status;
}

/* The bands nearest to red, green and blue, or spread over all of them. */
static void choose_bands(const tess_cube_info *info, int bands[3])
{
    static const double wanted[] = {650, 550, 450}, share[] = {0.75, 0.5, 0.25};
    for (int k = 0; k < 3; k++) {
        bands[k] = (int)(share[k] * (info->bands - 1));
        for (int b = 0; info->wavelengths && b < info->bands; b++)
            if (b == 0 ||
                fabs(info->wavelengths[b] - wanted[k]) < fabs(info->wavelengths[bands[k]] - wanted[k]))
                bands[k] = b;
    }
}

static tess_status read_cube(reducing *r, tess_cube *cube, tess_stop *stop, tess_error *error)
{
    const tess_cube_info *info = tess_cube_describe(cube);
    const size_t sample = tess_dtype_size(info->dtype);
    int bands[3];
    choose_bands(info, bands);
    char *samples = tess_small_alloc(tess_cube_bytes(info, 1), 1);
    tess_status status =
        samples ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a row of a cube");
    for (int64_t y = 0; y < info->height && status == TESS_OK; y++) {
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_cube_read(cube, 0, y, 1, samples, error);
        for (int64_t x = 0; x < info->width && status == TESS_OK; x++)
            for (int c = 0; c < 3; c++) {
                float value;
                tess_samples_to_float(info->dtype, 1,
                                      samples + ((size_t)x * (size_t)info->bands + (size_t)bands[c]) * sample,
                                      1, &value);
                add(r, y, x, c, info->has_nodata && (double)value == info->nodata ? NAN : value);
            }
    }
    tess_small_free(samples);
    return status;
}

tess_status tess_reduce_cube(tess_memory *memory, const char *path, int64_t side, tess_stop *stop,
                             tess_reduced *out, tess_error *error)
{
    tess_cube *cube = NULL;
    reducing r = {0};
    memset(out, 0, sizeof *out);
    out->channels = 3;
    TESS_TRY(tess_cube_open(path, &(tess_cube_settings){.memory = memory, .stop = stop}, &cube, error));
    const tess_cube_info *info = tess_cube_describe(cube);
    tess_status status = info->bands > MOST_BANDS
                             ? tess_fail(error, TESS_UNSUPPORTED, "too many bands for a picture")
                             : begin(&r, out, info->height, info->width, side, error);
    if (status == TESS_OK)
        status = read_cube(&r, cube, stop, error);
    if (status == TESS_OK)
        finish(&r);
    tess_small_free(r.counts);
    tess_cube_close(cube);
    return status;
}

void tess_reduced_clear(tess_reduced *image)
{
    tess_small_free(image->values);
    memset(image, 0, sizeof *image);
}
