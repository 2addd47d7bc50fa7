/* library_images.h: for tests of the library on images in memory: a test image, handles, and the same image through the
 * denoise job on NPY files. */
#ifndef TESS_TESTS_LIBRARY_IMAGES_H
#define TESS_TESTS_LIBRARY_IMAGES_H

#include <stdint.h>
#include <unistd.h>

#include "check.h"
#include "tessera.h"

typedef struct handles {
    tess_context *context;
    tess_device *device;
    tess_model *model;
} handles;

static inline handles open_handles(const char *model, int threads)
{
    handles h = {0};
    if (tess_context_create(&h.context) != TESS_OK)
        abort();
    tess_device_settings device;
    tess_device_settings_init(&device);
    device.device = "cpu";
    device.threads = threads;
    tess_model_settings settings;
    tess_model_settings_init(&settings);
    settings.name = model;
    if (tess_device_open(h.context, &device, &h.device) != TESS_OK ||
        tess_model_load(h.device, &settings, &h.model) != TESS_OK) {
        fprintf(stderr, "%s\n", tess_context_error(h.context));
        abort();
    }
    return h;
}

static inline void close_handles(handles *h)
{
    tess_model_release(h->model);
    tess_device_close(h->device);
    tess_context_destroy(h->context);
}

/* Waves, edges and some noise, in [0, 1]. */
static inline void draw(float *values, int64_t height, int64_t width, int64_t channels, uint32_t seed)
{
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < channels; c++) {
                seed = seed * 1664525u + 1013904223u;
                const float noise = ((float)(seed >> 8) / 16777216.0f - 0.5f) * 0.2f;
                const float wave = 0.5f + 0.3f * sinf(0.11f * (float)x + 0.07f * (float)(y * (c + 1)));
                const float v = ((x / 16 + y / 24) % 2 ? wave : 0.7f * wave + 0.1f) + noise;
                *values++ = v < 0 ? 0 : v > 1 ? 1 : v;
            }
}

/* Of two or three axes: the third size may be 0. */
static inline void write_npy(const char *path, const char *type, size_t size, const int64_t dims[3],
                             const void *data)
{
    char third[32] = "";
    if (dims[2])
        snprintf(third, sizeof third, ", %lld", (long long)dims[2]);
    char dict[256], header[512];
    const int length =
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%lld, %lld%s), }",
                 type, (long long)dims[0], (long long)dims[1], third);
    const int padded = (length + 1 + 10 + 63) / 64 * 64 - 10;
    snprintf(header, sizeof header, "%-*s\n", padded - 1, dict);
    FILE *file = fopen(path, "wb");
    const unsigned char magic[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    const size_t count = (size_t)(dims[0] * dims[1] * (dims[2] ? dims[2] : 1));
    if (!file || fwrite(magic, 1, 10, file) != 10 ||
        fwrite(header, 1, (size_t)padded, file) != (size_t)padded ||
        fwrite(data, size, count, file) != count || fclose(file) != 0)
        abort();
}

static inline void read_npy(const char *path, size_t bytes, void *data)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, -(long)bytes, SEEK_END) != 0 || fread(data, 1, bytes, file) != bytes)
        abort();
    fclose(file);
}

/* The denoise job on the same image: what the program does. */
static inline void denoise_files(const tess_denoiser_settings *plan, const char *model, const char *type,
                                 size_t size, const void *in, void *out, double sigma)
{
    char folder[] = "/tmp/tessera_library_XXXXXX", from[64], to[64];
    if (!mkdtemp(folder))
        abort();
    snprintf(from, sizeof from, "%s/in.npy", folder);
    snprintf(to, sizeof to, "%s/out.npy", folder);
    write_npy(from, type, size, (const int64_t[]){plan->height, plan->width, plan->channels}, in);
    tess_context *context = NULL;
    if (tess_context_create(&context) != TESS_OK)
        abort();
    tess_denoise_settings s;
    tess_denoise_settings_init(&s);
    s.common.device = "cpu";
    s.input = from;
    s.output = to;
    s.model = model;
    s.sigma = sigma;
    s.axes = "HWC";
    s.range = plan->range_high > plan->range_low ? TESS_RANGE_GIVEN : TESS_RANGE_TYPE;
    s.range_low = plan->range_low;
    s.range_high = plan->range_high;
    s.tile_height = plan->tile_height;
    s.tile_width = plan->tile_width;
    s.halo = plan->halo;
    s.batch = plan->batch;
    char *record = NULL;
    const tess_status status = tess_denoise(context, &s, &record);
    CHECK_MSG(status == TESS_OK, "%s", tess_context_error(context));
    if (status == TESS_OK)
        read_npy(to, (size_t)(plan->height * plan->width * plan->channels) * size, out);
    tess_record_free(record);
    tess_context_destroy(context);
    unlink(from);
    unlink(to);
    rmdir(folder);
}

#endif
