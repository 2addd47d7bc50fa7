/* A NaN would spread over the window that holds it, so samples are checked before a run. All are counted, so that the
 * message says how many there are and where the first is. Images on a card are not checked: that would wait for it. */
#include <math.h>

#include "base/checked.h"
#include "job/library/library.h"

enum { CHUNK = 256 }; /* pixels of one channel, converted on the stack */

typedef struct bad_values {
    int64_t count, z, y, x, channel; /* the last four: of the first */
} bad_values;

static void count_row(const tess_strided *in, int64_t z, int64_t y, int64_t channel, bad_values *bad)
{
    float values[CHUNK];
    for (int64_t x = 0; x < in->width; x += CHUNK) {
        const tess_run_of_pixels run = {.z = z,
                                        .y = y,
                                        .x = x,
                                        .count = tess_min_i64(CHUNK, in->width - x),
                                        .first = channel,
                                        .channels = 1};
        tess_strided_read(in, &run, values, 1);
        for (int64_t i = 0; i < run.count; i++)
            if (!isfinite(values[i]) && bad->count++ == 0)
                *bad = (bad_values){1, z, y, x + i, channel};
    }
}

tess_status tess_denoiser_check_finite(const tess_strided *in, tess_error *error)
{
    const tess_dtype dtype = in->type.dtype;
    bad_values bad = {0};
    if (dtype == TESS_U8 || dtype == TESS_U16)
        return TESS_OK;
    for (int64_t z = 0; z < in->depth; z++)
        for (int64_t y = 0; y < in->height; y++)
            for (int64_t c = 0; c < in->channels; c++)
                count_row(in, z, y, c, &bad);
    if (bad.count == 0)
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "tess_denoiser_run: %lld sample(s) of `in` are NaN, infinite or beyond float32, the first in "
        "image or slice %lld, row %lld, column %lld, channel %lld, counted from 0; fill them first, or "
        "denoise a file, in which they are holes",
        (long long)bad.count, (long long)bad.z, (long long)bad.y, (long long)bad.x, (long long)bad.channel);
}
