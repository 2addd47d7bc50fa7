/* bench batch: cuts one square image into patches that do not overlap and runs batches of them, with and without
 * transfer from the host and back. The last line of each patch size compares --batch auto with the best. */
#include "base/checked.h"
#include "job/study/bench.h"

static const int64_t PATCHES[] = {128, 256, 512}, BATCHES[] = {1, 2, 4, 8, 16, 32, 64};

/* The study of one patch size. */
typedef struct patch_study {
    tess_study *study;
    int64_t patch, count; /* side of a patch, and how many make the image */
    int64_t best_batch, auto_batch;
    double best; /* images per second, without transfer */
    tess_bench_result at_auto;
} patch_study;

/* Plans this patch size with this batch; 0 lets the planner choose. */
static tess_status choose(const patch_study *p, int64_t batch, tess_cut_plan *choice, tess_error *error)
{
    tess_study *study = p->study;
    /* Patches do not overlap, so they are placed in one row: a run takes windows of one row only. */
    const tess_cut_request request = {.size = {1, p->patch, p->patch * p->count},
                                      .planes = 1,
                                      .tile = {0, p->patch, p->patch},
                                      .batch = batch,
                                      .separate_memory = study->engine.separate_memory,
                                      .host_limit = UINT64_MAX,
                                      .limit = tess_bench_limit(study),
                                      .asked_limit = study->settings->common.memory_limit};
    return tess_cut_choose(study->model->bound, &study->model->model, study->engine.rates, &request, choice,
                           error);
}

static tess_json *record_of(const patch_study *p, int64_t batch, const tess_cut_plan *choice,
                            const tess_bench_result *result)
{
    const int64_t side = p->study->settings->height;
    tess_json *record = tess_bench_record(p->study, side, side, choice, result);
    tess_json_set_int(&record, "patch", p->patch);
    tess_json_set_int(&record, "batch", batch);
    tess_json_set_double(&record, "images_per_second", 1 / result->seconds);
    tess_json_set_double(&record, "batch_seconds", result->seconds / (double)tess_ceil_div(p->count, batch));
    return record;
}

static tess_status one_batch(patch_study *p, int64_t batch, bool transfer, tess_error *error)
{
    tess_cut_plan choice;
    tess_bench_result result;
    const tess_bench_work work = {tess_bench_cut(p->count, p->patch, p->patch, batch), transfer};
    TESS_TRY(choose(p, batch, &choice, error));
    TESS_TRY(tess_bench_measure(p->study, &work, p->study->settings->repeats, &result, error));
    if (!transfer && 1 / result.seconds > p->best) {
        p->best = 1 / result.seconds;
        p->best_batch = batch;
    }
    if (!transfer && batch == p->auto_batch)
        p->at_auto = result;
    tess_json *record = record_of(p, batch, &choice, &result);
    tess_json_set_bool(&record, "transfer", transfer);
    return tess_bench_tell(p->study, record, error);
}

static tess_status tell_auto(patch_study *p, const tess_cut_plan *choice, tess_error *error)
{
    const double images = 1 / p->at_auto.seconds;
    tess_json *record = record_of(p, p->auto_batch, choice, &p->at_auto);
    tess_json_set_bool(&record, "auto", true);
    tess_json_set_bool(&record, "transfer", false);
    tess_json_set_int(&record, "best_batch", p->best_batch);
    tess_json_set_double(&record, "best_images_per_second", p->best);
    tess_json_set_double(&record, "share_of_best", images / p->best);
    return tess_bench_tell(p->study, record, error);
}

static tess_status one_patch(tess_study *study, int64_t patch, const int64_t *batches, int count,
                             tess_error *error)
{
    const int64_t across = study->settings->height / patch;
    patch_study p = {.study = study, .patch = patch, .count = across * across};
    tess_cut_plan automatic;
    TESS_TRY(choose(&p, 0, &automatic, error));
    p.auto_batch = tess_min_i64(automatic.batch, p.count);
    for (int transfer = 0; transfer < 2; transfer++)
        for (int i = 0; i < count; i++)
            if (batches[i] <= p.count)
                TESS_TRY(one_batch(&p, batches[i], transfer, error));
    if (p.at_auto.seconds == 0) /* the automatic batch is not in the list */
        TESS_TRY(one_batch(&p, p.auto_batch, false, error));
    return tell_auto(&p, &automatic, error);
}

tess_status tess_bench_batch(tess_study *study, tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    const int64_t *patches = s->patch_count ? s->patches : PATCHES,
                  grid = tess_net_grid(study->model->model.net, TESS_HEIGHT);
    const int64_t *batches = s->batch_count ? s->batches : BATCHES;
    const int patch_count = s->patch_count ? s->patch_count : (int)(sizeof PATCHES / sizeof PATCHES[0]);
    const int batch_count = s->batch_count ? s->batch_count : (int)(sizeof BATCHES / sizeof BATCHES[0]);
    for (int i = 0; i < patch_count; i++)
        if (patches[i] % grid || s->height % patches[i])
            return tess_fail(error, TESS_BAD_OPTION,
                             "`patches` %lld: must be a multiple of %lld and divide `height` %lld",
                             (long long)patches[i], (long long)grid, (long long)s->height);
    for (int i = 0; i < patch_count; i++) {
        const int64_t across = s->height / patches[i];
        for (int k = 0; k < batch_count; k++) {
            const tess_plan_shape shape = {tess_min_i64(batches[k], across * across), patches[i], patches[i]};
            TESS_TRY(tess_bench_warm(study, shape, error));
        }
    }
    TESS_TRY(tess_bench_settle(study, error));
    for (int i = 0; i < patch_count; i++)
        TESS_TRY(one_patch(study, patches[i], batches, batch_count, error));
    return TESS_OK;
}
