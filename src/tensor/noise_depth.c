/* noise_depth.c: volumes whose slices differ in their noise. Patches are stored slice by slice, so a part of
 * the depth is a contiguous run of patches and is estimated like a whole image (noise_fit.c). With up to 16
 * slices, each slice is a part. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { FEWEST = 200 };               /* fewest patches of a part */
static const double differ = 1.5;    /* ratio of the largest to the least level */
static const double no_noise = 1e-3; /* relative to the expected level: slices below it are empty */

static int parts_of(const tess_noise_shape *shape)
{
    return (int)tess_min_i64(shape->depth, TESS_NOISE_PARTS);
}

void tess_noise_end_slice(tess_noise *noise, int64_t slice)
{
    const int parts = parts_of(&noise->shape);
    for (int i = 0; i < parts; i++)
        if (slice < noise->shape.depth * (i + 1) / parts)
            for (int c = 0; c < noise->shape.channels; c++)
                noise->ends[c][i] = noise->count[c];
}

/* The level of one channel in one part; negative when there are too few patches. *expected is the level
 * predicted from the brightness there. */
static double level_of(const tess_noise *noise, int channel, int part, const tess_noise_level *level,
                       double *expected)
{
    const tess_noise_patch *patches = noise->patches + channel * noise->most;
    const int64_t from = part ? noise->ends[channel][part - 1] : 0, count = noise->ends[channel][part] - from;
    if (count < FEWEST)
        return -1;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        noise->order[i] = (uint64_t)(from + i);
        sum += pow(tess_noise_at(level, patches[from + i].mean), 2);
    }
    *expected = sqrt(sum / (double)count);
    return tess_noise_ask(noise, channel, NULL, noise->order, count).sigma;
}

/* Writes the level of each part into `result` and the mean squares over the depth into `squares`. Returns false
 * when a level is unknown or brightness explains the differences. */
static bool parts_differ(const tess_noise *noise, tess_noise_result *result,
                         double squares[TESS_NOISE_CHANNELS])
{
    const int parts = parts_of(&noise->shape), channels = noise->shape.channels;
    double least = INFINITY, largest = 0; /* relative to the expected level */
    for (int i = 0; i < parts; i++) {
        double sum = 0, expected = 0;
        for (int c = 0; c < channels; c++) {
            double one;
            const double level = level_of(noise, c, i, &result->channel[c], &one);
            if (level < 0)
                return false;
            sum += level * level / channels, expected += one * one / channels;
            squares[c] += level * level / parts;
        }
        result->part_sigma[i] = sqrt(sum);
        const double ratio = expected > 0 ? sqrt(sum / expected) : 0;
        largest = fmax(largest, ratio);
        if (ratio > no_noise)
            least = fmin(least, ratio);
    }
    return largest > differ * least;
}

void tess_noise_compare_slices(const tess_noise *noise, tess_noise_result *result)
{
    double squares[TESS_NOISE_CHANNELS] = {0}, sum = 0;
    if (!parts_differ(noise, result, squares))
        return;
    result->parts = parts_of(&noise->shape);
    for (int c = 0; c < noise->shape.channels; c++) {
        tess_noise_level *level = &result->channel[c];
        level->sigma = level->read = sqrt(squares[c]);
        level->gain = level->zero = 0;
        sum += squares[c] / noise->shape.channels;
    }
    result->sigma = sqrt(sum);
}

double tess_noise_of_slice(const tess_noise_result *result, int64_t slice, int64_t depth)
{
    const double at = ((double)slice + 0.5) * result->parts / (double)depth - 0.5;
    const int last = result->parts - 1, first = (int)fmin(fmax(floor(at), 0), last);
    const double share = fmin(fmax(at - first, 0), 1);
    return (1 - share) * result->part_sigma[first] +
           share * result->part_sigma[first < last ? first + 1 : last];
}
