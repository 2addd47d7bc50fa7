/* noise_encoded.c: noise of photons and of reading, in a photograph that was then encoded in sRGB, as cameras and raw
 * converters write it.
 *
 * The encoding is steep in the dark, so that the noise is strongest there, though it was weakest in linear light. Two
 * parameters describe it, the gain and the read noise in linear light: where the light is l, its variance is
 * gain * (l + dark), and the values are those of a Gaussian, clipped to [0,1] and encoded. Their means and deviations
 * are computed, not derived from the slope of the curve, because the slope changes within the noise in the dark. */
#include <math.h>

#include "tensor/noise_parts.h"

enum { KNOTS = TESS_NOISE_KNOTS, DARKS = 12 };

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
        const double root = (double)k / (KNOTS - 1), light = decode(root * root),
                     sigma = sqrt(gain * (light + dark));
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

double tess_noise_fit_encoded(const tess_noise_part *parts, int count, tess_noise_level *level)
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
    level->read = level->gain = level->zero = 0;
    for (int k = 0; k < KNOTS; k++) {
        const double root = (double)k / (KNOTS - 1);
        level->curve[k] = (float)deviation_at(&best, root * root);
    }
    return least;
}

double tess_noise_encoded_at(const tess_noise_level *level, double value)
{
    const double at = sqrt(fmin(fmax(value, 0), 1)) * (KNOTS - 1);
    const int k = at < KNOTS - 1 ? (int)at : KNOTS - 2;
    const double t = at - k;
    return (1 - t) * (double)level->curve[k] + t * (double)level->curve[k + 1];
}
