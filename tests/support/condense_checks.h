/* condense_checks.h: the few pixels that stand for an image have its mean and covariance, on any device. */
#ifndef TESS_TESTS_CONDENSE_CHECKS_H
#define TESS_TESTS_CONDENSE_CHECKS_H

#include "network_scores.h"
#include "train/statistics/condense.h"

static inline void moments_of(const float *pixels, int64_t count, int channels, double *mean, double *second)
{
    for (int i = 0; i < channels; i++) {
        mean[i] = 0;
        for (int64_t p = 0; p < count; p++)
            mean[i] += (double)pixels[p * channels + i] / (double)count;
    }
    for (int i = 0; i < channels; i++)
        for (int k = 0; k < channels; k++) {
            double sum = 0;
            for (int64_t p = 0; p < count; p++)
                sum += ((double)pixels[p * channels + i] - mean[i]) *
                       ((double)pixels[p * channels + k] - mean[k]);
            second[i * channels + k] = sum / (double)count;
        }
}

static inline void check_same_moments(const char *name, const float *got, const float *want, int64_t pixels,
                                      int channels)
{
    const size_t c = (size_t)channels;
    double *one = calloc(c + c * c, sizeof *one), *other = calloc(c + c * c, sizeof *other), worst = 0;
    moments_of(got, tess_condensed_pixels(channels), channels, one, one + c);
    moments_of(want, pixels, channels, other, other + c);
    for (size_t i = 0; i < c; i++)
        for (size_t k = 0; k < c; k++) {
            const double scale = sqrt(other[c + i * c + i] * other[c + k * c + k]) + 1e-3,
                         far = fabs(one[c + i * c + k] - other[c + i * c + k]) / scale;
            worst = far <= worst ? worst : far;
        }
    for (size_t i = 0; i < c; i++) {
        const double far = fabs(one[i] - other[i]) / (sqrt(other[c + i * c + i]) + 1e-3);
        worst = far <= worst ? worst : far;
    }
    CHECK_MSG(worst < 2e-5, "%s: moments differ by %.3g", name, worst);
    free(one), free(other);
}

static inline void check_condensed(const char *kind, const char *json, pixel_arrays *a, int64_t rows)
{
    pipeline_run run;
    pipeline_run_fit_on(kind, &run, json, a, NULL, rows, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    if (run.status == TESS_OK) {
        const int at = tess_spectral_network_at(run.plan), channels = tess_spectral_gives(run.plan, at);
        const int64_t each = tess_condensed_pixels(channels) * channels;
        const tess_pixel_set set = pixel_set_of(a);
        const tess_pixel_stage_settings settings = {
            .device = run.device, .memory = &test_counter, .block_rows = rows};
        double *memory = calloc(tess_path_values(run.plan, at) + 1, sizeof *memory),
               *work = calloc(tess_spectral_fold_workspace(run.plan), sizeof *work);
        float *pixels = calloc((size_t)(a->images * each), sizeof *pixels);
        tess_path path;
        tess_path_make(&run.state, at, memory, work, &path);
        CHECK_MSG(tess_condense(&settings, &set, &path, pixels, &run.error) == TESS_OK, "%s", run.error.text);
        for (int64_t i = 0; i < a->images; i++) {
            float *want = pixels_behind(&run, a, i, at);
            check_same_moments(json, pixels + i * each, want, pixel_count(a, i), channels);
            free(want);
        }
        free(memory), free(work), free(pixels);
    }
    pipeline_run_close(&run);
}

/* Raw bands of both types, one of them without variance, and pixels behind a node that is not affine, whose channels add up to 0. */
static inline void check_condensing(const char *kind)
{
    static const char plain[] =
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"linear\", \"channels\": 13}, {\"kind\": "
        "\"mse\", \"target\": \"minmax\"}, {\"kind\": \"residual\", \"target\": \"minmax\"}]}",
                      behind[] =
                          "{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"zscore\"}, {\"kind\": \"linear\", "
                          "\"channels\": 13}, {\"kind\": \"mse\", \"target\": \"zscore\"}, {\"kind\": "
                          "\"residual\", \"target\": \"zscore\"}]}";
    for (int k = 0; k < 2; k++) {
        pixel_arrays a;
        pixel_arrays_fill(&a, 3, 19, 23, 13, k ? TESS_U16 : TESS_F32);
        check_condensed(kind, behind, &a, 0);
        for (int64_t i = 0; i < a.images; i++)
            for (int64_t p = 0; p < pixel_count(&a, i); p++)
                if (k)
                    ((uint16_t *)a.samples[i])[p * 13 + 4] = 900;
                else
                    ((float *)a.samples[i])[p * 13 + 4] = 900;
        check_condensed(kind, plain, &a, k ? 5 : 0);
        pixel_arrays_free(&a);
    }
}

#endif
