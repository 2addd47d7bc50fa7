/* The source of crops with noise: settings, memory and the checks of sizes. Scaled crops are computed when they are
 * drawn: that takes a fraction of a millisecond and no memory, whereas copies of the images at all scales would take
 * twice the memory of the images. */
#include "train/data_folder_impl.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "train/data_resize.h"

enum { ALIGNMENT = 64 };
static const double SMALLEST_SCALE = 0.05, LARGEST_SCALE = 4;

void tess_folder_defaults(tess_folder_settings *s)
{
    *s = (tess_folder_settings){.images = {.channels = 3, .budget = (size_t)4 << 30},
                                .crop = 128,
                                .scales = 4,
                                .scale = {1, 0.9, 0.8, 0.7},
                                .share = {0.55, 0.15, 0.15, 0.15},
                                .high = 0.2};
}

const tess_images *tess_folder_images(const tess_source *source)
{
    return ((const tess_folder *)source)->images;
}

size_t tess_folder_images_room(const tess_folder *f)
{
    return tess_images_scratch_bytes(f->images, f->reach, f->reach);
}

size_t tess_folder_resize_room(const tess_folder *f)
{
    const int64_t floats = tess_resize_scratch(f->settings.crop, f->reach, f->settings.images.channels);
    return tess_align_size((size_t)floats * sizeof(float), ALIGNMENT);
}

static size_t crop_room(const tess_folder *f)
{
    const int64_t crop = f->settings.crop;
    return tess_align_size((size_t)(crop * crop * f->settings.images.channels) * sizeof(float), ALIGNMENT);
}

size_t tess_folder_worker_room(const tess_folder *f)
{
    return tess_folder_images_room(f) + tess_folder_resize_room(f) + crop_room(f);
}

static size_t folder_bytes(const tess_source *source, int workers)
{
    const tess_folder *f = (const tess_folder *)source;
    return tess_images_kept_bytes(f->images, NULL) +
           tess_block_granted((size_t)workers * tess_folder_worker_room(f)) +
           (size_t)workers * tess_images_reader_bytes(f->images);
}

static tess_status folder_begin(tess_source *source, int workers, tess_error *error)
{
    tess_folder *f = (tess_folder *)source;
    TESS_TRY(tess_images_begin(f->images, error));
    if (f->workers == workers)
        return TESS_OK;
    tess_block_free(&f->scratch);
    f->workers = 0;
    TESS_TRY(tess_block_alloc(f->settings.images.memory, &f->scratch, TESS_MEM_HOST,
                              (size_t)workers * tess_folder_worker_room(f), error));
    f->workers = workers;
    return TESS_OK;
}

static void folder_close(tess_source *source)
{
    tess_folder *f = (tess_folder *)source;
    tess_images_close(f->images);
    tess_block_free(&f->scratch);
    tess_small_free(f);
}

static const tess_source_table folder_table = {.name = "folder",
                                               .bytes = folder_bytes,
                                               .begin = folder_begin,
                                               .draw = tess_folder_draw,
                                               .close = folder_close};

static tess_status check_settings(const tess_folder_settings *s, tess_error *error)
{
    double shares = 0;
    if (s->crop < 1 || s->crop > 1 << 14)
        return tess_fail(error, TESS_BAD_OPTION, "a crop of %lld: use 1 to %d", (long long)s->crop, 1 << 14);
    if (s->images.channels < 1)
        return tess_fail(error, TESS_BAD_OPTION, "%d channels: use at least 1", s->images.channels);
    if (s->scales < 1 || s->scales > TESS_FOLDER_SCALES)
        return tess_fail(error, TESS_BAD_OPTION, "%d scales: use 1 to %d", s->scales, TESS_FOLDER_SCALES);
    for (int i = 0; i < s->scales; i++) {
        if (!(s->scale[i] >= SMALLEST_SCALE && s->scale[i] <= LARGEST_SCALE))
            return tess_fail(error, TESS_BAD_OPTION, "a scale of %g: use %g to %g", s->scale[i],
                             SMALLEST_SCALE, LARGEST_SCALE);
        if (!(s->share[i] >= 0 && s->share[i] <= 1e6))
            return tess_fail(error, TESS_BAD_OPTION, "a share of %g for scale %g: use 0 to 1", s->share[i],
                             s->scale[i]);
        shares += s->share[i];
    }
    if (!(shares > 0))
        return tess_fail(error, TESS_BAD_OPTION, "the shares of all scales are 0");
    if (s->levels < 0 || s->levels > TESS_FOLDER_LEVELS)
        return tess_fail(error, TESS_BAD_OPTION, "%d noise levels: use at most %d", s->levels,
                         TESS_FOLDER_LEVELS);
    for (int i = 0; i < s->levels; i++)
        if (!(s->level[i] >= 0 && s->level[i] <= 10))
            return tess_fail(error, TESS_BAD_OPTION, "a noise level of %g: use 0 to 1", s->level[i]);
    if (s->levels == 0 && !(s->low >= 0 && s->low <= s->high && s->high <= 10))
        return tess_fail(error, TESS_BAD_OPTION,
                         "noise levels from %g to %g: use 0 to 1, the lower one first", s->low, s->high);
    return TESS_OK;
}

static tess_status refuse_small(const tess_images_file *image, double best, int64_t crop, int64_t others,
                                const char *next, tess_error *error)
{
    char more[480] = "";
    if (others > 0)
        snprintf(more, sizeof more, "; %lld other file%s too small as well (the next is %.400s)",
                 (long long)others, others == 1 ? " is" : "s are", next);
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: has %lld x %lld pixels (width x height), at most %g times that when scaled, "
                     "but a crop has %lld x %lld%s; exclude %s or use smaller crops",
                     image->path, (long long)image->width, (long long)image->height, best, (long long)crop,
                     (long long)crop, more, others > 0 ? "them" : "it");
}

/* Refuses images that are too small, and finds the largest reach of a crop. */
static tess_status check_sizes(tess_folder *f, tess_error *error)
{
    const int64_t crop = f->settings.crop;
    const tess_images_file *small = NULL, *next = NULL;
    int64_t count = 0;
    double best = 0;
    f->reach = crop;
    for (int64_t i = 0; i < tess_images_count(f->images); i++) {
        const tess_images_file *image = tess_images_at(f->images, i);
        bool any = false;
        for (int k = 0; k < f->settings.scales; k++) {
            if (f->settings.share[k] == 0)
                continue;
            best = fmax(best, f->settings.scale[k]);
            if (!tess_folder_usable(f, image, k))
                continue;
            any = true;
            f->reach = tess_max_i64(
                f->reach,
                tess_max_i64(tess_resize_reach(image->height, tess_folder_scaled(f, image->height, k), crop),
                             tess_resize_reach(image->width, tess_folder_scaled(f, image->width, k), crop)));
        }
        if (!any) {
            small = count == 0 ? image : small;
            next = count == 1 ? image : next;
            count++;
        }
    }
    return count == 0 ? TESS_OK : refuse_small(small, best, crop, count - 1, next ? next->path : "", error);
}

tess_status tess_folder_open(const tess_folder_settings *s, tess_source **out, tess_error *error)
{
    *out = NULL;
    TESS_TRY(check_settings(s, error));
    tess_folder *f = tess_small_alloc(1, sizeof *f);
    if (!f)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a source of samples");
    f->settings = *s;
    f->settings.images.paths = f->settings.images.exclude = NULL; /* the caller's */
    f->source.table = &folder_table;
    tess_status status = tess_images_open(&s->images, &f->images, error);
    if (status == TESS_OK)
        status = check_sizes(f, error);
    if (status != TESS_OK) {
        folder_close(&f->source);
        return status;
    }
    const int channels = s->images.channels;
    f->source.items = tess_images_count(f->images);
    f->source.images = f->images;
    f->source.arrays = s->host_noise ? 3 : 2;
    f->source.role[TESS_FOLDER_CLEAN] = TESS_DATA_TARGET;
    f->source.role[TESS_FOLDER_NOISE] = TESS_DATA_NOISE_TABLE;
    f->source.role[TESS_FOLDER_NOISY] = TESS_DATA_INPUT;
    f->source.array[TESS_FOLDER_CLEAN] = tess_tensor_2d(TESS_F32, 1, s->crop, s->crop, channels);
    f->source.array[TESS_FOLDER_NOISE] = tess_tensor_2d(TESS_F64, 1, 1, 1, 4);
    if (s->host_noise)
        f->source.array[TESS_FOLDER_NOISY] =
            tess_tensor_2d(TESS_F32, 1, s->crop, s->crop, channels + s->level_channel);
    *out = &f->source;
    return TESS_OK;
}
