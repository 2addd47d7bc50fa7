/* Samples that mark missing data without saying so: they lie far from all others. */
#include "job/denoise/look/outliers.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool tess_denoise_is_usual_fill(double value)
{
    static const double usual[] = {-999, -9999, -99999, -32767, -32768,
                                   9999, 99999, 1e20,   1e30,   9.969209968386869e36};
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (fabs(value - usual[i]) <= 4e-7 * fabs(usual[i])) /* values were floats on another scale */
            return true;
    return fabs(value) > 3e38;
}

/* Finds the widest gap between neighbours in the sorted values and compares it with the spread of the values on its
 * other side. If the gap is many times that spread, the part beyond it is not signal. A smaller gap suffices if that
 * part is a single value that several samples have, and a still smaller one if it is a common fill value. A value of several
 * samples below all others may also mark missing data where the gap is a part of the spread. */
void tess_denoise_find_outliers(const float *sorted, int64_t count, tess_denoise_look *look)
{
    static const double FAR = 4, FAR_AND_EQUAL = 0.5, FAR_AND_USUAL = 0.05;
    static const double APART = 0.1, WIDER = 8; /* of the spread; than the gaps between the others */
    double widest = 0, second = 0, below = look->low, above = look->high;
    int64_t rank = 0; /* values below the gap */
    for (int64_t i = 0; i <= count; i++) {
        const double from = i ? sorted[i - 1] : look->low, to = i < count ? sorted[i] : look->high;
        second = fmax(second, fmin(to - from, widest));
        if (to - from > widest) {
            widest = to - from;
            below = from;
            above = to;
            rank = i;
        }
    }
    const bool low_is_one = below == look->low, high_is_one = above == look->high;
    const bool upper =
        low_is_one == high_is_one ? rank > count / 2 : high_is_one; /* the outliers are the upper part */
    const int64_t outside = upper ? count - rank : rank;
    const bool one = upper ? high_is_one : low_is_one;
    look->bulk_low = upper ? look->low : above;
    look->bulk_high = upper ? below : look->high;
    look->outlier = upper ? look->high : look->low;
    const double spread = look->bulk_high - look->bulk_low;
    const double sample = look->unit.low + look->outlier * (look->unit.high - look->unit.low);
    look->outliers =
        spread > 0 && widest > spread * (one && tess_denoise_is_usual_fill(sample) ? FAR_AND_USUAL
                                         : one && outside > 1                      ? FAR_AND_EQUAL
                                                                                   : FAR);
    /* Zeros have a rule of their own (zeros.h), and dead pixels are 0. */
    look->apart = sample != 0 && !upper && one && outside > 1 && spread > 0 && widest > APART * spread &&
                  widest > WIDER * second;
}

#define WIDEN(type)                                                                                          \
    for (int64_t x = 0; x < info->width; x++)                                                                \
        for (int64_t c = 0; c < colours; c++) {                                                              \
            const int64_t at = x * info->channels + c;                                                       \
            const double sample = (double)((const type *)(const void *)samples)[at];                         \
            ends->low = valid[at] && sample < ends->low ? sample : ends->low;                                \
            ends->high = valid[at] && sample > ends->high ? sample : ends->high;                             \
        }                                                                                                    \
    break

void tess_denoise_find_ends(const tess_image_info *info, const char *samples, const unsigned char *valid,
                            tess_scale *ends)
{
    const int64_t colours = tess_denoise_colours(info);
    switch (info->dtype) {
    case TESS_U16:
        WIDEN(uint16_t);
    case TESS_I16:
        WIDEN(int16_t);
    case TESS_U32:
        WIDEN(uint32_t);
    case TESS_I32:
        WIDEN(int32_t);
    case TESS_F32:
        WIDEN(float);
    case TESS_F64:
        WIDEN(double);
    default:
        break; /* 8 bits have no outliers */
    }
}

/* The sample in the fewest digits that a reader turns into it again. */
static tess_sample_words whole_words(const tess_denoise_file *file, double sample)
{
    enum { MOST = 17 };
    const bool narrow = file->info.dtype == TESS_F32;
    tess_sample_words words;
    for (int digits = 6; digits <= MOST; digits++) {
        snprintf(words.text, sizeof words.text, "%.*g", digits, sample);
        const double again = strtod(words.text, NULL);
        if (again == sample || (narrow && fabs(again) <= (double)FLT_MAX && (float)again == (float)sample))
            break;
    }
    return words;
}

/* The value was a float on another scale. It is the least or largest sample, unless noise was added, or a lone defect is
 * beyond it. */
static tess_sample_words outlier_words(const tess_denoise_file *file)
{
    const tess_denoise_look *look = &file->look;
    const double near = tess_denoise_sample_of(file, look->outlier),
                 end = look->outlier == look->high ? look->ends.high : look->ends.low,
                 span = look->unit.high - look->unit.low,
                 off = 1e-6 * (fabs(near) + fabs(look->outlier * span));
    return fabs(end - near) <= off ? whole_words(file, end) : tess_denoise_words(file, near);
}

void tess_denoise_outliers_text(const tess_denoise_file *file, char *text, size_t room)
{
    const tess_denoise_look *look = &file->look;
    const double low = tess_denoise_sample_of(file, look->bulk_low),
                 high = tess_denoise_sample_of(file, look->bulk_high);
    const tess_sample_words mark = outlier_words(file);
    char advice[160];
    if (file->info.several_nodata)
        snprintf(advice, sizeof advice,
                 "give these samples the nodata value that the file declares for their band");
    else if (file->info.has_nodata)
        snprintf(advice, sizeof advice, "give these samples the nodata value %s, which the file declares",
                 whole_words(file, file->info.nodata).text);
    else
        snprintf(advice, sizeof advice, "declare it (gdal_edit.py -a_nodata %s, or NaN in an array)",
                 mark.text);
    /* Values of 32-bit integers beside a far mark are too coarse to tell where the others begin. */
    const double off =
        1.2e-7 * fmax(fabs(look->bulk_low), fabs(look->bulk_high)) * (look->unit.high - look->unit.low);
    char range[96];
    if (off > 0.01 * (high - low) && look->outlier == look->low)
        snprintf(range, sizeof range, "up to %s", whole_words(file, look->ends.high).text);
    else if (off > 0.01 * (high - low))
        snprintf(range, sizeof range, "down to %s", whole_words(file, look->ends.low).text);
    else
        snprintf(range, sizeof range, "from %s to %s", tess_denoise_words_of(file, low, high - low).text,
                 tess_denoise_words_of(file, high, high - low).text);
    snprintf(text, room, "its samples go %s, and some are %s; if that marks missing data, %s", range,
             mark.text, advice);
}
