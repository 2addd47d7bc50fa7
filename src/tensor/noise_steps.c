/* noise_steps.c: what rounding leaves of noise: the step between the values of a channel, which may be several steps of its
 * type, and how many neighbours are equal (noise_bound.c). */
#include <math.h>

#include "tensor/noise_parts.h"

enum { SIDE = TESS_NOISE_SIDE, PAIRS = 2 * SIDE * (SIDE - 1) };
static const double common =
    0.25; /* share of equal neighbours in an image with flat areas or few values everywhere */
static const double some = 0.05; /* in a patch */
static const double few = 0.15;  /* share of patches: shores have 0.05, blurred pages and codes 0.3 to 0.9 */
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

static double varies(const tess_noise_patch *p)
{
    return sqrt((9 * (double)p->middle * (double)p->middle + 6 * (double)p->high * (double)p->high) / 15);
}

bool tess_noise_is_partly_flat(const tess_noise *noise, int channel, int64_t patch)
{
    const int64_t at = channel * noise->most + patch;
    const double share = noise->equal[at] / (double)PAIRS;
    return share > some &&
           varies(&noise->patches[at]) > clearly * tess_noise_stirred(noise->finest[channel], share);
}

void tess_noise_find_flat(tess_noise *noise)
{
    for (int c = 0; c < noise->shape.channels; c++) {
        int64_t varied = 0, equal = 0, flat = 0;
        for (int64_t i = 0; i < noise->count[c]; i++) {
            if (!(varies(&noise->patches[c * noise->most + i]) > 0))
                continue;
            varied++;
            equal += noise->equal[c * noise->most + i];
            flat += tess_noise_is_partly_flat(noise, c, i);
        }
        noise->flat_in_part[c] =
            (double)equal < common * PAIRS * (double)varied && (double)flat < few * (double)varied;
    }
}
