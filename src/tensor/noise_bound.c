/* noise_bound.c: the noise of pages, line art, halftones and dithers, whose edges are everywhere.
 *
 * The quietest patches of such a picture have edges in them, and these have the frequencies of noise. But its samples have few
 * values, which noise would have spread. White noise of deviation sigma leaves at most erf(w / (sqrt(8) sigma)) of the samples
 * in an interval of width w, whatever the picture is, so the fullest intervals bound sigma. If the samples have two classes
 * that do not overlap (Otsu, "A threshold selection method from gray-level histograms", 1979), the same holds for each class by
 * itself, and noise that differs between places is not more than what is left within the classes. Of a class at a limit the part
 * inside it counts; one that lies beyond its limit says nothing. Then the patches that the estimate came from decide: in noise of
 * a step or more, neighbours are seldom equal. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { FEWEST = 200 };
static const double apart =
    0.85; /* of the variance, between the classes: a Gaussian has 0.64, a uniform 0.75 */
static const double clearly = 1.3; /* estimate to bound */
static const double wide = 8;      /* steps between classes: counts of few photons have one */
static const double few = 32;      /* values in all */
static const double often = 0.4;   /* share of equal neighbours; noise of one step leaves 0.28 */
static const double beyond = 0.7;  /* share of a class at its limit, from which its mean lies beyond that */

/* Samples in ascending order. */
typedef struct values {
    const uint64_t *keys;
    const float *samples;
    int64_t count;
    double step;      /* between different values */
    double low, high; /* the limits; infinite where there is none */
} values;

static double value_at(const values *v, int64_t i)
{
    return (double)v->samples[v->keys[i] & UINT32_MAX];
}

/* The inverse of erf, for 0 to 1. */
static double inverse_erf(double share)
{
    double from = 0, to = 4;
    for (int i = 0; i < 30; i++)
        *(erf((from + to) / 2) < share ? &from : &to) = (from + to) / 2;
    return (from + to) / 2;
}

/* The value below which a standard normal one lies with this probability. */
static double quantile(double share)
{
    return (share < 0.5 ? -1 : 1) * sqrt(2) * inverse_erf(fabs(2 * share - 1));
}

/* The values from `from` on, without those at the limits. */
static values part_of(const values *v, int64_t from, int64_t to)
{
    while (from < to && value_at(v, from) <= v->low)
        from++;
    while (from < to && value_at(v, to - 1) >= v->high)
        to--;
    values part = *v;
    part.keys += from, part.count = to - from;
    return part;
}

/* By the shortest interval that has this share of `all` samples, of which the values are a part. */
static double bound_by_interval(const values *v, int64_t all, double share)
{
    const int64_t need = tess_max_i64((int64_t)(share * (double)all), 2);
    const double least = inverse_erf(share);
    double best = INFINITY;
    for (int64_t i = 0, end; i + need <= v->count; i++) {
        if (i > 0 && value_at(v, i) == value_at(v, i - 1))
            continue;
        for (end = i + need; end < v->count && value_at(v, end) == value_at(v, end - 1);)
            end++;
        const double width = value_at(v, end - 1) - value_at(v, i) + v->step,
                     part = fmin((double)(end - i) / (double)all, 1 - 1e-6);
        best = fmin(best, width / sqrt(8) / (part > 1.01 * share ? inverse_erf(part) : least));
    }
    return best;
}

/* One class. *still: it lies beyond its limit, or has one value. */
static double bound_by_class(const values *v, int64_t from, int64_t to, bool upper, bool *still)
{
    const values inner = part_of(v, from, to);
    const int64_t count = to - from, at_limit = count - inner.count;
    const double share = (double)at_limit / (double)count;
    *still = share > beyond;
    if (*still)
        return INFINITY;
    if (share < 0.05) {
        const double bound = bound_by_interval(&inner, inner.count, 0.5);
        *still = bound < v->step;
        return bound;
    }
    /* About a fifth of the class is as far inside as this value, or farther. */
    int64_t inside = tess_max_i64(tess_min_i64(count / 5, inner.count), 1);
    const double value = value_at(&inner, upper ? inside - 1 : inner.count - inside),
                 width = (upper ? v->high - value : value - v->low) - v->step;
    while (inside < inner.count && value_at(&inner, upper ? inside : inner.count - 1 - inside) == value)
        inside++;
    const double deviations = quantile(1 - share) - quantile((double)inside / (double)count);
    /* All the others may be one step inside, or have one value that is none of the paper's. */
    return width < v->step / 2 ? v->step : deviations > 0.2 ? width / deviations : INFINITY;
}

/* Otsu: where the upper class begins; *between: the share of the variance that lies between the classes. */
static int64_t split(const values *v, double *between)
{
    double all = 0, square = 0, sum = 0;
    int64_t best = 0;
    const double origin = value_at(v, 0);
    for (int64_t i = 0; i < v->count; i++) {
        const double x = value_at(v, i) - origin;
        all += x, square += x * x;
    }
    const double n = (double)v->count, variance = square / n - all / n * (all / n);
    *between = 0;
    for (int64_t i = 1; i < v->count && variance > 0; i++) {
        const double below = (double)i, above = n - below;
        sum += value_at(v, i - 1) - origin;
        const double difference = sum / below - (all - sum) / above,
                     share = below / n * (above / n) * difference * difference / variance;
        if (share > *between && value_at(v, i) != value_at(v, i - 1))
            *between = share, best = i;
    }
    return best;
}

/* Samples of the patches that are not constant, in ascending order. */
static values sort_samples(const tess_noise *noise, int channel)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    const double least = noise->least[channel].value, range = noise->largest[channel].value - least,
                 seen = noise->finest[channel];
    tess_noise_clip clip;
    values v = {.keys = noise->order, .samples = noise->singles + channel * tess_noise_singles(noise->most)};
    for (int64_t i = 0; i < tess_noise_singles(noise->count[channel]); i++)
        if (patches[i * TESS_NOISE_SPARSE].middle + patches[i * TESS_NOISE_SPARSE].high > 0)
            noise->order[v.count++] = tess_noise_key((double)v.samples[i] - least, i);
    tess_noise_sort(noise->order, v.count, noise->order + noise->most);
    tess_noise_find_limits(noise, channel, &clip);
    v.low = clip.low, v.high = clip.high;
    /* Samples may use only every n-th value of their type. A few values in all say nothing of that. */
    v.step = noise->shape.quantum > 0 && range < few * seen ? noise->shape.quantum : seen;
    return v;
}

/* The harmonic mean over the samples: as full as white noise of this level leaves an interval, at most. */
static double mean_level(const values *v, const tess_noise_level *level)
{
    double sum = 0;
    if (level->gain == 0 && !level->encoded)
        return level->sigma;
    for (int64_t i = 0; i < v->count; i++)
        sum += 1 / fmax(tess_noise_at(level, value_at(v, i)), v->step / 2 + 1e-3 * level->sigma);
    return (double)v->count / sum;
}

/* The bounds of all samples together and of the two classes, and the level at each; *least is the smallest. */
typedef struct bounds {
    double least;
    bool contradicted; /* the level is clearly higher than one of them */
} bounds;

static void add_bound(bounds *b, double bound, double level)
{
    b->least = fmin(b->least, bound);
    b->contradicted = b->contradicted || level > clearly * bound;
}

static bounds find_bounds(const values *v, const tess_noise_level *level)
{
    static const double shares[] = {0.4, 0.6};
    const values inner = part_of(v, 0, v->count);
    const bool rough = level->confidence != TESS_NOISE_SURE; /* edges may have made its slope */
    bounds b = {.least = INFINITY};
    double between;
    for (int i = 0; i < 2; i++)
        add_bound(&b, bound_by_interval(&inner, v->count, shares[i]), mean_level(v, level));
    const int64_t middle = split(v, &between);
    const double medians[] = {value_at(v, middle / 2), value_at(v, (v->count + middle) / 2)};
    if (between < apart || tess_min_i64(middle, v->count - middle) < FEWEST / 4 ||
        !(v->step > 0 && medians[1] - medians[0] > wide * v->step))
        return b;
    bool still[2];
    for (int i = 0; i < 2; i++)
        add_bound(&b, bound_by_class(v, i ? middle : 0, i ? v->count : middle, i, &still[i]),
                  rough ? level->sigma : tess_noise_at(level, medians[i]));
    if (still[0] && still[1])
        add_bound(&b, 0, level->sigma);
    return b;
}

/* The root mean square of the samples about the mean of their class, if there are two classes that do not overlap: noise is not more
 * than this, also where it differs between places. A limit takes up to 1 - 1 / CUT of the noise away. */
static double spread_in_classes(const values *v)
{
    static const double CUT = 1.7;
    double between, sum = 0, square = 0;
    (void)split(v, &between);
    for (int64_t i = 0; i < v->count; i++) {
        const double x = value_at(v, i) - value_at(v, 0);
        sum += x, square += x * x;
    }
    const double n = (double)v->count, variance = square / n - sum / n * (sum / n);
    return between < apart
               ? INFINITY
               : (isfinite(v->low) || isfinite(v->high) ? CUT : 1) * sqrt((1 - between) * variance);
}

void tess_noise_limit_level(const tess_noise *noise, int channel, double equal, tess_noise_level *level)
{
    if (!(level->sigma > 0))
        return;
    const values v = sort_samples(noise, channel);
    if (v.count < FEWEST)
        return;
    if (level->patchy) {
        const double most = spread_in_classes(&v);
        if (level->sigma > clearly * most)
            level->sigma = level->read = most, level->patchy = false;
        return;
    }
    bounds b = find_bounds(&v, level);
    const double stirred = tess_noise_stirred(v.step, equal);
    if (equal > often && v.step > 0 && level->sigma > 1.5 * stirred)
        add_bound(&b, stirred, level->sigma);
    if (!b.contradicted)
        return;
    level->sigma = level->read = fmin(b.least, level->sigma);
    level->gain = level->zero = 0;
    level->encoded = level->uneven = false;
    level->confidence = TESS_NOISE_ROUGH;
}
