/* compile_words.c: the passes of a pipeline and their reasons, for plans and records. */
#include <stdio.h>

#include "model/spectral/compile.h"

static const char *name_at(const tess_spectral_plan *plan, int node)
{
    return node == TESS_NODE_DATA ? "data" : plan->pipeline.nodes[node].name;
}

static tess_json *gathered(unsigned needs)
{
    static const struct {
        unsigned need;
        const char *word;
    } words[] = {{TESS_NEED_RANGE, "range"},
                 {TESS_NEED_MEAN, "mean"},
                 {TESS_NEED_COVARIANCE, "mean and covariance"},
                 {TESS_NEED_CHANNEL_RANGES, "range of each channel"},
                 {TESS_NEED_MEDIANS, "median of each channel"},
                 {TESS_NEED_SCORES, "mean and deviation of the scores"},
                 {TESS_NEED_SCORE_ORDER, "quantile of the scores"}};
    tess_json *list = tess_json_array();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((needs & words[i].need) && !(words[i].need == TESS_NEED_MEAN && (needs & TESS_NEED_COVARIANCE)))
            tess_json_append_string(&list, words[i].word);
    return list;
}

/* The node at or before `at` whose fit the pass waits for. */
static const char *waits_for(const tess_spectral_plan *plan, const tess_tap *tap)
{
    for (int at = tap->at; at != TESS_NODE_DATA; at = plan->pipeline.nodes[at].from)
        if (tess_node_scope_of(&plan->pipeline.nodes[at]) == tap->scope &&
            plan->known[at] == tap->first - 1 && plan->known[at] > 0)
            return plan->pipeline.nodes[at].name;
    return NULL;
}

static tess_json *tap_json(const tess_spectral_plan *plan, int index, int pass)
{
    const tess_tap *tap = &plan->tap[index];
    tess_json *entry = tess_json_object(), *nodes = tess_json_array();
    char reason[192];
    for (int i = 0; i < plan->pipeline.count; i++)
        if ((plan->tap_of[i] == index && plan->known[i] >= pass) ||
            (plan->trim_tap == index && i == tess_pipeline_score(&plan->pipeline)))
            tess_json_append_string(&nodes, plan->pipeline.nodes[i].name);
    const char *waits = waits_for(plan, tap);
    if (tap->needs & TESS_NEED_TRIMMED)
        snprintf(reason, sizeof reason,
                 "pixels that score high by the pass before are left out; this is time %d",
                 pass - tap->first + 1);
    else if (pass > tap->first)
        snprintf(reason, sizeof reason, "finding a value by its rank takes several passes; this is number %d",
                 pass - tap->first + 1);
    else if (waits)
        snprintf(reason, sizeof reason, "values behind '%s' can be computed when it is fitted", waits);
    else
        snprintf(reason, sizeof reason, "nothing fitted lies before");
    tess_json_set_string(&entry, "behind", name_at(plan, tap->at));
    tess_json_set(&entry, "gathers", gathered(tap->needs));
    tess_json_set(&entry, "for", nodes);
    tess_json_set_string(&entry, "reason", reason);
    const int readings = tess_spectral_readings_at(plan, tap->at);
    if (readings)
        tess_json_set_int(&entry, "readings_of_each_image_before", readings);
    return entry;
}

tess_json *tess_spectral_passes_json(const tess_spectral_plan *plan)
{
    tess_json *list = tess_json_array();
    for (int pass = 1; pass <= plan->passes; pass++) {
        tess_json *taps = tess_json_array();
        for (int t = 0; t < plan->taps; t++)
            if (plan->tap[t].scope == TESS_SCOPE_SET && pass >= plan->tap[t].first &&
                pass <= plan->tap[t].last)
                tess_json_append(&taps, tap_json(plan, t, pass));
        tess_json *entry = tess_json_object();
        tess_json_set_int(&entry, "pass", pass);
        tess_json_set(&entry, "taps", taps);
        tess_json_append(&list, entry);
    }
    return list;
}
