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

enum { ROWS = 16, WINDOW = 64, MOST_WINDOWS = 1 << 16 };

/* float32 must have this many values in the range of the samples. Its rounding is then less than that of 16 bits. In the
 * range of most neighbours, which a few samples far from all others do not widen, 12 bits are enough. */
static const double STEPS = 1 << 16, INNER_STEPS = 1 << 12;

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

typedef struct ranges {
    tess_scale all;     /* the least and largest sample of the colours */
    tess_scale inner;   /* the medians of the least and of the largest sample of WINDOW neighbours */
    bool fits;          /* all are in the range of float32 */
    int64_t stride;     /* samples from one window to the next */
    double *low, *high; /* of the windows whose samples differ */
    size_t count;
} ranges;

static tess_scale range_of(const tess_image_info *info, const char *values, const unsigned char *valid,
                           int64_t from, int64_t to)
{
    const int64_t colours = tess_denoise_colours(info);
    tess_scale range = {INFINITY, -INFINITY};
    for (int64_t i = from; i < to; i++) {
        if (!valid[i] || i % info->channels >= colours)
            continue;
        const double sample = sample_at(info->dtype, values, i);
        range.low = fmin(range.low, sample), range.high = fmax(range.high, sample);
    }
    return range;
}

static void add_samples(ranges *r, const tess_image_info *info, const char *values,
                        const unsigned char *valid, int64_t samples)
{
    for (int64_t i = 0; i < samples; i += r->stride) {
        const tess_scale w = range_of(info, values, valid, i, tess_min_i64(i + WINDOW, samples));
        if (w.low < w.high) {
            r->low[r->count] = w.low;
            r->high[r->count++] = w.high;
        }
    }
    const tess_scale all = range_of(info, values, valid, 0, samples);
    if (!(all.low <= all.high))
        return;
    r->all = (tess_scale){fmin(r->all.low, all.low), fmax(r->all.high, all.high)};
    r->fits = r->fits && fmax(fabs(all.low), fabs(all.high)) <= (double)FLT_MAX;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

static tess_status find_ranges(tess_reader *reader, const tess_image_info *info, tess_stop *stop, ranges *r,
                               tess_error *error)
{
    const int64_t rows = tess_denoise_rows(info), samples = info->width * info->channels;
    const int64_t stride = tess_max_i64(WINDOW, rows * samples / MOST_WINDOWS),
                  parts = tess_ceil_div(rows, ROWS) * tess_ceil_div(ROWS * samples, stride);
    char *values = tess_small_alloc((size_t)(ROWS * samples), tess_dtype_size(info->dtype));
    unsigned char *valid = tess_small_alloc((size_t)(ROWS * samples), 1);
    *r = (ranges){.all = {INFINITY, -INFINITY},
                  .fits = true,
                  .stride = stride,
                  .low = tess_small_alloc((size_t)parts, sizeof *r->low),
                  .high = tess_small_alloc((size_t)parts, sizeof *r->high)};
    tess_status status = values && valid && r->low && r->high
                             ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
    for (int64_t y = 0; y < rows && status == TESS_OK; y += ROWS) {
        const int64_t count = tess_min_i64(ROWS, rows - y);
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_denoise_read_rows(info, reader, count, values, valid, error);
        if (status == TESS_OK)
            add_samples(r, info, values, valid, count * samples);
    }
    if (status == TESS_OK && r->count)
        r->inner = (tess_scale){median(r->low, r->count), median(r->high, r->count)};
    tess_small_free(values);
    tess_small_free(valid);
    tess_small_free(r->low);
    tess_small_free(r->high);
    return status;
}

/* Whether float32 has fewer than so many values in the part of the samples that is of interest. */
static bool float_is_too_coarse(const tess_denoise_settings *s, tess_scale range, double steps)
{
    const float largest = (float)fmax(fabs(range.low), fabs(range.high));
    const double step = (double)nextafterf(largest, INFINITY) - (double)largest;
    double span = range.high - range.low;
    if (s->range == TESS_RANGE_GIVEN)
        span = fmin(span, s->range_high - s->range_low);
    return span > 0 && span < steps * step;
}

tess_sample_words tess_denoise_words(const tess_denoise_file *file, double sample)
{
    const tess_denoise_look *look = &file->look;
    return tess_denoise_words_of(file, sample, (look->high - look->low) * (look->unit.high - look->unit.low));
}

tess_sample_words tess_denoise_words_of(const tess_denoise_file *file, double sample, double span)
{
    enum { LEAST = 7, MOST = 17 }; /* digits of float32 and double */
    const bool whole = file->info.dtype != TESS_F32 && file->info.dtype != TESS_F64;
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
    ranges r;
    if (!file->info.doubles && !(whole && !tess_denoise_scale_is_known(settings, &file->info)))
        return TESS_OK;
    TESS_TRY(tess_reader_open_doubles(engine->memory, file->input, file->axes, &reader, error));
    tess_image_info info = *tess_reader_info(reader);
    info.zeros_are_holes = file->info.zeros_are_holes;
    const tess_status status = find_ranges(reader, &info, &engine->stop, &r, error);
    tess_reader_close(reader);
    TESS_TRY(status);
    const bool coarse = !whole && r.fits && float_is_too_coarse(settings, r.all, STEPS);
    file->exact_inside = !whole && r.fits && !coarse && float_is_too_coarse(settings, r.inner, INNER_STEPS);
    if (file->exact_inside)
        file->exact = r.inner;
    else if ((whole || coarse) && r.all.low <= r.all.high)
        file->exact = (tess_scale){r.all.low, r.all.high > r.all.low ? r.all.high : r.all.low + 1};
    if (coarse || file->exact_inside)
        file->info = info;
    return TESS_OK;
}
