#include "train/data_validation.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "tensor/quality.h"
#include "tensor/samples.h"

enum { ALIGNMENT = 64 };

struct tess_validation {
    tess_validation_settings settings;
    tess_images *images;
    int64_t height, width;           /* of the largest arrays */
    int64_t file_height, file_width; /* of the largest part of a file that is read */
    tess_block block;                /* scratch of the images, clean, noisy */
    float *clean, *noisy;
    int64_t next; /* image * levels + level */
    tess_validation_item item;
    double sum[TESS_VALIDATION_LEVELS];
    int64_t count[TESS_VALIDATION_LEVELS];
};

/* Rows or columns of a file that are compared, and those of the arrays. */
static int64_t kept_size(const tess_validation *v, int64_t size)
{
    return v->settings.cropped ? size / v->settings.grid * v->settings.grid : size;
}

static int64_t array_size(const tess_validation *v, int64_t size)
{
    return tess_round_up(kept_size(v, size), v->settings.grid);
}

static int noisy_channels(const tess_validation *v)
{
    return v->settings.images.channels + v->settings.level_channel;
}

static size_t array_room(const tess_validation *v, int channels)
{
    return tess_align_size((size_t)(v->height * v->width * channels) * sizeof(float), ALIGNMENT);
}

static size_t block_bytes(const tess_validation *v)
{
    return tess_images_scratch_bytes(v->images, v->file_height, v->file_width) +
           array_room(v, v->settings.images.channels) + array_room(v, noisy_channels(v));
}

const tess_images *tess_validation_images(const tess_validation *v)
{
    return v->images;
}

size_t tess_validation_bytes(const tess_validation *v)
{
    return tess_images_kept_bytes(v->images, NULL) + tess_block_granted(block_bytes(v)) +
           tess_images_reader_bytes(v->images);
}

void tess_validation_largest(const tess_validation *v, int64_t *height, int64_t *width)
{
    *height = v->height;
    *width = v->width;
}

int64_t tess_validation_count(const tess_validation *v)
{
    return tess_images_count(v->images) * v->settings.levels;
}

static tess_status check_settings(const tess_validation_settings *s, tess_error *error)
{
    if (s->levels < 1 || s->levels > TESS_VALIDATION_LEVELS)
        return tess_fail(error, TESS_BAD_OPTION, "%d noise levels for validation: use 1 to %d", s->levels,
                         TESS_VALIDATION_LEVELS);
    for (int i = 0; i < s->levels; i++)
        if (!(s->level[i] >= 0 && s->level[i] <= 10))
            return tess_fail(error, TESS_BAD_OPTION, "a noise level of %g for validation: use 0 to 1",
                             s->level[i]);
    return TESS_OK;
}

static tess_status find_sizes(tess_validation *v, tess_error *error)
{
    for (int64_t i = 0; i < tess_images_count(v->images); i++) {
        const tess_images_file *file = tess_images_at(v->images, i);
        if (kept_size(v, file->height) == 0 || kept_size(v, file->width) == 0)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: has %lld x %lld pixels (width x height), fewer than the network's grid of "
                             "%lld; exclude it",
                             file->path, (long long)file->width, (long long)file->height,
                             (long long)v->settings.grid);
        v->file_height = tess_max_i64(v->file_height, kept_size(v, file->height));
        v->file_width = tess_max_i64(v->file_width, kept_size(v, file->width));
        v->height = tess_max_i64(v->height, array_size(v, file->height));
        v->width = tess_max_i64(v->width, array_size(v, file->width));
    }
    return TESS_OK;
}

tess_status tess_validation_open(const tess_validation_settings *settings, tess_validation **out,
                                 tess_error *error)
{
    *out = NULL;
    TESS_TRY(check_settings(settings, error));
    tess_validation *v = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for validation");
    v->settings = *settings;
    v->settings.images.paths = v->settings.images.exclude = NULL; /* the caller's */
    v->settings.grid = tess_max_i64(settings->grid, 1);
    tess_status status = tess_images_open(&settings->images, &v->images, error);
    if (status == TESS_OK)
        status = find_sizes(v, error);
    if (status != TESS_OK) {
        tess_validation_close(v);
        return status;
    }
    *out = v;
    return TESS_OK;
}

void tess_validation_close(tess_validation *v)
{
    if (!v)
        return;
    tess_images_close(v->images);
    tess_block_free(&v->block);
    tess_small_free(v);
}

tess_status tess_validation_begin(tess_validation *v, tess_error *error)
{
    TESS_TRY(tess_images_begin(v->images, error));
    if (!v->block.data)
        TESS_TRY(
            tess_block_alloc(v->settings.images.memory, &v->block, TESS_MEM_HOST, block_bytes(v), error));
    char *at = (char *)v->block.data + tess_images_scratch_bytes(v->images, v->file_height, v->file_width);
    v->clean = (float *)(void *)at;
    v->noisy = (float *)(void *)(at + array_room(v, v->settings.images.channels));
    v->next = 0;
    memset(v->sum, 0, sizeof v->sum);
    memset(v->count, 0, sizeof v->count);
    return TESS_OK;
}

/* Repeats the last pixel of a row up to the array's width. */
static void pad_row(float *row, int64_t kept, int64_t width, int channels)
{
    for (int64_t i = kept * channels; i < width * channels; i++)
        row[i] = row[i - channels];
}

static tess_status load_clean(tess_validation *v, tess_stop *stop, tess_error *error)
{
    const tess_validation_item *item = &v->item;
    const tess_rect rect = {0, 0, item->kept_rows, item->kept_cols};
    const int64_t row = item->width * item->channels;
    tess_view view;
    TESS_TRY(tess_images_view(v->images, item->image, rect, v->block.data, stop, &view, error));
    for (int64_t y = 0; y < item->kept_rows; y++) {
        tess_samples_to_float(view.dtype, tess_samples_full_scale(view.dtype),
                              (const char *)view.data +
                                  (size_t)(y * view.stride) * tess_dtype_size(view.dtype),
                              item->kept_cols * item->channels, v->clean + y * row);
        pad_row(v->clean + y * row, item->kept_cols, item->width, item->channels);
    }
    for (int64_t y = item->kept_rows; y < item->height; y++)
        memcpy(v->clean + y * row, v->clean + (y - 1) * row, (size_t)row * sizeof(float));
    return TESS_OK;
}

/* Noise goes to where the noisy row will be, then moves apart for the level, from the end on. */
static void noisy_row(void *arg, int64_t y, int thread)
{
    (void)thread;
    const tess_validation *v = arg;
    const tess_validation_item *item = &v->item;
    const int64_t count = item->kept_cols * item->channels;
    const int64_t width = tess_images_at(v->images, item->image)->width;
    const float level = (float)item->deviation, *clean = v->clean + y * item->width * item->channels;
    float *row = v->noisy + y * item->width * item->noisy_channels;
    const tess_rng_key key = {v->settings.seed, (uint32_t)item->image, 0};
    tess_rng_normal(key, y * width * item->channels, count, row);
    for (int64_t i = 0; i < count; i++)
        row[i] = clean[i] + level * row[i];
    if (v->settings.level_channel)
        for (int64_t x = item->kept_cols - 1; x >= 0; x--) {
            memmove(row + x * item->noisy_channels, row + x * item->channels,
                    (size_t)item->channels * sizeof(float));
            row[x * item->noisy_channels + item->channels] = level;
        }
    pad_row(row, item->kept_cols, item->width, item->noisy_channels);
}

static void make_noisy(tess_validation *v)
{
    const tess_validation_item *item = &v->item;
    const int64_t row = item->width * item->noisy_channels;
    if (v->settings.pool)
        tess_pool_run(v->settings.pool, item->kept_rows, noisy_row, v);
    else
        for (int64_t y = 0; y < item->kept_rows; y++)
            noisy_row(v, y, 0);
    for (int64_t y = item->kept_rows; y < item->height; y++)
        memcpy(v->noisy + y * row, v->noisy + (y - 1) * row, (size_t)row * sizeof(float));
}

tess_status tess_validation_next(tess_validation *v, tess_stop *stop, tess_validation_item *item, bool *more,
                                 tess_error *error)
{
    *more = v->next < tess_validation_count(v);
    if (!*more)
        return TESS_OK;
    const int64_t image = v->next / v->settings.levels;
    const int level = (int)(v->next % v->settings.levels);
    const tess_images_file *file = tess_images_at(v->images, image);
    v->item = (tess_validation_item){.path = file->path,
                                     .image = image,
                                     .level = level,
                                     .deviation = v->settings.level[level],
                                     .height = array_size(v, file->height),
                                     .width = array_size(v, file->width),
                                     .kept_rows = kept_size(v, file->height),
                                     .kept_cols = kept_size(v, file->width),
                                     .channels = v->settings.images.channels,
                                     .noisy_channels = noisy_channels(v),
                                     .clean = v->clean,
                                     .noisy = v->noisy};
    if (level == 0)
        TESS_TRY(load_clean(v, stop, error));
    make_noisy(v);
    TESS_TRY(tess_stop_check(stop, error));
    v->next++;
    *item = v->item;
    return TESS_OK;
}

double tess_validation_add(tess_validation *v, const float *result)
{
    const tess_validation_item *item = &v->item;
    const int64_t row = item->width * item->channels;
    tess_quality quality;
    /* A row counts as one pixel of many channels, because SSIM, which needs neighbours, is not wanted. */
    tess_quality_begin(&quality, 1, item->kept_cols * item->channels, NULL);
    for (int64_t y = 0; y < item->kept_rows; y++)
        tess_quality_row(&quality, result + y * row, v->clean + y * row);
    const double psnr = tess_quality_psnr(&quality);
    v->sum[item->level] += psnr;
    v->count[item->level]++;
    return psnr;
}

double tess_validation_psnr(const tess_validation *v, int level)
{
    double sum = 0;
    int64_t count = 0;
    for (int i = 0; i < v->settings.levels; i++)
        if (level < 0 || level == i) {
            sum += v->sum[i];
            count += v->count[i];
        }
    return count > 0 ? sum / (double)count : NAN;
}
