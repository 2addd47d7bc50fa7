/* Reads rows of a file for the network: samples, which of them hold a value, and the values of the colours. The pass
 * before the plan and the run use the same functions, so that they agree on every hole and all added noise. */
#include <math.h>
#include <string.h>

#include "job/denoise/denoise.h"

/* Marks the pixel if all its samples are 0. */
static void hide_zero(const tess_image_info *info, const char *pixel, unsigned char *valid)
{
    float values[TESS_NOISE_CHANNELS];
    for (int first = 0; first < info->channels; first += TESS_NOISE_CHANNELS) {
        const int count =
            info->channels - first < TESS_NOISE_CHANNELS ? info->channels - first : TESS_NOISE_CHANNELS;
        tess_samples_to_float(info->dtype, 1, pixel + (size_t)first * tess_dtype_size(info->dtype), count,
                              values);
        for (int c = 0; c < count; c++)
            if (values[c] != 0)
                return;
    }
    memset(valid, 0, (size_t)info->channels);
}

tess_status tess_denoise_read_rows(const tess_image_info *info, tess_reader *reader, int64_t count,
                                   char *samples, unsigned char *valid, tess_error *error)
{
    const int64_t all = count * info->width * info->channels;
    TESS_TRY(tess_reader_rows(reader, count, samples, error));
    if (info->masked)
        TESS_TRY(tess_reader_valid(reader, count, valid, error));
    else
        memset(valid, 1, (size_t)all);
    for (int64_t i = 0; info->zeros_are_holes && i < all; i += info->channels)
        hide_zero(info, samples + (size_t)i * tess_dtype_size(info->dtype), valid + i);
    for (int64_t i = 0; info->dtype == TESS_F32 && i < all; i++)
        valid[i] = valid[i] && isfinite(((const float *)samples)[i]);
    for (int64_t i = 0; info->dtype == TESS_F64 && i < all; i++)
        valid[i] = valid[i] && isfinite(((const double *)samples)[i]);
    return TESS_OK;
}

void tess_denoise_row_values(const tess_image_info *info, tess_scale scale, const char *samples,
                             const unsigned char *valid, float *values)
{
    const int64_t step = info->channels, colours = tess_denoise_colours(info);
    const size_t size = tess_dtype_size(info->dtype);
    for (int64_t x = 0; x < info->width; x++) {
        tess_samples_to_values(info->dtype, scale, samples + (size_t)(x * step) * size, colours,
                               values + x * colours);
        for (int64_t c = 0; c < colours; c++)
            if (!valid[x * step + c])
                values[x * colours + c] = NAN;
    }
}

void tess_denoise_add_noise(tess_rng_key key, double level, int64_t row, int64_t count, float *draws,
                            float *values)
{
    if (!(level > 0))
        return;
    tess_rng_normal(key, row * count, count, draws);
    for (int64_t i = 0; i < count; i++)
        values[i] += (float)level * draws[i];
}

bool tess_denoise_has_hidden(const tess_denoise_file *file)
{
    return file->look.holes > 0 || file->look.defect_count > 0;
}

int64_t tess_denoise_row_defects(const tess_denoise_file *file, int64_t row, int64_t *first)
{
    const tess_denoise_look *look = &file->look;
    const int64_t samples = file->info.width * tess_denoise_colours(&file->info);
    int64_t ends[2];
    for (int e = 0; e < 2; e++) { /* the first defect at or after the row, and after its end */
        int64_t low = 0, high = look->defect_count;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (look->defects[middle] < (row + e) * samples)
                low = middle + 1;
            else
                high = middle;
        }
        ends[e] = low;
    }
    *first = ends[0];
    return ends[1] - ends[0];
}
