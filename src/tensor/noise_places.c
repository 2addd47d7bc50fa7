/* noise_places.c: noise whose level differs across the image, as in a collage, or after a correction of lens shading.
 *
 * The quietest patches of the whole image, which its estimate comes from (noise_fit.c), then lie in its quietest part. So the
 * image is also divided by a grid, and each field estimated by itself, as far as it has little texture and is not near a limit.
 * Fields are compared with what the law of the whole image says of their brightness, since noise that grows with the brightness
 * differs between places, too. */
#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { GRID = TESS_NOISE_GRID, COARSE = GRID / 2, PATCHES = 1000, FEWEST = 6 };
static const double little_texture = -0.1; /* as in noise_slope.c */
static const double regular = 1;           /* log of the two high bands: a pattern has one of them */
static const double far_from_limit = 1.5;  /* sigmas: 0.87 of the variance is left there */
/* Ratio of loud to quiet fields. White noise of 3, 5 and 25 of 255 on photographs had 1.24 at most. */
static const double too_much = 1.4;

typedef struct field {
    double variance, ratio; /* ratio: of its level to that which the law of the image says */
    bool calm;              /* else texture may have raised them */
} field;

static int field_of(int place, int side)
{
    const int merged = GRID / side;
    return place / GRID / merged * side + place % GRID / merged;
}

/* Writes the indices of the patches to noise->order, field by field, each from `first` on. */
static void sort_by_field(const tess_noise *noise, int channel, int side, int64_t first[GRID * GRID + 1])
{
    const unsigned char *places = noise->places + channel * noise->most;
    int64_t at[GRID * GRID];
    for (int f = 0; f <= side * side; f++)
        first[f] = 0;
    for (int64_t i = 0; i < noise->count[channel]; i++)
        first[field_of(places[i], side) + 1]++;
    for (int f = 0; f < side * side; f++)
        at[f] = first[f], first[f + 1] += first[f];
    for (int64_t i = 0; i < noise->count[channel]; i++)
        noise->order[at[field_of(places[i], side)]++] = (uint64_t)i;
}

/* Leaves out patches near a limit; returns how many are left. */
static int64_t keep_far(const tess_noise *noise, int channel, const tess_noise_clip *clip, double sigma,
                        uint64_t *keys, int64_t count)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        const double mean = patches[keys[i] & UINT32_MAX].mean;
        if (mean - clip->low > far_from_limit * sigma && clip->high - mean > far_from_limit * sigma)
            keys[kept++] = keys[i];
    }
    return kept;
}

/* The median variance of the quieter half of the field's patches, which `keys` has sorted by ask. Within a field the quietest
 * of all lie where the noise is weakest. Overwrites `keys`. */
static double typical_variance(const tess_noise *noise, int channel, const tess_noise_answer *a,
                               uint64_t *keys)
{
    static const double median = 0.956; /* of chi square of 15 degrees of freedom, to its mean */
    static const double most = 1.5;     /* of the quietest: the rest is texture */
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    uint64_t *roots = noise->order + noise->most;
    const double least = a->sigma * a->sigma;
    const int64_t half = a->count / 2;
    for (int64_t i = 0; i < half; i++) {
        const tess_noise_patch *patch = &patches[keys[i] & UINT32_MAX];
        roots[i] = tess_noise_key(sqrt(9.0 / 15) * hypot(patch->middle, sqrt(6.0 / 9) * patch->high),
                                  (int64_t)(keys[i] & UINT32_MAX));
    }
    tess_noise_sort(roots, half, keys);
    const tess_noise_patch *middle = &patches[roots[half / 2] & UINT32_MAX];
    const double m = middle->middle, h = middle->high, variance = (9 * m * m + 6 * h * h) / 15 / median;
    return fmin(fmax(variance, least), most * least);
}

static int ask_fields(const tess_noise *noise, int channel, const tess_noise_level *level, int side,
                      field fields[GRID * GRID])
{
    int64_t first[GRID * GRID + 1];
    tess_noise_clip limits;
    const bool clipped = tess_noise_find_limits(noise, channel, &limits);
    int used = 0;
    sort_by_field(noise, channel, side, first);
    for (int f = 0; f < side * side; f++) {
        uint64_t *keys = noise->order + first[f];
        int64_t count = first[f + 1] - first[f];
        tess_noise_answer a = tess_noise_ask(noise, channel, NULL, keys, count);
        if (clipped && a.sigma > 0) {
            count = keep_far(noise, channel, &limits, fmax(a.sigma, level->sigma), keys, a.count);
            a = tess_noise_ask(noise, channel, NULL, keys, count);
        }
        const double expected = tess_noise_at(level, a.mean);
        if (!(a.count >= PATCHES / 2 && a.sigma > 0 && expected > 0))
            continue;
        fields[used].ratio = a.sigma / expected;
        fields[used].calm = a.texture < little_texture && fabs(a.bands) < regular;
        fields[used++].variance = typical_variance(noise, channel, &a, keys);
    }
    return used;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The value that is as far from the first or last as to leave out the extremes. */
static double inner(double *values, int count, bool largest)
{
    const int extreme = count / 8 > 1 ? count / 8 : 1;
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[largest ? count - 1 - extreme : extreme];
}

/* The ratio of the levels of loud and quiet fields; 0: too few fields show it. Only calm fields can be loud. A field with
 * texture is quiet if that has not raised its level. */
static double spread_of(const field *fields, int count)
{
    double loud[GRID * GRID], quiet[GRID * GRID];
    int calm = 0;
    for (int i = 0; i < count; i++) {
        if (fields[i].calm)
            loud[calm++] = fields[i].ratio;
        quiet[i] = fields[i].calm ? fields[i].ratio : fmax(fields[i].ratio, 1);
    }
    return calm < FEWEST ? 0 : inner(loud, calm, true) / inner(quiet, count, false);
}

/* The root mean square over the fields, which are as small as the patches allow. Those with texture count as the mean of the
 * others at most. */
static double mean_level(const tess_noise *noise, int channel, const tess_noise_level *level)
{
    const int side = noise->count[channel] < GRID * GRID * PATCHES ? COARSE : GRID;
    field fields[GRID * GRID];
    const int count = ask_fields(noise, channel, level, side, fields);
    double calm = 0, sum = 0;
    int calm_count = 0;
    for (int i = 0; i < count; i++)
        if (fields[i].calm)
            calm += fields[i].variance, calm_count++;
    if (calm_count == 0)
        return level->sigma;
    for (int i = 0; i < count; i++)
        sum += fields[i].calm ? fields[i].variance : fmin(fields[i].variance, calm / calm_count);
    return sqrt(sum / count);
}

static void set_level(tess_noise_level *level, double sigma)
{
    level->patchy = true;
    level->sigma = level->read = sigma;
    level->gain = level->zero = 0;
    level->encoded = false;
    level->confidence = TESS_NOISE_ROUGH;
}

/* What differs in most channels does so in all: a channel with too much texture gets the mean factor of the others. */
void tess_noise_doubt_places(const tess_noise *noise, tess_noise_level *levels, int channels)
{
    field fields[GRID * GRID];
    double spread[TESS_NOISE_CHANNELS] = {0}, factor = 0;
    int judged = 0, patchy = 0;
    for (int c = 0; c < channels; c++) {
        if (noise->count[c] < COARSE * COARSE * PATCHES || !(levels[c].sigma > 0) || levels[c].mosaic ||
            levels[c].magnitude)
            continue;
        spread[c] = spread_of(fields, ask_fields(noise, c, &levels[c], COARSE, fields));
        judged += spread[c] > 0;
        patchy += spread[c] > too_much;
    }
    if (patchy == 0)
        return;
    const bool all = 2 * patchy >= judged;
    for (int c = 0; c < channels; c++) {
        if (!(spread[c] > too_much || (all && spread[c] > 0)))
            continue;
        const double sigma = mean_level(noise, c, &levels[c]);
        factor += sigma / levels[c].sigma / (all ? judged : patchy);
        set_level(&levels[c], sigma);
    }
    for (int c = 0; c < channels && all; c++)
        if (!levels[c].patchy && levels[c].sigma > 0 && !levels[c].mosaic && !levels[c].magnitude)
            set_level(&levels[c], factor * levels[c].sigma);
}
