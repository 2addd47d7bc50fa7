#include "job/common/local_mean.h"

#include <string.h>

#include "base/checked.h"

enum { REACH = TESS_LOCAL_REACH, RING = 2 * REACH + 1 };

static size_t row_bytes(int64_t width, int64_t channels)
{
    return tess_align_size((size_t)(width * channels) * sizeof(float), 64);
}

size_t tess_local_mean_bytes(int64_t width, int64_t channels)
{
    return RING * row_bytes(width, channels) +
           tess_align_size((size_t)(width * channels) * sizeof(double), 64);
}

void tess_local_mean_begin(tess_local_mean *local, int64_t width, int64_t channels, int64_t height,
                           void *memory)
{
    *local = (tess_local_mean){.width = width, .channels = channels, .height = height, .rows = memory};
    local->total = (double *)((char *)memory + RING * row_bytes(width, channels));
}

int64_t tess_local_mean_go_to(tess_local_mean *local, int64_t row)
{
    local->given = row;
    local->read = tess_max_i64(row - REACH, 0);
    return local->read;
}

static float *row_at(const tess_local_mean *local, int64_t y)
{
    return (float *)((char *)local->rows + (size_t)(y % RING) * row_bytes(local->width, local->channels));
}

tess_status tess_local_mean_next(tess_local_mean *local, tess_local_row_fn read, void *user, float *values,
                                 float *means, tess_error *error)
{
    const int64_t y = local->given, samples = local->width * local->channels, channels = local->channels;
    const int64_t top = tess_max_i64(y - REACH, 0), end = tess_min_i64(y + REACH + 1, local->height);
    for (; local->read < end; local->read++)
        TESS_TRY(read(user, row_at(local, local->read), error));
    memset(local->total, 0, (size_t)samples * sizeof *local->total);
    for (int64_t k = top; k < end; k++)
        for (int64_t i = 0; i < samples; i++)
            local->total[i] += (double)row_at(local, k)[i];
    for (int64_t x = 0; x < local->width; x++) {
        const int64_t left = tess_max_i64(x - REACH, 0), right = tess_min_i64(x + REACH + 1, local->width);
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0;
            for (int64_t k = left; k < right; k++)
                sum += local->total[k * channels + c];
            means[x * channels + c] = (float)(sum / (double)((right - left) * (end - top)));
        }
    }
    memcpy(values, row_at(local, y), (size_t)samples * sizeof *values);
    local->given++;
    return TESS_OK;
}
