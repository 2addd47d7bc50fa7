/* The map of noise levels that `sigma_map` names. Its samples are levels on the [0,1] scale: integers are divided by
 * their type's maximum, unless the file says what its samples mean (scale and offset). Where the image has no value
 * the map need not have one. The map is checked before the plan, so that a bad level fails at once.
 *
 * Levels of 255 in 16 or 32 bits would be next to no noise. So a map of wide integers fails if its largest level is less than
 * half a step of an 8-bit image, which cannot be seen. A map of zeros keeps the image, whatever its scale. */
#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "job/denoise/denoise.h"

static const double LEAST = 1 / 500.0;

tess_status tess_denoise_map_row(const tess_image_info *info, tess_reader *reader, char *samples,
                                 unsigned char *valid, float *levels, tess_error *error)
{
    const bool scaled = info->says & TESS_SAYS_SCALE;
    TESS_TRY(tess_reader_rows(reader, 1, samples, error));
    tess_samples_to_float(info->dtype, scaled ? 1 : info->full_scale, samples, info->width, levels);
    for (int64_t x = 0; x < info->width && scaled; x++)
        levels[x] = (float)((double)levels[x] * info->scale + info->offset);
    if (!info->masked)
        return TESS_OK;
    TESS_TRY(tess_reader_valid(reader, 1, valid, error));
    for (int64_t x = 0; x < info->width; x++)
        levels[x] = valid[x] ? levels[x] : NAN;
    return TESS_OK;
}

void tess_denoise_map_fill(float *levels, int64_t width)
{
    float near = 0;
    for (int64_t x = width - 1; x >= 0; x--)
        near = isnan(levels[x]) ? near : levels[x]; /* the first one of the row */
    for (int64_t x = 0; x < width; x++)
        levels[x] = near = isnan(levels[x]) ? near : levels[x];
}

/* One row of the map and of the image. */
typedef struct both {
    tess_reader *map, *image;
    char *map_samples, *samples;
    unsigned char *map_valid, *valid;
    float *levels;
} both;

static tess_status check_row(const tess_denoise_settings *s, tess_denoise_file *file, both *b, int64_t row,
                             tess_error *error)
{
    const tess_image_info *info = &file->info;
    TESS_TRY(tess_denoise_map_row(&file->map_info, b->map, b->map_samples, b->map_valid, b->levels, error));
    TESS_TRY(tess_denoise_read_rows(info, b->image, 1, b->samples, b->valid, error));
    for (int64_t x = 0; x < info->width; x++) {
        const float level = b->levels[x];
        bool hole = true;
        for (int64_t c = 0; c < tess_denoise_colours(info); c++)
            hole = hole && !b->valid[x * info->channels + c];
        if (hole && isnan(level))
            continue;
        if (level >= 0 && level <= 1) {
            file->map_levels.low = fmin(file->map_levels.low, (double)level);
            file->map_levels.high = fmax(file->map_levels.high, (double)level);
            continue;
        }
        char slice[48] = "";
        if (info->depth)
            snprintf(slice, sizeof slice, "slice %lld, ", (long long)(row / info->height));
        if (isnan(level))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "`sigma_map` %s: has no value in %srow %lld, column %lld, counted from 0, where the image "
                "has one",
                s->sigma_map, slice, (long long)(row % info->height), (long long)x);
        return tess_fail(
            error, TESS_BAD_INPUT,
            "`sigma_map` %s: the sample %g in %srow %lld, column %lld, counted from 0, is no noise "
            "level; they are 0 to 1, on the [0,1] scale",
            s->sigma_map, (double)level, slice, (long long)(row % info->height), (long long)x);
    }
    return TESS_OK;
}

static tess_status doubt_levels(const tess_denoise_settings *s, const tess_denoise_file *file,
                                tess_error *error)
{
    const tess_image_info *map = &file->map_info;
    const double largest = file->map_levels.high;
    const bool wide = map->dtype == TESS_U16 || map->dtype == TESS_I16 || map->dtype == TESS_U32 ||
                      map->dtype == TESS_I32 || map->dtype == TESS_I64;
    if (!wide || map->says & TESS_SAYS_SCALE || !(largest > 0 && largest < LEAST))
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "`sigma_map` %s: its largest level is %.0f of %.0f, hardly any noise; store levels that are "
        "of 255 in 8 bits, or levels divided by the image's range as floats",
        s->sigma_map, largest * map->full_scale, map->full_scale);
}

tess_status tess_denoise_check_map(tess_engine *engine, const tess_denoise_settings *settings,
                                   tess_denoise_file *file, tess_error *error)
{
    const tess_image_info *info = &file->info, *map = &file->map_info;
    const size_t width = (size_t)info->width, samples = width * (size_t)info->channels;
    both b = {.map_samples = tess_small_alloc(width, tess_dtype_size(map->dtype)),
              .samples = tess_small_alloc(samples, tess_dtype_size(info->dtype)),
              .map_valid = tess_small_alloc(width, 1),
              .valid = tess_small_alloc(samples, 1),
              .levels = tess_small_alloc(width, sizeof(float))};
    tess_status status = TESS_OK;
    file->map_levels = (tess_scale){1, 0};
    if (!b.map_samples || !b.samples || !b.map_valid || !b.valid || !b.levels)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to look at the noise levels");
    if (status == TESS_OK)
        status = tess_reader_open_axes(engine->memory, settings->sigma_map, map->axes, &b.map, error);
    if (status == TESS_OK)
        status = tess_denoise_open(engine->memory, file->input, file->axes, info->dtype, &b.image, error);
    for (int64_t y = 0; y < tess_denoise_rows(info) && status == TESS_OK; y++) {
        status = tess_stop_check(&engine->stop, error);
        if (status == TESS_OK)
            status = check_row(settings, file, &b, y, error);
    }
    if (status == TESS_OK)
        status = doubt_levels(settings, file, error);
    tess_reader_close(b.map);
    tess_reader_close(b.image);
    void *const parts[] = {b.map_samples, b.samples, b.map_valid, b.valid, b.levels};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        tess_small_free(parts[i]);
    return status;
}
