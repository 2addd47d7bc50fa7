/* raster_void.c: see raster_void.h. Samples are doubles that hold the file's value exactly. */
#include "io/raster_void.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

const double tess_void_marks[TESS_VOID_MARKS] = {-9999, -99999, -999,      -32768,    -32767,
                                                 9999,  99999,  INT16_MAX, UINT16_MAX};

static bool is_float(tess_dtype dtype)
{
    return dtype == TESS_F32 || dtype == TESS_F64;
}

static void range_of(tess_dtype dtype, int bits, double *least, double *most)
{
    static const struct {
        tess_dtype dtype;
        double least, most;
    } ranges[] = {{TESS_U8, 0, UINT8_MAX},          {TESS_U16, 0, UINT16_MAX},
                  {TESS_I16, INT16_MIN, INT16_MAX}, {TESS_U32, 0, UINT32_MAX},
                  {TESS_I32, INT32_MIN, INT32_MAX}, {TESS_F32, -FLT_MAX, FLT_MAX},
                  {TESS_F64, -DBL_MAX, DBL_MAX}};
    *least = *most = 0;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].dtype == dtype) {
            *least = ranges[i].least;
            *most = ranges[i].most;
        }
    if (bits > 0 && bits < 32 && !is_float(dtype) && *least == 0)
        *most = fmin(*most, ldexp(1, bits) - 1);
}

/* The nodata value as a sample of the type. False when no sample can equal it. A finite double beyond float32
 * becomes the largest float: programs write the lowest double for files of floats. */
static bool convert(const tess_void_rule *rule, double nodata, double *as)
{
    *as = nodata;
    if (isnan(nodata))
        return is_float(rule->dtype);
    if (rule->dtype == TESS_F32)
        *as = isfinite(nodata) && fabs(nodata) > FLT_MAX ? copysign(FLT_MAX, nodata) : (double)(float)nodata;
    return is_float(rule->dtype) ||
           (nodata >= rule->least && nodata <= rule->most && nodata == floor(nodata));
}

tess_void_rule tess_void_rule_make(tess_dtype dtype, int bits, tess_raster_nodata how, double given,
                                   const double *declared)
{
    tess_void_rule rule = {.dtype = dtype};
    range_of(dtype, bits, &rule.least, &rule.most);
    if (how == TESS_NODATA_GIVEN)
        rule.exact = convert(&rule, given, &rule.value);
    else if (how == TESS_NODATA_OF_FILE && declared)
        rule.exact = convert(&rule, *declared, &rule.value);
    rule.usual = how == TESS_NODATA_OF_FILE && !rule.exact; /* also if no sample can equal the declared one */
    if (declared && how != TESS_NODATA_OF_FILE)
        rule.avoid = convert(&rule, *declared, &rule.avoided);
    return rule;
}

static bool is_usual(const tess_void_rule *rule, double sample)
{
    for (int i = 0; i < TESS_VOID_TOPS; i++)
        if (sample == tess_void_marks[i])
            return !rule->heights[i];
    return fabs(sample) >= TESS_VOID_ABSURD;
}

int tess_void_mark_of(double sample)
{
    if (sample > -999 && sample < 9999)
        return -1;
    for (int i = 0; i < TESS_VOID_MARKS; i++)
        if (sample == tess_void_marks[i])
            return i;
    return -1;
}

int tess_void_usual(double sample)
{
    return fabs(sample) >= TESS_VOID_ABSURD && isfinite(sample) ? TESS_VOID_MARKS : tess_void_mark_of(sample);
}

static bool is_marked(const tess_void_rule *rule, double sample)
{
    const int mark = tess_void_mark_of(sample);
    return (mark >= 0 && rule->marks[mark]) || (rule->absurd && fabs(sample) >= TESS_VOID_ABSURD);
}

bool tess_void_sample(const tess_void_rule *rule, double sample)
{
    if (!isfinite(sample))
        return true;
    return (rule->exact && sample == rule->value) || (rule->usual && is_usual(rule, sample)) ||
           is_marked(rule, sample) || (rule->limits && (sample < rule->low || sample > rule->high));
}

/* Without branches, so that the compiler vectorises it: what the rule does not have is compared with a number that
 * nothing equals or exceeds. */
void tess_void_samples(const tess_void_rule *rule, const double *samples, int64_t count, uint8_t *empty)
{
    const double value = rule->exact ? rule->value : (double)NAN, low = rule->limits ? rule->low : -DBL_MAX,
                 high = rule->limits ? rule->high : DBL_MAX;
    bool marked = rule->absurd;
    for (int k = 0; k < TESS_VOID_MARKS; k++)
        marked = marked || rule->marks[k];
    for (int64_t i = 0; i < count; i++)
        empty[i] = (uint8_t)(!((samples[i] >= low) & (samples[i] <= high)) | (samples[i] == value));
    for (int64_t i = 0; rule->usual && i < count; i++)
        empty[i] |= is_usual(rule, samples[i]);
    for (int64_t i = 0; marked && i < count; i++)
        empty[i] |= is_marked(rule, samples[i]);
}

static int ascending(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Drops what is void in any case, and markers that may be. */
static int64_t keep_heights(const tess_void_rule *rule, double *samples, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (!tess_void_sample(rule, samples[i]) && tess_void_mark_of(samples[i]) < 0)
            samples[kept++] = samples[i];
    return kept;
}

bool tess_void_is_far(int mark, double low, double high)
{
    static const double NEAR = 0.05;
    const double value = tess_void_marks[mark], gap = fmax(low - value, value - high);
    return gap > (mark < TESS_VOID_TOPS ? NEAR : 1) * (high - low) && gap > NEAR * fabs(value);
}

int64_t tess_void_find_limits(tess_void_rule *rule, double *samples, int64_t count)
{
    rule->limits = false;
    for (int i = TESS_VOID_TOPS; i < TESS_VOID_MARKS; i++)
        rule->marks[i] = false;
    const int64_t kept = rule->usual ? keep_heights(rule, samples, count) : 0;
    if (kept < 2)
        return 0;
    qsort(samples, (size_t)kept, sizeof *samples, ascending);
    const double low = samples[(int64_t)(0.01 * (double)(kept - 1))],
                 high = samples[(int64_t)ceil(0.99 * (double)(kept - 1))], range = high - low;
    /* A flat map says nothing about what is far away. Integers have no limits: most of a map may be sea, and an
     * island hundreds of its ranges above. */
    rule->limits = range > 0 && isfinite(range) && is_float(rule->dtype);
    rule->low = rule->limits ? low - 100 * range : 0;
    rule->high = rule->limits ? high + 100 * range : 0;
    int64_t last = kept - 1;
    while (last > 0 && rule->limits && samples[last] > rule->high)
        last--;
    for (int i = TESS_VOID_TOPS; i < TESS_VOID_MARKS; i++)
        rule->marks[i] = tess_void_is_far(i, low, samples[last]);
    return rule->limits ? kept : 0;
}

static bool avoided(const tess_void_rule *rule, double sample)
{
    return tess_void_sample(rule, sample) || (rule->avoid && sample == rule->avoided);
}

static double next_sample(const tess_void_rule *rule, double sample, bool up)
{
    if (rule->dtype == TESS_F32)
        return nextafterf((float)sample, up ? FLT_MAX : -FLT_MAX);
    if (rule->dtype == TESS_F64)
        return nextafter(sample, up ? DBL_MAX : -DBL_MAX);
    return fmin(fmax(sample + (up ? 1 : -1), rule->least), rule->most);
}

double tess_void_to_sample(const tess_void_rule *rule, double value)
{
    double sample = fmin(fmax(value, rule->least), rule->most);
    if (rule->usual || rule->absurd)
        sample = fmin(fmax(sample, -TESS_VOID_ABSURD / 2), TESS_VOID_ABSURD / 2);
    if (rule->limits)
        sample = fmin(fmax(sample, rule->low), rule->high);
    if (!is_float(rule->dtype))
        sample = round(sample);
    else if (rule->dtype == TESS_F32)
        sample = (double)(float)sample;
    /* At most a few values in a row are void; first towards the true value, then the other way. */
    for (int turn = 0; turn < 2 && avoided(rule, sample); turn++) {
        const bool up = (value >= sample) != (turn == 1);
        double other = sample;
        for (int i = 0; i < 4 && avoided(rule, other); i++)
            other = next_sample(rule, other, up);
        if (!avoided(rule, other))
            sample = other;
    }
    return sample;
}
