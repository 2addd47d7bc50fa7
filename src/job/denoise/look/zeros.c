/* Zeros that mean "no data" without being declared: depth maps, heights with voids, the collar of a turned orthophoto. A
 * network would smear them into their surroundings, and they set the range and disturb the estimate of the noise.
 *
 * Pixels whose colours are all 0 are holes if nothing else comes near 0: the least other value is at least 1/20 of the range of
 * the others away from it, and 16 of the steps between them, since counts of few photons have zeros too. In 8 bits values go
 * down to 0 in any photograph. There zeros are holes if nearly all of them are in long runs, some of them at the border, and
 * the pixels at the runs' ends are not dark: noise would have changed some of them, and black of a picture fades out. */
#include <math.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/denoise/denoise.h"

enum { ROWS = 16, FEWEST = 64, RUN = 8, SOON = 64 };
static const double GAP = 0.05, STEPS = 16; /* of the other values' range; steps between these */
static const double SOLID = 0.95, MOST = 0.98;
static const float DARK = 16; /* of 255 */

typedef struct zeros {
    const tess_image_info *info;
    int64_t colours, rows, count, in_runs, at_border, ends, dark_ends, pixels;
    double least, largest, step; /* of the other samples; step: the least difference of neighbours */
} zeros;

/* The largest sample of a pixel, by its magnitude. */
static float strongest(const zeros *z, const float *pixel)
{
    float most = 0;
    for (int64_t c = 0; c < z->colours; c++)
        most = fmaxf(most, fabsf(pixel[c]));
    return most;
}

static void end_run(zeros *z, const float *row, int64_t from, int64_t to)
{
    const int64_t width = z->info->width, channels = z->info->channels;
    const bool first = z->rows == 0, last = z->rows == tess_denoise_rows(z->info) - 1;
    z->count += to - from;
    if (to - from < RUN)
        return;
    z->in_runs += to - from;
    z->at_border += first || last || from == 0 || to == width;
    if (from > 0)
        z->ends++, z->dark_ends += strongest(z, row + (from - 1) * channels) < DARK;
    if (to < width)
        z->ends++, z->dark_ends += strongest(z, row + to * channels) < DARK;
}

static void count_others(zeros *z, const float *pixel, const float *before)
{
    for (int64_t c = 0; c < z->colours; c++) {
        const double value = (double)pixel[c], difference = before ? fabs(value - (double)before[c]) : 0;
        if (!isfinite(value))
            continue;
        z->least = fmin(z->least, value), z->largest = fmax(z->largest, value);
        if (difference > 0 && difference < z->step)
            z->step = difference;
    }
}

static void count_row(zeros *z, const float *row)
{
    const int64_t width = z->info->width, channels = z->info->channels;
    int64_t from = -1; /* of a run */
    for (int64_t x = 0; x < width; x++) {
        const float *pixel = row + x * channels;
        const bool zero = strongest(z, pixel) == 0; /* not if it is NaN beside 0, which is rare enough */
        if (zero && from < 0)
            from = x;
        if (zero)
            continue;
        count_others(z, pixel, x > 0 && from < 0 ? pixel - channels : NULL);
        if (from >= 0)
            end_run(z, row, from, x);
        from = -1;
    }
    if (from >= 0)
        end_run(z, row, from, width);
    z->pixels += width;
    z->rows++;
}

/* Of the other values from 0. */
static double gap_of(const zeros *z)
{
    return z->least > 0 ? z->least : z->largest < 0 ? -z->largest : 0;
}

/* Whether further rows cannot make the zeros holes. */
static bool hopeless(const zeros *z)
{
    if (z->info->dtype == TESS_U8)
        return z->rows >= SOON && z->at_border == 0; /* a collar goes around */
    const double least = z->info->dtype == TESS_F32 || z->info->dtype == TESS_F64 ? 0 : STEPS;
    return z->largest >= z->least && (gap_of(z) == 0 || gap_of(z) < least);
}

static bool are_holes(const zeros *z)
{
    if (z->count < FEWEST || (double)z->count > MOST * (double)z->pixels || !(z->largest >= z->least))
        return false;
    if (z->info->dtype == TESS_U8)
        return z->at_border >= RUN && (double)z->in_runs > SOLID * (double)z->count &&
               2 * z->dark_ends < z->ends;
    return gap_of(z) >= GAP * (z->largest - z->least) && gap_of(z) >= STEPS * z->step;
}

static tess_status count_zeros(zeros *z, tess_reader *reader, tess_stop *stop, tess_error *error)
{
    const tess_image_info *info = z->info;
    const int64_t rows = tess_denoise_rows(info), samples = info->width * info->channels;
    char *bytes = tess_small_alloc((size_t)(ROWS * samples), tess_dtype_size(info->dtype));
    float *values = tess_small_alloc((size_t)samples, sizeof *values);
    tess_status status =
        bytes && values ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
    for (int64_t y = 0, count; y < rows && status == TESS_OK && !hopeless(z); y += count) {
        count = tess_min_i64(ROWS, rows - y);
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_reader_rows(reader, count, bytes, error);
        for (int64_t i = 0; i < count && status == TESS_OK; i++) {
            tess_samples_to_float(info->dtype, 1,
                                  bytes + (size_t)(i * samples) * tess_dtype_size(info->dtype), samples,
                                  values);
            count_row(z, values);
        }
    }
    tess_small_free(bytes);
    tess_small_free(values);
    return status;
}

tess_status tess_denoise_find_zeros(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error)
{
    const tess_image_info *info = &file->info;
    zeros z = {.info = info,
               .colours = tess_denoise_colours(info),
               .least = INFINITY,
               .largest = -INFINITY,
               .step = INFINITY};
    tess_reader *reader = NULL;
    if (settings->zeros_are_data || info->masked || info->alpha || (info->dtype == TESS_U8 && info->depth))
        return TESS_OK;
    TESS_TRY(tess_denoise_open(engine->memory, file->input, file->axes, info->dtype, &reader, error));
    const tess_status status = count_zeros(&z, reader, &engine->stop, error);
    tess_reader_close(reader);
    TESS_TRY(status);
    if (z.rows < tess_denoise_rows(info) || !are_holes(&z))
        return TESS_OK;
    file->info.zeros_are_holes = true;
    tess_note(&settings->common, TESS_NOTE_WARNING,
              "%s: %lld of %lld pixels are 0, far from all others: they are taken for missing data and kept; "
              "with `zeros_are_data` they are values",
              file->input, (long long)z.count, (long long)z.pixels);
    return TESS_OK;
}
