/* pipeline_named.c: pipelines that have a name. rx reads the samples as they are, so it has no eps, which would mean
 * something else for each scale of the data; rx-trimmed is the same without the pixels that score high, chosen on implants
 * (bench/studies/detect_study.py). A ring has few pixels, often fewer than there are channels, so rx-local needs more
 * than its own covariance S: it works on components whose covariance over the set is the identity, where S + eps I is S
 * pulled towards the covariance of the set, with the weight eps beside 1. lad, selector and svdd are those of cuvis.ai, the
 * last without its choice of wavelengths; the parameters of selector and svdd are to be trained. */
#include <stdio.h>
#include <string.h>

#include "base/spelling.h"
#include "model/spectral/pipeline.h"

typedef struct named {
    const char *name, *json;
} named;

static const named list[] = {
    {"rx",
     "{\"nodes\": [{\"kind\": \"rx\", \"eps\": 0}, {\"kind\": \"quantile\"}, {\"kind\": \"metrics\"}]}"},
    {"rx-trimmed",
     "{\"nodes\": [{\"kind\": \"rx\", \"eps\": 0, \"trim\": 2, \"trims\": 6}, {\"kind\": \"quantile\"},"
     " {\"kind\": \"metrics\"}]}"},
    {"rx-local", "{\"nodes\": [{\"kind\": \"pca\", \"components\": 0, \"whiten\": true, \"eps\": 0},"
                 " {\"kind\": \"rx\", \"over\": \"local\", \"eps\": 1.5, \"inner\": 15, \"outer\": 51}, "
                 "{\"kind\": \"quantile\"},"
                 " {\"kind\": \"metrics\"}]}"},
    {"lad", "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"lad\"}, {\"kind\": \"quantile\"},"
            " {\"kind\": \"metrics\"}]}"},
    {"svdd", "{\"nodes\": [{\"kind\": \"unit_norm\"}, {\"kind\": \"zscore\", \"trainable\": true}, "
             "{\"kind\": \"mlp\"},"
             " {\"kind\": \"svdd\"}, {\"kind\": \"soft_boundary\"}, {\"kind\": \"quantile\"}, {\"kind\": "
             "\"metrics\"}]}"},
    {"selector",
     "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"selector\"}, {\"kind\": \"rx\", \"trainable\": true},"
     " {\"kind\": \"score_to_logit\", \"trainable\": true}, {\"kind\": \"bce\", \"weight\": 10}, {\"kind\": "
     "\"binary\"},"
     " {\"kind\": \"metrics\"}]}"},
};
enum { NAMES = sizeof list / sizeof *list };

tess_status tess_pipeline_named(const char *name, tess_pipeline *out, tess_error *error)
{
    const char *nearest = NULL, *json = NULL;
    int least = tess_spelling_limit(name);
    for (int i = 0; i < NAMES; i++) {
        const int far = tess_spelling_distance(name, list[i].name);
        if (far == 0)
            json = list[i].json;
        if (far < least)
            nearest = list[i].name, least = far;
    }
    if (!json && nearest)
        return tess_fail(error, TESS_BAD_OPTION, "no pipeline is called '%.60s'; did you mean %s?", name,
                         nearest);
    if (!json)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "no pipeline is called '%.60s'; there are rx, rx-trimmed, rx-local, lad, svdd and selector, or "
            "give a .json or .safetensors file",
            name);
    tess_json *parsed = NULL;
    TESS_TRY(tess_json_parse(json, strlen(json), &parsed, error));
    tess_status status = tess_pipeline_parse(parsed, out, error);
    tess_json_free(parsed);
    return status;
}
