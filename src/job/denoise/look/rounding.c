#include "job/denoise/look/rounding.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

enum { BLOCK = 8 };

tess_status tess_rounding_begin(tess_rounding *r, int64_t width, int64_t channels, int64_t height,
                                tess_scale unit, tess_error *error)
{
    *r = (tess_rounding){.width = width, .channels = channels, .height = height, .unit = unit};
    r->blocks = tess_ceil_div(width, BLOCK) * channels;
    r->sums = tess_small_alloc((size_t)r->blocks, sizeof *r->sums);
    r->counts = tess_small_alloc((size_t)r->blocks, sizeof *r->counts);
    return r->sums && r->counts ? TESS_OK
                                : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
}

void tess_rounding_release(tess_rounding *r)
{
    tess_small_free(r->sums);
    tess_small_free(r->counts);
}

static void end_blocks(tess_rounding *r)
{
    for (int64_t i = 0; i < r->blocks; i++) {
        const double count = (double)r->counts[i], mean = r->counts[i] ? r->sums[i] / count : 0;
        r->light += r->sums[i];
        r->change += (rint(mean) - mean) * count;
        r->pixels += count, r->sum += count * mean, r->squares += count * mean * mean;
        r->errors += count * (rint(mean) - mean) * (rint(mean) - mean);
        r->sums[i] = 0;
        r->counts[i] = 0;
    }
}

static void end_slice(tess_rounding *r)
{
    const double mean = r->pixels > 0 ? r->sum / r->pixels : 0, variance = r->squares - mean * r->sum;
    if (r->light > 0)
        r->most = fmax(r->most, fabs(r->change) / r->light);
    if (r->errors > 0 && variance > 0)
        r->coarsest = fmax(r->coarsest, sqrt(r->errors / variance));
    r->light = r->change = r->pixels = r->sum = r->squares = r->errors = 0;
    r->row = 0;
}

void tess_rounding_row(tess_rounding *r, const float *values)
{
    const double span = r->unit.high - r->unit.low;
    for (int64_t i = 0; i < r->width * r->channels; i++) {
        if (!isfinite(values[i]))
            continue;
        const int64_t block = i / r->channels / BLOCK * r->channels + i % r->channels;
        r->sums[block] += rint(r->unit.low + (double)values[i] * span); /* values are floats */
        r->counts[block]++;
    }
    r->row++;
    if (r->row % BLOCK == 0 || r->row == r->height)
        end_blocks(r);
    if (r->row == r->height)
        end_slice(r);
}
