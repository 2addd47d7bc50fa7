/* pixel_arrays.h: sets of small images in memory, and a pipeline fitted to them and run on them. */
#ifndef TESS_TESTS_PIXEL_ARRAYS_H
#define TESS_TESTS_PIXEL_ARRAYS_H

#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "train/statistics/decide.h"
#include "train/statistics/statistics.h"

enum { ARRAY_IMAGES = 8 };

typedef struct pixel_arrays {
    int64_t images;
    int bands;
    tess_pixel_image image[ARRAY_IMAGES];
    void *samples[ARRAY_IMAGES];
    int readers;
    bool in_place;
} pixel_arrays;

static inline tess_status pixel_arrays_read(void *user, int64_t image, int64_t first, int64_t rows,
                                            void *samples, tess_error *error)
{
    const pixel_arrays *a = user;
    const size_t row =
        (size_t)a->image[image].width * (size_t)a->bands * tess_dtype_size(a->image[image].dtype);
    (void)error;
    memcpy(samples, (const char *)a->samples[image] + (size_t)first * row, (size_t)rows * row);
    return TESS_OK;
}

static inline const void *pixel_arrays_at(void *user, int64_t image, int64_t first)
{
    const pixel_arrays *a = user;
    const size_t row =
        (size_t)a->image[image].width * (size_t)a->bands * tess_dtype_size(a->image[image].dtype);
    return (const char *)a->samples[image] + (size_t)first * row;
}

static inline tess_pixel_set pixel_set_of(pixel_arrays *a)
{
    return (tess_pixel_set){a->images,
                            a->bands,
                            a->image,
                            a,
                            pixel_arrays_read,
                            a->readers,
                            a->in_place ? pixel_arrays_at : NULL};
}

/* Correlated bands around a mean of some thousand, as sensors give them, in fp32 or uint16. */
static inline void pixel_arrays_fill(pixel_arrays *a, int64_t images, int64_t height, int64_t width,
                                     int bands, tess_dtype dtype)
{
    *a = (pixel_arrays){.images = images, .bands = bands};
    for (int64_t i = 0; i < images; i++) {
        a->image[i] = (tess_pixel_image){.height = height + i, .width = width, .dtype = dtype};
        const int64_t pixels = (height + i) * width, count = pixels * bands;
        a->samples[i] = calloc((size_t)count, tess_dtype_size(dtype));
        float *noise = calloc((size_t)(2 * count), sizeof *noise);
        tess_rng_normal((tess_rng_key){.seed = 1, .item = (uint64_t)i}, 0, 2 * count, noise);
        for (int64_t v = 0; v < count; v++) {
            const int c = (int)(v % bands);
            noise[v] = 60 * noise[v] + (c ? noise[v - 1] : 0); /* a random walk over the bands */
            const double value =
                1500 + 300 * sin(0.3 * c + (double)i) + (double)(noise[v] + 20 * noise[count + v]);
            if (dtype == TESS_U16)
                ((uint16_t *)a->samples[i])[v] = (uint16_t)fmax(value, 0);
            else
                ((float *)a->samples[i])[v] = (float)value;
        }
        free(noise);
    }
}

static inline void pixel_arrays_free(pixel_arrays *a)
{
    for (int64_t i = 0; i < a->images; i++)
        free(a->samples[i]);
}

static inline double pixel_value(const pixel_arrays *a, int64_t image, int64_t pixel, int band)
{
    const int64_t at = pixel * a->bands + band;
    return a->image[image].dtype == TESS_U16 ? ((const uint16_t *)a->samples[image])[at]
                                             : (double)((const float *)a->samples[image])[at];
}

static inline int64_t pixel_count(const pixel_arrays *a, int64_t image)
{
    return a->image[image].height * a->image[image].width;
}

/* A fitted pipeline. */
typedef struct pipeline_run {
    tess_device *device;
    tess_spectral_plan *plan;
    tess_spectral_state state;
    tess_statistics *statistics;
    tess_status status;
    tess_error error;
} pipeline_run;

static inline void pipeline_run_close(pipeline_run *run)
{
    tess_statistics_destroy(run->statistics);
    tess_spectral_state_free(&run->state);
    tess_spectral_plan_free(run->plan);
    tess_registry_close(run->device);
}

/* `kind`: of the device; "separate": the CPU, used as if its memory were not the host's. */
static inline void pipeline_run_fit_on(const char *kind, pipeline_run *run, const char *json, pixel_arrays *a,
                                       const double *wavelengths, int64_t rows, int threads)
{
    const bool separate = strcmp(kind, "separate") == 0;
    *run = (pipeline_run){0};
    tess_json *parsed = NULL;
    tess_pipeline pipeline;
    const tess_pixel_set set = pixel_set_of(a);
    run->status = tess_json_parse(json, strlen(json), &parsed, &run->error);
    if (run->status == TESS_OK)
        run->status = tess_pipeline_parse(parsed, &pipeline, &run->error);
    tess_json_free(parsed);
    if (run->status == TESS_OK)
        run->status = tess_spectral_compile(&pipeline, a->bands, wavelengths, &run->plan, &run->error);
    const tess_device_options options = {.memory = &test_counter, .threads = threads};
    if (run->status == TESS_OK)
        run->status = tess_registry_open(separate ? "cpu" : kind, &options, &run->device, &run->error);
    if (run->status == TESS_OK && separate)
        run->device->host_memory = false;
    const tess_pixel_stage_settings settings = {
        .device = run->device, .memory = &test_counter, .block_rows = rows};
    if (run->status == TESS_OK)
        run->status = tess_spectral_state_create(&test_counter, run->plan, &run->state, &run->error);
    if (run->status == TESS_OK)
        run->status = tess_statistics_create(&settings, &set, &run->state, &run->statistics, &run->error);
    if (run->status == TESS_OK)
        run->status = tess_statistics_fit(run->statistics, &set, &run->error);
}

static inline void pipeline_run_fit(pipeline_run *run, const char *json, pixel_arrays *a,
                                    const double *wavelengths, int64_t rows, int threads)
{
    pipeline_run_fit_on("cpu", run, json, a, wavelengths, rows, threads);
}

static inline tess_status pipeline_run_keep(void *user, int64_t image, int64_t first_row, int64_t rows,
                                            const float *scores, tess_error *error)
{
    float **to = user;
    (void)image, (void)first_row, (void)error;
    const int64_t width = (int64_t)(uintptr_t)to[1];
    memcpy(to[0], scores, (size_t)(rows * width) * sizeof(float));
    to[0] += rows * width;
    return TESS_OK;
}

/* The caller frees them. */
static inline float *pipeline_run_scores(pipeline_run *run, pixel_arrays *a, int64_t image)
{
    const tess_pixel_set set = pixel_set_of(a);
    float *scores = calloc((size_t)pixel_count(a, image), sizeof *scores);
    float *to[2] = {scores, (float *)(uintptr_t)a->image[image].width};
    const tess_status status =
        tess_statistics_score(run->statistics, &set, image, image + 1, pipeline_run_keep, to, &run->error);
    CHECK_MSG(status == TESS_OK, "%s", run->error.text);
    return scores;
}

#endif
