/* noise_depth.c: volumes whose slices differ in their noise. Each slice is estimated like an image by itself, from
 * fewer patches (noise_fit.c), as its rows arrive. After the last slice their levels are compared. A small slice
 * by itself shows its level to 8 % (72 x 72), so slices that are near each other and alike share their level. A
 * slice without data says nothing and takes the mean level of the others. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum {
    SLICE_PATCHES = 20000,
    NEAR = 4,             /* slices that may share a level */
    FEWEST = 200,         /* fewest patches of a slice that can be compared */
    MOST_SLICES = 1 << 16 /* limits the memory; no volume that was seen has more */
};
/* Ratio of the largest to the least level. Texture alone makes some difference between slices with the same noise. */
static const double differ = 1.15, differ_much = 1.5;
static const double area_error = 5.5; /* error of a slice's level, times the root of its area in samples */
static const double no_noise = 1e-3;  /* relative to the expected level: slices below it are empty */

static tess_noise_shape slice_of(const tess_noise_shape *shape)
{
    return (tess_noise_shape){.height = shape->height, .width = shape->width, .channels = shape->channels};
}

/* Bytes of the slices' estimates and levels. */
static size_t table_bytes(const tess_noise_shape *shape, size_t *estimates)
{
    *estimates = tess_align_size((size_t)(shape->depth * shape->channels) * sizeof(tess_noise_slice), 16);
    return 2 * *estimates + tess_align_size(2 * (size_t)shape->depth * sizeof(float), 16);
}

static bool can_compare(const tess_noise_shape *shape)
{
    return shape->depth > 1 && shape->depth <= MOST_SLICES;
}

size_t tess_noise_slices_bytes(const tess_noise_shape *shape)
{
    const tess_noise_shape one = slice_of(shape);
    size_t estimates;
    return can_compare(shape) ? tess_align_size(sizeof(tess_noise), 16) + table_bytes(shape, &estimates) +
                                    tess_noise_bytes_for(&one, SLICE_PATCHES)
                              : 0;
}

static void begin_slice(tess_noise *noise)
{
    const tess_noise_shape one = slice_of(&noise->shape);
    size_t estimates;
    tess_noise_begin_for(noise->slice, &one, SLICE_PATCHES,
                         (char *)noise->slices + table_bytes(&noise->shape, &estimates));
}

void tess_noise_begin_slices(tess_noise *noise, void *memory)
{
    size_t estimates;
    if (!can_compare(&noise->shape))
        return;
    table_bytes(&noise->shape, &estimates);
    noise->slice = memory;
    noise->slices = (tess_noise_slice *)((char *)memory + tess_align_size(sizeof(tess_noise), 16));
    noise->shared = (tess_noise_slice *)((char *)noise->slices + estimates);
    noise->own_sigma = (float *)((char *)noise->shared + estimates);
    noise->slice_sigma = noise->own_sigma + noise->shape.depth;
    begin_slice(noise);
}

static void end_slice(const tess_noise *one, tess_noise_slice *to)
{
    tess_noise_result result;
    tess_noise_end(one, &result);
    for (int c = 0; c < one->shape.channels; c++) {
        const tess_noise_patch *patches = one->patches + c * one->most;
        double sum = 0;
        for (int64_t i = 0; i < one->count[c]; i++)
            sum += patches[i].mean;
        to[c] = (tess_noise_slice){.confidence = TESS_NOISE_UNKNOWN};
        const tess_noise_level *level = &result.channel[c];
        if (one->count[c] >= FEWEST)
            to[c] = (tess_noise_slice){.sigma = (float)level->sigma,
                                       .mean = (float)(sum / (double)one->count[c]),
                                       .read = (float)level->read,
                                       .gain = (float)level->gain,
                                       .zero = (float)level->zero,
                                       .confidence = level->confidence};
    }
}

void tess_noise_slice_row(tess_noise *noise, const float *values, const unsigned char *valid)
{
    const int64_t slice = noise->rows / noise->shape.height;
    if (slice >= noise->shape.depth)
        return;
    tess_noise_row(noise->slice, values, valid);
    if (noise->slice->rows < noise->shape.height)
        return;
    end_slice(noise->slice, noise->slices + slice * noise->shape.channels);
    begin_slice(noise);
}

/* The level of one slice over its channels, and the one that its brightness predicts. Lowers *confidence to the
 * slice's. Returns false when none of its channels can be compared. */
static bool level_of(const tess_noise *noise, int64_t slice, const tess_noise_level *levels, double *level,
                     double *expected, tess_noise_confidence *confidence)
{
    const int channels = noise->shape.channels;
    const tess_noise_slice *of = noise->slices + slice * channels;
    double sum = 0, predicted = 0;
    int known = 0;
    for (int c = 0; c < channels; c++) {
        if (of[c].confidence == TESS_NOISE_UNKNOWN)
            continue;
        sum += pow(of[c].sigma, 2), predicted += pow(tess_noise_at(&levels[c], of[c].mean), 2);
        *confidence = of[c].confidence < *confidence ? of[c].confidence : *confidence;
        known++;
    }
    *level = sqrt(sum / fmax(known, 1)), *expected = sqrt(predicted / fmax(known, 1));
    return known > 0;
}

/* The usual relative error of a slice's level. */
static double error_of(const tess_noise *noise)
{
    return area_error / sqrt((double)noise->shape.height * (double)noise->shape.width);
}

/* The ratio of the largest to the least level that `known` slices with one level show by chance. */
static double chance(const tess_noise *noise, int64_t known)
{
    return exp(2.4 * sqrt(2 * log((double)known)) * error_of(noise));
}

/* The root mean square over the slices near this one whose levels are like its own. Negative: unknown. */
static double shared_level(const tess_noise *noise, int64_t slice)
{
    const double own = noise->own_sigma[slice], alike = exp(1.5 * error_of(noise));
    double sum = 0;
    int64_t known = 0;
    for (int64_t i = tess_max_i64(slice - NEAR, 0); i <= tess_min_i64(slice + NEAR, noise->shape.depth - 1);
         i++) {
        const double level = noise->own_sigma[i];
        if (level >= 0 && level <= alike * own && own <= alike * level)
            sum += level * level, known++;
    }
    return own < 0 ? -1 : sqrt(sum / (double)known);
}

/* True when the noise grows with brightness in the volume and in a good part of its slices by themselves. In the volume
 * alone, bright slices with more noise would look the same. */
static bool grows(const tess_noise *noise, const tess_noise_result *result)
{
    enum { PART = 4 };
    const int64_t all = noise->shape.depth * noise->shape.channels;
    int64_t known = 0, growing = 0;
    bool any = false;
    for (int c = 0; c < noise->shape.channels; c++)
        any = any || result->channel[c].gain > 0;
    for (int64_t i = 0; i < all; i++) {
        known += noise->slices[i].confidence != TESS_NOISE_UNKNOWN;
        growing += noise->slices[i].confidence != TESS_NOISE_UNKNOWN && noise->slices[i].gain > 0;
    }
    return any && PART * growing >= known;
}

/* Writes the level of each slice by itself, -1: unknown. Returns false when fewer than two can be compared, or the noise
 * grows with brightness: then a level for each pixel is worth more than one for each slice, and the few patches of a
 * slice, of which the darkest seem the flattest, may show a level that is too low. */
static bool slices_differ(const tess_noise *noise, tess_noise_result *result,
                          tess_noise_confidence *confidence)
{
    double least = INFINITY, largest = 0; /* relative to the expected level */
    int64_t known = 0;
    for (int64_t i = 0; i < noise->shape.depth; i++) {
        double level, expected;
        noise->own_sigma[i] = -1;
        if (!level_of(noise, i, result->channel, &level, &expected, confidence))
            continue;
        const double ratio = expected > 0 ? level / expected : 0;
        noise->own_sigma[i] = (float)level;
        largest = fmax(largest, ratio);
        if (ratio > no_noise)
            least = fmin(least, ratio);
        known++;
    }
    if (known < 2) { /* slices are too small, or nearly all without data */
        result->confidence = TESS_NOISE_ROUGH;
        return false;
    }
    if (!grows(noise, result))
        return largest > fmax(differ, chance(noise, known)) * least;
    if (!tess_noise_compare_exposures(noise, result) && largest > differ_much * least)
        result->confidence = TESS_NOISE_ROUGH;
    return false;
}

/* The mean square of a channel's level over the slices where it is known. */
static double mean_square(const tess_noise *noise, int channel)
{
    double sum = 0;
    int64_t known = 0;
    for (int64_t i = 0; i < noise->shape.depth; i++) {
        const tess_noise_slice *slice = &noise->slices[i * noise->shape.channels + channel];
        if (slice->confidence != TESS_NOISE_UNKNOWN)
            sum += pow(slice->sigma, 2), known++;
    }
    return known ? sum / (double)known : -1;
}

void tess_noise_compare_slices(const tess_noise *noise, tess_noise_result *result)
{
    tess_noise_confidence confidence = TESS_NOISE_SURE;
    double sum = 0;
    int known = 0;
    if (!noise->slice) {
        result->confidence = TESS_NOISE_ROUGH;
        return;
    }
    if (!slices_differ(noise, result, &confidence))
        return;
    for (int c = 0; c < noise->shape.channels; c++) {
        tess_noise_level *level = &result->channel[c];
        const double square = mean_square(noise, c);
        if (square < 0)
            continue;
        level->sigma = level->read = sqrt(square);
        level->gain = level->zero = 0;
        level->uneven = false;
        sum += square, known++;
    }
    result->sigma = sqrt(sum / known);
    result->confidence = confidence;
    result->slice_sigma = noise->slice_sigma;
    for (int64_t i = 0; i < noise->shape.depth; i++) {
        const double level = shared_level(noise, i);
        noise->slice_sigma[i] = (float)(level < 0 ? result->sigma : level);
    }
}
