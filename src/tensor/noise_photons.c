/* noise_photons.c: noise of photons alone, variance(x) = gain * (x - zero), against white noise.
 *
 * Both have one parameter, so the parts of an image (noise_slope.c) decide between them sooner than they show that a
 * line has a slope, and also near a lower limit. White noise that was clipped there is smaller by the moments of a
 * clipped Gaussian; counts of photons are never negative, and their noise falls to zero with the mean. On crops of
 * 160 x 160 and more of photographs with 10 to 400 photons at white, 94 % had more evidence than `enough`, and then the
 * level was right to 4 %. */
#include <math.h>

#include "tensor/noise_parts.h"

enum { NEEDED = 5 };                          /* calm parts: texture often grows with the brightness */
static const double enough = 6, against = -8; /* difference of the costs, as of chi squares */
static const double too_high =
    4; /* variance of a law to that of a part, which texture can only have raised */
static const double alike = 0.12; /* relative difference of levels */

double tess_noise_cost(const tess_noise_part *part, double variance)
{
    const double off = (part->variance - variance) / (part->error * variance), scale = off > 0 ? 2 : 4;
    return scale * scale * log1p(off * off / (scale * scale)) + 2 * log(variance);
}

typedef struct model {
    const tess_noise_part *parts;
    int count;
    const tess_noise_clip *clip; /* of white noise; NULL: not clipped */
    bool photons;
    double zero, least; /* least: variance, for parts at the limit */
} model;

static double variance_at(const model *m, double level, double mean)
{
    double variance = level;
    if (m->photons)
        variance *= mean - m->zero;
    else if (m->clip)
        variance *= tess_noise_kept_at(m->clip, sqrt(level), mean);
    return fmax(variance, m->least);
}

static double cost_at(const model *m, double log_level)
{
    double sum = 0;
    for (int i = 0; i < m->count; i++)
        sum += tess_noise_cost(&m->parts[i], variance_at(m, exp(log_level), m->parts[i].mean));
    return sum;
}

/* Finds the level (sigma^2, or the gain) with the least cost: on a grid, because outliers make several minima, then
 * between its neighbours. */
static double fit(const model *m, double *cost)
{
    enum { STEPS = 32, ROUNDS = 10 };
    const double step = 0.15;
    double start = 0;
    for (int i = 0; i < m->count; i++) {
        const double there = m->photons ? fmax(m->parts[i].mean - m->zero, 1e-300) : 1;
        start += log(m->parts[i].variance / there) / m->count;
    }
    double best = start, least = INFINITY;
    for (int i = -STEPS / 2; i <= STEPS / 2; i++) {
        const double here = cost_at(m, start + i * step);
        if (here < least)
            least = here, best = start + i * step;
    }
    double from = best - step, to = best + step;
    for (int round = 0; round < ROUNDS; round++) {
        const double third = (to - from) / 3;
        if (cost_at(m, from + third) < cost_at(m, to - third))
            to -= third;
        else
            from += third;
    }
    *cost = cost_at(m, (from + to) / 2);
    return exp((from + to) / 2);
}

double tess_noise_white_cost(const tess_noise_clip *clip, const tess_noise_part *parts, int count)
{
    const model white = {.parts = parts, .count = count, .clip = clip};
    double cost;
    fit(&white, &cost);
    return cost;
}

static int take_calm(const tess_noise_part *from, int count, bool far, tess_noise_part *to)
{
    int taken = 0;
    for (int i = 0; i < count; i++)
        if (from[i].error <= TESS_NOISE_CALM && !(far && from[i].near_low))
            to[taken++] = from[i];
    return taken;
}

bool tess_noise_refuted(const tess_noise_level *level, const tess_noise_clip *clip,
                        const tess_noise_part *parts, int count)
{
    static const double far_from_limit = 2.5; /* as in noise_slope.c */
    for (int i = 0; i < count; i++) {
        const double sigma = tess_noise_at(level, parts[i].mean);
        if (clip && clip->high - parts[i].mean < far_from_limit * sigma)
            continue;
        if (sigma * sigma > too_high * parts[i].variance && !parts[i].near_low)
            return true;
    }
    return false;
}

/* The line, with its own zero, is better than photons from `zero`: there is read noise, or an unknown black level. */
static bool line_is_better(const model *photons, double gain, const tess_noise_line *line)
{
    double sum = 0;
    for (int i = 0; i < photons->count; i++) {
        const tess_noise_part *part = &photons->parts[i];
        sum += tess_noise_cost(part, variance_at(photons, gain, part->mean)) -
               tess_noise_cost(part, fmax(line->offset + line->slope * part->mean, photons->least));
    }
    return line->slope > 0 && sum > enough;
}

tess_noise_photons tess_noise_try_photons(double least, const tess_noise_clip *clip,
                                          const tess_noise_part *parts, int count,
                                          const tess_noise_line *line)
{
    tess_noise_photons answer = {.found = false};
    tess_noise_part kept[TESS_NOISE_FITTED];
    const bool limited = clip && isfinite(clip->low);
    model white = {.parts = kept, .clip = clip}, photons;
    white.count = take_calm(parts, count, false, kept);
    if (white.count < NEEDED || 2 * white.count < count || (!limited && least < 0))
        return answer;
    for (int i = 0; i < white.count; i++)
        white.least = fmax(white.least, 1e-3 * kept[i].variance);
    photons = white;
    photons.photons = true;
    photons.zero = limited ? clip->low : 0;
    double white_cost, cost, other_cost;
    fit(&white, &white_cost);
    answer.gain = fit(&photons, &cost);
    if (photons.zero > 0) { /* the limit may be the fewest counts */
        model other = photons;
        other.zero = 0;
        const double gain = fit(&other, &other_cost);
        if (other_cost < cost)
            photons = other, answer.gain = gain, cost = other_cost;
    }
    answer.zero = photons.zero;
    const double evidence = white_cost - cost;
    answer.possible = evidence > against;
    const tess_noise_level level = {.gain = answer.gain, .zero = answer.zero};
    if (tess_noise_refuted(&level, clip, parts, count))
        return (tess_noise_photons){.found = false};
    photons.count = take_calm(parts, count, true, kept);
    answer.found = evidence > enough && !line_is_better(&photons, answer.gain, line);
    return answer;
}

bool tess_noise_photons_differ(const tess_noise_photons *photons, double sigma, double other)
{
    return photons->possible && fabs(sigma - other) > alike * other;
}
