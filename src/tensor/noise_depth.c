/* noise_depth.c: volumes whose slices differ in their noise. Patches come slice by slice, so that a part of the depth is a
 * run of them, and is asked as a whole image is (noise_fit.c). Up to 16 slices are parts of their own. */
#include <math.h>

#include "base/checked.h"
#include "tensor/noise_parts.h"

enum { FEWEST = 200 };               /* patches of a part */
static const double differ = 1.5;    /* largest to least level */
static const double no_noise = 1e-3; /* of the largest: such slices are empty */

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

/* Of one channel in one part; negative: it has too few patches. */
static double level_of(const tess_noise *noise, int channel, int part)
{
    const int64_t from = part ? noise->ends[channel][part - 1] : 0, count = noise->ends[channel][part] - from;
    if (count < FEWEST)
        return -1;
    for (int64_t i = 0; i < count; i++)
        noise->order[i] = (uint64_t)(from + i);
    return tess_noise_ask(noise, channel, NULL, noise->order, count).sigma;
}

void tess_noise_compare_slices(const tess_noise *noise, tess_noise_result *result)
{
    const int parts = parts_of(&noise->shape), channels = noise->shape.channels;
    double squares[TESS_NOISE_CHANNELS] = {0}, least = INFINITY, largest = 0, sum = 0;
    for (int c = 0; c < channels; c++)
        if (result->channel[c].gain > 0)
            return; /* brightness explains it */
    for (int i = 0; i < parts; i++) {
        double square = 0;
        for (int c = 0; c < channels; c++) {
            const double level = level_of(noise, c, i);
            if (level < 0)
                return;
            square += level * level / channels;
            squares[c] += level * level / parts;
        }
        result->part_sigma[i] = sqrt(square);
        largest = fmax(largest, result->part_sigma[i]);
        sum += square / parts;
    }
    for (int i = 0; i < parts; i++)
        if (result->part_sigma[i] > no_noise * largest)
            least = fmin(least, result->part_sigma[i]);
    if (!(largest > differ * least))
        return;
    result->parts = parts;
    result->sigma = sqrt(sum);
    for (int c = 0; c < channels; c++)
        result->channel[c].sigma = result->channel[c].read = sqrt(squares[c]);
}

double tess_noise_of_slice(const tess_noise_result *result, int64_t slice, int64_t depth)
{
    const double at = ((double)slice + 0.5) * result->parts / (double)depth - 0.5;
    const int last = result->parts - 1, first = (int)fmin(fmax(floor(at), 0), last);
    const double share = fmin(fmax(at - first, 0), 1);
    return (1 - share) * result->part_sigma[first] +
           share * result->part_sigma[first < last ? first + 1 : last];
}
