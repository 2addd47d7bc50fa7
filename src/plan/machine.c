#include "plan/machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "plan/rates_impl.h"

enum { MOST_BYTES = 1 << 20 };

/* Costs of a device that was not measured: those of a card of the last years in a PCIe 4 slot, and of any host. */
static const struct {
    const char *kind, *op_class;
    tess_run_cost cost;
} built_in[] = {{"cuda", TESS_COST_OPEN, {0.4, 0}},
                {"cuda", TESS_COST_CLOSE, {0.13, 0}}, /* nobody in the process can measure it */
                {"cuda", TESS_COST_UP, {20e-6, 1 / 12e9}},
                {"cuda", TESS_COST_DOWN, {20e-6, 1 / 12e9}},
                {"cuda", TESS_COST_PACK, {0, 1 / 1e9}},
                {"cuda", TESS_COST_SHAPE, {0.02, 0}},
                {"cuda", TESS_COST_JOB, {0.15, 0}},
                {"cpu", TESS_COST_OPEN, {0.002, 0}},
                {"cpu", TESS_COST_PACK, {0, 1 / 1e9}},
                {"cpu", TESS_COST_SHAPE, {0.001, 0}},
                {"cpu", TESS_COST_JOB, {0.01, 0}}};

static const struct {
    const char *key, *name; /* in a file; at the end of a class */
} types[TESS_RATES_TYPES] = {
    {"fp32", "F32"}, {"tf32", "TF32"}, {"fp16", "F16"}, {"bf16", "BF16"}, {"fp64", "F64"}};

bool tess_machine_known(const tess_rates *rates)
{
    return rates->known;
}

tess_run_cost tess_machine_cost(const tess_rates *rates, const char *op_class, bool *measured)
{
    if (tess_rates_has(rates, op_class))
        return tess_rates_cost(rates, op_class);
    const bool job = strncmp(op_class, TESS_COST_JOB, strlen(TESS_COST_JOB)) == 0;
    if (job && tess_rates_has(rates, TESS_COST_JOB)) /* a machine file has one for all verbs */
        return tess_rates_cost(rates, TESS_COST_JOB);
    *measured = false;
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strcmp(built_in[i].kind, rates->kind) == 0 &&
            strncmp(op_class, built_in[i].op_class, strlen(built_in[i].op_class)) == 0)
            return built_in[i].cost;
    return (tess_run_cost){0, 0};
}

static tess_status create(const char *kind, tess_rates **out, tess_error *error)
{
    tess_rates *rates = tess_small_alloc(1, sizeof *rates);
    *out = rates;
    if (!rates)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the rates");
    const bool card = strcmp(kind, "cpu") != 0;
    snprintf(rates->kind, sizeof rates->kind, "%s", kind);
    rates->facts = (tess_device_facts){
        .name = "not seen yet", .flops = card ? 50e12 : 100e9, .bytes = card ? 500e9 : 10e9, .fp16 = card};
    return TESS_OK;
}

/* The members that the cache of a device and a machine file share. */
static void read_facts(tess_rates *rates, const tess_json *record)
{
    tess_device_facts *facts = &rates->facts;
    const tess_json *flops = tess_json_get(record, "flops");
    snprintf(facts->name, sizeof facts->name, "%s", tess_json_get_string(record, "device", facts->name));
    facts->threads = (int)tess_json_get_int(record, "threads", facts->threads);
    facts->fp16 = tess_json_get_bool(record, "fp16", facts->fp16);
    facts->memory_total = (uint64_t)fmax(0, tess_json_get_double(record, "memory", 0));
    facts->bytes = tess_json_get_double(record, "bytes_per_second", facts->bytes);
    facts->flops = tess_json_as_double(flops, tess_json_get_double(flops, "fp32", facts->flops));
    for (int i = 0; i < TESS_RATES_TYPES; i++) {
        rates->type[i].name = types[i].name;
        rates->type[i].flops = tess_json_get_double(flops, types[i].key, 0);
    }
}

static void last_path(const char *kind, char path[TESS_CACHE_PATH])
{
    char key[32];
    snprintf(key, sizeof key, "last-%s", kind);
    tess_cache_path(key, path);
}

void tess_machine_remember(const tess_rates *rates)
{
    const tess_device_facts *facts = &rates->facts;
    char path[TESS_CACHE_PATH];
    last_path(rates->kind, path);
    tess_json *before = tess_cache_read(path), *record = tess_json_object();
    const bool same = strcmp(tess_json_get_string(before, "device", ""), facts->name) == 0 &&
                      tess_json_get_int(before, "threads", 0) == facts->threads;
    tess_json_free(before);
    tess_json_set_string(&record, "kind", rates->kind);
    tess_json_set_string(&record, "device", facts->name);
    tess_json_set_int(&record, "threads", facts->threads);
    tess_json_set_bool(&record, "fp16", facts->fp16);
    tess_json_set_int(&record, "memory", (int64_t)facts->memory_total);
    tess_json_set_double(&record, "flops", facts->flops);
    tess_json_set_double(&record, "bytes_per_second", facts->bytes);
    if (!same)
        (void)tess_cache_write(path, record, NULL);
    tess_json_free(record);
}

tess_status tess_machine_recall(const char *kind, tess_rates **out, tess_error *error)
{
    char path[TESS_CACHE_PATH];
    TESS_TRY(create(kind, out, error));
    last_path(kind, path);
    tess_json *record = tess_cache_read(path);
    if (tess_json_is_object(record)) {
        read_facts(*out, record);
        (*out)->known = true;
        tess_rates_set_path(*out);
        tess_rates_read_cache(*out);
    }
    tess_json_free(record);
    return TESS_OK;
}

tess_status tess_machine_json(const char *path, tess_json **json, tess_error *error)
{
    FILE *file = NULL;
    TESS_TRY(tess_file_open(path, &file, error));
    char *text = tess_small_alloc(MOST_BYTES + 1, 1);
    const size_t length = text ? fread(text, 1, MOST_BYTES + 1, file) : 0;
    fclose(file);
    tess_status status =
        !text ? tess_fail(error, TESS_NO_MEMORY, "no memory for a machine file")
        : length > MOST_BYTES
            ? tess_fail(error, TESS_BAD_INPUT, "has more than %d bytes; it describes no machine", MOST_BYTES)
            : tess_json_parse(text, length, json, error);
    if (status != TESS_OK)
        status = tess_fail_prefix(error, status, path);
    tess_small_free(text);
    return status;
}

/* How kernels use the device; what is missing has no effect. */
static tess_status read_kernels(tess_rates *rates, const tess_json *record, const char *path,
                                tess_error *error)
{
    const struct {
        const char *key;
        double *to;
    } keys[] = {{"launch_seconds", &rates->kernels.launch},
                {"units", &rates->kernels.units},
                {"unit_outputs", &rates->kernels.unit_outputs},
                {"winograd", &rates->kernels.winograd}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const tess_json *value = tess_json_get(record, keys[i].key);
        *keys[i].to = tess_json_as_double(value, value ? -1 : 0);
        if (!(*keys[i].to >= 0) || !isfinite(*keys[i].to))
            return tess_fail(error, TESS_BAD_INPUT, "%s: %s: must be a number from 0 on", path, keys[i].key);
    }
    return TESS_OK;
}

static void set_link(tess_rates *rates, const tess_json *link)
{
    static const struct {
        const char *key, *op_class;
    } ways[] = {{"up", TESS_COST_UP}, {"down", TESS_COST_DOWN}};
    const double latency = fmax(0, tess_json_get_double(link, "latency", 0));
    for (int i = 0; i < 2; i++) {
        const double rate = tess_json_get_double(link, ways[i].key, 0);
        if (rate > 0)
            tess_rates_set(rates, ways[i].op_class, latency, 1 / rate);
    }
}

tess_status tess_machine_read(const char *path, tess_rates **out, tess_error *error)
{
    static const double nothing = 1e-18; /* a rate must be positive */
    tess_json *json = NULL;
    *out = NULL;
    TESS_TRY(tess_machine_json(path, &json, error));
    tess_status status = TESS_OK;
    const double bytes = tess_json_get_double(json, "bytes_per_second", 0),
                 open = tess_json_get_double(json, "open_seconds", -1),
                 fixed = tess_json_get_double(json, "job_seconds", -1);
    const char *kind = tess_json_get_string(json, "kind", "");
    if ((strcmp(kind, "cuda") != 0 && strcmp(kind, "cpu") != 0) || !tess_json_get(json, "device") ||
        !tess_json_get(json, "flops") || !(bytes > 0))
        status = tess_fail(error, TESS_BAD_INPUT,
                           "%s: a machine file needs \"kind\" (\"cpu\" or \"cuda\"), \"device\" (its name), "
                           "\"flops\" and \"bytes_per_second\"",
                           path);
    if (status == TESS_OK)
        status = create(kind, out, error);
    if (status == TESS_OK) {
        read_facts(*out, json);
        (*out)->known = true;
        tess_rates_read_classes(*out, tess_json_get(json, "ops"), false);
        set_link(*out, tess_json_get(json, "link"));
        if (open >= 0)
            tess_rates_set(*out, TESS_COST_OPEN, open, nothing);
        if (fixed >= 0)
            tess_rates_set(*out, TESS_COST_JOB, fixed, nothing);
        status = read_kernels(*out, json, path, error);
        if (status == TESS_OK && !((*out)->facts.flops > 0))
            status =
                tess_fail(error, TESS_BAD_INPUT, "%s: \"flops\" must be above 0, or have \"fp32\"", path);
    }
    if (status != TESS_OK) {
        tess_rates_destroy(*out);
        *out = NULL;
    }
    tess_json_free(json);
    return status;
}
