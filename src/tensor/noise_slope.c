/* noise_slope.c: noise that grows with the signal, as photons make it: variance(x) = read^2 + gain * x.
 *
 * Patches are sorted into bins by their mean. In each bin those with the least texture give the noise at that brightness.
 * A bin counts only where its low frequencies are as weak as in noise alone: texture often grows with brightness too, and
 * must not pass for a gain. A gain is reported only where the line is far better than a constant. */
#include <math.h>

#include "tensor/noise_parts.h"

enum { BINS = 24, FEWEST = 100, NEEDED = 5 };

static const double share = 0.05;    /* of a bin's patches are chosen */
static const double flat_ratio = .7; /* noise alone has a ratio of low to high energy of 0.62 at that share */

typedef struct bin {
    int64_t patches, wanted, chosen;
    double mean, low, high;
} bin;

typedef struct line {
    double offset, slope, slope_error,
        misfit; /* misfit: mean square residual, in units of its expected error */
} line;

static void fill_bins(const tess_noise *noise, int channel, const tess_noise_clip *clip, int64_t count,
                      bin *bins)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    double least = INFINITY, largest = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const double mean = patches[noise->order[i] & UINT32_MAX].mean;
        least = fmin(least, mean), largest = fmax(largest, mean);
    }
    const double scale = largest > least ? BINS / (largest - least) : 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < count; i++) {
            const tess_noise_patch *patch = &patches[noise->order[i] & UINT32_MAX];
            const int at = (int)fmin((patch->mean - least) * scale, BINS - 1);
            const double kept = clip ? tess_noise_kept(clip, patch->mean) : 1;
            bin *b = &bins[at];
            if (pass == 0) {
                b->wanted = (int64_t)ceil(share * (double)++b->patches);
            } else if (b->chosen < b->wanted) {
                b->chosen++;
                b->mean += patch->mean, b->low += patch->low / kept;
                b->high += (9.0 * patch->middle + 6.0 * patch->high) / 15 / kept;
            }
        }
}

/* Weighted least squares; a bin's relative error is sqrt(2 / values in it). With `level`, the slope is 0. */
static line fit_line(const bin *bins, const double *values, bool level)
{
    double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, misfit = 0;
    int used = 0;
    for (int i = 0; i < BINS; i++)
        if (values[i] > 0) {
            const double x = bins[i].mean, y = bins[i].high, w = values[i] / (2 * y * y);
            s += w, sx += w * x, sy += w * y, sxx += w * x * x, sxy += w * x * y, used++;
        }
    line fit = {.offset = sy / s};
    const double spread = s * sxx - sx * sx;
    if (!level && spread > 0) {
        fit.slope = (s * sxy - sx * sy) / spread;
        fit.offset = (sy - fit.slope * sx) / s;
        if (fit.offset < 0)
            fit.offset = 0, fit.slope = sxy / sxx;
        fit.slope_error = sqrt(s / spread);
    }
    for (int i = 0; i < BINS; i++)
        if (values[i] > 0) {
            const double y = bins[i].high, r = y - fit.offset - fit.slope * bins[i].mean;
            misfit += r * r * values[i] / (2 * y * y);
        }
    fit.misfit = misfit / used;
    return fit;
}

bool tess_noise_find_slope(const tess_noise *noise, int channel, const tess_noise_clip *clip, int64_t count,
                           tess_noise_level *level)
{
    bin bins[BINS] = {0};
    double values[BINS] = {0}, least = INFINITY, largest = -INFINITY;
    int used = 0;
    fill_bins(noise, channel, clip, count, bins);
    /* Patches that overlap are not independent. */
    const double apart = fmin((double)(noise->step * noise->step) / 16, 1);
    for (int i = 0; i < BINS; i++) {
        bin *b = &bins[i];
        if (b->patches < FEWEST)
            continue;
        b->mean /= (double)b->chosen, b->low /= (double)b->chosen, b->high /= (double)b->chosen;
        if (!(b->high > 0) || b->low > flat_ratio * b->high)
            continue;
        values[i] = fmax((double)b->chosen * apart, 1) * 15;
        least = fmin(least, b->mean), largest = fmax(largest, b->mean), used++;
    }
    if (used < NEEDED)
        return false;
    const line fit = fit_line(bins, values, false), flat = fit_line(bins, values, true);
    const double error = fit.slope_error * sqrt(fmax(fit.misfit, 1));
    const double first = fit.offset + fit.slope * least, last = fit.offset + fit.slope * largest;
    if (!(fit.slope > 6 * error) || !(last > 1.5 * first) || !(flat.misfit > 4 * fit.misfit))
        return false;
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    double sum = 0;
    for (int64_t i = 0; i < noise->count[channel]; i++)
        sum += patches[i].mean;
    level->gain = fit.slope;
    level->read = sqrt(fit.offset);
    level->sigma = sqrt(fmax(fit.offset + fit.slope * sum / (double)noise->count[channel], 0));
    return true;
}
