/* noise_fit.c: estimates the noise level from the energies of patches.
 *
 * Patches are sorted by their energy in the low frequencies. Over the first 1/4, 1, 4 and 16 % of them, L is
 * the mean square of the low coefficients, M and G are those of the two high bands, and H is that of both. H(1
 * %) is the estimate of the variance. In pure noise, L/H is 0.53 there (the smallest of many chi-square
 * values), M/G is 1, and H is the same for all shares. Texture raises all three ratios, and `weights` gives the
 * factor by which it has then raised H. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/noise.h"
#include "tensor/noise_parts.h"

enum { FEWEST = 12, MANY = 1000, SHARES = 4 };

static const double shares[SHARES] = {0.0025, 0.01, 0.04, 0.16};
/* Samples that the patches cover. Of crops of 128 x 128 of BSD68, 5 % were off by more than 10 %; of 96 x 96, 12 %. */
enum { SURE_AREA = 14000 };
static const double much_less = 0.6;        /* without a pattern of 2 x 2 samples, of the level with it */
static const double too_much_texture = 0.5; /* log(L/H) at 1 %, which is -0.63 in pure noise */

typedef struct energies {
    double mean, low, middle, high, both, equal;
} energies;

void tess_noise_sort(uint64_t *keys, int64_t count, uint64_t *other)
{
    for (int shift = 32; shift < 64; shift += 8) {
        int64_t at[257] = {0};
        for (int64_t i = 0; i < count; i++)
            at[(keys[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            at[i + 1] += at[i];
        for (int64_t i = 0; i < count; i++)
            other[at[keys[i] >> shift & 255]++] = keys[i];
        uint64_t *swap = keys;
        keys = other, other = swap;
    }
}

uint64_t tess_noise_key(double value_to_sort_by, int64_t index)
{
    const float value = (float)value_to_sort_by; /* not negative, so its bits sort as the values do */
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint64_t)bits << 32 | (uint64_t)index;
}

static double square(double x)
{
    return x * x;
}

static double kept_of(const tess_noise_clip *clip, const tess_noise_patch *patch)
{
    return clip ? tess_noise_kept(clip, patch->mean) : 1;
}

/* Writes the keys of the usable patches, sorted by their low energy. `clip` may be NULL. */
static int64_t choose(const tess_noise *noise, int channel, const tess_noise_clip *clip, uint64_t *keys,
                      int64_t count)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    int64_t chosen = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = (int64_t)(keys[i] & UINT32_MAX);
        const tess_noise_patch *patch = &patches[index];
        const double kept = kept_of(clip, patch);
        if (kept > 0 && patch->middle + patch->high > 0 &&
            !(noise->flat_in_part[channel] && tess_noise_is_partly_flat(noise, channel, index)))
            keys[chosen++] = tess_noise_key(patch->low / sqrt(kept), index);
    }
    tess_noise_sort(keys, chosen, noise->order + noise->most);
    return chosen;
}

static void all_patches(const tess_noise *noise, int channel)
{
    for (int64_t i = 0; i < noise->count[channel]; i++)
        noise->order[i] = (uint64_t)i;
}

static energies mean_of(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                        const uint64_t *keys, int64_t count)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    energies sum = {0};
    for (int64_t i = 0; i < count; i++) {
        const tess_noise_patch *patch = &patches[keys[i] & UINT32_MAX];
        const double kept = kept_of(clip, patch);
        sum.mean += patch->mean;
        sum.equal += noise->equal[channel * noise->most + (int64_t)(keys[i] & UINT32_MAX)];
        sum.low += square(patch->low) / kept;
        sum.middle += square(patch->middle) / kept;
        sum.high += square(patch->high) / kept;
    }
    sum.equal /= (double)count * 2 * TESS_NOISE_SIDE * (TESS_NOISE_SIDE - 1);
    sum.mean /= (double)count, sum.low /= (double)count;
    sum.middle /= (double)count, sum.high /= (double)count;
    sum.both = (9 * sum.middle + 6 * sum.high) / 15;
    return sum;
}

static double log_ratio(double a, double b)
{
    return log(fmax(a, 1e-300) / fmax(b, 1e-300));
}

static energies measure_features(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                                 const uint64_t *keys, int64_t count, double features[TESS_NOISE_FEATURES])
{
    energies at[SHARES];
    for (int s = 0; s < SHARES; s++) {
        int64_t part = (int64_t)ceil(shares[s] * (double)count);
        at[s] = mean_of(noise, channel, clip, keys, tess_min_i64(tess_max_i64(part, FEWEST), count));
    }
    features[0] = log_ratio(at[1].low, at[1].both);
    features[1] = log_ratio(at[1].middle, at[1].high);
    features[2] = log_ratio(at[0].both, at[1].both);
    features[3] = log_ratio(at[2].both, at[1].both);
    features[4] = log_ratio(at[3].both, at[1].both);
    features[5] = log_ratio(at[2].low, at[1].low);
    return at[1];
}

double tess_noise_features(const tess_noise *noise, int channel, double features[TESS_NOISE_FEATURES])
{
    memset(features, 0, TESS_NOISE_FEATURES * sizeof *features);
    if (noise->most == 0)
        return 0;
    all_patches(noise, channel);
    const int64_t count = choose(noise, channel, NULL, noise->order, noise->count[channel]);
    return count ? measure_features(noise, channel, NULL, noise->order, count, features).both : 0;
}

/* log(sigma^2 / H) as a linear function of the features, with two of them repeated, where they exceed their
 * value in pure noise. Fitted by bench/studies/noise_study.py --fit. */
static const double weights[TESS_NOISE_FEATURES + 2] = {0.147,  -0.220, 0.111,  1.486,
                                                        -0.061, 0.084,  -0.266, -1.889};
static const double offset = 0.073;
static const double usual_low = -0.53, usual_rise = 0.04;

static double correction(const double features[TESS_NOISE_FEATURES])
{
    double sum = offset;
    for (int i = 0; i < TESS_NOISE_FEATURES; i++)
        sum += weights[i] * features[i];
    sum += weights[TESS_NOISE_FEATURES] * fmax(features[0] - usual_low, 0);
    sum += weights[TESS_NOISE_FEATURES + 1] * fmax(features[3] - usual_rise, 0);
    return fmin(fmax(sum, -0.7), 0.2); /* the range that the fit covered */
}

tess_noise_answer tess_noise_ask(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                                 uint64_t *keys, int64_t count)
{
    double features[TESS_NOISE_FEATURES] = {0};
    tess_noise_answer a = {.count = choose(noise, channel, clip, keys, count)};
    if (a.count == 0 || a.count < tess_min_i64(FEWEST, count))
        return a; /* constant except for a few patches: no noise */
    const energies quiet = measure_features(noise, channel, clip, keys, a.count, features);
    /* With few patches the features are mostly random. */
    a.sigma = sqrt(quiet.both * (a.count < MANY ? 1 : exp(correction(features))));
    a.texture = features[0];
    a.bands = features[1];
    a.mean = quiet.mean;
    a.equal = quiet.equal;
    return a;
}

static tess_noise_answer ask_all(const tess_noise *noise, int channel, const tess_noise_clip *clip)
{
    all_patches(noise, channel);
    return tess_noise_ask(noise, channel, clip, noise->order, noise->count[channel]);
}

/* With limits, the correction for clipping depends on sigma and sigma on the correction: a few iterations
 * converge. */
static tess_noise_answer ask_clipped(const tess_noise *noise, int channel, tess_noise_clip *clip)
{
    tess_noise_answer a = ask_all(noise, channel, NULL);
    for (int round = 0; round < 6 && a.sigma > 0; round++) {
        tess_noise_clip_for(clip, a.sigma);
        const tess_noise_answer next = ask_all(noise, channel, clip);
        if (next.count < FEWEST)
            break;
        a = next;
    }
    return a;
}

static void find_level(const tess_noise *noise, int channel, tess_noise_level *level,
                       tess_noise_sketch *sketch)
{
    tess_noise_clip limits, *clip = tess_noise_find_limits(noise, channel, &limits) ? &limits : NULL;
    const int64_t patches = noise->count[channel];
    if (patches == 0)
        return;
    const tess_noise_answer a = clip ? ask_clipped(noise, channel, clip) : ask_all(noise, channel, NULL);
    level->sigma = level->read = a.sigma;
    level->patches = a.count;
    level->confidence = TESS_NOISE_ROUGH;
    *sketch = (tess_noise_sketch){.clipped = clip != NULL,
                                  .low = clip ? clip->low : 0,
                                  .high = clip ? clip->high : 0,
                                  .least = noise->least[channel].value,
                                  .sigma = a.sigma,
                                  .equal = a.equal};
    if (a.count < MANY)
        return;
    tess_noise_find_slope(noise, channel, clip, level, sketch);
    const int64_t step = tess_min_i64(noise->step, TESS_NOISE_SIDE), area = a.count * step * step;
    if (a.texture < too_much_texture && 10 * a.count > patches && area >= SURE_AREA) {
        const bool refuted = clip && tess_noise_limits_refute(noise, channel, clip, a.sigma);
        level->confidence = level->uneven || refuted ? TESS_NOISE_ROUGH : TESS_NOISE_SURE;
        sketch->encoded.confidence = TESS_NOISE_SURE;
    }
}

/* Estimates again without a pattern of 2 x 2 samples, and takes that level if it is much lower, or if there is such a
 * pattern. */
static void doubt_pattern(const tess_noise *noise, int channel, tess_noise_level *level,
                          tess_noise_sketch *sketch)
{
    tess_noise without = *noise;
    tess_noise_level plain = {0};
    tess_noise_sketch parts = {0};
    without.patches = noise->plain;
    find_level(&without, channel, &plain, &parts);
    const bool woven = tess_noise_is_woven(noise, channel, plain.sigma);
    if (plain.sigma < (woven ? 1 : much_less) * level->sigma)
        *level = plain, *sketch = parts;
    else if (!woven)
        return;
    level->mosaic = true;
    level->confidence = level->confidence == TESS_NOISE_SURE ? TESS_NOISE_ROUGH : level->confidence;
    sketch->tried = false;
}

void tess_noise_find_level(const tess_noise *noise, int channel, tess_noise_level *level,
                           tess_noise_sketch *sketch)
{
    find_level(noise, channel, level, sketch);
    if (level->sigma > 0)
        doubt_pattern(noise, channel, level, sketch);
    /* Less than a step of float32 is no noise, but comes from rounding in the transform. */
    const float most = fmaxf(fabsf(noise->least[channel].value), fabsf(noise->largest[channel].value));
    if (level->sigma < (double)FLT_EPSILON * (double)most)
        level->sigma = level->read = level->gain = sketch->sigma = 0, sketch->tried = false;
}

void tess_noise_end(const tess_noise *noise, tess_noise_result *result)
{
    memset(result, 0, sizeof *result);
    if (noise->slices)
        tess_noise_end_volume(noise, result);
    tess_noise_sketch sketches[TESS_NOISE_CHANNELS] = {{.count = 0}};
    for (int c = 0; noise->most && !noise->slices && c < noise->shape.channels; c++)
        tess_noise_find_level(noise, c, &result->channel[c], &sketches[c]);
    tess_noise_choose_law(result->channel, sketches, TESS_NOISE_CHANNELS);
    if (noise->most && !noise->slices)
        tess_noise_doubt_places(noise, result->channel, noise->shape.channels);
    for (int c = 0; noise->most && !noise->slices && c < noise->shape.channels; c++)
        tess_noise_limit_level(noise, c, sketches[c].equal, &result->channel[c]);
    double sum = 0;
    int known = 0;
    for (int c = 0; c < noise->shape.channels && c < TESS_NOISE_CHANNELS; c++) {
        const tess_noise_level *level = &result->channel[c];
        if (level->confidence == TESS_NOISE_UNKNOWN)
            continue;
        sum += level->sigma * level->sigma;
        if (known++ == 0 || level->confidence < result->confidence)
            result->confidence = level->confidence;
    }
    result->sigma = known ? sqrt(sum / known) : 0;
    if (!noise->slices)
        result->shared = tess_noise_find_shared(noise, result->channel, &result->most_shared);
    else if (noise->shared_count)
        result->shared = noise->shared / (double)noise->shared_count;
}
