/* A fitted pipeline through a file gives the same scores, bit for bit; damaged files are refused. Quantiles, deciders, AUROC and
 * average precision against sorting. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "folder.h"
#include "model/spectral/state_file.h"
#include "pixel_arrays.h"
#include "train/statistics/curve.h"
#include "train/statistics/order.h"

static const char json[] =
    "{\"nodes\": [{\"kind\": \"bandpass\", \"from\": 450}, {\"kind\": \"minmax\"}, {\"kind\": \"snv\"},"
    "{\"kind\": \"zscore\"}, {\"kind\": \"pca\", \"components\": 4}, {\"kind\": \"rx\"},"
    "{\"kind\": \"score_to_logit\"}, {\"kind\": \"false_alarm\", \"rate\": 0.1}]}";
static const double wavelengths[] = {400, 433.25, 500, 612.1, 700, 800.5, 900};

static void damage(const char *from, const char *to, const char *old, const char *new)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char *all = calloc(1, 1 << 20);
    const size_t bytes = fread(all, 1, 1 << 20, in), length = strlen(old);
    bool found = false;
    for (size_t i = 8; i + length < bytes && !found; i++)
        if (memcmp(all + i, old, length) == 0) {
            memcpy(all + i, new, length);
            found = true;
        }
    CHECK_MSG(found, "%s is not in the file", old);
    fwrite(all, 1, bytes, out);
    fclose(in), fclose(out), free(all);
}

static void check_refused(const char *old, const char *new, const char *words)
{
    tess_spectral_plan *plan;
    tess_spectral_state state;
    tess_error error = {{0}};
    damage(in_folder("fitted.safetensors"), in_folder("bad.safetensors"), old, new);
    const tess_status status =
        tess_spectral_load(&test_counter, in_folder("bad.safetensors"), &plan, &state, &error);
    CHECK_MSG(status != TESS_OK && strstr(error.text, words), "'%s' does not say '%s'", error.text, words);
    CHECK(!plan && !state.block.data);
}

static void test_file(void)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 2, 15, 12, 7, TESS_U16);
    pipeline_run run;
    pipeline_run_fit(&run, json, &a, wavelengths, 4, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    float *before = pipeline_run_scores(&run, &a, 1);
    CHECK_MSG(tess_spectral_save(&test_counter, in_folder("fitted.safetensors"), &run.state, NULL, 0, &run.error) ==
                  TESS_OK,
              "%s", run.error.text);
    const double threshold = run.state.of[7][0];
    tess_statistics_destroy(run.statistics);
    tess_spectral_state_free(&run.state);
    tess_spectral_plan_free(run.plan);
    CHECK_MSG(tess_spectral_load(&test_counter, in_folder("fitted.safetensors"), &run.plan, &run.state,
                                 &run.error) == TESS_OK,
              "%s", run.error.text);
    const tess_pixel_set set = pixel_set_of(&a);
    const tess_pixel_stage_settings settings = {
        .device = run.device, .memory = &test_counter, .block_rows = 3};
    CHECK(tess_statistics_create(&settings, &set, &run.state, &run.statistics, &run.error) == TESS_OK);
    float *after = pipeline_run_scores(&run, &a, 1);
    CHECK(memcmp(before, after, (size_t)pixel_count(&a, 1) * sizeof(float)) == 0);
    CHECK(run.state.of[7][0] == threshold && run.plan->wavelengths[1] == 433.25);
    check_refused("\"version\\\":1", "\"version\\\":2", "another version");
    check_refused("\\\"kind\\\":\\\"snv\\\"", "\\\"kind\\\":\\\"snw\\\"", "did you mean snv?");
    check_refused("\"components\\\":4", "\"components\\\":3", "another shape");
    check_refused("\"pca.mean\"", "\"pca.meen\"", "has no tensor 'pca.mean'");
    check_refused("tessera_pipeline", "tessera_pipelime", "has no pipeline");
    free(before), free(after);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

enum { SCORES = 5000 };

/* NumPy's linear interpolation. */
static double plain_quantile(const float *sorted, int n, double q)
{
    const double place = q * (n - 1);
    const int k = (int)floor(place);
    return (double)sorted[k] + (place - k) * ((double)sorted[k + 1 < n ? k + 1 : k] - (double)sorted[k]);
}

static void test_order(void)
{
    float values[SCORES], sorted[SCORES];
    tess_rng_normal((tess_rng_key){.seed = 3}, 0, SCORES, values);
    for (int i = 0; i < SCORES; i += 7)
        values[i] = floorf(values[i] * 4) / 4; /* ties, and both zeros */
    memcpy(sorted, values, sizeof values);
    qsort(sorted, SCORES, sizeof *sorted, ascending);
    static const double quantiles[] = {0, 0.25, 0.5, 0.995, 0.9999, 1};
    void *memory = malloc(tess_order_bytes(TESS_ORDER_QUANTILE, 1));
    for (int k = 0; k < 6; k++) {
        tess_order order;
        tess_order_begin(&order, TESS_ORDER_QUANTILE, 1, quantiles[k], memory);
        int readings = 0;
        do {
            tess_order_add(&order, values, 1234, NULL);
            tess_order_add(&order, values + 1234, SCORES - 1234, NULL);
            readings++;
        } while (!tess_order_next(&order));
        CHECK(readings == 2 && tess_order_value(&order, 0) == plain_quantile(sorted, SCORES, quantiles[k]));
    }
    free(memory);
    memory = malloc(tess_order_bytes(TESS_ORDER_MEDIAN, 5));
    tess_order order;
    tess_order_begin(&order, TESS_ORDER_MEDIAN, 5, 0.5, memory);
    do
        tess_order_add(&order, values, SCORES / 5, NULL);
    while (!tess_order_next(&order));
    for (int c = 0; c < 5; c++) {
        for (int i = 0; i < SCORES / 5; i++)
            sorted[i] = values[i * 5 + c];
        qsort(sorted, SCORES / 5, sizeof *sorted, ascending);
        CHECK(tess_order_value(&order, c) == (double)sorted[(SCORES / 5 - 1) / 2]);
    }
    free(memory);
}

static tess_status read_scores(void *user, int64_t first, int64_t count, float *scores, tess_error *error)
{
    (void)error;
    memcpy(scores, (const float *)user + first, (size_t)count * sizeof *scores);
    return TESS_OK;
}

static double decide(const char *node, float *scores)
{
    char text[256];
    tess_json *parsed = NULL;
    tess_pipeline pipeline;
    tess_spectral_plan *plan;
    tess_spectral_state state;
    tess_error error = {{0}};
    double threshold = NAN;
    snprintf(text, sizeof text, "{\"nodes\": [{\"kind\": \"rx\"}, %s]}", node);
    CHECK(tess_json_parse(text, strlen(text), &parsed, &error) == TESS_OK);
    CHECK_MSG(tess_pipeline_parse(parsed, &pipeline, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_spectral_compile(&pipeline, 3, NULL, &plan, &error) == TESS_OK);
    CHECK(tess_spectral_state_create(&test_counter, plan, &state, &error) == TESS_OK);
    void *memory = malloc(tess_decide_bytes());
    const tess_score_reader reader = {SCORES, scores, read_scores};
    CHECK(tess_decide_threshold(&state, &reader, memory, &threshold, &error) == TESS_OK);
    free(memory);
    tess_json_free(parsed);
    tess_spectral_state_free(&state);
    tess_spectral_plan_free(plan);
    return threshold;
}

static void test_deciders(void)
{
    float scores[SCORES], sorted[SCORES];
    tess_rng_uniform((tess_rng_key){.seed = 4}, 0, SCORES, scores);
    memcpy(sorted, scores, sizeof scores);
    qsort(sorted, SCORES, sizeof *sorted, ascending);
    CHECK(fabs(decide("{\"kind\": \"binary\", \"threshold\": 0.75}", scores) - log(3)) < 1e-12);
    CHECK(decide("{\"kind\": \"quantile\", \"quantile\": 0.9}", scores) ==
          plain_quantile(sorted, SCORES, 0.9));
    double top = 0; /* ceil(0.0015 * 5000) = 8 */
    for (int i = 0; i < 8; i++)
        top += (double)sorted[SCORES - 1 - i] / 8;
    char node[128];
    snprintf(node, sizeof node, "{\"kind\": \"two_stage\", \"share\": 0.0015, \"threshold\": %.17g}",
             top - 1e-9);
    CHECK(decide(node, scores) == plain_quantile(sorted, SCORES, 0.995));
    snprintf(node, sizeof node, "{\"kind\": \"two_stage\", \"share\": 0.0015, \"threshold\": %.17g}",
             top + 1e-9);
    CHECK(isinf(decide(node, scores)));
}

/* The threshold of false_alarm marks that share of the pixels it was fitted to. */
static void test_false_alarm(void)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 2, 50, 40, 5, TESS_F32);
    pipeline_run run;
    pipeline_run_fit(&run, "{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"false_alarm\", \"rate\": 0.02}]}",
                     &a, NULL, 9, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    int64_t marked = 0, all = 0;
    for (int i = 0; i < 2; i++) {
        float *scores = pipeline_run_scores(&run, &a, i);
        for (int64_t p = 0; p < pixel_count(&a, i); p++)
            marked += (double)scores[p] >= run.state.of[1][0];
        all += pixel_count(&a, i);
        free(scores);
    }
    CHECK_MSG(llabs(marked - (int64_t)(0.02 * (double)all)) <= 1, "%lld of %lld", (long long)marked,
              (long long)all);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

static void test_curve(void)
{
    float scores[SCORES];
    uint8_t truth[SCORES];
    tess_rng_normal((tess_rng_key){.seed = 5}, 0, SCORES, scores);
    for (int i = 0; i < SCORES; i++) {
        truth[i] = i % 41 == 0;
        scores[i] = floorf((scores[i] + truth[i]) * 8) / 8; /* many ties */
    }
    scores[100] = NAN;
    double wins = 0, pairs = 0, precision = 0;
    int64_t positives = 0;
    for (int i = 0; i < SCORES; i++)
        for (int j = 0; truth[i] && j < SCORES; j++)
            if (!truth[j] && !isnan(scores[j])) {
                wins += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
                pairs++;
            }
    for (int i = 0; i < SCORES; i++)
        positives += truth[i];
    for (int i = 0; i < SCORES; i++) { /* the precision at the threshold of each positive */
        double right = 0, marked = 0;
        for (int j = 0; truth[i] && j < SCORES; j++)
            if (scores[j] >= scores[i])
                right += truth[j], marked++;
        precision += truth[i] ? right / marked / (double)positives : 0;
    }
    tess_curve curve;
    tess_error error;
    tess_curve_begin(&curve, &test_counter);
    CHECK(tess_curve_collect(&curve, scores, truth, 3000, &error) == TESS_OK);
    CHECK(tess_curve_collect(&curve, scores + 3000, truth + 3000, SCORES - 3000, &error) == TESS_OK);
    CHECK(tess_curve_sort(&curve, &error) == TESS_OK);
    tess_curve_count(&curve, scores, truth, 10);
    tess_curve_count(&curve, scores + 10, truth + 10, SCORES - 10);
    const tess_curve_result result = tess_curve_end(&curve);
    CHECK(result.known && result.positives == positives && curve.left_out == 1);
    CHECK(fabs(result.auroc - wins / pairs) < 1e-13);
    CHECK_MSG(fabs(result.average_precision - precision) < 1e-12, "%g %g", result.average_precision,
              precision);
    tess_curve_free(&curve);
    tess_confusion sums = {0};
    const float four[] = {1, 2, 3, 4, NAN};
    const uint8_t marks[] = {0, 1, 0, 1, 1};
    tess_confusion_add(&sums, four, 3, marks, 5);
    CHECK(sums.true_positives == 1 && sums.false_positives == 1 && sums.false_negatives == 1 &&
          sums.true_negatives == 1);
    CHECK(tess_confusion_f1(&sums) == 0.5 && fabs(tess_confusion_iou(&sums) - 1.0 / 3) < 1e-15);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    test_file();
    test_order();
    test_deciders();
    test_false_alarm();
    test_curve();
    sweep_folder(true);
    rmdir(folder);
    CHECK(counted_now() == 0);
    return check_end();
}
