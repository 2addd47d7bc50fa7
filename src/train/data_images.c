#include "train/data_images.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/image.h"

enum { STRIP_ROWS = 16, ALIGNMENT = 64 }; /* rows that are decoded between two checks of `stop` */

struct tess_images {
    int channels;
    bool heights;
    tess_memory *memory;
    int64_t count, kept, links;
    tess_images_file *files;
    size_t kept_bytes, strip_bytes, reader_bytes; /* strip: of the largest file */
    tess_block block;
    pthread_mutex_t mutex; /* protects the states */
    pthread_cond_t loaded;
};

static size_t sample_bytes(const tess_images *images, const tess_images_file *file)
{
    return (size_t)images->channels * tess_dtype_size(file->dtype);
}

/* Checks that the network can take such an image. Messages get the file's name from the caller. */
static tess_status check_kind(const tess_image_info *info, tess_error *error)
{
    if (info->dtype != TESS_U8 && info->dtype != TESS_U16)
        return tess_fail(error, TESS_BAD_INPUT, "has %s samples; training takes images of 8 or 16 bits",
                         tess_dtype_word(info->dtype));
    if (info->depth > 0)
        return tess_fail(error, TESS_BAD_INPUT, "is a volume; training takes images");
    if (info->masked)
        return tess_fail(error, TESS_BAD_INPUT, "marks samples as void; training takes images without voids");
    return TESS_OK;
}

/* Files with other channels than the network are often many, such as the gray ones among photographs. */
typedef struct misfits {
    int64_t count;
    int colours;                /* of the first */
    const char *first, *second; /* not owned */
} misfits;

static tess_status refuse_misfits(const misfits *m, int channels, tess_error *error)
{
    char others[512] = "exclude it";
    if (m->count == 0)
        return TESS_OK;
    if (m->count > 1)
        snprintf(others, sizeof others,
                 "%lld other file%s do%s not fit either (the next is %.400s); exclude them",
                 (long long)(m->count - 1), m->count == 2 ? "" : "s", m->count == 2 ? "es" : "", m->second);
    return tess_fail(error, TESS_BAD_INPUT, "%s: has %d channel%s, but the network has %d; %s", m->first,
                     m->colours, m->colours == 1 ? "" : "s", channels, others);
}

static void compare_channels(const tess_images_file *file, int colours, int channels, misfits *m)
{
    if (colours == channels || (channels == 1 && colours == 3))
        return;
    if (m->count == 0)
        m->colours = colours;
    m->first = m->count == 0 ? file->path : m->first;
    m->second = m->count == 1 ? file->path : m->second;
    m->count++;
}

static tess_status describe(const tess_images *images, tess_images_file *file, misfits *m, tess_error *error)
{
    tess_reader *reader = NULL;
    if (images->heights)
        return tess_heights_describe(images->memory, file, error);
    TESS_TRY(tess_reader_open(images->memory, file->path, &reader, error));
    const tess_image_info *info = tess_reader_info(reader);
    tess_status status = check_kind(info, error);
    if (status == TESS_OK)
        compare_channels(file, info->channels - info->alpha, images->channels, m);
    file->height = info->height;
    file->width = info->width;
    file->channels = info->channels;
    file->dtype = info->dtype;
    file->held = info->held_bytes;
    size_t bytes;
    if (status == TESS_OK && (!tess_mul_size((size_t)info->height, (size_t)info->width, &bytes) ||
                              !tess_mul_size(bytes, 2 * (size_t)info->channels, &bytes)))
        status = tess_fail(error, TESS_BAD_INPUT, "is too large");
    tess_reader_close(reader);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, file->path);
}

/* Chooses the images that are kept, and sums up sizes. */
static void place(tess_images *images, size_t budget)
{
    for (int64_t i = 0; i < images->count; i++) {
        tess_images_file *file = &images->files[i];
        const size_t bytes = tess_align_size(
            (size_t)file->height * (size_t)file->width * sample_bytes(images, file), ALIGNMENT);
        const size_t strip =
            (size_t)tess_min_i64(STRIP_ROWS, file->height) * (size_t)file->width *
            (images->heights ? sizeof(double) : (size_t)file->channels * tess_dtype_size(file->dtype));
        if (tess_block_granted(images->kept_bytes + bytes) <= budget) {
            file->kept = true;
            file->at = images->kept_bytes;
            images->kept_bytes += bytes;
            images->kept++;
        }
        images->strip_bytes = strip > images->strip_bytes ? strip : images->strip_bytes;
        images->reader_bytes = file->held > images->reader_bytes ? file->held : images->reader_bytes;
    }
}

tess_status tess_images_open(const tess_images_settings *s, tess_images **out, tess_error *error)
{
    *out = NULL;
    tess_file_list list;
    TESS_TRY(tess_file_list_make(s, &list, error));
    tess_images *images = tess_small_alloc(1, sizeof *images);
    tess_images_file *files = tess_small_alloc((size_t)list.count, sizeof *files);
    if (!images || !files) {
        tess_small_free(images);
        tess_small_free(files);
        tess_file_list_free(&list);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of images");
    }
    images->channels = s->channels;
    images->heights = s->heights;
    images->memory = s->memory;
    images->files = files;
    images->count = list.count;
    images->links = list.links;
    pthread_mutex_init(&images->mutex, NULL);
    pthread_cond_init(&images->loaded, NULL);
    for (int64_t i = 0; i < list.count; i++)
        files[i].path = list.paths[i]; /* now owned by the file */
    list.count = 0;
    tess_file_list_free(&list);
    tess_status status = TESS_OK;
    misfits others = {0};
    for (int64_t i = 0; i < images->count && status == TESS_OK; i++)
        status = describe(images, &files[i], &others, error);
    if (status == TESS_OK)
        status = refuse_misfits(&others, images->channels, error);
    if (status != TESS_OK) {
        tess_images_close(images);
        return status;
    }
    for (int64_t i = 0; i < images->count; i++)
        tess_images_set_sum(s, &files[i]);
    place(images, s->budget);
    *out = images;
    return TESS_OK;
}

void tess_images_close(tess_images *images)
{
    if (!images)
        return;
    for (int64_t i = 0; i < images->count; i++)
        tess_small_free(images->files[i].path);
    tess_small_free(images->files);
    tess_block_free(&images->block);
    pthread_mutex_destroy(&images->mutex);
    pthread_cond_destroy(&images->loaded);
    tess_small_free(images);
}

int64_t tess_images_count(const tess_images *images)
{
    return images->count;
}

int64_t tess_images_links(const tess_images *images)
{
    return images->links;
}

const tess_images_file *tess_images_at(const tess_images *images, int64_t index)
{
    return &images->files[index];
}

size_t tess_images_kept_bytes(const tess_images *images, int64_t *count)
{
    if (count)
        *count = images->kept;
    return tess_block_granted(images->kept_bytes);
}

static size_t strip_room(const tess_images *images)
{
    return tess_align_size(images->strip_bytes, ALIGNMENT);
}

size_t tess_images_scratch_bytes(const tess_images *images, int64_t height, int64_t width)
{
    const bool all = images->kept == images->count; /* then views lie in the kept images */
    const size_t region = (size_t)height * (size_t)width * (size_t)images->channels *
                          (images->heights ? sizeof(float) : sizeof(uint16_t));
    return strip_room(images) + (all ? 0 : tess_align_size(region, ALIGNMENT));
}

size_t tess_images_reader_bytes(const tess_images *images)
{
    return images->reader_bytes;
}

tess_status tess_images_begin(tess_images *images, tess_error *error)
{
    if (images->block.data)
        return TESS_OK;
    return tess_block_alloc(images->memory, &images->block, TESS_MEM_HOST, images->kept_bytes, error);
}

/* Rounds to nearest, as the luma of an 8-bit file is 8-bit: 0.299 R + 0.587 G + 0.114 B (BT.601). */
#define TAKE_PIXELS(type)                                                                                    \
    for (int64_t x = 0; x < count; x++, row += step) {                                                       \
        const type *pixel = (const type *)from + row;                                                        \
        if (luma)                                                                                            \
            ((type *)to)[x] = (type)rint(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]);            \
        else                                                                                                 \
            for (int c = 0; c < images->channels; c++)                                                       \
                ((type *)to)[x * images->channels + c] = pixel[c];                                           \
    }

/* Copies `count` pixels of a file's row, from column x0 on, without alpha. */
static void take_pixels(const tess_images *images, const tess_images_file *file, const void *from, int64_t x0,
                        int64_t count, void *to)
{
    const int64_t step = file->channels;
    const bool luma = images->channels == 1 && step >= 3;
    int64_t row = x0 * step;
    if (!luma && step == images->channels)
        memcpy(to, (const char *)from + (size_t)row * tess_dtype_size(file->dtype),
               (size_t)(count * step) * tess_dtype_size(file->dtype));
    else if (file->dtype == TESS_U8)
        TAKE_PIXELS(uint8_t)
    else
        TAKE_PIXELS(uint16_t)
}

/* Decodes the file down to the end of the rectangle, and stores the rectangle densely. */
static tess_status decode(const tess_images *images, const tess_images_file *file, tess_rect rect,
                          void *strip, char *to, tess_stop *stop, tess_error *error)
{
    tess_reader *reader = NULL;
    if (images->heights)
        return tess_heights_read(images->memory, file, rect, STRIP_ROWS, strip, (float *)(void *)to, stop,
                                 error);
    TESS_TRY(tess_reader_open(images->memory, file->path, &reader, error));
    const tess_image_info *info = tess_reader_info(reader);
    const size_t in_row = (size_t)file->width * (size_t)file->channels * tess_dtype_size(file->dtype);
    const size_t out_row = (size_t)rect.width * sample_bytes(images, file);
    tess_status status = TESS_OK;
    if (info->height != file->height || info->width != file->width || info->channels != file->channels ||
        info->dtype != file->dtype)
        status = tess_fail(error, TESS_BAD_INPUT, "%s: was changed after the run began", file->path);
    for (int64_t y = 0, rows; y < rect.y + rect.height && status == TESS_OK; y += rows) {
        rows = tess_min_i64(STRIP_ROWS, rect.y + rect.height - y);
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_reader_rows(reader, rows, strip, error);
        for (int64_t r = tess_max_i64(rect.y - y, 0); r < rows && status == TESS_OK; r++, to += out_row)
            take_pixels(images, file, (const char *)strip + (size_t)r * in_row, rect.x, rect.width, to);
    }
    tess_reader_close(reader);
    return status;
}

/* Loads a kept image once. Threads that need it meanwhile wait. */
static tess_status load(tess_images *images, tess_images_file *file, void *strip, tess_stop *stop,
                        tess_error *error)
{
    pthread_mutex_lock(&images->mutex);
    while (file->state == TESS_IMAGE_LOADING)
        pthread_cond_wait(&images->loaded, &images->mutex); /* the loading thread polls its stop */
    const bool ready = file->state == TESS_IMAGE_READY;
    if (!ready)
        file->state = TESS_IMAGE_LOADING;
    pthread_mutex_unlock(&images->mutex);
    if (ready)
        return TESS_OK;
    const tess_rect whole = {0, 0, file->height, file->width};
    const tess_status status =
        decode(images, file, whole, strip, (char *)images->block.data + file->at, stop, error);
    pthread_mutex_lock(&images->mutex);
    file->state = status == TESS_OK ? TESS_IMAGE_READY : TESS_IMAGE_EMPTY;
    pthread_cond_broadcast(&images->loaded);
    pthread_mutex_unlock(&images->mutex);
    return status;
}

tess_status tess_images_view(tess_images *images, int64_t index, tess_rect rect, void *scratch,
                             tess_stop *stop, tess_view *view, tess_error *error)
{
    tess_images_file *file = &images->files[index];
    if (file->kept) {
        TESS_TRY(load(images, file, scratch, stop, error));
        const size_t at = (size_t)(rect.y * file->width + rect.x) * sample_bytes(images, file);
        *view = (tess_view){(char *)images->block.data + file->at + at, file->width * images->channels,
                            file->dtype};
        return TESS_OK;
    }
    char *region = (char *)scratch + strip_room(images);
    TESS_TRY(decode(images, file, rect, scratch, region, stop, error));
    *view = (tess_view){region, rect.width * images->channels, file->dtype};
    return TESS_OK;
}
