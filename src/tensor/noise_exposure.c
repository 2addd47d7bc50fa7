/* noise_exposure.c: volumes with photon noise whose slices were exposed differently, so that one gain for all is wrong.
 *
 * The gain of one slice is uncertain (its patches are few, and the darkest seem the flattest), so exposures must differ
 * much to count, and slices near each other with similar gains share their mean. A slice in which no gain was found
 * takes that of the nearest slice which explains its level, or keeps its one level. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { NEAR = 4 };
static const double differ_much = 1.5; /* ratio of levels at equal brightness */
static const double alike = 2;         /* ratio of gains */

tess_noise_level tess_noise_level_of(const tess_noise_slice *slice)
{
    return (tess_noise_level){.sigma = slice->sigma,
                              .read = slice->read,
                              .gain = slice->gain,
                              .zero = slice->zero,
                              .confidence = slice->confidence};
}

static const tess_noise_slice *slice_at(const tess_noise *noise, int64_t slice, int channel)
{
    return &noise->slices[slice * noise->shape.channels + channel];
}

static bool has_gain(const tess_noise_slice *slice)
{
    return slice->confidence != TESS_NOISE_UNKNOWN && slice->gain > 0;
}

/* The mean over the slices near this one whose gains are like its own. */
static tess_noise_slice share(const tess_noise *noise, int64_t slice, int channel)
{
    const tess_noise_slice *own = slice_at(noise, slice, channel);
    const int64_t first = tess_max_i64(slice - NEAR, 0),
                  last = tess_min_i64(slice + NEAR, noise->shape.depth - 1);
    double read = 0, gain = 0, zero = 0, known = 0;
    for (int64_t i = first; i <= last; i++) {
        const tess_noise_slice *other = slice_at(noise, i, channel);
        if (!has_gain(other) || other->gain > alike * own->gain || own->gain > alike * other->gain)
            continue;
        read += pow(other->read, 2), gain += other->gain, zero += other->zero;
        known++;
    }
    tess_noise_slice out = *own;
    out.read = (float)sqrt(read / known), out.gain = (float)(gain / known), out.zero = (float)(zero / known);
    return out;
}

/* The nearest slice with a gain that gives about the level of this one; NULL: none. */
static const tess_noise_slice *explanation(const tess_noise *noise, int64_t slice, int channel)
{
    const tess_noise_slice *own = slice_at(noise, slice, channel);
    for (int64_t away = 1; away < noise->shape.depth; away++)
        for (int side = -1; side <= 1; side += 2) {
            const int64_t i = slice + side * away;
            if (i < 0 || i >= noise->shape.depth || !has_gain(slice_at(noise, i, channel)))
                continue;
            const tess_noise_level level = tess_noise_level_of(slice_at(noise, i, channel));
            const double expected = tess_noise_at(&level, own->mean);
            if (expected <= differ_much * own->sigma && own->sigma <= differ_much * expected)
                return slice_at(noise, i, channel);
        }
    return NULL;
}

static void set_slice(const tess_noise *noise, const tess_noise_level *whole, int64_t slice, int channel)
{
    const tess_noise_slice *own = slice_at(noise, slice, channel);
    tess_noise_slice *to = &noise->shared[slice * noise->shape.channels + channel];
    *to = *own;
    if (own->confidence == TESS_NOISE_UNKNOWN) {
        *to = (tess_noise_slice){.sigma = (float)whole->sigma,
                                 .read = (float)whole->read,
                                 .gain = (float)whole->gain,
                                 .zero = (float)whole->zero,
                                 .confidence = whole->confidence};
    } else if (has_gain(own)) {
        *to = share(noise, slice, channel);
    } else {
        const tess_noise_slice *from = explanation(noise, slice, channel);
        if (from)
            to->read = from->read, to->gain = from->gain, to->zero = from->zero;
    }
}

bool tess_noise_compare_exposures(const tess_noise *noise, tess_noise_result *result)
{
    bool differ = false;
    for (int c = 0; c < noise->shape.channels; c++) {
        double least = INFINITY, largest = 0; /* relative to the level of the whole volume */
        for (int64_t i = 0; i < noise->shape.depth; i++) {
            const tess_noise_slice *slice = slice_at(noise, i, c);
            const double expected = tess_noise_at(&result->channel[c], slice->mean);
            if (!has_gain(slice) || !(expected > 0))
                continue;
            const tess_noise_level own = tess_noise_level_of(slice);
            least = fmin(least, tess_noise_at(&own, slice->mean) / expected);
            largest = fmax(largest, tess_noise_at(&own, slice->mean) / expected);
        }
        differ = differ || largest > differ_much * least;
    }
    if (!differ)
        return false;
    double sum = 0;
    for (int c = 0; c < noise->shape.channels; c++) {
        double squares = 0;
        for (int64_t i = 0; i < noise->shape.depth; i++) {
            set_slice(noise, &result->channel[c], i, c);
            squares +=
                pow(noise->shared[i * noise->shape.channels + c].sigma, 2) / (double)noise->shape.depth;
        }
        result->channel[c].sigma = sqrt(squares);
        sum += squares / noise->shape.channels;
    }
    result->sigma = sqrt(sum);
    result->slices = noise->shared;
    return true;
}
