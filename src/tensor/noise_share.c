/* noise_share.c: small slices of a volume share their level.
 *
 * A slice of 64 x 64 by itself shows its level to about 10 %, often much worse where it has texture, and no gain. The parts
 * (noise_slope.c) of the slices near it together show both. Its own parts decide whether that level is taken: they must
 * agree with it within their error, so a slice that was exposed differently keeps its own. Slices whose own level is
 * sure do not share it. */
#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

static const double errors = 2.5;     /* that a slice may differ by */
static const double few_patches = 2;  /* error of a part of a small slice, relative to that of a large one */
static const double one_level = 0.25; /* relative error of the variance of a slice without parts */

/* Of the level to the slice's own, whatever the errors: its quietest patches are its darkest, so its own is often low. */
static const double least_ratio = 0.75, largest_ratio = 1.7;

static const tess_noise_sketch *sketch_at(const tess_noise *noise, int64_t slice, int channel)
{
    return &noise->sketches[slice * noise->shape.channels + channel];
}

static bool is_alike(double sigma, double own)
{
    return sigma > least_ratio * own && own > least_ratio * sigma;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The law of the slices near this one: of photons, of a line, or white. False: no other slice has noise. */
static bool law_near(const tess_noise *noise, int64_t slice, int channel, tess_noise_level *law)
{
    tess_noise_part parts[TESS_NOISE_FITTED], far[TESS_NOISE_FITTED];
    double sigmas[2 * TESS_NOISE_NEAR + 1];
    const int64_t first = tess_max_i64(slice - TESS_NOISE_NEAR, 0),
                  last = tess_min_i64(slice + TESS_NOISE_NEAR, noise->slice - 1);
    const tess_noise_sketch *own = sketch_at(noise, slice, channel);
    int count = 0, known = 0, alike = 0;
    double least = INFINITY;
    for (int64_t i = first; i <= last; i++) {
        const tess_noise_sketch *sketch = sketch_at(noise, i, channel);
        if (!(sketch->sigma > 0))
            continue;
        if (is_alike(sketch->sigma, own->sigma))
            sigmas[alike++] = sketch->sigma;
        known++;
        least = fmin(least, sketch->least);
        for (int k = 0; k < sketch->count; k++)
            parts[count++] = sketch->parts[k];
    }
    if (known < 2)
        return false;
    const tess_noise_clip clip = {.low = own->low, .high = own->high};
    const int used = tess_noise_far_parts(parts, count, far);
    const tess_noise_line line = tess_noise_fit_line(far, used);
    const tess_noise_photons photons =
        tess_noise_try_photons(least, own->clipped ? &clip : NULL, parts, count, &line);
    *law = (tess_noise_level){0};
    if (photons.found) {
        law->gain = photons.gain, law->zero = photons.zero;
    } else if (!tess_noise_set_line(&line, far, used, least, law)) {
        qsort(sigmas, (size_t)alike, sizeof *sigmas, compare);
        law->read = (sigmas[(alike - 1) / 2] + sigmas[alike / 2]) / 2;
    }
    return true;
}

/* Whether the slice's own parts agree with the law. Sets law->sigma. */
static bool agrees(const tess_noise_sketch *own, tess_noise_level *law)
{
    const bool photons = law->gain > 0 && law->read == 0;
    double weights = 0, sum = 0, square = 0;
    for (int i = 0; i < own->count; i++) {
        const tess_noise_part *part = &own->parts[i];
        const double there = pow(tess_noise_at(law, fmax(part->mean, law->zero + law->gain / 4)), 2),
                     error = few_patches * part->error;
        square += there / own->count;
        if (part->near_low && !photons) /* its variance may be smaller for that */
            continue;
        weights += 1 / (error * error);
        sum += log(part->variance / there) / (error * error);
    }
    if (own->count == 0 && law->gain == 0) {
        square = law->read * law->read;
        weights = 1 / (one_level * one_level);
        sum = weights * log(own->sigma * own->sigma / square);
    }
    law->sigma = sqrt(square);
    return law->sigma > least_ratio * own->sigma && law->sigma < largest_ratio * own->sigma &&
           fabs(sum) <= errors * sqrt(weights);
}

/* Whether most slices near this one agree with a law that grows with the brightness: brighter slices with more noise
 * would look the same. */
static bool most_agree(const tess_noise *noise, int64_t slice, int channel, const tess_noise_level *law)
{
    const int64_t first = tess_max_i64(slice - TESS_NOISE_NEAR, 0),
                  last = tess_min_i64(slice + TESS_NOISE_NEAR, noise->slice - 1);
    int known = 0, agreeing = 0;
    for (int64_t i = first; i <= last; i++) {
        const tess_noise_sketch *sketch = sketch_at(noise, i, channel);
        tess_noise_level copy = *law;
        known += sketch->sigma > 0;
        agreeing += sketch->sigma > 0 && agrees(sketch, &copy);
    }
    return 2 * agreeing > known;
}

void tess_noise_share(const tess_noise *noise, int64_t slice, int channel, tess_noise_level *level)
{
    const tess_noise_sketch *own = sketch_at(noise, slice, channel);
    tess_noise_level law;
    if (level->confidence != TESS_NOISE_ROUGH || level->encoded || level->patchy || !(level->sigma > 0) ||
        !law_near(noise, slice, channel, &law) || !agrees(own, &law) ||
        (law.gain > 0 && !most_agree(noise, slice, channel, &law)))
        return;
    level->sigma = law.sigma, level->read = law.read, level->gain = law.gain, level->zero = law.zero;
}
