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

void tess_image_init(tess_image *image, void *data, tess_element element, int64_t height, int64_t width,
                     int64_t channels)
{
    if (image)
        *image = (tess_image){.size = sizeof *image,
                              .data = data,
                              .element = element,
                              .depth = 1,
                              .height = height,
                              .width = width,
                              .channels = channels,
                              .stride_depth = height * width * channels,
                              .stride_height = width * channels,
                              .stride_width = channels,
                              .stride_channel = 1};
}

void tess_device_settings_init(tess_device_settings *settings)
{
    if (settings)
        *settings = (tess_device_settings){.size = sizeof *settings, .device = "auto"};
}

void tess_model_settings_init(tess_model_settings *settings)
{
    if (settings)
        *settings = (tess_model_settings){
            .size = sizeof *settings, .name = "drunet-color-small", .precision = "auto"};
}

void tess_denoiser_settings_init(tess_denoiser_settings *settings)
{
    if (settings)
        *settings = (tess_denoiser_settings){.size = sizeof *settings,
                                             .depth = 1,
                                             .channels = 1,
                                             .element = TESS_ELEMENT_F32,
                                             .halo = TESS_HALO_AUTO};
}

void tess_bytes_init(tess_bytes *bytes)
{
    if (bytes)
        *bytes = (tess_bytes){.size = sizeof *bytes};
}

void tess_bytes_give(const tess_bytes *answer, tess_bytes *bytes)
{
    const size_t size = bytes->size && bytes->size < sizeof *answer ? bytes->size : sizeof *answer;
    memcpy(bytes, answer, size);
    bytes->size = size;
}
