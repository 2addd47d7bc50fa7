/* noise_magnitude.c: noise of magnitudes, as in images of magnetic resonance: the lengths of complex values with white noise of one
 * level. Where there is no signal, as in the air around a head, the lengths are Rayleigh's: their mean is 1.2533 times that level, their
 * deviation 0.6551 times. Where the signal is strong the deviation is the level itself. A line through both, as of photons, is too low
 * between them. */
#include <math.h>

#include "tensor/noise_parts.h"

static const double rayleigh_mean = 1.2533, rayleigh_deviation = 0.6551;
static const double alike = 0.06;     /* relative error of their ratio */
static const double air_spread = 1.5; /* largest mean of a patch in air to the least */
static const double strong = 3;       /* levels: a signal from here on has at least 0.93 of the deviation */
static const double least = 0.8,
                    most = 1.3; /* some part there has more and some less of the level that the air shows */

static const double of_photons = 0.75; /* of the variance of photons at the brightest part */
enum { FEWEST_AIR = 3, FEW_BETWEEN = 2 };

static double level_of_air(const tess_noise_part *parts, int count, int *air)
{
    double mean = 0, variance = 0;
    *air = 0;
    while (*air < count && parts[*air].mean < air_spread * parts[0].mean) {
        mean += parts[*air].mean;
        variance += parts[*air].variance;
        ++*air;
    }
    if (*air < FEWEST_AIR || !(parts[0].mean > 0))
        return 0;
    const double deviation = sqrt(variance / *air), ratio = deviation / (mean / *air);
    return fabs(ratio * rayleigh_mean / rayleigh_deviation - 1) < alike ? deviation / rayleigh_deviation : 0;
}

/* Whether the deviation is the level where the signal is strong, and there are hardly any parts between air and signal. Photons have
 * a variance in proportion to the mean, and a picture has parts of any brightness. */
static bool has_signal(const tess_noise_part *parts, int count, int air, double sigma)
{
    double calmest = INFINITY, loudest = 0;
    int between = 0;
    for (int i = air; i < count; i++)
        if (parts[i].mean > strong * sigma)
            calmest = fmin(calmest, parts[i].variance), loudest = fmax(loudest, parts[i].variance);
        else
            between++;
    if (between > FEW_BETWEEN || air + between == count)
        return false;
    const double photons = parts[air - 1].variance * parts[count - 1].mean / parts[air - 1].mean;
    return sqrt(calmest) < most * sigma && sqrt(loudest) > least * sigma &&
           parts[count - 1].variance < of_photons * photons;
}

bool tess_noise_is_magnitude(const tess_noise *noise, int channel, const tess_noise_sketch *sketch,
                             tess_noise_level *level)
{
    int air;
    const double sigma = level_of_air(sketch->parts, sketch->count, &air);
    if (!(sigma > 0) || noise->least[channel].value < 0 ||
        !has_signal(sketch->parts, sketch->count, air, sigma))
        return false;
    level->sigma = level->read = sigma;
    level->gain = level->zero = 0;
    level->magnitude = level->uneven = true;
    return true;
}
