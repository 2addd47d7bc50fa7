/* A few pixels in place of an image: their mean and covariance, and which networks may see them alone. */
#include "condense_checks.h"

#include "net/training.h"

static bool is_quadratic(const char *json, int bands)
{
    tess_json *parsed = NULL;
    tess_pipeline pipeline;
    tess_spectral_plan *plan = NULL;
    tess_net *net = NULL;
    tess_error error = {{0}};
    bool trained[TESS_PIPELINE_NODES] = {false}, masks = false, quadratic = false;
    CHECK(tess_json_parse(json, strlen(json), &parsed, &error) == TESS_OK);
    CHECK_MSG(tess_pipeline_parse(parsed, &pipeline, &error) == TESS_OK, "%s", error.text);
    tess_json_free(parsed);
    CHECK_MSG(tess_spectral_compile(&pipeline, bands, NULL, &plan, &error) == TESS_OK, "%s", error.text);
    for (int i = 0; i < pipeline.count; i++)
        trained[i] = tess_node_trainable(&pipeline.nodes[i]);
    CHECK_MSG(tess_spectral_trainer(plan, trained, &net, &masks, &error) == TESS_OK, "%s", error.text);
    if (net)
        quadratic = tess_net_is_quadratic(net);
    tess_net_destroy(net);
    tess_spectral_plan_free(plan);
    return quadratic;
}

static void test_networks(void)
{
#define LINEAR "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"linear\", \"channels\": 6}, "
#define END    "{\"kind\": \"residual\", \"target\": \"minmax\"}"
    CHECK(is_quadratic(LINEAR "{\"kind\": \"mse\", \"target\": \"minmax\"}, " END "]}", 6));
    CHECK(is_quadratic(
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"selector\"}, {\"kind\": \"entropy\"}, {\"kind\": "
        "\"mse\", \"target\": \"minmax\"}, " END "]}",
        6));
    CHECK(!is_quadratic(LINEAR "{\"kind\": \"mse\", \"target\": \"minmax\"}, " END ", {\"kind\": \"bce\"}]}",
                        6));
    CHECK(!is_quadratic(
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"mlp\", \"channels\": 6}, {\"kind\": \"mse\", "
        "\"target\": \"minmax\"}, " END "]}",
        6));
    CHECK(
        !is_quadratic("{\"nodes\": [{\"kind\": \"selector\"}, {\"kind\": \"rx\"}, {\"kind\": \"bce\"}]}", 6));
}

int main(void)
{
    test_networks();
    check_condensing("cpu");
    check_condensing("separate");
    return check_end();
}
