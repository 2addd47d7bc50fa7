/* noise_slope.c: noise that grows with the signal, as photon noise does: variance(x) = read^2 + gain * (x -
 * zero), where zero is the value without light.
 *
 * Patches are sorted by their mean and divided into parts of equal size. The noise of each part is estimated
 * like that of a whole image (noise_fit.c). On photographs this variance is right to about 12 %, and less
 * certain where there is texture. The slope of a line through these estimates is the gain. Remaining texture
 * can only raise an estimate, so parts above the line get less weight than parts below it. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { PATCHES = 1000, NEEDED = 5, FEWEST_CALM = 3, ROUNDS = 8 };

static const double usual_error = 0.12; /* relative error of a part's variance */
static const double texture_error = 0.5, little_texture = -0.1;
static const double far_from_limit = 2.5; /* sigmas: there clipping removes a few percent of the variance */
static const double sure_slope = 4, least_rise = 1.5;
static const double uneven = 0.85; /* of the level of all parts: a lower one comes from a few parts */

static bool near(double distance, double sigma)
{
    return distance < far_from_limit * sigma;
}

/* Estimates the parts and returns their number. Parts near the upper limit are left out. */
static int ask_parts(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                     tess_noise_part *parts)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    const double least = noise->least[channel].value;
    int64_t count = 0;
    for (int64_t i = 0; i < noise->count[channel]; i++)
        if (patches[i].middle + patches[i].high > 0) /* constant patches would fill whole parts */
            noise->order[count++] = tess_noise_key(fmax(patches[i].mean - least, 0), i);
    tess_noise_sort(noise->order, count, noise->order + noise->most);
    const int all = (int)tess_min_i64(count / PATCHES, TESS_NOISE_PARTS);
    int used = 0;
    for (int i = 0; i < all; i++) {
        const int64_t from = count * i / all, to = count * (i + 1) / all;
        const tess_noise_answer a = tess_noise_ask(noise, channel, NULL, noise->order + from, to - from);
        const double texture = texture_error * fmax(a.texture - little_texture, 0);
        if (a.sigma > 0 && !(clip && near(clip->high - a.mean, a.sigma)))
            parts[used++] = (tess_noise_part){a.mean, a.sigma * a.sigma, hypot(usual_error, texture),
                                              clip && near(a.mean - clip->low, a.sigma)};
    }
    return used;
}

int tess_noise_far_parts(const tess_noise_part *from, int count, tess_noise_part *to)
{
    int taken = 0;
    for (int i = 0; i < count; i++)
        if (!from[i].near_low)
            to[taken++] = from[i];
    return taken;
}

/* Iterated weighted least squares: errors are relative to the line, and outliers get less weight. */
static tess_noise_line fit_line(const tess_noise_part *parts, int count, bool level)
{
    tess_noise_line fit = {0};
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, parts[i].variance), fit.offset += parts[i].variance / count;
    for (int round = 0; round < ROUNDS; round++) {
        double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
        for (int i = 0; i < count; i++) {
            const double x = parts[i].mean, y = parts[i].variance;
            const double there = fmax(fit.offset + fit.slope * x, 1e-3 * most),
                         error = there * parts[i].error;
            const double off = (y - there) / error / (y > there ? 2 : 4);
            const double w = 1 / (error * error) / (1 + off * off);
            s += w, sx += w * x, sy += w * y, sxx += w * x * x, sxy += w * x * y;
        }
        const double spread = s * sxx - sx * sx;
        fit = (tess_noise_line){.offset = sy / s};
        if (level || !(spread > 0) || !(s * sxy > sx * sy))
            continue;
        fit.slope = (s * sxy - sx * sy) / spread, fit.slope_error = sqrt(s / spread);
        fit.offset = (sy - fit.slope * sx) / s, fit.offset_error = sqrt(sxx / spread);
        if (fit.offset < 0 && fit.offset > -3 * fit.offset_error) /* consistent with 0 */
            fit.offset = 0, fit.slope = sxy / sxx;
    }
    return fit;
}

double tess_noise_mean_variance(const tess_noise *noise, int channel, const tess_noise_level *level)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    const int64_t count = noise->count[channel];
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double sigma = tess_noise_at(level, patches[i].mean);
        sum += sigma * sigma;
    }
    return sum / (double)count;
}

double tess_noise_at(const tess_noise_level *level, double value)
{
    if (level->encoded)
        return tess_noise_encoded_at(level, value);
    return sqrt(level->read * level->read + level->gain * fmax(value - level->zero, 0));
}

static int count_calm(const tess_noise_part *parts, int count)
{
    int calm = 0;
    for (int i = 0; i < count; i++)
        calm += parts[i].error <= TESS_NOISE_CALM;
    return calm;
}

/* Only parts without texture can show that the quietest patches of the image come from a few levels of
 * brightness. */
static void look_for_disagreement(tess_noise_part *parts, int used, tess_noise_level *level)
{
    int calm = 0;
    for (int i = 0; i < used; i++)
        if (parts[i].error <= usual_error)
            parts[calm++] = parts[i];
    if (calm < FEWEST_CALM)
        return;
    const double sigma = sqrt(fit_line(parts, calm, true).offset);
    level->uneven = level->sigma < uneven * sigma;
    if (level->uneven)
        level->sigma = level->read = sigma;
}

/* Speckle of radar and ultrasound is in proportion to the brightness. A line through its variances, which grow with the
 * square, is too low where the image is bright. Whether that law fits clearly better than the one that was found. */
static bool is_speckle(const tess_noise_part *parts, int count, const tess_noise_level *level)
{
    static const double clearly = 6;
    double found = 0, best = INFINITY;
    for (int i = 0; i < count; i++) {
        const double sigma = tess_noise_at(level, parts[i].mean);
        found += tess_noise_cost(&parts[i], fmax(sigma * sigma, 1e-3 * parts[i].variance));
        if (!(parts[i].mean > 0))
            return false;
    }
    for (int k = 0; k < count && count >= NEEDED; k++) {
        const double ratio = parts[k].variance / (parts[k].mean * parts[k].mean);
        double cost = 0;
        for (int i = 0; i < count; i++)
            cost += tess_noise_cost(&parts[i], ratio * parts[i].mean * parts[i].mean);
        best = fmin(best, cost);
    }
    return best < found - clearly;
}

static void set_photons(const tess_noise *noise, int channel, const tess_noise_photons *photons,
                        tess_noise_level *level)
{
    level->read = 0, level->gain = photons->gain, level->zero = photons->zero;
    level->sigma = sqrt(tess_noise_mean_variance(noise, channel, level));
}

tess_noise_line tess_noise_fit_line(const tess_noise_part *parts, int count)
{
    return count ? fit_line(parts, count, count < NEEDED) : (tess_noise_line){0};
}

bool tess_noise_set_line(const tess_noise_line *fit, const tess_noise_part *parts, int count, double least,
                         tess_noise_level *level)
{
    double first = INFINITY, last = 0;
    for (int i = 0; i < count; i++) {
        const double there = fit->offset + fit->slope * parts[i].mean;
        first = fmin(first, there), last = fmax(last, there);
    }
    if (!(fit->slope > sure_slope * fit->slope_error) || !(last > least_rise * first))
        return false;
    const double dark = fmin(least, 0), there = fit->offset + fit->slope * dark;
    level->gain = fit->slope;
    level->read = sqrt(fmax(there, 0));
    level->zero = there < 0 ? -fit->offset / fit->slope : dark;
    return true;
}

/* The law of the noise in the values as they are: of photons, of a line, or white. */
static void find_plain(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                       const tess_noise_sketch *sketch, tess_noise_level *level)
{
    tess_noise_part far[TESS_NOISE_PARTS];
    const double least = noise->least[channel].value;
    const int used = tess_noise_far_parts(sketch->parts, sketch->count, far);
    const tess_noise_line fit = tess_noise_fit_line(far, used);
    const tess_noise_photons photons =
        tess_noise_try_photons(least, clip, sketch->parts, sketch->count, &fit);
    if (photons.found) {
        set_photons(noise, channel, &photons, level);
        level->uneven = is_speckle(far, used, level);
        return;
    }
    if (used == 0)
        return;
    if (tess_noise_set_line(&fit, far, used, least, level)) {
        level->sigma = sqrt(tess_noise_mean_variance(noise, channel, level));
        level->uneven = 2 * count_calm(far, used) < used || /* texture may have made the slope */
                        is_speckle(far, used, level);
        return;
    }
    look_for_disagreement(far, used, level);
    tess_noise_level other = *level;
    set_photons(noise, channel, &photons, &other);
    level->uneven = level->uneven || tess_noise_photons_differ(&photons, other.sigma, level->sigma);
}

void tess_noise_find_slope(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                           tess_noise_level *level, tess_noise_sketch *sketch)
{
    sketch->count = ask_parts(noise, channel, clip, sketch->parts);
    if (tess_noise_is_magnitude(noise, channel, sketch, level))
        return;
    find_plain(noise, channel, clip, sketch, level);
    tess_noise_try_encoded(noise, channel, clip, level, sketch);
}
