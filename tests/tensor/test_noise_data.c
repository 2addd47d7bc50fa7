/* test_noise_data.c: the blind noise estimate on real images is within 10 % of the added noise. Needs TESSERA_DATA.
 * Uses every fourth image of bsd68 and every sixth of kodak24, including those with the fewest smooth areas. */
#define _POSIX_C_SOURCE 200809L
#include "counter.h"
#include "io/image.h"
#include "support.h"
#include "tensor/noise.h"
#include "tensor/samples.h"

static double estimate(const tess_image_info *info, const float *clean, double sigma, bool clip)
{
    const tess_noise_shape shape = {.height = info->height, .width = info->width, .channels = info->channels};
    const int64_t row = info->width * info->channels;
    void *memory = room(tess_noise_bytes(&shape));
    float *values = room((size_t)row * sizeof *values);
    tess_noise noise;
    tess_noise_result result;
    tess_noise_begin(&noise, &shape, memory);
    for (int64_t y = 0; y < info->height; y++) {
        tess_rng_normal((tess_rng_key){3, (uint32_t)(255 * sigma), 0}, y * row, row, values);
        for (int64_t i = 0; i < row; i++) {
            values[i] = clean[y * row + i] + values[i] * (float)sigma;
            if (clip)
                values[i] = rintf(255 * fminf(fmaxf(values[i], 0), 1)) / 255;
        }
        tess_noise_row(&noise, values, NULL);
    }
    tess_noise_end(&noise, &result);
    free(values), free(memory);
    return result.sigma;
}

static void test_image(const char *path)
{
    static const double sigmas[] = {5, 25, 50};
    tess_reader *reader;
    tess_error error = {{0}};
    const bool open = tess_reader_open(&test_counter, path, &reader, &error) == TESS_OK;
    CHECK_MSG(open, "%s", error.text);
    if (!open)
        return;
    const tess_image_info *info = tess_reader_info(reader);
    const int64_t count = info->height * info->width * info->channels;
    void *samples = room((size_t)count * 4);
    float *clean = room((size_t)count * sizeof *clean);
    CHECK_MSG(tess_reader_rows(reader, info->height, samples, &error) == TESS_OK, "%s", error.text);
    tess_samples_to_float(info->dtype, info->full_scale, samples, count, clean);
    for (int i = 0; i < 3; i++)
        for (int clip = 0; clip < 2; clip++) {
            double got = 255 * estimate(info, clean, sigmas[i] / 255, clip);
            CHECK_MSG(fabs(got / sigmas[i] - 1) <= 0.1, "%s, %s: %g, should be %g", path,
                      clip ? "clipped to 8 bits" : "float", got, sigmas[i]);
        }
    tess_reader_close(reader);
    free(samples), free(clean);
}

int main(void)
{
    static const int gray[] = {1, 5, 9, 12, 17, 21, 25, 29, 31, 36, 41, 45, 49, 53, 57, 61, 67};
    static const int colour[] = {5, 8, 13, 18};
    const char *data = getenv("TESSERA_DATA");
    char path[4096];
    if (!data || !*data)
        return check_skip("TESSERA_DATA names no folder; set it to one with bsd68 and kodak24");
    for (size_t i = 0; i < sizeof gray / sizeof *gray; i++) {
        snprintf(path, sizeof path, "%s/bsd68/test%03d.png", data, gray[i]);
        test_image(path);
    }
    for (size_t i = 0; i < sizeof colour / sizeof *colour; i++) {
        snprintf(path, sizeof path, "%s/kodak24/kodim%02d.png", data, colour[i]);
        test_image(path);
    }
    return check_end();
}
