/* train_images.h: folders of small PNG files for the tests of training data. Needs _XOPEN_SOURCE. */
#ifndef TESS_TESTS_TRAIN_IMAGES_H
#define TESS_TESTS_TRAIN_IMAGES_H

#include <sys/stat.h>
#include <unistd.h>

#include "counter.h"
#include "folder.h"
#include "io/image.h"
#include "train/data_folder.h"

/* Writes height x width x channels samples, which are a function of place and `kind`. */
static inline void make_image(const char *name, int64_t height, int64_t width, int channels, tess_dtype dtype,
                              uint32_t kind)
{
    const tess_image_info info = {.height = height,
                                  .width = width,
                                  .channels = channels,
                                  .alpha = channels == 4,
                                  .dtype = dtype,
                                  .full_scale = dtype == TESS_U8    ? 255
                                                : dtype == TESS_U16 ? 65535
                                                                    : 1};
    const int64_t count = height * width * channels;
    unsigned char *samples = calloc((size_t)count, tess_dtype_size(dtype));
    for (int64_t i = 0; i < count; i++) {
        const uint32_t value = (uint32_t)i * 2654435761u + kind * 40503u;
        if (dtype == TESS_U8)
            samples[i] = (unsigned char)(value >> 24);
        else if (dtype == TESS_U16)
            ((uint16_t *)(void *)samples)[i] = (uint16_t)(value >> 16);
    }
    tess_writer *writer = NULL;
    tess_error error = {""};
    const bool good =
        tess_writer_open(&test_counter, in_folder(name), &info, NULL, &writer, &error) == TESS_OK &&
        tess_writer_rows(writer, height, samples, &error) == TESS_OK &&
        tess_writer_commit(writer, &error) == TESS_OK;
    CHECK_MSG(good, "%s", error.text);
    tess_writer_close(writer);
    free(samples);
}

/* Of different sizes and types, for crops of 16. */
static inline void make_four_images(void)
{
    make_image("c.png", 40, 33, 3, TESS_U8, 1);
    make_image("a.png", 24, 61, 3, TESS_U16, 2);
    make_image("b.png", 20, 17, 3, TESS_U8, 3); /* too small for scales below 1 */
    make_image("d.png", 30, 31, 4, TESS_U8, 4); /* with alpha */
}

/* Cuts the end of a file off. */
static inline void damage(const char *name)
{
    struct stat facts;
    CHECK(stat(in_folder(name), &facts) == 0 && truncate(in_folder(name), facts.st_size / 2) == 0);
}

static inline tess_folder_settings folder_settings(int channels, int64_t crop)
{
    static const char *const paths[] = {folder};
    tess_folder_settings s;
    tess_folder_defaults(&s);
    s.images.paths = paths;
    s.images.path_count = 1;
    s.images.channels = channels;
    s.images.memory = &test_counter;
    s.crop = crop;
    return s;
}

static inline tess_device *test_device(void)
{
    tess_device *device = NULL;
    tess_error error = {""};
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    return device;
}

static inline tess_source *open_folder(const tess_folder_settings *settings)
{
    tess_source *source = NULL;
    tess_error error = {""};
    CHECK_MSG(tess_folder_open(settings, &source, &error) == TESS_OK, "%s", error.text);
    if (!source)
        exit(1);
    return source;
}

static inline tess_data_queue *open_queue(const tess_data_settings *settings)
{
    tess_data_queue *queue = NULL;
    tess_error error = {""};
    CHECK_MSG(tess_data_open(settings, &queue, &error) == TESS_OK, "%s", error.text);
    if (!queue)
        exit(1);
    return queue;
}

#endif
