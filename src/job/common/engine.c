#include "job/common/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/note.h"

tess_status tess_precision_of(const tess_device_facts *facts, const char *wanted, tess_precision *out,
                              tess_error *error)
{
    static const struct {
        const char *name;
        tess_dtype dtype;
        bool tf32, gpu;
    } known[] = {{"fp32", TESS_F32, false, false},
                 {"tf32", TESS_F32, true, true},
                 {"fp16", TESS_F16, false, true},
                 {"bf16", TESS_BF16, false, false}};
    if (strcmp(wanted, "auto") == 0)
        wanted = facts->fp16 ? "fp16" : "fp32";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(wanted, known[i].name) != 0)
            continue;
        if (known[i].gpu && !facts->fp16)
            return tess_fail(error, TESS_UNSUPPORTED,
                             "`precision` %s needs a GPU; the CPU computes in fp32 or bf16", wanted);
        *out = (tess_precision){known[i].dtype, known[i].tf32, known[i].name};
        return TESS_OK;
    }
    return tess_fail(error, TESS_BAD_OPTION, "`precision` %s: use auto, fp32, tf32, fp16 or bf16", wanted);
}

/* With more threads than cores, threads wait at the end of every layer for threads that the system has not scheduled
 * yet. */
static int useful_threads(const tess_common *common)
{
    const int cores = tess_cpu_count();
    if (common->threads <= cores)
        return common->threads;
    tess_note(common, TESS_NOTE_WARNING, "`threads` %d: this process may use %d cores; %d threads are used",
              common->threads, cores, cores);
    return cores;
}

/* TESSERA_QUEUE=1 treats the CPU as a device with separate memory, for tests without a card. */
static bool has_separate_memory(const tess_device *device)
{
    const char *wanted = getenv("TESSERA_QUEUE");
    return !device->host_memory || (wanted && strcmp(wanted, "1") == 0);
}

/* Opens `wanted`, "auto", "cpu", "cuda" or "cuda:K", and takes its seconds. */
static tess_status open_device(tess_engine *engine, const char *wanted, int threads, tess_device **device,
                               double *seconds, tess_error *error)
{
    const tess_dist *dist = engine->dist;
    tess_device_options options = {.threads = threads,
                                   .index = dist->places[dist->rank].local,
                                   .in_turn = true, /* ranks take the cards of their host in turn */
                                   .memory = engine->memory,
                                   .stop = &engine->stop,
                                   .isa = getenv("TESSERA_ISA")};
    if (options.isa && !*options.isa)
        options.isa = NULL;
    char kind[16];
    snprintf(kind, sizeof kind, "%s", wanted);
    char *colon = strchr(kind, ':');
    if (colon) {
        char *end;
        options.index = (int)strtol(colon + 1, &end, 10);
        options.in_turn = false;
        *colon = '\0';
        if (end == colon + 1 || *end || options.index < 0 || strcmp(kind, "cuda") != 0)
            return tess_fail(error, TESS_BAD_OPTION, "`device` %s: use auto, cpu, cuda or cuda:K", wanted);
    }
    const double start = tess_clock();
    TESS_TRY(tess_registry_open(kind, &options, device, error));
    *seconds = tess_clock() - start;
    return TESS_OK;
}

/* Everything that follows from the device: facts, precision, rates. */
static tess_status use_device(tess_engine *engine, tess_device *device, const tess_common *common,
                              tess_error *error)
{
    engine->device = device;
    device->facts(device, &engine->facts);
    engine->separate_memory = has_separate_memory(device);
    tess_precision precision;
    TESS_TRY(tess_precision_of(&engine->facts, common->precision, &precision, error));
    engine->dtype = precision.dtype;
    engine->tf32 = precision.tf32;
    engine->precision = precision.name;
    return tess_rates_open(device, &engine->rates, error);
}

tess_status tess_engine_open(tess_engine *engine, tess_memory *memory, const tess_common *common,
                             tess_error *error)
{
    return tess_engine_open_on(engine, NULL, memory, common, error);
}

tess_status tess_engine_open_on(tess_engine *engine, tess_dist *dist, tess_memory *memory,
                                const tess_common *common, tess_error *error)
{
    memset(engine, 0, sizeof *engine);
    tess_dist_init_solo(&engine->alone);
    engine->dist = dist ? dist : &engine->alone;
    engine->sharing = 1;
    engine->memory = memory;
    tess_stop_init(&engine->stop, common->progress, common->progress_user);
    if (common->threads < 0 || common->threads > 1024)
        return tess_fail(error, TESS_BAD_OPTION, "`threads` %d: use 1 to 1024, or 0 for all",
                         common->threads);
    const int threads = common->threads > 0 ? useful_threads(common) : engine->dist->threads;
    tess_device *device = NULL;
    TESS_TRY(open_device(engine, common->device, threads, &device, &engine->choice.open_seconds, error));
    TESS_TRY(use_device(engine, device, common, error));
    TESS_TRY(tess_pool_create(threads, &engine->host, error));
    tess_pool_trace(engine->host, memory->trace);
    tess_pool_watch(engine->host, &engine->stop);
    return TESS_OK;
}

static tess_status bind_again(tess_engine *engine, tess_error *error)
{
    for (int i = 0; i < engine->model_count; i++) {
        tess_engine_model *m = &engine->models[i];
        tess_bound_destroy(m->bound);
        m->bound = NULL;
    }
    for (int i = 0; i < engine->model_count; i++) {
        tess_engine_model *m = &engine->models[i];
        TESS_TRY(tess_bound_create(m->model.net, engine->device, engine->dtype, &m->bound, error));
        if (engine->tf32)
            tess_bound_allow_tf32(m->bound);
    }
    return TESS_OK;
}

tess_status tess_engine_move(tess_engine *engine, const tess_common *common, const char *kind,
                             tess_error *error)
{
    tess_device *before = engine->device, *device = NULL;
    double seconds;
    TESS_TRY(open_device(engine, kind, tess_pool_threads(engine->host), &device, &seconds, error));
    engine->choice.open_seconds = seconds;
    tess_rates_destroy(engine->rates);
    engine->rates = NULL;
    tess_status status = use_device(engine, device, common, error);
    if (status == TESS_OK)
        status = bind_again(engine, error);
    tess_registry_close(before);
    return status;
}

tess_mem_scope tess_engine_scope(const tess_engine *engine)
{
    return engine->separate_memory ? TESS_MEM_OF_DEVICE : TESS_MEM_OF_PROCESS;
}

void tess_engine_model_close(tess_engine *engine, tess_engine_model *m)
{
    engine->device->memory->free(engine->device, &m->weights);
    tess_bound_destroy(m->bound);
    tess_model_clear(&m->model);
    tess_weights_close(m->file);
    memset(m, 0, sizeof *m);
}

void tess_engine_close(tess_engine *engine)
{
    for (int i = 0; i < engine->model_count; i++)
        tess_engine_model_close(engine, &engine->models[i]);
    tess_rates_destroy(engine->rates);
    tess_pool_destroy(engine->host);
    tess_registry_close(engine->device);
    memset(engine, 0, sizeof *engine);
}

tess_status tess_engine_model_open(tess_engine *engine, const tess_precision *precision, tess_engine_model *m,
                                   tess_error *error)
{
    TESS_TRY(m->inflated ? tess_model_open_volume(m->path, m->how, &m->file, error)
                         : tess_model_open(m->path, &m->file, error));
    TESS_TRY(tess_model_recognise(m->file, &m->model, error));
    TESS_TRY(tess_bound_create(m->model.net, engine->device, precision->dtype, &m->bound, error));
    if (precision->tf32)
        tess_bound_allow_tf32(m->bound);
    return TESS_OK;
}

static tess_status model_of(tess_engine *engine, const char *name, bool inflated, tess_inflation how,
                            tess_engine_model **out, tess_error *error)
{
    char path[sizeof engine->models[0].path];
    TESS_TRY(tess_model_find(name, path, sizeof path, error));
    for (int i = 0; i < engine->model_count; i++)
        if (strcmp(engine->models[i].path, path) == 0 && engine->models[i].inflated == inflated &&
            (!inflated || engine->models[i].how == how)) {
            *out = &engine->models[i];
            return TESS_OK;
        }
    if (engine->model_count == TESS_ENGINE_MODELS)
        return tess_fail(error, TESS_INTERNAL, "more than %d models in one job", TESS_ENGINE_MODELS);
    tess_engine_model *m = &engine->models[engine->model_count];
    memcpy(m->path, path, sizeof path);
    m->inflated = inflated;
    m->how = how;
    const tess_precision precision = {engine->dtype, engine->tf32, engine->precision};
    tess_status status = tess_engine_model_open(engine, &precision, m, error);
    if (status != TESS_OK) {
        tess_engine_model_close(engine, m);
        return status;
    }
    engine->model_count++;
    *out = m;
    return TESS_OK;
}

tess_status tess_engine_model_of(tess_engine *engine, const char *name, tess_engine_model **out,
                                 tess_error *error)
{
    return model_of(engine, name, false, TESS_INFLATE_HALVES, out, error);
}

tess_status tess_engine_bundled_of(tess_engine *engine, int64_t channels, tess_engine_model **out,
                                   tess_error *error)
{
    const char *name = channels == 3 ? "drunet-color-small" : "drunet-gray-small";
    char path[sizeof engine->models[0].path];
    if (tess_model_find(name, path, sizeof path, NULL) != TESS_OK)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "the image has %lld channel(s), and the bundled model for it, %s, is not installed; set "
            "TESSERA_MODELS to the folder that holds it, or give a weight file with `model`",
            (long long)channels, name);
    return tess_engine_model_of(engine, name, out, error);
}

tess_status tess_engine_volume_of(tess_engine *engine, const char *name, tess_inflation how,
                                  tess_engine_model **out, tess_error *error)
{
    return model_of(engine, name, true, how, out, error);
}

tess_status tess_engine_model_load(tess_engine *engine, tess_engine_model *m, tess_error *error)
{
    TESS_TRY(engine->device->memory->alloc(engine->device, &m->weights, TESS_MEM_WEIGHTS,
                                           tess_bound_weight_bytes(m->bound), error));
    return tess_bound_load(m->bound, m->file, m->weights.data, error);
}

void tess_engine_learn_weights(tess_engine *engine, double seconds, double values)
{
    engine->choice.load_seconds = seconds;
    if (values > 0)
        tess_rates_set(engine->rates, TESS_COST_PACK, 0, seconds / (values * (double)sizeof(float)));
}

static tess_status load_all(tess_engine *engine, tess_error *error)
{
    for (int i = 0; i < engine->model_count; i++)
        TESS_TRY(tess_engine_model_load(engine, &engine->models[i], error));
    return engine->device->streams->sync(engine->device, NULL, error);
}

tess_status tess_engine_load(tess_engine *engine, tess_error *error)
{
    const double start = tess_clock();
    double values = 0;
    TESS_TRY(load_all(engine, error));
    for (int i = 0; i < engine->model_count; i++)
        values += (double)engine->models[i].model.parameters;
    tess_engine_learn_weights(engine, tess_clock() - start, values);
    return TESS_OK;
}

void tess_engine_unload(tess_engine *engine)
{
    for (int i = 0; i < engine->model_count; i++)
        engine->device->memory->free(engine->device, &engine->models[i].weights);
}

uint64_t tess_engine_free_limit(const tess_engine *engine)
{
    /* Host memory is read now: libraries and threads have used address space since the engine was opened. */
    if (!engine->separate_memory)
        return tess_host_memory_left() / 10 * 9 / (uint64_t)engine->sharing;
    const uint64_t left = engine->facts.memory_free / (uint64_t)engine->sharing;
    const uint64_t reserve = left / 50 + ((uint64_t)64 << 20); /* for the driver's own tables */
    return left > reserve ? left - reserve : 0;
}
