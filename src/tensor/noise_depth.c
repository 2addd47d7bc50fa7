/* noise_depth.c: volumes. Each slice is estimated exactly as an image by itself, so that a volume is denoised as well as
 * its slices alone, however their noise and exposure differ: a level of the whole volume that is wrong for one slice
 * costs up to 10 dB. Only what is rough is shared: small slices show too little (noise_share.c). A slice without data
 * takes the mean of the others. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum {
    FEWEST = 200
}; /* patches of a slice that say something, if a whole slice has more than four times as many */

bool tess_noise_slices_bytes(const tess_noise_shape *shape, size_t *bytes)
{
    int64_t count;
    *bytes = 0;
    if (shape->depth <= 1)
        return true;
    if (!tess_mul_i64(shape->depth, shape->channels, &count) ||
        count > (int64_t)(SIZE_MAX / 2 / (sizeof(tess_noise_level) + sizeof(tess_noise_sketch))))
        return false;
    *bytes = (size_t)count * (sizeof(tess_noise_level) + sizeof(tess_noise_sketch));
    return true;
}

void tess_noise_place_slices(tess_noise *noise, void *memory)
{
    noise->slices = memory;
    noise->sketches = (tess_noise_sketch *)(noise->slices + noise->shape.depth * noise->shape.channels);
}

void tess_noise_end_slice(tess_noise *noise)
{
    const int64_t fewest = tess_max_i64(tess_min_i64(FEWEST, noise->most / 4), 1);
    const int channels = noise->shape.channels;
    for (int c = 0; c < channels && noise->slice < noise->shape.depth; c++) {
        tess_noise_level *level = &noise->slices[noise->slice * channels + c];
        tess_noise_sketch *sketch = &noise->sketches[noise->slice * channels + c];
        *level = (tess_noise_level){.confidence = TESS_NOISE_UNKNOWN};
        *sketch = (tess_noise_sketch){.count = 0};
        if (noise->count[c] >= fewest)
            tess_noise_find_level(noise, c, level, sketch);
    }
    if (noise->slice < noise->shape.depth) {
        tess_noise_level *levels = &noise->slices[noise->slice * channels];
        tess_noise_choose_law(levels, &noise->sketches[noise->slice * channels], channels);
        tess_noise_doubt_places(noise, levels, channels);
        for (int c = 0; c < channels; c++)
            tess_noise_limit_level(noise, c, noise->sketches[noise->slice * channels + c].equal, &levels[c]);
        double most;
        noise->shared += tess_noise_find_shared(noise, levels, &most);
        noise->shared_count += levels[0].sigma > 0;
    }
    noise->slice++;
}

/* The mean of the variances, as functions of the value, of the slices in which this channel has noise (padding has
 * none). The confidence is the lowest of theirs. */
static tess_noise_level mean_level(const tess_noise *noise, int channel)
{
    tess_noise_level mean = {.confidence = TESS_NOISE_UNKNOWN};
    double known = 0, square = 0, read = 0, gain = 0, at_zero = 0, curve[TESS_NOISE_KNOTS] = {0};
    for (int64_t i = 0; i < noise->slice; i++) {
        const tess_noise_level *level = &noise->slices[i * noise->shape.channels + channel];
        if (level->confidence == TESS_NOISE_UNKNOWN)
            continue;
        if (mean.confidence == TESS_NOISE_UNKNOWN)
            mean.confidence = TESS_NOISE_ROUGH; /* if no slice has noise */
        if (level->sigma == 0)
            continue;
        if (known++ == 0 || level->confidence < mean.confidence)
            mean.confidence = level->confidence;
        square += level->sigma * level->sigma, read += level->read * level->read;
        gain += level->gain, at_zero += level->gain * level->zero;
        mean.encoded = mean.encoded || level->encoded;
        for (int k = 0; k < TESS_NOISE_KNOTS; k++)
            curve[k] += pow(tess_noise_at(level, tess_noise_knot(k)), 2);
        mean.uneven = mean.uneven || level->uneven;
        mean.patchy = mean.patchy || level->patchy;
        mean.mosaic = mean.mosaic || level->mosaic;
        mean.patches += level->patches;
    }
    if (known == 0)
        return mean;
    mean.sigma = sqrt(square / known), mean.read = sqrt(read / known);
    if (!mean.encoded) {
        mean.gain = gain / known, mean.zero = gain > 0 ? at_zero / gain : 0;
        return mean;
    }
    mean.read = mean.sigma;
    for (int k = 0; k < TESS_NOISE_KNOTS; k++)
        mean.curve[k] = (float)sqrt(curve[k] / known);
    return mean;
}

void tess_noise_end_volume(const tess_noise *noise, tess_noise_result *result)
{
    const int channels = noise->shape.channels;
    result->slices = noise->slices;
    for (int c = 0; c < channels; c++) {
        for (int64_t i = 0; i < noise->slice; i++)
            tess_noise_share(noise, i, c, &noise->slices[i * channels + c]);
        result->channel[c] = mean_level(noise, c);
        for (int64_t i = 0; i < noise->shape.depth; i++) {
            tess_noise_level *level = &noise->slices[i * channels + c];
            if (i >= noise->slice || level->confidence == TESS_NOISE_UNKNOWN)
                *level = result->channel[c];
        }
    }
}
