/* info: reports devices, libraries and models. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "io/image.h"
#include "job/common/calibrate_operators.h"
#include "job/common/context.h"
#include "job/common/record.h"
#include "model/describe.h"

static const double CALIBRATION_SECONDS = 60;
/* Largest images that are tuned for. Attention takes time by the square of the pixels, and such networks run on tiles. */
enum { LARGEST = 2048, LARGEST_DIFFUSION = 256 };

static int is_model(const struct dirent *entry)
{
    const char *suffix = strstr(entry->d_name, ".safetensors");
    return suffix && suffix[12] == '\0' && suffix != entry->d_name;
}

static void add_model(tess_json **models, const char *folder, const char *file)
{
    char path[4600];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    tess_weights *weights = NULL;
    tess_described model;
    if (tess_weights_open(path, &weights, NULL) != TESS_OK)
        return;
    if (tess_describe(weights, &model, NULL) == TESS_OK) {
        tess_json *entry = tess_json_object();
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - strlen(".safetensors")), file);
        tess_json_set_string(&entry, "name", name);
        tess_json_set_string(&entry, "architecture", model.architecture);
        tess_json_set_int(&entry, "channels", model.channels);
        tess_json_set_int(&entry, "parameters", model.parameters);
        tess_json_set_string(&entry, "path", path);
        tess_json_append(models, entry);
        tess_described_clear(&model);
    }
    tess_weights_close(weights);
}

static tess_json *models_of(void)
{
    tess_json *models = tess_json_array();
    char folder[4096];
    for (int i = 0; tess_model_folder(i, folder, sizeof folder); i++) {
        struct dirent **names = NULL;
        int found = scandir(folder, &names, is_model, alphasort);
        for (int k = 0; k < found; k++) {
            add_model(&models, folder, names[k]->d_name);
            free(names[k]);
        }
        free(names);
    }
    return models;
}

static void add_device(tess_json **devices, const char *kind, const tess_device_facts *facts)
{
    tess_json *entry = tess_json_object();
    tess_json_set_string(&entry, "kind", kind);
    tess_json_set_string(&entry, "name", facts->name);
    tess_json_set_int(&entry, "threads", facts->threads);
    tess_json_set_int(&entry, "memory_total", (int64_t)facts->memory_total);
    tess_json_set_int(&entry, "memory_free", (int64_t)facts->memory_free);
    tess_json_set_bool(&entry, "bf16", facts->bf16);
    tess_json_set_bool(&entry, "fp16", facts->fp16);
    tess_json_set_int(&entry, "driver_bytes", (int64_t)facts->driver_bytes);
    tess_json_append(devices, entry);
}

/* Lists the device in use first, then the others that can be opened. */
static tess_json *devices_of(const tess_engine *engine)
{
    tess_json *devices = tess_json_array();
    add_device(&devices, engine->device->kind, &engine->facts);
    for (const tess_driver *const *driver = tess_device_drivers(); *driver; driver++) {
        tess_device *other = NULL;
        const tess_device_options options = {.threads = tess_pool_threads(engine->host),
                                             .memory = engine->device->counter};
        if (strcmp((*driver)->kind, engine->device->kind) == 0 ||
            (*driver)->open(&options, &other, NULL) != TESS_OK)
            continue;
        tess_device_facts facts;
        other->facts(other, &facts);
        add_device(&devices, other->kind, &facts);
        tess_registry_close(other);
    }
    return devices;
}

/* Chooses between kernels, on devices that measure them: at the usual sizes, the largest first. */
static tess_status tune(tess_engine *engine, const tess_bound *bound, int64_t largest,
                        tess_rates_budget budget, tess_error *error)
{
    const double end = tess_clock() + budget.seconds;
    for (int64_t side = largest; side >= 128 && engine->device->ops->tune; side /= 2) {
        tess_net_plan *plan = NULL;
        TESS_TRY(tess_net_plan_create(bound, (tess_plan_shape){1, side, side}, &plan, error));
        tess_status status = tess_rates_tune(engine->rates, plan, budget, error);
        tess_net_plan_destroy(plan);
        TESS_TRY(status);
        budget.seconds = end - tess_clock();
    }
    return TESS_OK;
}

/* Measures the op classes of every bundled model, in the precisions that this device has. */
static tess_status calibrate(tess_engine *engine, const tess_json *models, tess_error *error)
{
    const tess_dtype dtypes[] = {engine->dtype, engine->facts.fp16 ? TESS_F32 : TESS_BF16};
    const int precisions = dtypes[0] != dtypes[1] && (engine->facts.bf16 || engine->facts.fp16) ? 2 : 1;
    const double start = tess_clock();
    /* checked first: rates that cannot be saved are not worth measuring */
    TESS_TRY(tess_rates_save(engine->rates, error));
    for (int64_t i = 0; i < tess_json_length(models); i++)
        for (int d = 0; d < precisions; d++) {
            tess_weights *weights = NULL;
            tess_described model = {0};
            tess_bound *bound = NULL;
            tess_net_plan *plan = NULL;
            const tess_rates_budget budget = {
                CALIBRATION_SECONDS - (tess_clock() - start),
                engine->separate_memory ? engine->facts.memory_free / 4 : SIZE_MAX, true};
            tess_status status =
                tess_weights_open(tess_json_get_string(tess_json_at(models, i), "path", ""), &weights, error);
            if (status == TESS_OK)
                status = tess_describe(weights, &model, error);
            if (status == TESS_OK)
                status = tess_bound_create(model.net, engine->device, dtypes[d], &bound, error);
            if (status == TESS_OK)
                status =
                    tune(engine, bound, model.diffusion.step ? LARGEST_DIFFUSION : LARGEST, budget, error);
            if (status == TESS_OK)
                status = tess_net_plan_create(bound, (tess_plan_shape){1, 64, 64}, &plan, error);
            if (status == TESS_OK)
                status = tess_rates_measure(engine->rates, plan, budget, error);
            tess_net_plan_destroy(plan);
            tess_bound_destroy(bound);
            tess_described_clear(&model);
            tess_weights_close(weights);
            TESS_TRY(status);
        }
    TESS_TRY(tess_calibrate_operators(engine, error));
    TESS_TRY(tess_machine_measure_bus(engine->rates, error));
    TESS_TRY(tess_machine_measure_fresh(engine->rates, error));
    tess_rates_set(engine->rates, TESS_COST_OPEN, engine->choice.open_seconds, 1e-18);
    tess_machine_remember(engine->rates);
    return tess_rates_save(engine->rates, error);
}

/* Collective. Lists where each rank runs and what it computes on; NULL if there is only one. */
static tess_status ranks_of(tess_engine *engine, tess_json **list, tess_error *error)
{
    const tess_dist *dist = engine->dist;
    tess_rank_device *all;
    *list = NULL;
    if (dist->size == 1)
        return TESS_OK;
    TESS_TRY(tess_engine_rank_devices(engine, &all, error));
    *list = tess_json_array();
    for (int r = 0; r < dist->size; r++) {
        tess_json *one = tess_json_object();
        tess_json_set_int(&one, "rank", r);
        tess_json_set_string(&one, "host", dist->places[r].host);
        tess_json_set_int(&one, "pid", dist->places[r].pid);
        tess_json_set_string(&one, "device", all[r].kind);
        tess_json_set_string(&one, "device_name", all[r].name);
        int first = 0; /* the lowest rank on the same device */
        while (!tess_engine_same_device(engine, all, r, first))
            first++;
        if (first < r)
            tess_json_set_int(&one, "device_of_rank", first);
        tess_json_append(list, one);
    }
    tess_small_free(all);
    return TESS_OK;
}

static tess_status fill(tess_engine *engine, bool measure, char **record, tess_error *error)
{
    tess_json *ranks;
    TESS_TRY(ranks_of(engine, &ranks, error));
    if (engine->dist->rank != 0)
        return TESS_OK;
    tess_json *models = models_of();
    tess_status status = measure ? calibrate(engine, models, error) : TESS_OK;
    if (status != TESS_OK) {
        tess_json_free(models);
        tess_json_free(ranks);
        return status;
    }
    tess_json *json = tess_record_begin("info", engine), *info = tess_json_object(),
              *libraries = tess_json_object();
    tess_json *calibration = tess_json_object();
    tess_json_set_bool(&libraries, "gdal", tess_image_load_library("probe.tif", NULL) == TESS_OK);
    tess_json_set_bool(&libraries, "mpi", tess_dist_has_mpi());
    if (engine->dist->size > 1)
        tess_json_set_string(&libraries, "mpi_name", engine->dist->library);
    tess_json_set_string(&calibration, "path", tess_rates_path(engine->rates));
    tess_json_set_int(&calibration, "ops", tess_rates_count(engine->rates));
    tess_json_set(&info, "devices", devices_of(engine));
    if (ranks)
        tess_json_set(&info, "ranks", ranks);
    tess_json_set(&info, "models", models);
    tess_json_set(&info, "libraries", libraries);
    tess_json_set(&info, "calibration", calibration);
    tess_json_set(&json, "info", info);
    return tess_record_end(json, record, error);
}

tess_status tess_info(tess_context *context, const tess_common *common, bool measure, char **record)
{
    *record = NULL;
    if (measure) /* ranks that share a host would disturb each other */
        TESS_TRY(tess_context_alone(context, "calibration"));
    tess_engine engine;
    tess_status status =
        tess_engine_open_ranks(&engine, context->dist, &context->memory, common, &context->error);
    if (status == TESS_OK)
        status = fill(&engine, measure, record, &context->error);
    tess_engine_close(&engine);
    return status;
}
