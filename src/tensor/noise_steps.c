/* noise_steps.c: what rounding leaves of noise: the step between the values of a channel, which may be several steps of its
 * type, and how many neighbours are equal (noise_bound.c). */
#include <math.h>

#include "tensor/noise_parts.h"

enum { SIDE = TESS_NOISE_SIDE, PAIRS = 2 * SIDE * (SIDE - 1) };
static const double common =
    0.25; /* share of equal neighbours in an image with flat areas or few values everywhere */
static const double some = 0.05; /* in a patch */
static const double clearly = 4; /* what varies in a patch, to noise that leaves so many neighbours equal */

unsigned char tess_noise_count_equal(float x[TESS_NOISE_SIDE][TESS_NOISE_SIDE])
{
    int count = 0;
    for (int y = 0; y < SIDE; y++)
        for (int k = 0; k < SIDE; k++)
            count += (k > 0 && x[y][k] == x[y][k - 1]) + (y > 0 && x[y][k] == x[y - 1][k]);
    return (unsigned char)count;
}

void tess_noise_find_step(tess_noise *noise, int channel, const float *line)
{
    const double quantum = noise->shape.quantum;
    double finest = noise->finest[channel];
    for (int64_t i = 1; i < noise->shape.width && finest > 1.5 * quantum; i++) {
        const double difference = fabs((double)line[i] - (double)line[i - 1]); /* NaN beside a hole */
        if (!(difference > 0))
            continue;
        double a = difference, b = isinf(finest) ? 0 : finest;
        while (quantum > 0 && b > quantum / 2) {
            const double rest = fabs(a - b * round(a / b));
            a = b, b = rest;
        }
        finest = quantum > 0 ? a : fmin(difference, finest);
    }
    noise->finest[channel] = finest;
}

bool tess_noise_is_partly_flat(const tess_noise *noise, int channel, int64_t patch)
{
    const tess_noise_patch *p = &noise->patches[channel * noise->most + patch];
    const double share = noise->equal[channel * noise->most + patch] / (double)PAIRS,
                 varies = sqrt(
                     (9 * (double)p->middle * (double)p->middle + 6 * (double)p->high * (double)p->high) /
                     15);
    return share > some && (double)noise->pairs[channel] < common * PAIRS * (double)noise->varied[channel] &&
           varies > clearly * tess_noise_stirred(noise->finest[channel], share);
}
