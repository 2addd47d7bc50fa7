/* Samples whose differences float32 would lose, such as seconds since 1970, heights in nanometres or 1e-300: their
 * least and largest are found before they become floats, and they are then scaled by this range in doubles. Doubles
 * are also read and written as doubles; most files of doubles have no need of that: they are read and written as
 * float32, which halves the memory of their rows. 32-bit integers always have their range found if it is to be that
 * of the data. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "job/denoise/denoise.h"

enum { ROWS = 16 };

/* float32 must have this many values in the range of the samples. Its rounding is then less than that of 16 bits. */
static const double STEPS = 1 << 16;

tess_status tess_denoise_open(tess_memory *memory, const char *path, tess_axes axes, tess_dtype dtype,
                              tess_reader **reader, tess_error *error)
{
    return dtype == TESS_F64 ? tess_reader_open_doubles(memory, path, axes, reader, error)
                             : tess_reader_open_axes(memory, path, axes, reader, error);
}

static double sample_at(tess_dtype dtype, const void *samples, int64_t i)
{
    return dtype == TESS_I32   ? (double)((const int32_t *)samples)[i]
           : dtype == TESS_U32 ? (double)((const uint32_t *)samples)[i]
                               : ((const double *)samples)[i];
}

/* Finds the least and largest sample of the colours. *fits: all are in the range of float32. */
static tess_status find_range(tess_reader *reader, const tess_image_info *info, tess_stop *stop,
                              tess_scale *range, bool *fits, tess_error *error)
{
    const int64_t rows = tess_denoise_rows(info), samples = info->width * info->channels,
                  colours = tess_denoise_colours(info);
    char *values = tess_small_alloc((size_t)(ROWS * samples), tess_dtype_size(info->dtype));
    unsigned char *valid = tess_small_alloc((size_t)(ROWS * samples), 1);
    tess_status status =
        values && valid ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
    *range = (tess_scale){INFINITY, -INFINITY};
    *fits = true;
    for (int64_t y = 0; y < rows && status == TESS_OK; y += ROWS) {
        const int64_t count = tess_min_i64(ROWS, rows - y);
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_denoise_read_rows(info, reader, count, values, valid, error);
        for (int64_t i = 0; i < count * samples && status == TESS_OK; i++) {
            if (!valid[i] || i % info->channels >= colours)
                continue;
            const double sample = sample_at(info->dtype, values, i);
            range->low = fmin(range->low, sample), range->high = fmax(range->high, sample);
            *fits = *fits && fabs(sample) <= (double)FLT_MAX;
        }
    }
    tess_small_free(values);
    tess_small_free(valid);
    return status;
}

/* Whether float32 has too few values in the part of the samples that is of interest. */
static bool float_is_too_coarse(const tess_denoise_settings *s, tess_scale range)
{
    const float largest = (float)fmax(fabs(range.low), fabs(range.high));
    const double step = (double)nextafterf(largest, INFINITY) - (double)largest;
    double span = range.high - range.low;
    if (s->range == TESS_RANGE_GIVEN)
        span = fmin(span, s->range_high - s->range_low);
    return span > 0 && span < STEPS * step;
}

tess_sample_words tess_denoise_words(const tess_denoise_file *file, double sample)
{
    enum { LEAST = 7, MOST = 17 }; /* digits of float32 and double */
    const tess_denoise_look *look = &file->look;
    const bool whole = file->info.dtype != TESS_F32 && file->info.dtype != TESS_F64;
    const double span = (look->high - look->low) * (look->unit.high - look->unit.low); /* of the samples */
    tess_sample_words words;
    sample = fabs(sample) <= 2.5e-7 * span ? 0 : sample + 0.0; /* no -0 */
    for (int digits = LEAST; digits <= MOST; digits++) {
        snprintf(words.text, sizeof words.text, "%.*g", digits, sample);
        const double off = fabs(strtod(words.text, NULL) - sample);
        if (whole ? off == 0 : off <= 2.5e-7 * span)
            break;
    }
    return words;
}

tess_status tess_denoise_find_exact(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error)
{
    tess_reader *reader = NULL;
    const bool whole = file->info.dtype == TESS_I32 || file->info.dtype == TESS_U32;
    tess_scale range;
    bool fits;
    if (!file->info.doubles && !(whole && !tess_denoise_scale_is_known(settings, &file->info)))
        return TESS_OK;
    TESS_TRY(tess_reader_open_doubles(engine->memory, file->input, file->axes, &reader, error));
    tess_image_info info = *tess_reader_info(reader);
    info.zeros_are_holes = file->info.zeros_are_holes;
    tess_status status = find_range(reader, &info, &engine->stop, &range, &fits, error);
    const bool coarse = !whole && fits && float_is_too_coarse(settings, range);
    if (status == TESS_OK && (whole || coarse) && range.low <= range.high)
        file->exact = (tess_scale){range.low, range.high > range.low ? range.high : range.low + 1};
    if (status == TESS_OK && coarse)
        file->info = info;
    tess_reader_close(reader);
    return status;
}
