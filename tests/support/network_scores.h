/* network_scores.h: scores by the network of a pipeline, on any device, against those by factors or in fp64. */
#ifndef TESS_TESTS_NETWORK_SCORES_H
#define TESS_TESTS_NETWORK_SCORES_H

#include "model/spectral/network.h"
#include "pixel_arrays.h"

static inline void check_scores_close(const char *name, const float *got, const double *want, int64_t count,
                                      double bound)
{
    double most = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs((double)got[i] - want[i]);
        most = d <= most ? most : d;
        largest = fmax(largest, fabs(want[i]));
    }
    CHECK_MSG(most <= bound * largest && largest > 0, "%s: |a-b| %.3g of %.3g", name, most, largest);
}

/* The same nodes, not trainable and trainable: by a factor, and by the network. */
static inline void check_trainable(const char *device, const char *plain, const char *trainable,
                                   pixel_arrays *a, double bound)
{
    pipeline_run one, other;
    pipeline_run_fit(&one, plain, a, NULL, 5, 1);
    pipeline_run_fit_on(device, &other, trainable, a, NULL, 7, 2);
    CHECK_MSG(one.status == TESS_OK && other.status == TESS_OK, "%s%s", one.error.text, other.error.text);
    if (one.status == TESS_OK && other.status == TESS_OK) {
        CHECK(!tess_spectral_by_network(one.plan) && tess_spectral_by_network(other.plan));
        for (int64_t i = 0; i < a->images; i++) {
            float *want = pipeline_run_scores(&one, a, i), *got = pipeline_run_scores(&other, a, i);
            double *wide = calloc((size_t)pixel_count(a, i), sizeof *wide);
            for (int64_t p = 0; p < pixel_count(a, i); p++)
                wide[p] = (double)want[p];
            check_scores_close(trainable, got, wide, pixel_count(a, i), bound);
            free(want), free(got), free(wide);
        }
    }
    pipeline_run_close(&one);
    pipeline_run_close(&other);
}

/* Pixels behind a node, in fp64 but for the last rounding. The caller frees them. */
static inline float *pixels_behind(pipeline_run *run, const pixel_arrays *a, int64_t image, int node)
{
    const int64_t pixels = pixel_count(a, image);
    const int channels = tess_spectral_gives(run->plan, node);
    double *memory = calloc(tess_path_values(run->plan, node) + 1, sizeof *memory),
           *work = calloc(tess_spectral_fold_workspace(run->plan), sizeof *work);
    float *from = calloc((size_t)(pixels * a->bands), sizeof *from),
          *to = calloc((size_t)(pixels * channels), sizeof *to);
    tess_path path;
    for (int64_t i = 0; i < pixels * a->bands; i++)
        from[i] = (float)pixel_value(a, image, i / a->bands, (int)(i % a->bands));
    tess_path_make(&run->state, node, memory, work, &path);
    tess_path_run(&path, from, pixels, to, NULL);
    free(memory), free(work), free(from);
    return to;
}

/* The distance from a centre, or from another node. */
static inline void check_distance(const char *device, const char *json, pixel_arrays *a, bool mean)
{
    pipeline_run run;
    pipeline_run_fit_on(device, &run, json, a, NULL, 6, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    if (run.status == TESS_OK) {
        const int score = tess_pipeline_score(&run.plan->pipeline),
                  channels = tess_spectral_reads(run.plan, score);
        const tess_node *node = &run.plan->pipeline.nodes[score];
        const double *centre = mean ? NULL : tess_spectral_part(&run.state, score, "centre");
        for (int64_t i = 0; i < a->images; i++) {
            float *z = pixels_behind(&run, a, i, node->from),
                  *t = mean ? pixels_behind(&run, a, i, node->target) : NULL,
                  *got = pipeline_run_scores(&run, a, i);
            double *want = calloc((size_t)pixel_count(a, i), sizeof *want);
            for (int64_t v = 0; v < pixel_count(a, i) * channels; v++) {
                const double d = (double)z[v] - (mean ? (double)t[v] : centre[v % channels]);
                want[v / channels] += d * d / (mean ? channels : 1);
            }
            check_scores_close(json, got, want, pixel_count(a, i), 1e-4);
            free(z), free(t), free(got), free(want);
        }
    }
    pipeline_run_close(&run);
}

static inline void check_network_scores(const char *device)
{
    pixel_arrays a;
    pixel_arrays_fill(&a, 3, 11, 13, 12, TESS_U16);
    check_trainable(device, "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"rx\"}]}",
                    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"rx\", \"trainable\": true}]}", &a,
                    2e-4);
    check_trainable(device,
                    "{\"nodes\": [{\"kind\": \"zscore\"}, {\"kind\": \"pca\", \"components\": 7, \"whiten\": "
                    "true}, {\"kind\": \"rx\"}]}",
                    "{\"nodes\": [{\"kind\": \"zscore\", \"trainable\": true}, {\"kind\": \"pca\", "
                    "\"components\": 7, \"whiten\": true,"
                    "\"trainable\": true}, {\"kind\": \"rx\"}]}",
                    &a, 2e-4);
    check_trainable(
        device,
        "{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"savitzky_golay\", \"window\": 5}, {\"kind\": "
        "\"lad\"}]}",
        "{\"nodes\": [{\"kind\": \"snv\"}, {\"kind\": \"savitzky_golay\", \"window\": 5}, {\"kind\": \"lad\","
        "\"trainable\": true}]}",
        &a, 2e-4);
    check_trainable(device,
                    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"selector\", \"trainable\": false}, "
                    "{\"kind\": \"rx\"}]}",
                    "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"selector\"}, {\"kind\": \"rx\"}]}", &a,
                    2e-4);
    check_distance(
        device,
        "{\"nodes\": [{\"kind\": \"unit_norm\"}, {\"kind\": \"zscore\"}, {\"kind\": \"mlp\", \"hidden\": 20,"
        "\"channels\": 6}, {\"kind\": \"svdd\"}]}",
        &a, false);
    check_distance(
        device,
        "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"linear\", \"channels\": 4}, {\"kind\": \"linear\","
        "\"name\": \"back\", \"channels\": 12}, {\"kind\": \"residual\", \"target\": \"minmax\"}]}",
        &a, true);
    pixel_arrays_free(&a);
}

#endif
