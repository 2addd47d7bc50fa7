/* bench dem: the diffusion sampler of `fill` on made-up tiles, by batch, precision and sampler. The result does not depend on what
 * is in the tiles, but what a card draws does, so they are random. */
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "job/common/record.h"
#include "job/study/bench_dem.h"

static const int64_t BATCHES[] = {1, 4, 16, 64};
enum { BATCH_COUNT = 4, BATCH_COUNT_CPU = 2, PRECISIONS = 4, MAP_WIDTH = 1 << 20 };

/* What is measured of a model. */
typedef struct lists {
    const int64_t *batches;
    int batch_count;
    const char *const *precisions;
    int precision_count;
    tess_sampler_kind samplers[TESS_SAMPLER_KINDS];
    int sampler_count;
} lists;

static tess_status read_samplers(const tess_bench_settings *s, lists *l, tess_error *error)
{
    static const tess_sampler_kind all[] = {TESS_SAMPLER_DPMPP, TESS_SAMPLER_DDIM, TESS_SAMPLER_DDPM};
    const int known = (int)(sizeof all / sizeof all[0]);
    for (int i = 0; i < (s->sampler_count ? s->sampler_count : known); i++) {
        int k = s->sampler_count ? 0 : i;
        while (k < known && s->sampler_count && strcmp(s->samplers[i], tess_sampler_name(all[k])) != 0)
            k++;
        if (k == known || l->sampler_count == TESS_SAMPLER_KINDS)
            return tess_fail(error, TESS_BAD_OPTION, "`samplers` %s: use dpmpp, ddim and ddpm, each once",
                             s->samplers[i]);
        l->samplers[l->sampler_count++] = all[k];
    }
    return TESS_OK;
}

static tess_status make_lists(const tess_dem_study *dem, lists *l, tess_error *error)
{
    static const char *const card[] = {"fp16", "bf16", "tf32", "fp32"}, *const host[] = {"fp32", "bf16"};
    const tess_bench_settings *s = dem->study.settings;
    const tess_device_facts *facts = &dem->study.engine.facts;
    const bool on_host = dem->study.engine.device->host_memory;
    l->batches = s->batch_count ? s->batches : BATCHES;
    l->batch_count = s->batch_count ? s->batch_count : on_host ? BATCH_COUNT_CPU : BATCH_COUNT;
    if (s->precision_count > 0) {
        l->precisions = s->precisions;
        l->precision_count = s->precision_count;
    } else if (strcmp(s->common.precision, "auto") != 0) {
        l->precisions = &s->common.precision;
        l->precision_count = 1;
    } else {
        l->precisions = facts->fp16 ? card : host;
        l->precision_count = facts->fp16 ? PRECISIONS : facts->bf16 ? 2 : 1;
    }
    return read_samplers(s, l, error);
}

/* The tiles of the largest batch: a void of a third of each. They are made before the bytes of points are counted. */
static tess_status make_tiles(tess_dem_study *dem, int64_t count, tess_error *error)
{
    const tess_bench_settings *s = dem->study.settings;
    const int64_t pixels = count * s->tile * s->tile, others = dem->net.channels - 1;
    const size_t items = (size_t)(count * TESS_DIFFUSE_ITEMS) * sizeof(int64_t);
    TESS_TRY(tess_block_alloc_watched(dem->study.engine.memory, &dem->host, TESS_MEM_HOST,
                                      items + (size_t)(pixels * (others + 3)) * sizeof(float),
                                      &dem->study.engine.stop, error));
    int64_t *item = dem->host.data;
    float *cond = (float *)(void *)((char *)dem->host.data + items), *known = cond + pixels * others;
    tess_rng_uniform((tess_rng_key){s->common.seed, 0, 1}, 0, pixels * others, cond);
    for (int64_t i = 0; i < pixels * others; i++)
        cond[i] = 2 * cond[i] - 1;
    for (int64_t i = 0; i < pixels; i++) {
        known[2 * i] = cond[i * others];
        known[2 * i + 1] = i % s->tile < s->tile / 3;
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t values[TESS_DIFFUSE_ITEMS] = {0, i * s->tile, 0, MAP_WIDTH, 0};
        memcpy(item + i * TESS_DIFFUSE_ITEMS, values, sizeof values);
    }
    dem->tiles = (tess_sampler_batch){.n = count, .cond = cond, .known = known, .items = item};
    dem->result = known + 2 * pixels;
    return TESS_OK;
}

static tess_json *plan_record(const tess_dem_study *dem, const tess_dem_point *point)
{
    const int64_t side = dem->study.settings->tile;
    tess_json *plan = tess_json_object(), *tile = tess_json_array();
    tess_json_append_int(&tile, side);
    tess_json_append_int(&tile, side);
    tess_json_set(&plan, "tile", tile);
    tess_json_set_int(&plan, "batch", point->batch);
    tess_json_set_double(&plan, "seconds", point->planned_seconds);
    tess_json_set_bool(&plan, "calibrated", point->calibrated);
    tess_json_set(&plan, "peak_bytes",
                  tess_record_bytes(&point->result.planned, tess_mem_total(&point->result.planned)));
    return plan;
}

static tess_json *measured_record(const tess_dem_study *dem, const tess_dem_point *point)
{
    const tess_bench_result *r = &point->result;
    const double steps = (double)dem->study.settings->steps, tile_steps = steps * (double)point->batch;
    tess_json *measured = tess_json_object();
    tess_json_set_double(&measured, "seconds", r->seconds);
    tess_json_set_double(&measured, "spread", r->spread);
    tess_json_set_int(&measured, "repeats", point->repeats);
    tess_json_set_double(&measured, "tile_steps_per_second", tile_steps / r->seconds);
    tess_json_set_double(&measured, "ms_per_step", 1e3 * r->seconds / steps);
    tess_json_set_double(&measured, "tflops", 1e-12 * r->flop / r->seconds);
    tess_record_meter(&measured, &point->reading);
    if (point->reading.has_joules)
        tess_json_set_double(&measured, "joules_per_tile_step",
                             point->reading.joules / (tile_steps * (double)point->repeats));
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&r->counted.bytes, r->counted.total));
    tess_json_set_int(&measured, "driver_bytes", (int64_t)r->driver_bytes);
    tess_json_set_int(&measured, "host_bytes", (int64_t)r->counted.bytes.by[TESS_MEM_HOST]);
    return measured;
}

static tess_json *record_of(const tess_dem_study *dem, const tess_dem_point *point)
{
    const tess_bench_settings *s = dem->study.settings;
    tess_json *record = tess_record_begin("bench", &dem->study.engine), *input = tess_json_object();
    tess_json_set_string(&record, "study", s->study);
    tess_json_set_string(&record, "engine", "tessera");
    tess_json_set_string(&record, "model", dem->study.name);
    tess_json_set_string(&record, "architecture", "diffusion");
    tess_json_set_int(&record, "parameters", dem->net.parameters);
    tess_json_set_string(&record, "sampler", tess_sampler_name(point->kind));
    tess_json_set_int(&record, "steps", s->steps);
    tess_json_set_int(&record, "batch", point->batch);
    tess_json_set_double(&record, "flop", point->result.flop);
    tess_json_set_int(&input, "height", s->tile);
    tess_json_set_int(&input, "width", s->tile);
    tess_json_set_int(&input, "channels", dem->net.channels);
    tess_json_set(&record, "input", input);
    tess_json_set(&record, "plan", plan_record(dem, point));
    tess_json_set(&record, "measured", measured_record(dem, point));
    return record;
}

static tess_status bind(tess_dem_study *dem, const char *name, tess_error *error)
{
    tess_engine *e = &dem->study.engine;
    tess_precision precision;
    TESS_TRY(tess_precision_of(&e->facts, name, &precision, error));
    e->dtype = precision.dtype;
    e->tf32 = precision.tf32;
    e->precision = precision.name;
    TESS_TRY(tess_bound_create(dem->net.embedding, e->device, TESS_F32, &dem->embedding, error));
    TESS_TRY(tess_bound_create(dem->net.step, e->device, e->dtype, &dem->step, error));
    if (e->tf32)
        tess_bound_allow_tf32(dem->step);
    return TESS_OK;
}

static void unbind(tess_dem_study *dem)
{
    tess_dem_unload(dem);
    tess_bound_destroy(dem->embedding);
    tess_bound_destroy(dem->step);
    dem->embedding = dem->step = NULL;
}

static tess_status one_precision(tess_dem_study *dem, const lists *l, const char *name, tess_error *error)
{
    TESS_TRY(bind(dem, name, error));
    TESS_TRY(tess_dem_load(dem, error));
    for (int i = 0; i < l->batch_count; i++) {
        tess_dem_point point = {.kind = l->samplers[0], .batch = l->batches[i]};
        TESS_TRY(tess_dem_warm(dem, &point, error));
    }
    tess_dem_unload(dem);
    tess_memory_held(dem->study.engine.memory, tess_dem_scope(dem), &dem->held);
    dem->study.base = tess_bench_used(dem->study.engine.device);
    TESS_TRY(tess_dem_load(dem, error));
    for (int k = 0; k < l->sampler_count; k++)
        for (int i = 0; i < l->batch_count; i++) {
            tess_dem_point point = {.kind = l->samplers[k], .batch = l->batches[i]};
            TESS_TRY(tess_dem_measure(dem, &point, error));
            TESS_TRY(tess_bench_tell(&dem->study, record_of(dem, &point), error));
        }
    return TESS_OK;
}

static tess_status one_model(tess_dem_study *dem, tess_memory *memory, tess_error *error)
{
    const tess_bench_settings *s = dem->study.settings;
    char path[4096];
    lists l = {0};
    TESS_TRY(tess_engine_open(&dem->study.engine, memory, &s->common, error));
    TESS_TRY(make_lists(dem, &l, error));
    TESS_TRY(tess_model_find(dem->study.name, path, sizeof path, error));
    TESS_TRY(tess_model_open(path, &dem->file, error));
    TESS_TRY(tess_diffusion_recognise(dem->file, &dem->net, error));
    if (s->tile % dem->net.grid != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`tile` %lld: must be a multiple of %lld for this model",
                         (long long)s->tile, (long long)dem->net.grid);
    int64_t most = 1;
    for (int i = 0; i < l.batch_count; i++)
        most = tess_max_i64(most, l.batches[i]);
    TESS_TRY(make_tiles(dem, most, error));
    for (int i = 0; i < l.precision_count; i++) {
        const tess_status status = one_precision(dem, &l, l.precisions[i], error);
        unbind(dem);
        TESS_TRY(status);
    }
    return TESS_OK;
}

static void clear(tess_dem_study *dem)
{
    tess_block_free(&dem->host);
    tess_diffusion_clear(&dem->net);
    tess_weights_close(dem->file);
    tess_engine_close(&dem->study.engine);
}

tess_status tess_bench_dem(const tess_bench_settings *settings, tess_memory *memory, tess_error *error)
{
    static const int64_t MOST_STEPS = 10000, MOST_TILE = 1024;
    static const char *const network = "random:diffusion";
    if (settings->steps < 1 || settings->steps > MOST_STEPS)
        return tess_fail(error, TESS_BAD_OPTION, "`steps` %lld: use 1 to %lld", (long long)settings->steps,
                         (long long)MOST_STEPS);
    if (settings->tile < 1 || settings->tile > MOST_TILE)
        return tess_fail(error, TESS_BAD_OPTION, "`tile` %lld: use 1 to %lld", (long long)settings->tile,
                         (long long)MOST_TILE);
    if (!(settings->seconds >= 0 && settings->seconds <= 3600))
        return tess_fail(error, TESS_BAD_OPTION, "`seconds` %g: use 0 to 3600", settings->seconds);
    for (int i = 0; i < (settings->model_count ? settings->model_count : 1); i++) {
        tess_dem_study dem = {
            .study = {.settings = settings, .name = settings->model_count ? settings->models[i] : network}};
        const tess_status status = one_model(&dem, memory, error);
        clear(&dem);
        TESS_TRY(status);
    }
    return TESS_OK;
}
