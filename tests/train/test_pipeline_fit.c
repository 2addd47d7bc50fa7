/* Phase 1 and scoring against plain fp64 evaluations: fused passes, cuts, nodes of each image, windows, streams; blocks of any
 * size and threads of any number give the same. */
#include "pixel_arrays.h"
#include "tensor/moments.h"

static const char fused[] =
    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\", \"name\": \"first\", \"components\": 7},"
    "{\"kind\": \"pca\", \"name\": \"second\", \"components\": 4, \"whiten\": true},"
    "{\"kind\": \"rx\"}, {\"kind\": \"score_to_logit\"}, {\"kind\": \"binary\"}]}";
static const char rx[] = "{\"nodes\": [{\"kind\": \"rx\", \"eps\": 0}]}";

/* Solves m y = x in place by elimination with pivots; n is small. */
static void solve(double *m, double *x, int n)
{
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            pivot = fabs(m[i * n + k]) > fabs(m[pivot * n + k]) ? i : pivot;
        for (int j = 0; j < n; j++) {
            const double swap = m[k * n + j];
            m[k * n + j] = m[pivot * n + j], m[pivot * n + j] = swap;
        }
        const double swap = x[k];
        x[k] = x[pivot], x[pivot] = swap;
        for (int i = k + 1; i < n; i++) {
            const double factor = m[i * n + k] / m[k * n + k];
            for (int j = k; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
            x[i] -= factor * x[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++)
            x[k] -= m[k * n + j] * x[j];
        x[k] /= m[k * n + k];
    }
}

/* (x - mean)' inv(covariance + eps I) (x - mean) of one pixel among `count` pixels (rows of c values); weights may be NULL. */
static double plain_rx(const double *pixels, const double *weights, int64_t count, int c, double eps,
                       const double *x)
{
    double *mean = calloc((size_t)c, sizeof *mean), *m = calloc((size_t)(c * c), sizeof *m);
    double *far = calloc((size_t)c, sizeof *far), *y = calloc((size_t)c, sizeof *y), sum = 0, score = 0;
    for (int64_t p = 0; p < count; p++) {
        const double w = weights ? weights[p] : 1;
        sum += w;
        for (int i = 0; i < c; i++)
            mean[i] += w * pixels[p * c + i];
    }
    for (int i = 0; i < c; i++)
        mean[i] /= sum;
    for (int64_t p = 0; p < count; p++)
        for (int i = 0; i < c; i++)
            for (int j = 0; j < c; j++)
                m[i * c + j] += (weights ? weights[p] : 1) * (pixels[p * c + i] - mean[i]) *
                                (pixels[p * c + j] - mean[j]);
    for (int i = 0; i < c * c; i++)
        m[i] = m[i] / (sum - 1) + (i % (c + 1) == 0 ? eps : 0);
    for (int i = 0; i < c; i++)
        far[i] = y[i] = x[i] - mean[i];
    solve(m, y, c);
    for (int i = 0; i < c; i++)
        score += far[i] * y[i];
    free(mean), free(m), free(far), free(y);
    return score;
}

/* All pixels of some images as doubles. */
static double *pixels_of(const pixel_arrays *a, int64_t first, int64_t images, int64_t *count)
{
    double *all, *at;
    *count = 0;
    for (int64_t i = first; i < first + images; i++)
        *count += pixel_count(a, i);
    all = at = calloc((size_t)(*count * a->bands), sizeof *all);
    for (int64_t i = first; i < first + images; i++)
        for (int64_t p = 0; p < pixel_count(a, i); p++)
            for (int c = 0; c < a->bands; c++)
                *at++ = pixel_value(a, i, p, c);
    return all;
}

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

static void test_rx(void)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 3, 14, 11, 9, TESS_U16);
    pipeline_run run;
    pipeline_run_fit(&run, rx, &a, NULL, 4, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    CHECK(run.plan->passes == 1 && tess_statistics_fit_readings(run.plan) == 1);
    int64_t count;
    double *all = pixels_of(&a, 0, 3, &count);
    float *scores = pipeline_run_scores(&run, &a, 1);
    for (int64_t p = 0; p < pixel_count(&a, 1); p += 13) {
        double x[9];
        for (int c = 0; c < 9; c++)
            x[c] = pixel_value(&a, 1, p, c);
        const double right = plain_rx(all, NULL, count, 9, 0, x);
        CHECK_MSG(near(scores[p], right, 1e-4), "%g is not %g", (double)scores[p], right);
    }
    free(all), free(scores);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

/* RX fitted again without the pixels that score high, in blocks of any size and with any threads. */
static void test_trim(void)
{
    enum { C = 9, TIMES = 2 };
    static const char trimmed[] =
        "{\"nodes\": [{\"kind\": \"rx\", \"eps\": 0, \"trim\": 1.4, \"trims\": 2}]}";
    pixel_arrays a;
    pixel_arrays_fill(&a, 3, 14, 11, C, TESS_U16);
    int64_t count, kept = 0;
    double *all = pixels_of(&a, 0, 3, &count), *weights = calloc((size_t)count, sizeof *weights),
           *next = calloc((size_t)count, sizeof *next);
    for (int64_t p = 0; p < count; p++)
        weights[p] = 1;
    for (int time = 0; time < TIMES; time++) {
        for (int64_t p = 0; p < count; p++)
            next[p] = plain_rx(all, weights, count, C, 0, all + p * C) <= 1.4 * C;
        memcpy(weights, next, (size_t)count * sizeof *weights);
    }
    for (int64_t p = 0; p < count; p++)
        kept += weights[p] > 0;
    CHECK_MSG(kept > count / 4 && kept < count, "%d of %d pixels stay", (int)kept, (int)count);
    for (int rows = 1; rows <= 14; rows += 6) {
        pipeline_run run;
        pipeline_run_fit(&run, trimmed, &a, NULL, rows, rows > 1 ? 2 : 1);
        CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
        CHECK(run.plan->passes == 1 + TIMES && tess_statistics_fit_readings(run.plan) == 1 + TIMES);
        const double *covariance = tess_spectral_part(&run.state, 0, "covariance");
        double sum = 0, mean = 0, square = 0; /* of the first band */
        for (int64_t p = 0; p < count; p++)
            sum += weights[p], mean += weights[p] * all[p * C];
        for (int64_t p = 0; p < count; p++)
            square += weights[p] * (all[p * C] - mean / sum) * (all[p * C] - mean / sum);
        CHECK_MSG(near(covariance[0], square / (sum - 1), 1e-10), "variance %.12g, not %.12g", covariance[0],
                  square / (sum - 1));
        float *scores = pipeline_run_scores(&run, &a, 1);
        for (int64_t p = 0; p < pixel_count(&a, 1); p += 13) {
            double x[C];
            for (int c = 0; c < C; c++)
                x[c] = pixel_value(&a, 1, p, c);
            const double right = plain_rx(all, weights, count, C, 0, x);
            CHECK_MSG(near(scores[p], right, 1e-4), "%g is not %g", (double)scores[p], right);
        }
        free(scores);
        pipeline_run_close(&run);
    }
    free(all), free(weights), free(next);
    pixel_arrays_free(&a);
}

/* The parameters of min-max, two PCAs and RX from one pass, in any block size and with any threads. */
static void test_fused(void)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 3, 23, 17, 12, TESS_F32);
    pipeline_run whole;
    pipeline_run_fit(&whole, fused, &a, NULL, 1000, 1);
    CHECK_MSG(whole.status == TESS_OK, "%s", whole.error.text);
    CHECK(whole.plan->passes == 2 && tess_statistics_fit_readings(whole.plan) == 2);
    for (int i = 0; i < 4; i++)
        CHECK(whole.plan->known[i] == 1);
    const int64_t rows[] = {1, 2, 5, 24};
    for (int r = 0; r < 4; r++) {
        pipeline_run run;
        pipeline_run_fit(&run, fused, &a, NULL, rows[r], 3);
        CHECK(run.status == TESS_OK);
        for (int i = 0; i < 5; i++) {
            tess_node_part parts[TESS_NODE_PARTS];
            size_t values;
            tess_node_parts(run.plan, i, parts, &values);
            double largest = 0, worst = 0;
            for (size_t v = 0; v < values; v++) {
                largest = fmax(largest, fabs(whole.state.of[i][v]));
                worst = fmax(worst, fabs(run.state.of[i][v] - whole.state.of[i][v]));
            }
            /* the logit's are of fp32 scores */
            CHECK_MSG(worst <= (i == 4 ? 1e-6 : 1e-10) * largest, "node %d, %lld rows: %g of %g", i,
                      (long long)rows[r], worst, largest);
        }
        pipeline_run_close(&run);
    }
    /* components are orthonormal, and what RX reads is white: its mean score is k (n - 1) / n */
    int64_t count = 0;
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        float *scores = pipeline_run_scores(&whole, &a, i);
        const double *logit = whole.state.of[4];
        for (int64_t p = 0; p < pixel_count(&a, i); p++)
            sum += (double)scores[p] / logit[0] + logit[1];
        count += pixel_count(&a, i);
        free(scores);
    }
    CHECK_MSG(near(sum / (double)count, 4 * (1 - 1 / (double)count), 1e-3), "%g", sum / (double)count);
    pipeline_run_close(&whole);
    pixel_arrays_free(&a);
}

/* Each pixel by hand, through cuts and nodes of each image. */
static void test_cuts(void)
{
    static const char json[] =
        "{\"nodes\": [{\"kind\": \"zscore\", \"over\": \"image\"}, {\"kind\": \"unit_norm\"},"
        "{\"kind\": \"rx\", \"over\": \"image\", \"eps\": 1e-3}]}";
    pixel_arrays a;
    pixel_arrays_fill(&a, 2, 9, 12, 6, TESS_F32);
    pipeline_run run;
    pipeline_run_fit(&run, json, &a, NULL, 2, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    CHECK(run.plan->passes == 0 && run.plan->readings == 2 && tess_statistics_score_readings(run.plan) == 3);
    for (int image = 1; image >= 0; image--) {
        int64_t n;
        double *x = pixels_of(&a, image, 1, &n);
        for (int c = 0; c < 6; c++) {
            double mean = 0, square = 0;
            for (int64_t p = 0; p < n; p++)
                mean += x[p * 6 + c] / (double)n;
            for (int64_t p = 0; p < n; p++)
                square += (x[p * 6 + c] - mean) * (x[p * 6 + c] - mean) / (double)n;
            for (int64_t p = 0; p < n; p++)
                x[p * 6 + c] = (x[p * 6 + c] - mean) / (sqrt(square) + 1e-6);
        }
        for (int64_t p = 0; p < n; p++) {
            double mean = 0, square = 0;
            for (int c = 0; c < 6; c++)
                mean += x[p * 6 + c] / 6;
            for (int c = 0; c < 6; c++)
                square += (x[p * 6 + c] - mean) * (x[p * 6 + c] - mean);
            for (int c = 0; c < 6; c++)
                x[p * 6 + c] = (x[p * 6 + c] - mean) / sqrt(square);
        }
        float *scores = pipeline_run_scores(&run, &a, image);
        for (int64_t p = 0; p < n; p += 7) {
            const double right = plain_rx(x, NULL, n, 6, 1e-3, x + p * 6);
            CHECK_MSG(near(scores[p], right, 1e-4), "image %d: %g is not %g", image, (double)scores[p],
                      right);
        }
        free(scores), free(x);
    }
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

/* Windows and streams do not depend on the blocks; values by hand. */
static void test_local_and_stream(void)
{
    static const char local[] =
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"rx\", \"over\": \"local\", \"inner\": 3,"
        "\"outer\": 7, \"eps\": 1e-4}]}";
    static const char stream[] =
        "{\"nodes\": [{\"kind\": \"rx\", \"over\": \"stream\", \"eps\": 0, \"forgetting\": 0.9,"
        "\"every\": 3, \"warmup\": 5}]}";
    pixel_arrays a;
    pixel_arrays_fill(&a, 1, 21, 13, 5, TESS_F32);
    int64_t n;
    double *x = pixels_of(&a, 0, 1, &n), least = INFINITY, largest = -INFINITY;
    for (int64_t i = 0; i < n * 5; i++)
        least = fmin(least, x[i]), largest = fmax(largest, x[i]);
    for (int64_t rows = 1; rows < 30; rows += 9) {
        pipeline_run run;
        pipeline_run_fit(&run, local, &a, NULL, rows, 2);
        CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
        float *scores = pipeline_run_scores(&run, &a, 0);
        for (int64_t p = 0; p < n; p += 17) {
            double ring[49 * 5], here[5];
            int64_t count = 0;
            for (int64_t q = 0; q < n; q++) {
                const int64_t dy = llabs(q / 13 - p / 13), dx = llabs(q % 13 - p % 13),
                              far = dy > dx ? dy : dx;
                for (int c = 0; c < 5 && far > 1 && far <= 3; c++)
                    ring[count * 5 + c] = (x[q * 5 + c] - least) / (largest - least);
                count += far > 1 && far <= 3;
            }
            for (int c = 0; c < 5; c++)
                here[c] = (x[p * 5 + c] - least) / (largest - least);
            const double right = plain_rx(ring, NULL, count, 5, 1e-4, here);
            CHECK_MSG(near(scores[p], right, 1e-4), "%g is not %g", (double)scores[p], right);
        }
        free(scores);
        pipeline_run_close(&run);
    }
    pipeline_run run;
    pipeline_run_fit(&run, stream, &a, NULL, 0, 1);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    float *scores = pipeline_run_scores(&run, &a, 0);
    for (int64_t p = 0; p < n; p += 11) {
        const int64_t row = p / 13, end = row < 5                          ? 5
                                          : 5 + (row - 5) / 3 * 3 + 3 > 21 ? 21
                                                                           : 5 + (row - 5) / 3 * 3 + 3;
        double *weights = calloc((size_t)n, sizeof *weights);
        for (int64_t q = 0; q < end * 13; q++) {
            const int64_t last = q / 13 < 5 ? 5 : 5 + (q / 13 - 5) / 3 * 3 + 3; /* the end of its step */
            weights[q] = last >= end ? 1 : pow(0.9, (double)(end - last));
        }
        const double right = plain_rx(x, weights, end * 13, 5, 0, x + p * 5);
        CHECK_MSG(near(scores[p], right, 1e-4), "row %lld: %g is not %g", (long long)row, (double)scores[p],
                  right);
        free(weights);
    }
    free(scores), free(x);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

/* NaN and nodata have no part, and no score. */
static void test_holes(void)
{
    pixel_arrays a, b;
    pixel_arrays_fill(&a, 1, 20, 10, 4, TESS_F32);
    pixel_arrays_fill(&b, 1, 20, 10, 4, TESS_F32);
    float *v = a.samples[0];
    v[5 * 4 + 1] = NAN, v[17 * 4 + 3] = INFINITY, v[150 * 4] = -9999;
    a.image[0].has_nodata = true, a.image[0].nodata = -9999;
    pipeline_run run;
    pipeline_run_fit(&run, rx, &a, NULL, 3, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    CHECK(tess_statistics_facts(run.statistics).pixels == 197);
    int64_t n, kept = 0;
    double *x = pixels_of(&b, 0, 1, &n);
    float *scores = pipeline_run_scores(&run, &a, 0);
    for (int64_t p = 0; p < n; p++)
        if (p != 5 && p != 17 && p != 150)
            memmove(x + kept++ * 4, x + p * 4, 4 * sizeof *x);
    CHECK(isnan(scores[5]) && isnan(scores[17]) && isnan(scores[150]));
    CHECK(near(scores[0], plain_rx(x, NULL, kept, 4, 0, x), 1e-4));
    free(x), free(scores);
    pipeline_run_close(&run);
    pixel_arrays_free(&a), pixel_arrays_free(&b);
}

static void test_refusals(void)
{
    static const double wavelengths[] = {400, 500, 600, 700};
    static const struct {
        const char *json;
        bool waves;
        const char *words;
    } cases[] = {
        {"{\"nodes\": [{\"kind\": \"rx\", \"eps\": 0}]}", true, "too few for the covariance of 4 channels"},
        {"{\"nodes\": [{\"kind\": \"pca\", \"components\": 5}, {\"kind\": \"rx\"}]}", true,
         "more than the 4 channels"},
        {"{\"nodes\": [{\"kind\": \"bandpass\", \"from\": 900}, {\"kind\": \"rx\"}]}", true,
         "from 400 to 700 nm"},
        {"{\"nodes\": [{\"kind\": \"bandpass\", \"from\": 900}, {\"kind\": \"rx\"}]}", false,
         "the cube does not have"},
        {"{\"nodes\": [{\"kind\": \"pca\"}, {\"kind\": \"bandpass\"}, {\"kind\": \"rx\"}]}", true,
         "components"},
        {"{\"nodes\": [{\"kind\": \"savitzky_golay\"}, {\"kind\": \"rx\"}]}", true, "more than the 4 bands"},
    };
    pixel_arrays a;
    pixel_arrays_fill(&a, 1, 2, 2, 4, TESS_F32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pipeline_run run;
        pipeline_run_fit(&run, cases[i].json, &a, cases[i].waves ? wavelengths : NULL, 0, 1);
        CHECK_MSG(run.status == TESS_BAD_INPUT && strstr(run.error.text, cases[i].words), "%s",
                  run.error.text);
        pipeline_run_close(&run);
    }
    pixel_arrays_free(&a);
}

/* How many passes each pipeline takes. */
static void test_passes(void)
{
    static const double wavelengths[] = {400, 500, 600, 700, 800, 900};
    static const struct {
        const char *nodes;
        int passes, fit, score;
    } cases[] = {
        {"{\"kind\": \"minmax\"}, {\"kind\": \"rx\"}, {\"kind\": \"score_to_logit\"}, {\"kind\": \"binary\"}",
         2, 2, 1},
        {"{\"kind\": \"minmax\"}, {\"kind\": \"lad\"}, {\"kind\": \"quantile\"}", 1, 1, 1},
        {"{\"kind\": \"bandpass\", \"from\": 450}, {\"kind\": \"unit_norm\"}, {\"kind\": \"zscore\"}, "
         "{\"kind\": \"rx\"}",
         1, 1, 1},
        {"{\"kind\": \"zscore\"}, {\"kind\": \"snv\"}, {\"kind\": \"rx\"}", 2, 2, 1},
        {"{\"kind\": \"pca\"}, {\"kind\": \"minmax\"}, {\"kind\": \"rx\"}", 2, 2, 1},
        {"{\"kind\": \"bandpass\", \"to\": 850}, {\"kind\": \"minmax\"}, {\"kind\": \"rx\"}", 1, 1, 1},
        {"{\"kind\": \"rx\"}, {\"kind\": \"false_alarm\"}", 3, 3, 1},
        {"{\"kind\": \"minmax\"}, {\"kind\": \"rx\", \"trim\": 2, \"trims\": 4}, {\"kind\": \"false_alarm\"}",
         7, 7, 1},
        {"{\"kind\": \"sigmoid\"}, {\"kind\": \"rx\", \"trim\": 2, \"trims\": 1}", 2, 8, 4},
        {"{\"kind\": \"rx\"}, {\"kind\": \"score_to_logit\"}, {\"kind\": \"false_alarm\"}", 3, 3, 1},
        {"{\"kind\": \"sigmoid\"}, {\"kind\": \"rx\"}", 1, 4, 4},
        {"{\"kind\": \"minmax\", \"over\": \"image\"}, {\"kind\": \"lad\"}", 1, 2, 2},
        {"{\"kind\": \"rx\", \"over\": \"image\"}, {\"kind\": \"score_to_logit\"}", 1, 2, 2},
        {"{\"kind\": \"continuum\"}, {\"kind\": \"savitzky_golay\", \"window\": 5}, {\"kind\": \"rx\"}", 1, 1,
         1},
    };
    pixel_arrays a;
    pixel_arrays_fill(&a, 2, 12, 9, 6, TESS_F32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[512];
        snprintf(json, sizeof json, "{\"nodes\": [%s]}", cases[i].nodes);
        pipeline_run run;
        pipeline_run_fit(&run, json, &a, wavelengths, 5, 1);
        CHECK_MSG(run.status == TESS_OK, "%s: %s", json, run.error.text);
        if (run.status == TESS_OK) {
            CHECK_MSG(run.plan->passes == cases[i].passes, "%s: %d passes", json, run.plan->passes);
            CHECK_MSG(tess_statistics_fit_readings(run.plan) == cases[i].fit, "%s: %d readings", json,
                      tess_statistics_fit_readings(run.plan));
            CHECK(tess_statistics_score_readings(run.plan) == cases[i].score);
            const int64_t once = (pixel_count(&a, 0) + pixel_count(&a, 1)) * 6 * 4;
            CHECK(tess_statistics_facts(run.statistics).bytes_read == cases[i].fit * once);
            tess_json *words = tess_spectral_passes_json(run.plan);
            CHECK(tess_json_length(words) == cases[i].passes);
            tess_json_free(words);
            free(pipeline_run_scores(&run, &a, 1));
        }
        pipeline_run_close(&run);
    }
    pixel_arrays_free(&a);
}

/* Planned bytes are the bytes held. */
static void test_bytes(const char *json)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 2, 12, 9, 6, TESS_U16);
    pipeline_run run;
    pipeline_run_fit(&run, json, &a, NULL, 5, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    const tess_pixel_set set = pixel_set_of(&a);
    const tess_pixel_stage_settings settings = {
        .device = run.device, .memory = &test_counter, .block_rows = 5};
    tess_mem_bytes planned;
    tess_mem_usage with, without;
    tess_error error;
    CHECK(tess_statistics_plan(&settings, run.plan, &set, &planned, &error) == TESS_OK);
    tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &with);
    tess_statistics_destroy(run.statistics);
    run.statistics = NULL;
    tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &without);
    uint64_t sum = 0;
    for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
        sum += planned.by[i];
    CHECK_MSG(with.total - without.total == sum, "%llu held, %llu planned",
              (unsigned long long)(with.total - without.total), (unsigned long long)sum);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

/* Whatever allocation fails, nothing leaks, and the message says so. */
static void test_memory(void)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 2, 12, 9, 8, TESS_U16);
    uint64_t n = 1;
    for (bool done = false; !done && n < 1000; n++) {
        pipeline_run run;
        tess_mem_fail_at(n);
        pipeline_run_fit(&run, fused, &a, NULL, 5, 1);
        tess_mem_fail_at(0);
        done = run.status == TESS_OK;
        CHECK_MSG(done || run.status == TESS_NO_MEMORY, "allocation %d: %s", (int)n, run.error.text);
        pipeline_run_close(&run);
        CHECK(counted_now() == 0);
    }
    CHECK(n > 10 && n < 1000);
    pixel_arrays_free(&a);
}

int main(void)
{
    test_rx();
    test_trim();
    test_fused();
    test_cuts();
    test_local_and_stream();
    test_holes();
    test_refusals();
    test_passes();
    test_bytes("{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"pca\"}, {\"kind\": \"rx\"}]}");
    test_bytes("{\"nodes\": [{\"kind\": \"rx\", \"trim\": 2}]}");
    test_memory();
    return check_end();
}
