/* What the studies share. Each model has its own engine, so that memory of one is not counted with the next. */
#include "job/study/bench.h"

#include <string.h>

#include "base/checked.h"
#include "job/common/context.h"
#include "job/common/record.h"
#include "job/study/bench_device.h"

void tess_bench_settings_init(tess_bench_settings *settings)
{
    *settings = (tess_bench_settings){.study = "size",
                                      .height = 2048,
                                      .halo = TESS_HALO_AUTO,
                                      .repeats = 9,
                                      .steps = 20,
                                      .tile = 128,
                                      .seconds = 2,
                                      .phase = "1",
                                      .scheme = "strips",
                                      .avoid = 1,
                                      .per_node = 4};
    tess_common_init(&settings->common);
}

uint64_t tess_bench_limit(tess_study *study)
{
    const uint64_t asked = study->settings->common.memory_limit;
    tess_device_facts facts;
    study->engine.device->facts(study->engine.device, &facts);
    /* The weights are already loaded, and the plan counts them too. */
    return asked ? asked : facts.memory_free / 10 * 9 + study->model->weights.bytes;
}

tess_status tess_bench_warm(tess_study *study, tess_plan_shape shape, tess_error *error)
{
    tess_net_plan *plan = NULL;
    const tess_rates_budget budget = {TESS_BENCH_CALIBRATION, tess_bench_limit(study)};
    tess_status status = tess_net_plan_create(study->model->bound, shape, &plan, error);
    if (status == TESS_OK)
        status = tess_rates_tune(study->engine.rates, plan, budget, error);
    if (status == TESS_OK)
        status = tess_rates_measure(study->engine.rates, plan, budget, error);
    tess_net_plan_destroy(plan);
    TESS_TRY(status);
    const tess_bench_work work = {.cut = tess_bench_cut(shape.n, shape.h, shape.w, shape.n)};
    tess_bench_result result;
    return tess_bench_measure(study, &work, 1, &result, error);
}

static tess_json *plan_record(const tess_cut_plan *choice, const tess_mem_bytes *bytes)
{
    tess_json *plan = tess_json_object(), *tile = tess_json_array();
    tess_json_append_int(&tile, tess_axis_largest_tile(&choice->rows));
    tess_json_append_int(&tile, tess_axis_largest_tile(&choice->cols));
    tess_json_set(&plan, "tile", tile);
    tess_json_set_int(&plan, "tiles", choice->rows.tiles * choice->cols.tiles);
    tess_json_set_int(&plan, "halo", choice->halo);
    tess_json_set_int(&plan, "batch", choice->batch);
    tess_json_set_double(&plan, "seconds", choice->seconds);
    tess_json_set_bool(&plan, "calibrated", choice->calibrated);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(bytes, tess_mem_total(bytes)));
    return plan;
}

tess_json *tess_bench_record(const tess_study *study, int64_t height, int64_t width,
                             const tess_cut_plan *choice, const tess_bench_result *result)
{
    tess_json *record = tess_record_begin("bench", &study->engine), *input = tess_json_object(),
              *measured = tess_json_object();
    tess_json_set_string(&record, "study", study->settings->study);
    tess_json_set_string(&record, "engine", "tessera");
    tess_json_set_string(&record, "model", study->name);
    tess_json_set_string(&record, "architecture", study->model->model.architecture);
    tess_json_set_double(&record, "flop", result->flop);
    tess_json_set_int(&input, "height", height);
    tess_json_set_int(&input, "width", width);
    tess_json_set_int(&input, "channels", study->model->model.channels);
    tess_json_set(&record, "input", input);
    tess_json_set(&record, "plan", plan_record(choice, &result->planned));
    tess_json_set_double(&measured, "seconds", result->seconds);
    tess_json_set_double(&measured, "spread", result->spread);
    tess_json_set_int(&measured, "repeats", study->settings->repeats);
    tess_json_set_double(&measured, "megapixels_per_second",
                         1e-6 * (double)height * (double)width / result->seconds);
    tess_json_set_double(&measured, "tflops", 1e-12 * result->flop / result->seconds);
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&result->counted.bytes, result->counted.total));
    tess_json_set_int(&measured, "driver_bytes", (int64_t)result->driver_bytes);
    tess_json_set_int(&measured, "host_bytes", (int64_t)result->counted.bytes.by[TESS_MEM_HOST]);
    tess_json_set(&record, "measured", measured);
    return record;
}

tess_status tess_bench_tell(const tess_study *study, tess_json *record, tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    char *text = NULL;
    TESS_TRY(tess_record_end(record, &text, error));
    if (tess_stop_wanted(&study->engine.stop)) { /* an interrupted run has no time */
        tess_small_free(text);
        return tess_fail(error, TESS_INTERRUPTED, "stopped; the points reported so far are valid");
    }
    bool go_on = s->line(s->line_user, text);
    tess_small_free(text);
    return go_on ? TESS_OK
                 : tess_fail(error, TESS_INTERRUPTED, "stopped; the points reported so far are valid");
}

static tess_status check_list(const int64_t *list, int count, int64_t least, int64_t most, const char *option,
                              tess_error *error)
{
    for (int i = 0; i < count; i++)
        if (list[i] < least || list[i] > most)
            return tess_fail(error, TESS_BAD_OPTION, "%s %lld: use %lld to %lld", option, (long long)list[i],
                             (long long)least, (long long)most);
    return TESS_OK;
}

static tess_status check_settings(const tess_bench_settings *s, tess_error *error)
{
    const int64_t most = 1 << 20;
    if (strcmp(s->study, "size") != 0 && strcmp(s->study, "batch") != 0 && strcmp(s->study, "dem") != 0 &&
        strcmp(s->study, "device") != 0 && strcmp(s->study, "stats") != 0 && strcmp(s->study, "scaling") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "bench %s: use size, batch, dem, device, stats or scaling",
                         s->study);
    if (s->slurm && strcmp(s->study, "scaling") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`slurm`: only bench scaling has it");
    if (!s->phase ||
        (strcmp(s->phase, "1") != 0 && strcmp(s->phase, "2") != 0 && strcmp(s->phase, "both") != 0))
        return tess_fail(error, TESS_BAD_OPTION, "`phase` %s: use 1, 2 or both", s->phase ? s->phase : "");
    if (!s->line)
        return tess_fail(error, TESS_BAD_OPTION, "bench: `line` is NULL");
    if (s->repeats < 1 || s->repeats > TESS_BENCH_REPEATS)
        return tess_fail(error, TESS_BAD_OPTION, "`repeats` %d: use 1 to %d", s->repeats, TESS_BENCH_REPEATS);
    if (s->halo < TESS_HALO_EXACT || s->halo > most)
        return tess_fail(error, TESS_BAD_OPTION, "`halo`: use auto, exact or a number of pixels");
    TESS_TRY(check_list(&s->height, 1, 1, most, "`height`", error));
    TESS_TRY(check_list(s->widths, s->width_count, 1, most, "`widths`", error));
    TESS_TRY(check_list(s->patches, s->patch_count, 1, strcmp(s->study, "scaling") == 0 ? most : s->height,
                        "`patches`", error));
    TESS_TRY(check_list(s->sizes, s->size_count, 16, most, "`sizes`", error));
    TESS_TRY(check_list(s->ranks, s->rank_count, 1, TESS_BENCH_RANKS, "`ranks`", error));
    TESS_TRY(check_list(s->simulate, s->simulate_count, 1, TESS_BENCH_RANKS, "`simulate`", error));
    TESS_TRY(check_list(&s->avoid, 1, 1, 64, "`avoid`", error));
    if (s->copies < 0 || s->copies > TESS_BENCH_REPEATS)
        return tess_fail(error, TESS_BAD_OPTION, "`copies` %d: use 0 to %d", s->copies, TESS_BENCH_REPEATS);
    return check_list(s->batches, s->batch_count, 1, 4096, "`batches`", error);
}

static tess_status open(tess_study *study, tess_memory *memory, tess_error *error)
{
    TESS_TRY(tess_engine_open(&study->engine, memory, &study->settings->common, error));
    TESS_TRY(tess_engine_model_of(&study->engine, study->name, &study->model, error));
    TESS_TRY(tess_engine_load(&study->engine, error));
    tess_device *device = study->engine.device;
    TESS_TRY(device->streams->create(device, &study->compute, error));
    TESS_TRY(device->streams->create(device, &study->up, error));
    return device->streams->create(device, &study->down, error);
}

static void close(tess_study *study)
{
    tess_stream *streams[] = {study->compute, study->up, study->down};
    for (int i = 0; i < 3; i++)
        if (streams[i])
            study->engine.device->streams->destroy(study->engine.device, streams[i]);
    tess_engine_close(&study->engine);
}

tess_status tess_bench(tess_context *context, const tess_bench_settings *settings)
{
    static const char *const networks[] = {"random:drunet", "random:unet", "random:dncnn"};
    tess_error *error = &context->error;
    const bool scaling = strcmp(settings->study, "scaling") == 0;
    if (!scaling || settings->simulate_count > 0 || settings->slurm)
        TESS_TRY(tess_context_alone(context, "bench"));
    TESS_TRY(check_settings(settings, error));
    if (settings->slurm)
        return tess_bench_slurm(settings, error);
    if (scaling)
        return tess_bench_scaling(settings, context);
    if (strcmp(settings->study, "dem") == 0)
        return tess_bench_dem(settings, &context->memory, error);
    if (strcmp(settings->study, "device") == 0)
        return tess_bench_device(settings, &context->memory, error);
    if (strcmp(settings->study, "stats") == 0)
        return tess_bench_stats(settings, &context->memory, error);
    const bool size = strcmp(settings->study, "size") == 0, given = settings->model_count > 0;
    const int count = given ? settings->model_count : size ? 3 : 1;
    tess_status status = TESS_OK;
    for (int i = 0; i < count && status == TESS_OK; i++) {
        tess_study study = {.settings = settings, .name = given ? settings->models[i] : networks[i]};
        status = open(&study, &context->memory, error);
        if (status == TESS_OK)
            status = size ? tess_bench_size(&study, error) : tess_bench_batch(&study, error);
        close(&study);
    }
    return status;
}
