/* Pipelines as networks: their scores, a selector's factors, and the parameters that go from the state to the network and back. */
#include "network_scores.h"

static void test_factors(void)
{
    static const char *const graphs[] = {"{\"nodes\": [{\"kind\": \"selector\", \"hard\": true, \"select\": "
                                         "4}, {\"kind\": \"rx\", \"eps\": 1}]}",
                                         "{\"nodes\": [{\"kind\": \"selector\", \"start\": \"uniform\", "
                                         "\"select\": 3}, {\"kind\": \"rx\", \"eps\": 1}]}"};
    pixel_arrays a;
    pixel_arrays_fill(&a, 2, 9, 9, 10, TESS_F32);
    for (int k = 0; k < 2; k++) {
        pipeline_run run;
        double factors[10], sum = 0;
        pipeline_run_fit(&run, graphs[k], &a, NULL, 4, 1);
        CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
        tess_selector_factors(&run.state, 0, factors);
        for (int i = 0; i < 10; i++) {
            sum += factors[i];
            CHECK(k ? fabs(factors[i] - 0.3) < 1e-12 : factors[i] == 0 || factors[i] == 1);
        }
        CHECK(fabs(sum - (k ? 3 : 4)) < 1e-12);
        pipeline_run_close(&run);
    }
    pixel_arrays_free(&a);
}

/* What a network is given comes back as it was, and what changed is in the state. */
static void test_values(void)
{
    static const char graph[] = "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"selector\"}, {\"kind\": "
                                "\"rx\", \"trainable\": true},"
                                "{\"kind\": \"score_to_logit\", \"trainable\": true}, {\"kind\": \"bce\"}]}";
    pixel_arrays a;
    pipeline_run run;
    pixel_arrays_fill(&a, 2, 9, 9, 10, TESS_F32);
    pipeline_run_fit(&run, graph, &a, NULL, 4, 1);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    const bool trained[TESS_PIPELINE_NODES] = {false, true, true, true};
    bool masks = false;
    tess_net *net = NULL;
    tess_parameters parameters = {0};
    CHECK(tess_spectral_trainer(run.plan, trained, &net, &masks, &run.error) == TESS_OK && masks);
    CHECK(tess_parameters_list(net, &parameters, &run.error) == TESS_OK && parameters.count > 0);
    const size_t bytes = tess_spectral_state_bytes(run.plan);
    double *before = malloc(bytes), *work = calloc(tess_spectral_network_workspace(run.plan), sizeof *work);
    memcpy(before, run.state.block.data, bytes);
    int changed = 0;
    for (int i = 0; i < parameters.count; i++) {
        float values[100] = {0};
        const tess_parameter *one = &parameters.list[i];
        CHECK(one->elements <= 100 && one->running == (strncmp(one->name, "minmax", 6) == 0));
        CHECK(tess_spectral_get(&run.state, one, values, work, &run.error) == TESS_OK);
        tess_spectral_set(&run.state, one, values);
        CHECK_MSG(memcmp(before, run.state.block.data, bytes) == 0, "%s changed", one->name);
        values[0] += 1;
        tess_spectral_set(&run.state, one, values);
        changed += memcmp(before, run.state.block.data, bytes) != 0;
        memcpy(run.state.block.data, before, bytes);
    }
    CHECK(changed == 5); /* logits, mean, inverse, scale, bias */
    const bool none[TESS_PIPELINE_NODES] = {false};
    tess_net *other = NULL;
    CHECK(tess_spectral_trainer(run.plan, none, &other, &masks, &run.error) == TESS_OK);
    tess_net_destroy(other);
    tess_parameters_clear(&parameters);
    tess_net_destroy(net);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
    free(before), free(work);
}

static void check_trainer_refused(const char *graph, int node, const char *words)
{
    pixel_arrays a;
    pipeline_run run;
    bool masks, trained[TESS_PIPELINE_NODES] = {false};
    tess_net *net = NULL;
    pixel_arrays_fill(&a, 1, 9, 9, 10, TESS_F32);
    pipeline_run_fit(&run, graph, &a, NULL, 4, 1);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    trained[node] = true;
    CHECK(tess_spectral_trainer(run.plan, trained, &net, &masks, &run.error) != TESS_OK && !net);
    CHECK_MSG(strstr(run.error.text, words), "%s", run.error.text);
    pipeline_run_close(&run);
    pixel_arrays_free(&a);
}

int main(void)
{
    check_network_scores("cpu");
    test_factors();
    test_values();
    check_trainer_refused("{\"nodes\": [{\"kind\": \"selector\"}, {\"kind\": \"rx\"}]}", 0, "no loss");
    check_trainer_refused(
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"snv\"}, {\"kind\": \"mlp\", \"channels\": 10},"
        "{\"kind\": \"mse\", \"target\": \"minmax\"}, {\"kind\": \"svdd\"}]}",
        2, "gradients do not pass");
    check_trainer_refused("{\"nodes\": [{\"kind\": \"selector\"}, {\"kind\": \"mlp\", \"channels\": 10},"
                          "{\"kind\": \"mse\", \"target\": \"selector\"}, {\"kind\": \"svdd\"}]}",
                          0, "must not be a node that is trained");
    return check_end();
}
