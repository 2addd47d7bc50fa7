#include "job/denoise/run/prepared.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/denoise/look/bands.h"
#include "job/denoise/look/slices.h"

static int64_t colours_of(const tess_denoise_file *file)
{
    return tess_denoise_colours(&file->info);
}

static bool has_map(const tess_denoise_file *file)
{
    return tess_denoise_has_map(file);
}

static bool needs_means(const tess_denoise_file *file)
{
    return file->levels == TESS_LEVELS_BY_BRIGHTNESS;
}

static size_t take(size_t *used, size_t bytes)
{
    const size_t at = *used;
    *used += tess_align_size(bytes, 64);
    return at;
}

size_t tess_prepared_carve(const tess_denoise_file *file, char *at, tess_prepared_rows *rows)
{
    const tess_image_info *info = &file->info;
    const size_t pixels = (size_t)info->width, samples = pixels * (size_t)info->channels,
                 values = pixels * (size_t)colours_of(file) * sizeof(float),
                 in_row = samples * tess_dtype_size(info->dtype);
    *rows = (tess_prepared_rows){0};
    if (!file->prepared)
        return 0;
    size_t used = 0;
    struct {
        void *to;
        size_t bytes;
    } parts[] = {
        {&rows->samples, in_row},
        {&rows->again, in_row},
        {&rows->out, samples * tess_dtype_size(file->out_info.dtype)},
        {&rows->valid, samples},
        {&rows->valid_again, samples},
        {&rows->values, values},
        {&rows->blend, values},
        {&rows->draws, values},
        {&rows->draws_again, values},
        {&rows->map, has_map(file) ? pixels * sizeof(float) : 0},
        {&rows->map_samples, file->map_info.width ? pixels * tess_dtype_size(file->map_info.dtype) : 0},
        {&rows->map_valid, file->map_info.masked ? pixels : 0},
        {&rows->means, needs_means(file) ? values : 0},
        {&rows->local, needs_means(file) ? tess_local_mean_bytes(info->width, colours_of(file)) : 0},
        {&rows->holes, tess_denoise_has_hidden(file) ? tess_holes_bytes(info->width, colours_of(file)) : 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char *part = at ? at + take(&used, parts[i].bytes) : (take(&used, parts[i].bytes), NULL);
        memcpy(parts[i].to, &part, sizeof part);
    }
    return used;
}

tess_image_info tess_prepared_info(const tess_denoise_file *file)
{
    return (tess_image_info){.height = file->info.height,
                             .width = file->info.width,
                             .channels = (int)colours_of(file) + has_map(file),
                             .alpha = has_map(file), /* copied unchanged, like alpha */
                             .dtype = TESS_F32,
                             .full_scale = 1};
}

size_t tess_prepared_held(const tess_denoise_file *file)
{
    return file->prepared ? file->info.held_bytes + file->map_info.held_bytes : 0;
}

void tess_prepared_begin_slice(tess_prepared_image *image, int64_t slice)
{
    const tess_denoise_file *file = image->file;
    const tess_scale scale = image->scale = tess_denoise_slice_scale(file, slice);
    tess_denoise_slice_sigma(file, slice, &image->sigmas);
    image->slice = slice;
    image->source_row = image->read_row = slice * file->info.height;
    if (tess_denoise_has_hidden(file))
        tess_holes_begin(
            &image->holes, file->info.width, colours_of(file), file->info.height,
            (float)((tess_denoise_slice_mean(file, slice) - scale.low) / (scale.high - scale.low)),
            image->rows.holes);
    if (needs_means(file))
        tess_local_mean_begin(&image->local, file->info.width, colours_of(file), file->info.height,
                              image->rows.local);
}

/* Row `row` of all slices without its defects. */
static void hide_defects(const tess_denoise_file *file, int64_t row, float *values)
{
    int64_t first;
    const int64_t count = tess_denoise_row_defects(file, row, &first),
                  start = row * file->info.width * colours_of(file);
    for (int64_t i = first; i < first + count; i++)
        values[file->look.defects[i] - start] = NAN;
}

static tess_status next_row(void *user, float *values, tess_error *error)
{
    tess_prepared_image *image = user;
    const tess_denoise_file *file = image->file;
    TESS_TRY(
        tess_denoise_read_rows(&file->info, image->reader, 1, image->rows.samples, image->rows.valid, error));
    tess_denoise_row_values(&file->info, image->scale, image->rows.samples, image->rows.valid, values);
    hide_defects(file, image->read_row++, values);
    return TESS_OK;
}

/* The last value above a hole may be in any row before it, so these are read if there are holes. */
tess_status tess_prepared_source_at(tess_prepared_image *image, int64_t row, tess_error *error)
{
    const tess_denoise_file *file = image->file;
    const int64_t top = image->slice * file->info.height,
                  first = needs_means(file) ? tess_local_mean_go_to(&image->local, row) : row,
                  from = tess_denoise_has_hidden(file) ? 0 : first;
    TESS_TRY(tess_reader_seek(image->reader, top + from, image->rows.samples, error));
    image->read_row = top + from;
    if (tess_denoise_has_hidden(file))
        TESS_TRY(tess_holes_skip(&image->holes, first, next_row, image, error));
    image->source_row = top + first;
    return image->map ? tess_reader_seek(image->map, top + row, image->rows.map_samples, error) : TESS_OK;
}

tess_status tess_prepared_sink_at(tess_prepared_image *image, int64_t row, tess_error *error)
{
    const int64_t top = image->slice * image->file->info.height;
    return tess_reader_seek(image->original, top + row, image->rows.again, error);
}

static void add_noise(const tess_prepared_image *image, int64_t row, float *draws, float *values)
{
    tess_denoise_add_noise(image->noise, image->settings->add_noise, row,
                           image->file->info.width * colours_of(image->file), draws, values);
}

/* Returns the next row as the network sees it: holes filled and noise added. */
static tess_status next_filled(void *user, float *values, tess_error *error)
{
    tess_prepared_image *image = user;
    if (tess_denoise_has_hidden(image->file))
        TESS_TRY(tess_holes_next(&image->holes, next_row, image, values, error));
    else
        TESS_TRY(next_row(image, values, error));
    add_noise(image, image->source_row++, image->rows.draws, values);
    return TESS_OK;
}

/* Returns the row, with the noise levels of its pixels in rows.map. */
static tess_status next_estimated(tess_prepared_image *image, float *row, tess_error *error)
{
    TESS_TRY(tess_local_mean_next(&image->local, next_filled, image, row, image->rows.means, error));
    tess_denoise_levels_of(image->file, image->slice, image->rows.means, image->rows.map);
    return TESS_OK;
}

static tess_status next_levels(tess_prepared_image *image, tess_error *error)
{
    const tess_image_info *info = &image->file->map_info;
    TESS_TRY(tess_denoise_map_row(info, image->map, image->rows.map_samples, image->rows.map_valid,
                                  image->rows.map, error));
    tess_denoise_map_fill(image->rows.map, info->width);
    return TESS_OK;
}

tess_status tess_prepared_source(tess_prepared_image *image, int64_t count, float *values, tess_error *error)
{
    const int64_t colours = colours_of(image->file), width = image->file->info.width,
                  step = colours + has_map(image->file);
    for (int64_t y = 0; y < count; y++, values += width * step) {
        float *row = has_map(image->file) ? image->rows.values : values;
        if (needs_means(image->file))
            TESS_TRY(next_estimated(image, row, error));
        else
            TESS_TRY(next_filled(image, row, error));
        if (image->map)
            TESS_TRY(next_levels(image, error));
        for (int64_t x = 0; x < width && has_map(image->file); x++) {
            memcpy(values + x * step, row + x * colours, (size_t)colours * sizeof(float));
            values[x * step + colours] = image->rows.map[x];
        }
        tess_prepared_reorder(image->file, false, values);
    }
    return TESS_OK;
}

double tess_prepared_strength(const tess_prepared_image *image, int64_t channel)
{
    const bool none =
        image->sigmas.all == 0 || (image->file->sigma_estimated &&
                                   tess_denoise_band_sigma(image->file, image->sigmas.channel, channel) == 0);
    return none ? 0 : image->settings->strength;
}

/* strength * result + (1 - strength) * input. If the noise level of the slice, of the channel, or of this pixel in the
 * map (stored after its colours) is 0, the input is unchanged. */
static void blend(tess_prepared_image *image, int64_t y, float *result)
{
    const bool map = has_map(image->file);
    const int64_t colours = colours_of(image->file), step = colours + map;
    const bool weak = tess_prepared_is_weak(image);
    double least = 1;
    image->restored += image->file->info.width * colours;
    for (int64_t c = 0; c < colours; c++)
        least = fmin(least, tess_prepared_strength(image, c));
    if (least >= 1 && !map && !weak)
        return;
    float *input = image->rows.blend;
    tess_denoise_row_values(&image->file->info, image->scale, image->rows.again, image->rows.valid_again,
                            input);
    const int64_t row = image->slice * image->file->info.height + y;
    add_noise(image, row, image->rows.draws_again, input);
    hide_defects(image->file, row, input); /* the network did not see them, and keep_defects restores them */
    if (weak)
        tess_prepared_hold_back(image, input, image->rows.draws_again, result);
    for (int64_t x = 0; x < image->file->info.width; x++) {
        const bool none = map && result[x * step + colours] == 0;
        for (int64_t c = 0; c < colours; c++) {
            const double here = none ? 0 : tess_prepared_strength(image, c);
            const float in = input[x * colours + c];
            if (here >= 1)
                continue;
            float *out = &result[x * step + c];
            if (!isnan(in))
                *out = (float)(here * (double)*out + (1 - here) * (double)in);
        }
    }
}

/* Defects keep their values: in the result, and bit for bit in the samples if these have the input's type. */
static void keep_defects(tess_prepared_image *image, int64_t y, float *result, bool samples)
{
    const tess_denoise_file *file = image->file;
    const tess_image_info *info = &file->info;
    const int64_t row = image->slice * info->height + y, colours = colours_of(file),
                  step = colours + has_map(file);
    const size_t size = tess_dtype_size(info->dtype);
    int64_t first;
    const int64_t count = tess_denoise_row_defects(file, row, &first);
    if (samples && (info->dtype != file->out_info.dtype || tess_denoise_rescales(file)))
        return;
    for (int64_t i = first; i < first + count; i++) {
        const int64_t at = file->look.defects[i] - row * info->width * colours, x = at / colours,
                      c = at % colours;
        const size_t sample = (size_t)(x * info->channels + c) * size;
        if (samples)
            memcpy(image->rows.out + sample, image->rows.again + sample, size);
        else
            tess_samples_to_values(info->dtype, image->scale, image->rows.again + sample, 1,
                                   &result[x * step + c]);
    }
}

/* A network that overflows (fp16, values far beyond 1) must not create holes. */
static tess_status check_result(const tess_prepared_image *image, int64_t y, const float *result,
                                tess_error *error)
{
    const int64_t colours = colours_of(image->file), step = colours + has_map(image->file),
                  channels = image->file->info.channels;
    for (int64_t x = 0; x < image->file->info.width; x++)
        for (int64_t c = 0; c < colours; c++)
            if (image->rows.valid_again[x * channels + c] && !isfinite(result[x * step + c]))
                return tess_fail(
                    error, TESS_BAD_INPUT,
                    "%s: the result is not a number in row %lld, column %lld; give `range` LOW,HIGH so that "
                    "samples lie in [0,1], or `precision` fp32",
                    image->file->input, (long long)y, (long long)x);
    return TESS_OK;
}

tess_status tess_prepared_sink(tess_prepared_image *image, int64_t y, float *result, const char **samples,
                               const unsigned char **valid, tess_error *error)
{
    TESS_TRY(tess_denoise_read_rows(&image->file->info, image->original, 1, image->rows.again,
                                    image->rows.valid_again, error));
    tess_prepared_reorder(image->file, true, result);
    TESS_TRY(check_result(image, y, result, error));
    blend(image, y, result);
    keep_defects(image, y, result, false);
    tess_prepared_to_samples(image, y, result);
    keep_defects(image, y, result, true);
    *samples = image->rows.out;
    *valid = image->rows.valid_again;
    return TESS_OK;
}
