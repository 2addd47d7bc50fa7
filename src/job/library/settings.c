/* Defaults of the structs of tessera.h, and conversion of structs from callers that were compiled with another
 * version of it. */
#include <string.h>

#include "job/library/library.h"

enum { MOST_SIZE = 4096 }; /* upper bound for any struct of any version */

bool tess_struct_take(void *to, size_t to_size, const void *from)
{
    size_t size;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > MOST_SIZE)
        return false;
    memcpy(to, from, size < to_size ? size : to_size);
    memcpy(to, &to_size, sizeof to_size);
    return true;
}

void tess_struct_give(void *to, size_t to_size, const void *from, size_t from_size)
{
    const size_t size = to_size < from_size ? to_size : from_size;
    if (!to || size < sizeof size)
        return;
    memcpy(to, from, size);
    memcpy(to, &size, sizeof size);
}

void tess_image_fill(tess_image *image, size_t size, void *data, tess_element element, int64_t height,
                     int64_t width, int64_t channels)
{
    const tess_image dense = {.data = data,
                              .element = element,
                              .depth = 1,
                              .height = height,
                              .width = width,
                              .channels = channels,
                              .stride_depth = height * width * channels,
                              .stride_height = width * channels,
                              .stride_width = channels,
                              .stride_channel = 1};
    tess_struct_give(image, size, &dense, sizeof dense);
}

void tess_device_settings_fill(tess_device_settings *settings, size_t size)
{
    const tess_device_settings usual = {.device = "auto"};
    tess_struct_give(settings, size, &usual, sizeof usual);
}

void tess_model_settings_fill(tess_model_settings *settings, size_t size)
{
    const tess_model_settings usual = {.name = "drunet-color-small", .precision = "auto"};
    tess_struct_give(settings, size, &usual, sizeof usual);
}

void tess_denoiser_settings_fill(tess_denoiser_settings *settings, size_t size)
{
    const tess_denoiser_settings usual = {
        .depth = 1, .channels = 1, .element = TESS_ELEMENT_F32, .halo = TESS_HALO_AUTO};
    tess_struct_give(settings, size, &usual, sizeof usual);
}

void tess_bytes_fill(tess_bytes *bytes, size_t size)
{
    const tess_bytes none = {0};
    tess_struct_give(bytes, size, &none, sizeof none);
}

void tess_bytes_give(const tess_bytes *answer, tess_bytes *bytes)
{
    const size_t size = bytes->size && bytes->size < sizeof *answer ? bytes->size : sizeof *answer;
    memcpy(bytes, answer, size);
    bytes->size = size;
}
