/* Pipelines of cuvis.ai: which nodes are taken over, their settings, and their parameters from buffers; a failed allocation
 * anywhere. tests/e2e/cuvis.py compares scores. */
#include "check.h"

#include "base/mem.h"
#include "base/yaml.h"
#include "model/cuvis/cuvis.h"

enum { BANDS = 3 };

static const char head[] =
    "nodes:\n"
    "- {name: data, class_name: cuvis_ai.node.data.CU3SDataNode}\n"
    "- {name: scale, class_name: cuvis_ai.node.normalization.MinMaxNormalizer, hparams: {eps: 1.0e-06}}\n"
    "- {name: z, class_name: cuvis_ai.anomaly.deep_svdd.ZScoreNormalizerGlobal, hparams: {num_channels: 3}}\n"
    "- {name: rx, class_name: cuvis_ai.node.anomaly.rx_detector.RXGlobal, hparams: {num_channels: 3}}\n"
    "- {name: picture, class_name: cuvis_ai.node.pipeline_visualization.CubeRGBVisualizer}\n"
    "connections:\n"
    "- {source: data.outputs.cube, target: scale.inputs.data}\n"
    "- {source: data.outputs.cube, target: picture.inputs.cube}\n"
    "- {source: scale.outputs.normalized, target: z.inputs.data}\n"
    "- {source: z.outputs.normalized, target: rx.inputs.data}\n";

static const struct {
    const char *name;
    int rank;
    int64_t dims[2];
    double values[9];
} buffers[] = {
    {"state_dict.scale.running_min", 1, {1}, {10}},
    {"state_dict.scale.running_max", 1, {1}, {30}},
    {"state_dict.z.zscore_mean", 1, {3}, {.5, .25, 0}},
    {"state_dict.z.zscore_std", 1, {3}, {2, 1, .5}},
    {"state_dict.rx.mu", 1, {3}, {1, -1, 2}},
    {"state_dict.rx.cov_inv", 2, {3, 3}, {4, 1, 0, -1, 2, 0, 0, 0, .5}}, /* its symmetric part is diagonal */
};

static tess_status fetch(void *user, int64_t tensor, int64_t first, int64_t count, void *values,
                         tess_error *error)
{
    (void)user, (void)error;
    memcpy(values, buffers[tensor].values + first, (size_t)count * sizeof(double));
    return TESS_OK;
}

static tess_weights *make_weights(void)
{
    tess_weights *weights = NULL;
    bool good = tess_weights_fetched("test", fetch, NULL, &weights, NULL) == TESS_OK;
    for (size_t i = 0; good && i < sizeof buffers / sizeof *buffers; i++)
        good = tess_weights_add_fetched(weights, buffers[i].name, buffers[i].rank, buffers[i].dims, TESS_F64,
                                        NULL) == TESS_OK;
    CHECK(good && tess_weights_drawn(weights, NULL) == TESS_OK);
    return weights;
}

static tess_status load(const char *text, tess_weights *weights, tess_memory *memory,
                        tess_spectral_plan **plan, tess_spectral_state *state, tess_error *error)
{
    tess_json *yaml = NULL;
    tess_cuvis cuvis = {.left_out = NULL};
    tess_cuvis_facts facts = {.fitted = true};
    tess_status status = tess_yaml_parse(text, strlen(text), &yaml, error);
    if (status == TESS_OK)
        status = tess_cuvis_graph(yaml, &facts, &cuvis, error);
    if (status == TESS_OK)
        status = tess_cuvis_bands(&cuvis, weights, &facts.bands, error);
    if (status == TESS_OK)
        status = tess_cuvis_load(&cuvis, &facts, weights, memory, plan, state, error);
    tess_cuvis_free(&cuvis);
    tess_json_free(yaml);
    return status;
}

/* The state, by hand: the covariance is the inverse of the symmetric part, and the centre the mean before both nodes. */
static void test_state(void)
{
    static const double deviation[] = {2, 1, .5}, mean[] = {.5, .25, 0}, mu[] = {1, -1, 2},
                        inverse[] = {4, 2, .5};
    tess_memory memory = {0};
    tess_weights *weights = make_weights();
    tess_spectral_plan *plan = NULL;
    tess_spectral_state state = {0};
    tess_error error = {{0}};
    CHECK_MSG(load(head, weights, &memory, &plan, &state, &error) == TESS_OK, "%s", error.text);
    if (plan) {
        CHECK(plan->bands == BANDS && plan->pipeline.count == 3);
        CHECK(plan->pipeline.nodes[1].values[TESS_ZSCORE_EPS] == 0 &&
              plan->pipeline.nodes[2].values[TESS_RX_EPS] == 0);
        const double *covariance = tess_spectral_part(&state, 2, "covariance"),
                     *centre = tess_spectral_part(&state, 2, "centre");
        for (int i = 0; i < BANDS; i++) {
            const double before = ((mu[i] * deviation[i] + mean[i]) * 20) + 10;
            CHECK_MSG(fabs(centre[i] - before) < 1e-12, "centre %d is %g, not %g", i, centre[i], before);
            for (int j = 0; j < BANDS; j++)
                CHECK(fabs(covariance[i * BANDS + j] - (i == j ? 1 / inverse[i] : 0)) < 1e-14);
        }
    }
    tess_spectral_state_free(&state);
    tess_spectral_plan_free(plan);
    tess_weights_close(weights);
}

static void check_refused(const char *from, const char *to, tess_status wanted, const char *words)
{
    char text[4096];
    const char *at = strstr(head, from);
    tess_json *yaml = NULL;
    tess_cuvis cuvis;
    tess_error error = {{0}};
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - head), head, to, at + strlen(from));
    CHECK(tess_yaml_parse(text, strlen(text), &yaml, &error) == TESS_OK);
    CHECK_MSG(tess_cuvis_graph(yaml, &(tess_cuvis_facts){0}, &cuvis, &error) == wanted,
              "%s instead of %s: '%s'", to, from, error.text);
    CHECK_MSG(strstr(error.text, words), "'%s' does not say '%s'", error.text, words);
    tess_cuvis_free(&cuvis);
    tess_json_free(yaml);
}

static void test_refusals(void)
{
    check_refused("ZScoreNormalizerGlobal", "ZScoreOfTomorrow", TESS_UNSUPPORTED,
                  "z (cuvis_ai.anomaly.deep_svdd.ZScoreOfTomorrow)");
    check_refused("cuvis_ai.node.anomaly.rx_detector.RXGlobal", "their.RXGlobal", TESS_UNSUPPORTED,
                  "rx (their.RXGlobal)");
    check_refused("{num_channels: 3}}\n- {name: rx", "{eps: 1, decay: 2}}\n- {name: rx", TESS_UNSUPPORTED,
                  "decay");
    check_refused("z.outputs.normalized", "z.outputs.spectra", TESS_BAD_INPUT, "has no output 'spectra'");
    check_refused("z.outputs.normalized", "scale.normalized", TESS_BAD_INPUT, "NODE.outputs.PORT");
    check_refused("data.outputs.cube, target: scale", "rx.outputs.scores, target: scale", TESS_BAD_INPUT,
                  "does not read");
    check_refused("data.outputs.cube, target: scale", "z.outputs.normalized, target: scale", TESS_BAD_INPUT,
                  "circle");
    check_refused("eps: 1.0e-06", "eps: -1", TESS_BAD_INPUT, "eps");
}

static void test_left_out(void)
{
    tess_json *yaml = NULL;
    tess_cuvis cuvis;
    tess_error error = {{0}};
    CHECK(tess_yaml_parse(head, strlen(head), &yaml, &error) == TESS_OK);
    CHECK_MSG(tess_cuvis_graph(yaml, &(tess_cuvis_facts){0}, &cuvis, &error) == TESS_OK, "%s", error.text);
    CHECK(cuvis.pipeline.nodes[1].values[TESS_ZSCORE_EPS] == 1e-8);
    CHECK(cuvis.pipeline.nodes[2].values[TESS_RX_CUTOFF] == 0x1p-23 &&
          cuvis.pipeline.nodes[2].values[TESS_RX_EPS] == 1e-6);
    CHECK(tess_json_length(cuvis.left_out) == 1 && tess_json_length(cuvis.data) == 1);
    CHECK(strcmp(tess_json_get_string(tess_json_at(cuvis.left_out, 0), "name", ""), "picture") == 0);
    tess_cuvis_free(&cuvis);
    tess_json_free(yaml);
}

static void test_failed_allocations(void)
{
    tess_memory memory = {0};
    tess_weights *weights = make_weights();
    uint64_t n = 0;
    for (bool failed = true; failed;) {
        tess_spectral_plan *plan = NULL;
        tess_spectral_state state = {0};
        tess_error error = {{0}};
        const uint64_t before = tess_mem_calls();
        tess_mem_fail_at(++n);
        const tess_status status = load(head, weights, &memory, &plan, &state, &error);
        tess_mem_fail_at(0);
        failed = tess_mem_calls() - before >= n;
        CHECK_MSG(status == (failed ? TESS_NO_MEMORY : TESS_OK), "allocation %llu: %d %s",
                  (unsigned long long)n, status, error.text);
        tess_spectral_state_free(&state);
        tess_spectral_plan_free(plan);
    }
    CHECK(n > 50);
    tess_weights_close(weights);
}

int main(void)
{
    tess_json *value = NULL;
    if (tess_yaml_parse("a: 1", 4, &value, NULL) == TESS_UNSUPPORTED)
        return check_skip("built without libyaml");
    tess_json_free(value);
    test_state();
    test_left_out();
    test_refusals();
    test_failed_allocations();
    return check_end();
}
