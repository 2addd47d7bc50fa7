/* Samples that mark missing data without saying so: they lie far from all others. */
#include "job/denoise/look/outliers.h"

#include <math.h>

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
 * part is a single value that several samples have, and a still smaller one if it is a common fill value. */
void tess_denoise_find_outliers(const float *sorted, int64_t count, tess_denoise_look *look)
{
    static const double FAR = 4, FAR_AND_EQUAL = 0.5, FAR_AND_USUAL = 0.05;
    double widest = 0, below = look->low, above = look->high;
    int64_t rank = 0; /* values below the gap */
    for (int64_t i = 0; i <= count; i++) {
        const double from = i ? sorted[i - 1] : look->low, to = i < count ? sorted[i] : look->high;
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
}
