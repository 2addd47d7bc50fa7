/* noise_clip.c: noise where values are clipped to limits. Clipped white noise is still white, but smaller: at a
 * limit a third of the variance remains, three standard deviations away nearly all of it. By the moments of a
 * clipped Gaussian, the mean of a patch after clipping shows how near the limit the patch was. */
#include <math.h>

#include "tensor/noise_parts.h"

/* Share of samples at the limit: more than unclipped noise has at its outermost value, even in 8 bits. */
static const double piled = 1e-4;
static const double least_kept =
    0.6; /* 0.75 to 0.9 is better at sigma 35, but leaves too few patches and is worse at 5 and 10 */

enum { REMAINS = 64 };
/* Patches whose mean is nearer to a limit than this, in sigma, touch it; and how many vary much less than expected. */
static const double touching = 0.25, many = 0.3, much_less = 0.2;

static bool is_piled(const tess_noise_limit *limit, int64_t samples)
{
    return limit->count >= 8 && (double)limit->count > piled * (double)samples;
}

bool tess_noise_find_limits(const tess_noise *noise, int channel, tess_noise_clip *clip)
{
    const tess_noise_limit *least = &noise->least[channel], *largest = &noise->largest[channel];
    const int64_t samples = noise->samples[channel];
    clip->low = is_piled(least, samples) ? least->value : -INFINITY;
    clip->high = is_piled(largest, samples) ? largest->value : INFINITY;
    return least->value < largest->value && (isfinite(clip->low) || isfinite(clip->high));
}

/* Mean and variance of a standard normal value clipped to [a, b]; either bound may be infinite. */
static void clipped_moments(double a, double b, double *mean, double *variance)
{
    const double root = sqrt(0.5), scale = 0.3989422804014327;
    double below = 0, above = 0, at_a = 0, at_b = 0;
    if (isfinite(a))
        below = 0.5 * erfc(-a * root), at_a = scale * exp(-a * a / 2);
    else
        a = 0;
    if (isfinite(b))
        above = 0.5 * erfc(b * root), at_b = scale * exp(-b * b / 2);
    else
        b = 0;
    *mean = at_a - at_b + a * below + b * above;
    const double square = 1 - below - above + a * at_a - b * at_b + a * a * below + b * b * above;
    *variance = fmax(square - *mean * *mean, 0);
}

/* Finds the mean before clipping by bisection. */
double tess_noise_kept_at(const tess_noise_clip *clip, double sigma, double mean)
{
    double from = fmax(clip->low, mean - 6 * sigma) - 4 * sigma,
           to = fmin(clip->high, mean + 6 * sigma) + 4 * sigma;
    double shift, variance = 1;
    for (int i = 0; i < 30; i++) {
        const double middle = 0.5 * (from + to);
        clipped_moments((clip->low - middle) / sigma, (clip->high - middle) / sigma, &shift, &variance);
        if (middle + sigma * shift < mean)
            from = middle;
        else
            to = middle;
    }
    return variance;
}

void tess_noise_clip_for(tess_noise_clip *clip, double sigma)
{
    const double first = isfinite(clip->low) ? clip->low : clip->high - 6 * sigma;
    const double last = isfinite(clip->high) ? clip->high : clip->low + 6 * sigma;
    clip->first = first;
    clip->step = (last - first) / (TESS_NOISE_CLIP_STEPS - 1);
    for (int i = 0; i < TESS_NOISE_CLIP_STEPS; i++) {
        const double kept = sigma > 0 ? tess_noise_kept_at(clip, sigma, first + i * clip->step) : 1;
        clip->kept[i] = kept < least_kept ? 0 : (float)kept;
    }
}

double tess_noise_kept(const tess_noise_clip *clip, double mean)
{
    if (!(clip->step > 0))
        return 1;
    const double at = (mean - clip->first) / clip->step;
    const int last = TESS_NOISE_CLIP_STEPS - 1;
    return clip->kept[at <= 0 ? 0 : at >= last ? last : (int)(at + 0.5)];
}

/* What remains of the variance of noise at some means, from a limit on. */
typedef struct remains {
    double at[REMAINS + 1];
} remains;

static remains remains_at(const tess_noise_clip *clip, double sigma, bool low)
{
    remains r;
    for (int i = 0; i <= REMAINS; i++) {
        const double away = touching * sigma * i / REMAINS;
        r.at[i] = sigma * sigma * tess_noise_kept_at(clip, sigma, low ? clip->low + away : clip->high - away);
    }
    return r;
}

bool tess_noise_limits_refute(const tess_noise *noise, int channel, const tess_noise_clip *clip, double sigma)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    const remains ends[2] = {remains_at(clip, sigma, true), remains_at(clip, sigma, false)};
    int64_t quieter = 0;
    for (int64_t i = 0; i < noise->count[channel]; i++) {
        const tess_noise_patch *patch = &patches[i];
        const bool low = patch->mean - clip->low < clip->high - patch->mean;
        const double away = (low ? patch->mean - clip->low : clip->high - patch->mean) / (touching * sigma);
        if (away < 1)
            quieter +=
                (double)patch->high * patch->high < much_less * ends[!low].at[(int)(fmax(away, 0) * REMAINS)];
    }
    return (double)quieter > many * (double)noise->count[channel];
}
