/* Measures the error of the noise estimate. Adds white noise to each image, estimates it, and prints a JSON line for
 * each image and level: the estimates for each channel and overall, in 255ths, and the seconds of the estimate.
 *
 *   noise_rates [--clip] [--features] SIGMA[,SIGMA...] IMAGE...      e.g. noise_rates 5,25,50 kodak24/\*.png
 *   noise_rates --photons COUNTS[,COUNTS...] IMAGE...
 *
 * --clip clips the noisy image to [0,1] and rounds it to 8 bits. --features prints the statistics that the formula in
 * src/tensor/noise_fit.c is fitted to, in place of the estimates. --gray uses the luma. --photons adds the noise of
 * so many counts at white instead: a normal value of the same variance, rounded to counts, which are not negative.
 * noise_study.py makes the table from these lines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "io/image.h"
#include "tensor/noise.h"
#include "tensor/samples.h"

static tess_memory counter;

static tess_error error;

static void need(tess_status status)
{
    if (status == TESS_OK)
        return;
    fprintf(stderr, "%s\n", error.text);
    exit(1);
}

static float *read_image(const char *path, bool gray, tess_noise_shape *shape)
{
    tess_reader *reader;
    need(tess_image_load_library(path, &error));
    need(tess_reader_open(&counter, path, &reader, &error));
    const tess_image_info *info = tess_reader_info(reader);
    *shape = (tess_noise_shape){.height = info->height, .width = info->width, .channels = info->channels};
    const int64_t count = info->height * info->width * info->channels;
    void *samples = malloc((size_t)count * 4);
    float *values = malloc((size_t)count * sizeof *values);
    if (!samples || !values)
        exit(1);
    need(tess_reader_rows(reader, info->height, samples, &error));
    tess_samples_to_float(info->dtype, info->full_scale, samples, count, values);
    if (gray && info->channels >= 3) {
        for (int64_t i = 0; i < info->height * info->width; i++) {
            const float *p = values + i * info->channels;
            values[i] = rintf(255 * (0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2])) / 255;
        }
        shape->channels = 1;
    }
    tess_reader_close(reader);
    free(samples);
    return values;
}

static void print_estimate(const tess_noise *noise, bool features)
{
    tess_noise_result result;
    if (!features)
        tess_noise_end(noise, &result);
    printf("\"channels\":[");
    for (int c = 0; c < noise->shape.channels; c++) {
        double f[TESS_NOISE_FEATURES];
        if (features) {
            printf("%s[%.6g", c ? "," : "", 255 * sqrt(tess_noise_features(noise, c, f)));
            for (int k = 0; k < TESS_NOISE_FEATURES; k++)
                printf(",%.5f", f[k]);
            printf("]");
        } else {
            const tess_noise_level *level = &result.channel[c];
            printf("%s{\"sigma\":%.4f,\"read\":%.4f,\"gain\":%.4g,\"confidence\":%d}", c ? "," : "",
                   255 * level->sigma, 255 * level->read, level->gain, (int)level->confidence);
        }
    }
    printf("]");
    if (!features)
        printf(",\"overall\":%.4f,\"confidence\":%d", 255 * result.sigma, (int)result.confidence);
}

static float photons(float clean, float normal, double counts)
{
    const double expected = counts * (double)clean;
    return (float)(fmax(rint(expected + (double)normal * sqrt(expected)), 0) / counts);
}

/* The root mean square of what is added. */
static double truth_of(const float *clean, const tess_noise_shape *shape, double level, bool counts)
{
    const int64_t count = shape->height * shape->width * shape->channels;
    double mean = 0;
    for (int64_t i = 0; i < count; i++)
        mean += (double)clean[i] / (double)count;
    return counts ? 255 * sqrt(mean / level) : level;
}

static void study(const char *path, const float *clean, const tess_noise_shape *shape, double sigma,
                  bool clip, bool features, bool counts, uint32_t item)
{
    const int64_t row = shape->width * shape->channels;
    void *memory = malloc(tess_noise_bytes(shape));
    float *values = malloc((size_t)row * sizeof *values);
    tess_noise noise;
    double seconds = 0;
    tess_noise_begin(&noise, shape, memory);
    for (int64_t y = 0; y < shape->height; y++) {
        tess_rng_normal((tess_rng_key){7, item, (uint32_t)(sigma * 16)}, y * row, row, values);
        for (int64_t i = 0; i < row; i++) {
            values[i] = counts ? photons(clean[y * row + i], values[i], sigma)
                               : clean[y * row + i] + values[i] * (float)(sigma / 255);
            if (clip)
                values[i] = rintf(255 * fminf(fmaxf(values[i], 0), 1)) / 255;
        }
        double start = tess_clock();
        tess_noise_row(&noise, values, NULL);
        seconds += tess_clock() - start;
    }
    printf("{\"image\":\"%s\",\"sigma\":%g,\"truth\":%g,\"clip\":%d,", path, sigma,
           truth_of(clean, shape, sigma, counts), (int)clip);
    double start = tess_clock();
    print_estimate(&noise, features);
    printf(",\"seconds\":%.4f}\n", seconds + tess_clock() - start);
    free(values), free(memory);
}

int main(int count, char **arguments)
{
    bool clip = false, features = false, gray = false, counts = false;
    int at = 1;
    for (; at < count && arguments[at][0] == '-'; at++) {
        clip |= strcmp(arguments[at], "--clip") == 0;
        features |= strcmp(arguments[at], "--features") == 0;
        counts |= strcmp(arguments[at], "--photons") == 0;
        gray |= strcmp(arguments[at], "--gray") == 0;
    }
    if (count - at < 2) {
        fprintf(stderr, "noise_rates [--clip] [--features] [--gray] [--photons] LEVEL[,LEVEL...] IMAGE...\n");
        return 2;
    }
    for (int i = at + 1; i < count; i++) {
        tess_noise_shape shape;
        float *clean = read_image(arguments[i], gray, &shape);
        for (char *text = arguments[at]; *text;) {
            char *end;
            double sigma = strtod(text, &end);
            if (end == text)
                break;
            study(arguments[i], clean, &shape, sigma, clip, features, counts, (uint32_t)i);
            text = *end == ',' ? end + 1 : end;
        }
        free(clean);
    }
    return 0;
}
