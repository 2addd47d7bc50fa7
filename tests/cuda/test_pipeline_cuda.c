/* Phase 1 and scores on the card, whose blocks are read, sent and computed at the same time, against the CPU. */
#include "gpu.h"
#include "pixel_arrays.h"

static void check_same(const char *nodes, pixel_arrays *a, int64_t rows, double bound)
{
    char json[512];
    pipeline_run cpu, card, again;
    snprintf(json, sizeof json, "{\"nodes\": [%s]}", nodes);
    a->readers = 1;
    pipeline_run_fit_on("cpu", &cpu, json, a, NULL, rows, 0);
    pipeline_run_fit_on("cuda", &card, json, a, NULL, rows, 0);
    a->readers = 8;
    pipeline_run_fit_on("cuda", &again, json, a, NULL, rows, 0);
    CHECK_MSG(cpu.status == TESS_OK && card.status == TESS_OK && again.status == TESS_OK, "%s: %s %s", json,
              cpu.error.text, card.error.text);
    for (int64_t i = 0;
         cpu.status == TESS_OK && card.status == TESS_OK && again.status == TESS_OK && i < a->images; i++) {
        float *want = pipeline_run_scores(&cpu, a, i), *got = pipeline_run_scores(&card, a, i),
              *same = pipeline_run_scores(&again, a, i);
        double most = 0;
        int nans = 0;
        for (int64_t p = 0; p < pixel_count(a, i); p++) {
            nans += isnan(got[p]) != isnan(want[p]);
            if (!isnan(want[p]))
                most = fmax(most, fabs((double)got[p] - (double)want[p]) / fmax(1, fabs((double)want[p])));
        }
        CHECK_MSG(nans == 0 && most <= bound, "%s, image %d: scores off by %.3g, %d NaN", json, (int)i, most,
                  nans);
        CHECK_MSG(memcmp(got, same, (size_t)pixel_count(a, i) * sizeof *got) == 0,
                  "%s: readers change the scores", json);
        free(want), free(got), free(same);
    }
    pipeline_run_close(&cpu);
    pipeline_run_close(&card);
    pipeline_run_close(&again);
}

int main(void)
{
    int status;
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    tess_registry_close(device);
    const tess_dtype types[] = {TESS_F32, TESS_U16};
    for (int t = 0; t < 2; t++) {
        pixel_arrays a;
        pixel_arrays_fill(&a, 5, 90, 300, 50, types[t]);
        const int64_t rows[] = {0, 90, 17, 1};
        for (int i = 0; i < 4; i++)
            check_same("{\"kind\": \"minmax\"}, {\"kind\": \"pca\", \"components\": 10}, {\"kind\": \"rx\"}",
                       &a, rows[i], 1e-4);
        for (int64_t i = 0; i < a.images; i++) {
            a.image[i].has_nodata = true;
            a.image[i].nodata = types[t] == TESS_U16 ? 1499 : -1;
            if (types[t] == TESS_F32)
                for (int64_t v = 3; v < pixel_count(&a, i) * 50; v += 997)
                    ((float *)a.samples[i])[v] = -1;
        }
        check_same("{\"kind\": \"rx\"}, {\"kind\": \"score_to_logit\"}", &a, 13, 1e-4);
        check_same("{\"kind\": \"snv\"}, {\"kind\": \"zscore\"}, {\"kind\": \"lad\"}", &a, 40, 1e-4);
        pixel_arrays_free(&a);
        pixel_arrays_fill(&a, 2, 30, 40, 8, types[t]);
        check_same("{\"kind\": \"minmax\"}, {\"kind\": \"rx\", \"over\": \"local\"}", &a, 11, 1e-5);
        check_same("{\"kind\": \"rx\", \"over\": \"stream\", \"every\": 9, \"warmup\": 4}", &a, 0, 1e-3);
        pixel_arrays_free(&a);
    }
    return check_end();
}
