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

/* Images that follow one another in memory: runs of one height are one op, and one of another height ends a run. */
static void test_in_place(const char *kind)
{
    enum { BANDS = 13, WIDTH = 11 };
    static const int64_t heights[] = {9, 9, 9, 5, 9, 9, 4};
    static const char json[] =
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"linear\", \"channels\": 13}, {\"kind\": "
        "\"mse\", \"target\": \"minmax\"}, {\"kind\": \"residual\", \"target\": \"minmax\"}]}";
    pixel_arrays a;
    float *all = calloc((size_t)54 * WIDTH * BANDS, sizeof *all), *at = all;
    pixel_arrays_fill(&a, 7, 9, WIDTH, BANDS, TESS_F32);
    for (int64_t i = 0; i < a.images; i++) {
        a.image[i].height = heights[i];
        const size_t values = (size_t)pixel_count(&a, i) * BANDS;
        memcpy(at, a.samples[i], values * sizeof *at);
        free(a.samples[i]);
        a.samples[i] = at;
        at += values;
    }
    a.in_place = true;
    check_condensed(kind, json, &a, 0);
    check_condensed(kind, json, &a, 4); /* blocks of some rows: nothing is joined */
    free(all);
}

int main(void)
{
    test_in_place("cpu");
    test_in_place("separate");
    test_networks();
    check_condensing("cpu");
    check_condensing("separate");
    return check_end();
}
