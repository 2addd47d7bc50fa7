/* test_pipeline_work.c: what phase 1 and scoring are predicted to read, to solve and to compute is what they do; and scores do
 * not depend on whether the device that fitted a pipeline is the one that scores. */
#include "pixel_arrays.h"

static const char *const pipelines[] = {
    "{\"nodes\": [{\"kind\": \"rx\", \"eps\": 0}]}",
    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"lad\"}]}",
    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\", \"components\": 4}, {\"kind\": \"rx\"},"
    "{\"kind\": \"score_to_logit\"}]}",
    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"snv\"}, {\"kind\": \"zscore\"}, {\"kind\": \"rx\"},"
    "{\"kind\": \"score_to_logit\"}, {\"kind\": \"false_alarm\", \"rate\": 0.1}]}",
    "{\"nodes\": [{\"kind\": \"zscore\"}, {\"kind\": \"rx\", \"over\": \"image\"}]}",
    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"rx\", \"over\": \"local\", \"inner\": 3, \"outer\": "
    "7}]}",
};

typedef struct sums {
    double pixels[TESS_OP_KINDS]; /* of the ops */
} sums;

static void add_op(void *user, const tess_op *op, double runs)
{
    sums *s = user;
    s->pixels[op->kind] += runs * (double)(op->in[0].h * op->in[0].w);
}

static double all_pixels(const pixel_arrays *a)
{
    double sum = 0;
    for (int64_t i = 0; i < a->images; i++)
        sum += (double)pixel_count(a, i);
    return sum;
}

static void check_same(const char *what, const char *json, double predicted, double done)
{
    CHECK_MSG(fabs(predicted - done) <= 1e-9 * fmax(1, done), "%s: %s: predicted %.10g, done %.10g", json,
              what, predicted, done);
}

/* Blocks of five rows divide the images, so that nothing is a part of a block. */
static void check_pipeline(const char *json)
{
    pixel_arrays a;
    pipeline_run run;
    pixel_arrays_fill(&a, 1, 40, 12, 7, TESS_U16);
    pipeline_run_fit(&run, json, &a, NULL, 5, 2);
    CHECK_MSG(run.status == TESS_OK, "%s: %s", json, run.error.text);
    const tess_pixel_set set = pixel_set_of(&a);
    const tess_pixel_stage_settings settings = {
        .device = run.device, .memory = &test_counter, .block_rows = 5};
    sums fit = {{0}}, score = {{0}};
    tess_statistics_work in_fit = {.user = &fit, .op = add_op}, in_score = {.user = &score, .op = add_op};
    tess_statistics_list(&settings, run.plan, &set, true, &in_fit);
    tess_statistics_list(&settings, run.plan, &set, false, &in_score);
    const tess_statistics_report fitted = tess_statistics_facts(run.statistics);
    float *before = pipeline_run_scores(&run, &a, 0);
    const tess_statistics_report scored = tess_statistics_facts(run.statistics);
    const double row = 12 * 7 * sizeof(uint16_t), pixels = all_pixels(&a);
    const bool local = strstr(json, "local") != NULL;
    check_same("bytes of phase 1", json, in_fit.bytes_read, (double)fitted.bytes_read);
    check_same("paths of phase 1", json, in_fit.path_values, fitted.path_values);
    if (!local) { /* at the first and the last rows a ring reads less */
        check_same("bytes of scores", json, in_score.bytes_read,
                   (double)(scored.bytes_read - fitted.bytes_read));
        check_same("paths of scores", json, in_score.path_values, scored.path_values - fitted.path_values);
    } else {
        CHECK(in_score.bytes_read >= (double)(scored.bytes_read - fitted.bytes_read) &&
              in_score.bytes_read <= (double)(scored.bytes_read - fitted.bytes_read) + 8 * row);
    }
    check_same("solutions", json, in_fit.solves + in_score.solves, scored.solves);
    check_same("scores", json, in_score.scored, pixels);
    check_same("bytes down", json, in_score.bytes_down, pixels * sizeof(float));
    CHECK(fit.pixels[TESS_OP_IMPORT] + score.pixels[TESS_OP_IMPORT] > 0 && scored.read_seconds > 0);
    CHECK((score.pixels[TESS_OP_LOCAL_RX] > 0) == local && (score.pixels[TESS_OP_SCORE] > 0) != local);

    /* Another device goes on with the parameters. */
    tess_device *other = NULL;
    const tess_device_options options = {.memory = &test_counter, .threads = 1};
    CHECK(tess_registry_open("cpu", &options, &other, &run.error) == TESS_OK);
    tess_pixel_stage_settings there = settings;
    there.device = other;
    tess_statistics_destroy(run.statistics);
    CHECK(tess_statistics_create(&there, &set, &run.state, &run.statistics, &run.error) == TESS_OK);
    float *after = pipeline_run_scores(&run, &a, 0);
    CHECK_MSG(memcmp(before, after, (size_t)pixels * sizeof(float)) == 0, "%s: other scores", json);
    tess_statistics_destroy(run.statistics);
    run.statistics = NULL;
    tess_registry_close(other);
    free(before), free(after);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

int main(void)
{
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        check_pipeline(pipelines[i]);
    return check_end();
}
