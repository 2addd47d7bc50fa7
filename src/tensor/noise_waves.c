/* noise_waves.c: the noise of a scan from the spectrum of its views.
 *
 * Matter that moves by s columns from view to view has the frequencies v = s f only (v in cycles a view, f in cycles a
 * column), and s is at most the radius of the object times the angle between views. What lies beyond, where v > s f for
 * all these s, is noise, whatever the object is: thin wires that leave no smooth place in any view have nothing there
 * either. The largest s is not asked for: each of several has its median, and all are upper bounds, because matter adds to
 * them. The lowest counts, where those of few frequencies are raised by what chance may take from them. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/noise_scan_parts.h"

static const double pi = 3.14159265358979323846;
/* Columns a view: the least slope, and the ratio of two. */
static const double FLATTEST = 0.25, STEP = 1.2;
/* Frequencies of a window of Hann that matter at one of them spreads to. */
static const double SPREAD = 2.5;
static const double LOWEST = 2;  /* frequency along the columns: below is the exposure of the views */
static const double FEWEST = 25; /* independent frequencies beyond a slope */
/* Divided by the root of their number: how far the lowest median is too low, and how far it may be. */
static const double CHANCE = 1, LARGE_CHANCE = 3;
static const double MEDIAN = 0.8325546; /* of the amplitude of a complex normal variable of variance 1 */
/* The level is sure if so many frequencies show it, or so many more than those that show it best, up to that ratio of it;
 * and if their mean square is not this much more than noise has. */
static const double MANY = 200, MORE = 1.4, ALIKE = 1.3, UNEVEN = 1.5;
/* Of the level: the largest that rays weighted by their variance make of it. Line integrals of counts that are spread evenly
 * up to 6 make 1.75. */
static const double STEEPEST = 1.75;
/* Of the variance that the spectrum shows: if the levels have more on average, much of it is matter. */
static const double MATTER = 1.5;
enum { LEAST_VIEWS = 8, LEAST_COLUMNS = 8, DIFFERENCES = 2, SURE_VIEWS = 16 };

typedef struct complex_value {
    double re, im;
} complex_value;

static int64_t padded(int64_t length)
{
    int64_t power = 1;
    while (power < length)
        power *= 2;
    return power;
}

size_t tess_scan_waves_bytes(int64_t views, int64_t columns)
{
    if (views < LEAST_VIEWS || columns < LEAST_COLUMNS)
        return 0;
    const int64_t wide = padded(columns), high = padded(views - DIFFERENCES);
    return (size_t)((wide / 2 + 1) * high + wide) * sizeof(complex_value);
}

/* In place; the length is a power of two. */
static void transform(complex_value *x, int64_t length)
{
    for (int64_t i = 1, j = 0; i < length; i++) {
        int64_t bit = length / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            const complex_value held = x[i];
            x[i] = x[j], x[j] = held;
        }
    }
    for (int64_t half = 1; half < length; half *= 2)
        for (int64_t k = 0; k < half; k++) {
            const double angle = -pi * (double)k / (double)half, c = cos(angle), s = sin(angle);
            for (int64_t i = k; i < length; i += 2 * half) {
                const complex_value a = x[i], b = x[i + half],
                                    turned = {c * b.re - s * b.im, c * b.im + s * b.re};
                x[i] = (complex_value){a.re + turned.re, a.im + turned.im};
                x[i + half] = (complex_value){a.re - turned.re, a.im - turned.im};
            }
        }
}

static double window(int64_t at, int64_t length)
{
    return 0.5 - 0.5 * cos(2 * pi * ((double)at + 0.5) / (double)length);
}

/* The second differences along the views, which leave little of what is wide and slow, behind both windows; their
 * spectrum along the columns lies frequency by frequency. */
static void transform_views(tess_scan_noise *n, const float *values, int64_t views, int64_t columns,
                            complex_value *waves, complex_value *line)
{
    const int64_t wide = padded(columns), lines = views - DIFFERENCES, high = padded(lines);
    for (int64_t y = 0; y < lines; y++) {
        memset(line, 0, (size_t)wide * sizeof *line);
        for (int64_t x = 0; x < columns; x++) {
            const float *at = values + y * columns + x;
            const double before = (double)at[0], here = (double)at[columns], after = (double)at[2 * columns],
                         weight = window(y, lines) * window(x, columns);
            line[x].re = weight * (before - 2 * here + after);
            n->seen[tess_scan_level(n, (before + here + after) / 3)] += weight * weight;
        }
        transform(line, wide);
        for (int64_t f = 0; f <= wide / 2; f++)
            waves[f * high + y] = line[f];
    }
}

void tess_scan_noise_waves(tess_scan_noise *n, const float *values, int64_t views, int64_t columns,
                           void *memory)
{
    if (!(n->highest > 0) || tess_scan_waves_bytes(views, columns) == 0)
        return;
    const int64_t wide = padded(columns), lines = views - DIFFERENCES, high = padded(lines);
    complex_value *waves = memory, *line = waves + (wide / 2 + 1) * high;
    memset(waves, 0, (size_t)((wide / 2 + 1) * high) * sizeof *waves);
    transform_views(n, values, views, columns, waves, line);
    /* the sum of a squared window of Hann is 3/8 of its length */
    const double power = 0.375 * 0.375 * (double)lines * (double)columns;
    for (int64_t i = tess_ceil_div((int64_t)LOWEST * wide, columns); i <= wide / 2; i++) {
        transform(waves + i * high, high);
        for (int64_t k = 0; k < high; k++) {
            const double f = (double)i / (double)wide, v = (double)tess_min_i64(k, high - k) / (double)high,
                         slope = (v - SPREAD / (double)views) / (f + SPREAD / (double)columns);
            if (slope < FLATTEST)
                continue;
            const complex_value wave = waves[i * high + k];
            const double twice = 2 * sin(pi * v),
                         amplitude = hypot(wave.re, wave.im) / (twice * twice * sqrt(power));
            const int at = (int)fmin(log(slope / FLATTEST) / log(STEP), TESS_SCAN_SLOPES - 1);
            n->wave[at][tess_scan_bin(n, amplitude)]++;
        }
    }
    n->views = views;
    n->independent = (double)(lines * columns) / (double)(high * wide);
}

/* What the frequencies beyond one slope show. */
typedef struct beyond {
    double count;  /* of independent ones */
    double level;  /* the standard deviation */
    double uneven; /* the mean square, 1 in noise */
} beyond;

/* All frequencies in the bins. */
static beyond look(const tess_scan_noise *n, const uint32_t bin[TESS_SCAN_BINS])
{
    double total = 0, squares = 0;
    for (int i = 0; i < TESS_SCAN_BINS; i++)
        total += bin[i];
    beyond b = {.count = total * n->independent, .level = tess_scan_median(n, bin, total) / MEDIAN};
    for (int i = 1; i < TESS_SCAN_BINS; i++) {
        const double share = tess_scan_value(n, i + 0.5) / fmax(b.level, 1e-30 * n->highest);
        squares += bin[i] * share * share;
    }
    b.uneven = total > 0 ? squares / total : 0;
    return b;
}

tess_scan_bound tess_scan_find_bound(const tess_scan_noise *n)
{
    uint32_t bin[TESS_SCAN_BINS] = {0};
    beyond at[TESS_SCAN_SLOPES], best = {0};
    tess_scan_bound bound = {(double)INFINITY, (double)INFINITY, true};
    double alike = 0;
    for (int k = TESS_SCAN_SLOPES - 1; k >= 0; k--) {
        for (int i = 0; i < TESS_SCAN_BINS; i++)
            bin[i] += n->wave[k][i];
        at[k] = look(n, bin);
        const double root = sqrt(fmax(at[k].count, 1)), most = at[k].level * (1 + LARGE_CHANCE / root);
        if (at[k].count >= FEWEST && most < bound.most) {
            best = at[k];
            bound.level = best.level * (1 + CHANCE / root), bound.most = most;
        }
    }
    for (int k = 0; k < TESS_SCAN_SLOPES; k++)
        if (at[k].level <= ALIKE * best.level)
            alike = fmax(alike, at[k].count);
    bound.rough = best.uneven > UNEVEN || (best.count < MANY && alike < MORE * best.count) ||
                  n->views < SURE_VIEWS || !isfinite(bound.level);
    return bound;
}

/* The mean of the levels that the spectrum saw, none of them above `most`. */
static double mean_below(const tess_scan_noise *n, const double variance[TESS_SCAN_LEVELS], double most)
{
    double sum = 0, weight = 0;
    for (int i = 0; i < TESS_SCAN_LEVELS; i++)
        if (variance[i] >= 0) {
            sum += n->seen[i] * fmin(variance[i], most);
            weight += n->seen[i];
        }
    return weight > 0 ? sum / weight : 0;
}

double tess_scan_limit(const tess_scan_noise *n, const tess_scan_bound *bound,
                       double variance[TESS_SCAN_LEVELS])
{
    const double right = bound->level * bound->level, mean = mean_below(n, variance, (double)INFINITY);
    const bool alike = mean < MATTER * right;
    double low = 0, high = 0;
    if (!(bound->most * bound->most < mean))
        return STEEPEST * bound->most;
    for (int i = 0; i < TESS_SCAN_LEVELS; i++)
        high = fmax(high, variance[i]);
    for (int i = 0; i < 50; i++) {
        const double middle = (low + high) / 2;
        *(mean_below(n, variance, middle) < right ? &low : &high) = middle;
    }
    for (int i = 0; i < TESS_SCAN_LEVELS; i++)
        variance[i] = alike ? variance[i] * right / mean : fmin(variance[i], high);
    return STEEPEST * bound->level;
}
