/* noise_encoded.c: noise of photons and of reading, in a photograph that was then encoded in sRGB, as cameras and raw
 * converters write it.
 *
 * The encoding is steep in the dark, so that the noise is strongest there, though it was weakest in linear light. Two
 * parameters describe it, the gain and the read noise in linear light: where the light is l, its variance is
 * gain * (l + dark), and the values are those of a Gaussian, clipped to [0,1] and encoded. Their means and deviations
 * are computed, not derived from the slope of the curve, because the slope changes within the noise in the dark. */
#include <math.h>

#include "tensor/noise_parts.h"

enum { KNOTS = TESS_NOISE_KNOTS, NEEDED = 5, DARKS = 12 };
static const double enough = 6, against = -8; /* differences of the costs, as in noise_photons.c */
static const double most = 8;                 /* of one channel */
static const double alike = 0.12;             /* relative difference of levels */

static double encode(double light)
{
    return light <= 0        ? 0
           : light >= 1      ? 1
           : light < 0.00313 ? 12.92 * light
                             : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

static double decode(double value)
{
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

double tess_noise_knot(int k)
{
    const double root = (double)k / (KNOTS - 1); /* more of them in the dark */
    return root * root;
}

/* The values of increasing light: their means and deviations after clipping and encoding. */
typedef struct law {
    double gain, dark;
    double mean[KNOTS], deviation[KNOTS];
} law;

static void find_law(law *l, double gain, double dark)
{
    static const double step = 0.5;
    enum { HALF = 7 };
    *l = (law){.gain = gain, .dark = dark};
    for (int k = 0; k < KNOTS; k++) {
        const double light = decode(tess_noise_knot(k)), sigma = sqrt(gain * (light + dark));
        double sum = 0, first = 0, second = 0;
        for (int i = -HALF; i <= HALF; i++) {
            const double weight = exp(-0.5 * i * i * step * step), v = encode(light + i * step * sigma);
            sum += weight, first += weight * v, second += weight * v * v;
        }
        l->mean[k] = first / sum;
        l->deviation[k] = sqrt(fmax(second / sum - l->mean[k] * l->mean[k], 0));
    }
}

/* The standard deviation where the mean of the values is `mean`. */
static double deviation_at(const law *l, double mean)
{
    int k = 1;
    while (k < KNOTS - 1 && l->mean[k] < mean)
        k++;
    const double width = l->mean[k] - l->mean[k - 1],
                 t = width > 0 ? fmin(fmax((mean - l->mean[k - 1]) / width, 0), 1) : 0;
    return (1 - t) * l->deviation[k - 1] + t * l->deviation[k];
}

static double cost_of(const law *l, const tess_noise_part *parts, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const double sigma = fmax(deviation_at(l, parts[i].mean), 1e-6);
        sum += tess_noise_cost(&parts[i], sigma * sigma);
    }
    return sum;
}

/* The best gain for this share of read noise. */
static double fit_gain(law *l, double dark, const tess_noise_part *parts, int count)
{
    enum { STEPS = 6, ROUNDS = 7 };
    const double step = 0.2, first = 1e-3;
    double start = 0, best = 0, least = INFINITY;
    find_law(l, first, dark);
    for (int i = 0; i < count; i++)
        start += log(parts[i].variance / pow(fmax(deviation_at(l, parts[i].mean), 1e-6), 2)) / count;
    for (int i = -STEPS; i <= STEPS; i++) {
        find_law(l, first * exp(start + i * step), dark);
        const double cost = cost_of(l, parts, count);
        if (cost < least)
            least = cost, best = start + i * step;
    }
    double from = best - step, to = best + step;
    for (int round = 0; round < ROUNDS; round++) {
        const double third = (to - from) / 3;
        law other;
        find_law(l, first * exp(from + third), dark);
        find_law(&other, first * exp(to - third), dark);
        if (cost_of(l, parts, count) < cost_of(&other, parts, count))
            to -= third;
        else
            from += third;
    }
    find_law(l, first * exp((from + to) / 2), dark);
    return cost_of(l, parts, count);
}

static void fit_law(const tess_noise_part *parts, int count, tess_noise_level *level)
{
    law best = {0}, l;
    double least = INFINITY, dark = 0;
    for (int i = 0; i < DARKS; i++) {
        const double cost = fit_gain(&l, dark, parts, count);
        if (cost < least)
            least = cost, best = l;
        dark = i == 0 ? 1e-3 : 1.8 * dark;
    }
    level->encoded = true;
    level->gain = level->zero = 0;
    for (int k = 0; k < KNOTS; k++)
        level->curve[k] = (float)deviation_at(&best, tess_noise_knot(k));
}

double tess_noise_encoded_at(const tess_noise_level *level, double value)
{
    const double at = sqrt(fmin(fmax(value, 0), 1)) * (KNOTS - 1);
    const int k = at < KNOTS - 1 ? (int)at : KNOTS - 2;
    const double t = at - k;
    return (1 - t) * (double)level->curve[k] + t * (double)level->curve[k + 1];
}

/* How much better than this level the encoded one is. Lines are not compared where values are clipped. */
static double evidence_for(const tess_noise_level *encoded, const tess_noise_level *level,
                           const tess_noise_clip *clip, const tess_noise_part *parts, int count)
{
    const bool white = level->gain == 0, line = !white && level->read > 0;
    double sum = white ? tess_noise_white_cost(clip, parts, count) : 0;
    for (int i = 0; i < count; i++) {
        if (line && parts[i].near_low)
            continue;
        const double mean = parts[i].mean, least = 0.03 * level->sigma;
        sum -= tess_noise_cost(&parts[i], pow(fmax(tess_noise_at(encoded, mean), least), 2));
        sum += white ? 0 : tess_noise_cost(&parts[i], pow(fmax(tess_noise_at(level, mean), least), 2));
    }
    return sum;
}

void tess_noise_try_encoded(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                            const tess_noise_level *level, tess_noise_sketch *sketch)
{
    tess_noise_part calm[TESS_NOISE_PARTS];
    int count = 0;
    for (int i = 0; i < sketch->count; i++)
        if (sketch->parts[i].error <= TESS_NOISE_CALM)
            calm[count++] = sketch->parts[i];
    /* Values that the encoding cannot have are not encoded. */
    sketch->tried = count >= NEEDED && noise->least[channel].value >= 0 && noise->largest[channel].value <= 1;
    if (!sketch->tried)
        return;
    sketch->encoded = *level;
    sketch->encoded.uneven = false;
    fit_law(calm, count, &sketch->encoded);
    sketch->encoded.sigma = sketch->encoded.read =
        sqrt(tess_noise_mean_variance(noise, channel, &sketch->encoded));
    sketch->tried = !tess_noise_refuted(&sketch->encoded, clip, sketch->parts, sketch->count);
    sketch->evidence = evidence_for(&sketch->encoded, level, clip, calm, count);
}

/* A camera writes all its colours alike, so they decide together, and texture in one of them decides nothing. */
void tess_noise_choose_law(tess_noise_level *levels, const tess_noise_sketch *sketches, int channels)
{
    double evidence = 0, plain = 0, encoded = 0;
    int tried = 0;
    for (int c = 0; c < channels; c++)
        if (sketches[c].tried) {
            evidence += fmin(sketches[c].evidence, most);
            plain += levels[c].sigma * levels[c].sigma;
            encoded += sketches[c].encoded.sigma * sketches[c].encoded.sigma;
            tried++;
        }
    if (tried == 0 || evidence <= against)
        return;
    const bool differ = fabs(sqrt(encoded / plain) - 1) > alike, sure = evidence > enough + 2 * (tried - 1);
    for (int c = 0; c < channels; c++)
        if (sure && sketches[c].tried)
            levels[c] = sketches[c].encoded;
        else if (differ && levels[c].confidence == TESS_NOISE_SURE)
            levels[c].uneven = true, levels[c].confidence = TESS_NOISE_ROUGH;
}
