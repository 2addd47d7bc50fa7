/* Pipelines from JSON: chains, graphs, standard values, what is written is read again; and every kind of mistake is named. */
#include "check.h"
#include "model/spectral/pipeline.h"

#include "base/mem.h"

static tess_status parse(const char *text, tess_pipeline *out, tess_error *error)
{
    tess_json *json = NULL;
    tess_status status = tess_json_parse(text, strlen(text), &json, error);
    if (status == TESS_OK)
        status = tess_pipeline_parse(json, out, error);
    tess_json_free(json);
    return status;
}

static void check_refused(const char *text, const char *words)
{
    tess_pipeline p;
    tess_error error = {{0}};
    CHECK_MSG(parse(text, &p, &error) == TESS_BAD_INPUT, "%s was accepted", text);
    CHECK_MSG(strstr(error.text, words), "'%s' does not say '%s'", error.text, words);
}

static void test_chain(void)
{
    tess_pipeline p;
    tess_error error = {{0}};
    CHECK(
        parse("{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\", \"components\": 5, \"whiten\": true},"
              "{\"kind\": \"rx\", \"name\": \"score\", \"over\": \"image\"}, {\"kind\": \"quantile\"}]}",
              &p, &error) == TESS_OK);
    CHECK(p.count == 4 && p.nodes[0].from == TESS_NODE_DATA && p.nodes[3].from == 2);
    CHECK(p.nodes[1].values[TESS_PCA_COMPONENTS] == 5 && p.nodes[1].values[TESS_PCA_WHITEN] == 1);
    CHECK(p.nodes[1].values[TESS_PCA_EPS] == 1e-6 && p.nodes[3].values[TESS_QUANTILE_QUANTILE] == 0.995);
    CHECK(tess_node_scope_of(&p.nodes[2]) == TESS_SCOPE_IMAGE && strcmp(p.nodes[2].name, "score") == 0);
    CHECK(tess_pipeline_score(&p) == 2 && tess_pipeline_decider(&p) == 3);
    CHECK(tess_node_is_affine(&p.nodes[0]) && tess_node_is_affine(&p.nodes[1]));
}

/* Connections in any order of nodes; written and read again. */
static void test_graph(void)
{
    tess_pipeline p, again;
    tess_error error = {{0}};
    CHECK_MSG(
        parse("{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"pca\"}, {\"kind\": \"minmax\"},"
              "{\"kind\": \"zscore\", \"over\": \"image\"}, {\"kind\": \"binary\"}],"
              "\"connections\": [[\"rx.scores\", \"binary\"], [\"minmax\", \"pca\"], [\"zscore\", \"rx\"],"
              "[\"pca.spectra\", \"zscore.spectra\"]]}",
              &p, &error) == TESS_OK,
        "%s", error.text);
    CHECK(p.count == 5 && p.nodes[0].kind == TESS_NODE_MINMAX);
    for (int i = 0; i < p.count; i++)
        CHECK(p.nodes[i].from < i);
    CHECK(p.nodes[tess_pipeline_kind(&p, TESS_NODE_ZSCORE)].values[TESS_ZSCORE_EPS] == 1e-6);
    tess_json *json = tess_pipeline_json(&p);
    CHECK(tess_pipeline_parse(json, &again, &error) == TESS_OK);
    CHECK(memcmp(&p, &again, sizeof p) == 0);
    tess_json_free(json);
}

static void test_named(void)
{
    tess_pipeline p;
    tess_error error = {{0}};
    CHECK(tess_pipeline_named("rx", &p, &error) == TESS_OK && p.count == 3);
    CHECK(tess_pipeline_named("rx-local", &p, &error) == TESS_OK);
    CHECK(tess_node_scope_of(&p.nodes[1]) == TESS_SCOPE_LOCAL);
    CHECK(tess_pipeline_named("rx-trimmed", &p, &error) == TESS_OK && p.nodes[0].values[TESS_RX_TRIM] > 1);
    CHECK(tess_pipeline_named("lad", &p, &error) == TESS_OK && p.nodes[1].kind == TESS_NODE_LAD);
    CHECK(tess_pipeline_named("svdd", &p, &error) == TESS_OK && tess_pipeline_score(&p) == 3 &&
          p.nodes[4].kind == TESS_NODE_SOFT_BOUNDARY && p.nodes[4].from == 3 && p.nodes[5].from == 3);
    CHECK(tess_node_trainable(&p.nodes[1]) && tess_node_trainable(&p.nodes[2]) &&
          !tess_node_trainable(&p.nodes[3]));
    CHECK(tess_pipeline_named("selector", &p, &error) == TESS_OK && p.nodes[1].kind == TESS_NODE_SELECTOR);
    CHECK(tess_node_trainable(&p.nodes[2]) && tess_pipeline_kind(&p, TESS_NODE_BCE) == 4);
    CHECK(tess_pipeline_named("rx-locla", &p, &error) == TESS_BAD_OPTION && strstr(error.text, "rx-local?"));
}

static void test_mistakes(void)
{
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"trim\": 0.5}]}", "above 1");
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"trim\": 2, \"over\": \"image\"}]}", "set");
    check_refused("{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"rx\"}], \"connections\": []}",
                  "'snv' does not lead to 'rx'");
    check_refused("{}", "there are no nodes");
    check_refused("{\"nodes\": []}", "there are no nodes");
    check_refused("{\"nodes\": [{\"kind\": \"rx\"}], \"edges\": []}", "edges: is no key");
    check_refused("{\"nodes\": [{\"kind\": \"pcaa\"}]}", "did you mean pca?");
    check_refused("{\"nodes\": [{\"kind\": \"transformer\"}]}", "the kinds are minmax");
    check_refused("{\"nodes\": [{\"kind\": \"mlp\"}, {\"kind\": \"mse\"}, {\"kind\": \"svdd\"}]}",
                  "target: is missing");
    check_refused("{\"nodes\": [{\"kind\": \"mlp\", \"name\": \"encoder\"},"
                  "{\"kind\": \"residual\", \"target\": \"encodr\"}]}",
                  "did you mean encoder?");
    check_refused("{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\"}, {\"kind\": \"rx\"},"
                  "{\"kind\": \"lad\", \"target\": \"pca\"}]}",
                  "target: is no setting");
    check_refused("{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"orthogonality\"}, {\"kind\": \"rx\"}]}",
                  "of the kind pca");
    check_refused("{\"nodes\": [{\"kind\": \"pca\"}, {\"kind\": \"entropy\"}, {\"kind\": \"rx\"}]}",
                  "of the kind selector");
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"over\": \"local\", \"trainable\": true}]}",
                  "only a node over the set");
    check_refused(
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\"}, {\"kind\": \"mse\", \"target\": \"rx\"},"
        "{\"kind\": \"rx\"}]}",
        "does not lie between");
    check_refused("{\"nodes\": [{\"name\": \"rx\"}]}", "has no kind");
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"epz\": 1}]}", "did you mean eps?");
    check_refused("{\"nodes\": [{\"kind\": \"snv\", \"components\": 1}]}", "which has eps");
    check_refused("{\"nodes\": [{\"kind\": \"continuum\", \"eps\": 1}]}", "continuum has none");
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"eps\": -1}]}",
                  "node 'rx': eps: expected a number from 0, got -1");
    check_refused("{\"nodes\": [{\"kind\": \"pca\", \"components\": 2.5}]}", "components");
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"over\": \"all\"}]}",
                  "\"set\", \"image\", \"local\" or \"stream\"");
    check_refused("{\"nodes\": [{\"kind\": \"savitzky_golay\", \"window\": 4}]}", "odd");
    check_refused("{\"nodes\": [{\"kind\": \"savitzky_golay\", \"window\": 5, \"order\": 5}]}",
                  "below the window");
    check_refused("{\"nodes\": [{\"kind\": \"bandpass\", \"from\": 700, \"to\": 400}]}", "above to");
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"over\": \"local\", \"inner\": 9, \"outer\": 9}]}",
                  "inner");
    check_refused("{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"rx\"}]}", "two are called 'rx'");
    check_refused("{\"nodes\": [{\"kind\": \"rx\", \"name\": \"a.b\"}]}", "is no name");
    check_refused("{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"pca\"}]}",
                  "'rx' (rx) gives scores, which 'pca'");
    check_refused("{\"nodes\": [{\"kind\": \"pca\"}]}", "none of them scores");
    check_refused("{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"lad\"}], \"connections\": []}",
                  "one result");
    check_refused("{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"binary\"}], \"connections\": []}",
                  "nothing is connected to 'binary'");
    check_refused(
        "{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"binary\"}], \"connections\": [[\"rz\", \"binary\"]]}",
        "did you mean rx?");
    check_refused("{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"binary\"}],"
                  "\"connections\": [[\"rx.mask\", \"binary\"]]}",
                  "node 'rx' (rx) has no output 'mask'; it gives scores");
    check_refused("{\"nodes\": [{\"kind\": \"rx\"}, {\"kind\": \"binary\"}], \"connections\": [[\"rx\"]]}",
                  "not a pair");
    check_refused("{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"pca\"}, {\"kind\": \"rx\"}],"
                  "\"connections\": [[\"snv\", \"rx\"], [\"pca\", \"rx\"]]}",
                  "two inputs");
    check_refused(
        "{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"pca\"}, {\"kind\": \"zscore\"}, {\"kind\": \"rx\"}],"
        "\"connections\": [[\"snv\", \"pca\"], [\"pca\", \"zscore\"], [\"zscore\", \"snv\"], [\"pca\", "
        "\"rx\"]]}",
        "snv -> pca -> zscore -> snv is a circle");
}

/* No failed allocation leaks or breaks. */
static void test_memory(void)
{
    for (uint64_t n = 1;; n++) {
        tess_pipeline p;
        tess_error error = {{0}};
        tess_mem_fail_at(n);
        const tess_status status = tess_pipeline_named("lad", &p, &error);
        tess_json *json = status == TESS_OK ? tess_pipeline_json(&p) : NULL;
        tess_mem_fail_at(0);
        const bool done = json;
        tess_json_free(json);
        if (done || n > 500) {
            CHECK(n < 500);
            return;
        }
    }
}

int main(void)
{
    test_chain();
    test_graph();
    test_named();
    test_mistakes();
    test_memory();
    return check_end();
}
