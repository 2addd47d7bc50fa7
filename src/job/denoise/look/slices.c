/* Slices of a volume may have exposures or offsets that differ by orders of magnitude. On the range of all samples the
 * narrow ones would have almost no contrast, and networks would leave most of their noise. Where the range and the noise
 * are found in the data, such a slice gets the range that it would have as an image: that of its own samples. The others
 * share one, so that they differ by nothing but their noise. */
#include <math.h>

#include "base/checked.h"
#include "job/denoise/look/slices.h"

static const double LITTLE = 0.25; /* of the common range */
static const double DIGITS = 1e-5; /* a range relative to its values that float32 still resolves */

void tess_denoise_span_add(tess_denoise_span *span, double value)
{
    span->low = span->found ? fmin(span->low, value) : value;
    span->high = span->found ? fmax(span->high, value) : value;
    span->sum += value;
    span->found++;
}

static bool has_own(const tess_denoise_file *file, int64_t slice, tess_scale *own)
{
    if (!file->own_scales || !file->look.spans || file->look.spans[slice].found == 0)
        return false;
    const tess_denoise_span *span = &file->look.spans[slice];
    *own = (tess_scale){tess_denoise_sample_of(file, span->low), tess_denoise_sample_of(file, span->high)};
    const double width = own->high - own->low;
    return width < LITTLE * (file->scale.high - file->scale.low) &&
           span->high - span->low > DIGITS * fmax(fabs(span->low), fabs(span->high)) && width > 0 &&
           isnormal((float)width) && isnormal((float)(1 / width));
}

tess_scale tess_denoise_slice_scale(const tess_denoise_file *file, int64_t slice)
{
    tess_scale own;
    return has_own(file, slice, &own) ? own : file->scale;
}

double tess_denoise_slice_mean(const tess_denoise_file *file, int64_t slice)
{
    const tess_denoise_look *look = &file->look;
    const tess_denoise_span *span = look->spans ? &look->spans[slice] : NULL;
    const double mean = span && span->found ? span->sum / (double)span->found : look->mean;
    return look->unit.low + mean * (look->unit.high - look->unit.low);
}

int64_t tess_denoise_own_scales(const tess_denoise_file *file)
{
    int64_t count = 0;
    tess_scale own;
    for (int64_t z = 0; z < file->info.depth; z++)
        count += has_own(file, z, &own);
    return count;
}
