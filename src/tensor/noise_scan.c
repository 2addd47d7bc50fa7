#include <math.h>
#include <string.h>

#include "tensor/noise_scan_parts.h"

enum { AN_OCTAVE = 24, LEAST_SAMPLES = 32 };
static const double LEAST_SHARE = 0.01; /* of all samples: smaller parts do not count */
static const double MEDIAN = 0.6745;    /* of the absolute value of a normal variable */
/* How much noisier than all higher levels a part may look, and more if these are few. Noise does not fall as more is
 * absorbed, but the rim of an object, where absorption is low, is steep. */
static const double SCATTER = 1.25, SCATTER_OF_FEW = 4;

void tess_scan_noise_begin(tess_scan_noise *n, double highest)
{
    memset(n, 0, sizeof *n);
    n->highest = highest;
}

int tess_scan_level(const tess_scan_noise *n, double value)
{
    const double level = value / n->highest;
    return level > 0 ? (int)fmin(level * TESS_SCAN_LEVELS, TESS_SCAN_LEVELS - 1) : 0;
}

int tess_scan_bin(const tess_scan_noise *n, double deviation)
{
    const double share = deviation / n->highest;
    const double at = share > 0 ? TESS_SCAN_BINS + AN_OCTAVE * (log2(share) - 2) : 0;
    return at > 0 ? (int)fmin(at, TESS_SCAN_BINS - 1) : 0;
}

static int bin_of(const tess_scan_noise *n, float difference)
{
    return tess_scan_bin(n, fabs((double)difference));
}

double tess_scan_value(const tess_scan_noise *n, double at)
{
    return n->highest * exp2((at - TESS_SCAN_BINS) / AN_OCTAVE + 2);
}

void tess_scan_noise_row(tess_scan_noise *n, const float *before, const float *here, const float *after,
                         int64_t count)
{
    /* the root of the sum of the squares of each difference's factors */
    static const float one = 2.4494897f, both = 6;
    if (!(n->highest > 0))
        return;
    for (int64_t i = 1; i + 1 < count; i++) {
        float across[3], sum[3];
        for (int k = -1; k <= 1; k++) {
            const int64_t at = i + k;
            across[k + 1] = before ? before[at] - 2 * here[at] + after[at] : 0;
            sum[k + 1] = before ? before[at] + here[at] + after[at] : 3 * here[at];
        }
        /* the mean of all nine is independent of the differences, so it may choose the part */
        const int part = tess_scan_level(n, ((double)sum[0] + (double)sum[1] + (double)sum[2]) / 9);
        n->samples[part]++;
        n->bin[part][0][bin_of(n, (here[i - 1] - 2 * here[i] + here[i + 1]) / one)]++;
        if (!before)
            continue;
        n->bin[part][1][bin_of(n, across[1] / one)]++;
        n->bin[part][2][bin_of(n, (across[0] - 2 * across[1] + across[2]) / both)]++;
    }
}

double tess_scan_median(const tess_scan_noise *n, const uint32_t *bin, double total)
{
    double seen = 0;
    int i = 0;
    while (i < TESS_SCAN_BINS - 1 && seen + bin[i] < 0.5 * total)
        seen += bin[i++];
    return i == 0 ? 0 : tess_scan_value(n, i + (0.5 * total - seen) / bin[i]);
}

/* The standard deviation from the median of one kind of differences; INFINITY: there are none. */
static double deviation(const tess_scan_noise *n, int part, int kind)
{
    const uint32_t *bin = n->bin[part][kind];
    double total = 0;
    for (int i = 0; i < TESS_SCAN_BINS; i++)
        total += bin[i];
    return total > 0 ? tess_scan_median(n, bin, total) / MEDIAN : (double)INFINITY;
}

/* The variance of each level; negative: there are too few samples. */
static void find_variances(const tess_scan_noise *n, double variance[TESS_SCAN_LEVELS])
{
    double all = 0, higher = 0, squares = 0;
    for (int part = 0; part < TESS_SCAN_LEVELS; part++)
        all += (double)n->samples[part];
    for (int part = TESS_SCAN_LEVELS - 1; part >= 0; part--) {
        const double count = (double)n->samples[part];
        variance[part] = -1;
        if (count < LEAST_SAMPLES || count < LEAST_SHARE * all)
            continue;
        double sigma = (double)INFINITY;
        for (int kind = 0; kind < TESS_SCAN_KINDS; kind++)
            sigma = fmin(sigma, deviation(n, part, kind));
        const double pooled = higher > 0 ? sqrt(squares / higher) : (double)INFINITY;
        if (higher > 0 && sigma > (SCATTER + SCATTER_OF_FEW / sqrt(higher)) * pooled)
            sigma = pooled;
        variance[part] = sigma * sigma;
        squares += count * variance[part];
        higher += count;
    }
}

double tess_scan_noise_end(const tess_scan_noise *n, bool *rough)
{
    double variance[TESS_SCAN_LEVELS], count = 0, squares = 0, fourths = 0;
    find_variances(n, variance);
    const tess_scan_bound bound = tess_scan_find_bound(n);
    const double most = tess_scan_limit(n, &bound, variance);
    *rough = bound.rough;
    for (int part = 0; part < TESS_SCAN_LEVELS; part++)
        if (variance[part] >= 0) {
            count += (double)n->samples[part];
            squares += (double)n->samples[part] * variance[part];
            fourths += (double)n->samples[part] * variance[part] * variance[part];
        }
    if (!(count > 0))
        return -1;
    return squares > 0 ? fmin(sqrt(fourths / squares), most) : 0;
}
