/* bench stats: both phases of hyperspectral pipelines over the workloads of cuvis.ai's guide to GPUs and its sweeps, on each device,
 * with cubes in the device's memory and from the host's; and where a card begins to pay. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/process.h"
#include "job/common/record.h"
#include "job/study/bench_stats.h"

/* Each sweep in ascending order of what it varies. */
static const tess_stats_load LOADS[] = {
    {"guide", 200, 128, 50, 16},   {"guide", 1000, 256, 100, 32}, {"samples", 1, 128, 50, 16},
    {"samples", 10, 128, 50, 16},  {"samples", 50, 128, 50, 16},  {"samples", 100, 128, 50, 16},
    {"samples", 200, 128, 50, 16}, {"samples", 500, 128, 50, 16}, {"samples", 1000, 128, 50, 16},
    {"batch", 100, 128, 50, 1},    {"batch", 100, 128, 50, 4},    {"batch", 100, 128, 50, 8},
    {"batch", 100, 128, 50, 16},   {"batch", 100, 128, 50, 32},   {"channels", 20, 32, 10, 16},
    {"channels", 20, 32, 50, 16},  {"channels", 20, 32, 100, 16}, {"channels", 20, 32, 200, 16},
    {"size", 10, 64, 10, 16},      {"size", 10, 128, 10, 16},     {"size", 10, 256, 10, 16},
    {"size", 10, 512, 10, 16}};
enum { LOAD_COUNT = sizeof LOADS / sizeof *LOADS, SOURCES = 2 };

/* Seconds of phase 1 of every workload: [device][resident][workload]; 0: not measured. */
typedef struct stats_study {
    const tess_bench_settings *settings;
    tess_memory *memory;
    tess_stats_device device[TESS_STATS_DEVICES];
    int devices;
    double seconds[TESS_STATS_DEVICES][SOURCES][LOAD_COUNT];
} stats_study;

static bool wanted(const tess_bench_settings *s, const tess_stats_load *l)
{
    char name[TESS_STATS_NAME];
    tess_stats_name(l, name);
    return !s->only || strstr(name, s->only);
}

static tess_status tell(const stats_study *study, tess_json *record, tess_error *error)
{
    const tess_bench_settings *s = study->settings;
    char *text = NULL;
    TESS_TRY(tess_record_end(record, &text, error));
    const bool go_on = s->line(s->line_user, text);
    tess_small_free(text);
    return go_on ? TESS_OK
                 : tess_fail(error, TESS_INTERRUPTED, "stopped; the points reported so far are valid");
}

/* Half of the memory that is free, for the cubes: they must not drive anything else out. */
static uint64_t data_limit(const stats_study *study)
{
    const uint64_t asked = study->settings->common.memory_limit, left = tess_host_memory_left() / 2;
    return asked && asked < left ? asked : left;
}

/* The precisions that were asked for, or all that the device is made for. */
static tess_status train_load(stats_study *study, tess_stats_device *device, tess_stats_data *data,
                              bool resident, tess_error *error)
{
    static const char *const known[] = {"fp32", "tf32", "bf16", "fp16"};
    const tess_bench_settings *s = study->settings;
    const bool automatic = strcmp(s->common.precision, "auto") == 0;
    const char *const *names = s->precision_count ? s->precisions : automatic ? known : &s->common.precision;
    const int count = s->precision_count ? s->precision_count
                      : automatic        ? (int)(sizeof known / sizeof *known)
                                         : 1;
    const tess_device_facts *facts = &device->engine.facts;
    for (int i = 0; i < count; i++) {
        tess_precision precision;
        const bool cpu_lacks =
            strcmp(names[i], "fp32") != 0 && (strcmp(names[i], "bf16") != 0 || !facts->bf16) && !facts->fp16;
        if (!s->precision_count && automatic && cpu_lacks)
            continue;
        TESS_TRY(tess_precision_of(facts, names[i], &precision, error));
        for (int condensed = 0; condensed < 2; condensed++) {
            tess_stats_point point = {.resident = resident, .condensed = condensed};
            TESS_TRY(tess_stats_train(device, s, data, &precision, &point, error));
            TESS_TRY(tell(study, tess_stats_record(s, device, data, &point), error));
        }
    }
    return TESS_OK;
}

static tess_status fit_load(stats_study *study, int d, int index, tess_stats_data *data, bool resident,
                            tess_error *error)
{
    tess_stats_device *device = &study->device[d];
    tess_stats_point point = {.resident = resident};
    TESS_TRY(tess_stats_measure(device, study->settings, data, &point, error));
    study->seconds[d][resident][index] = point.seconds;
    return tell(study, tess_stats_record(study->settings, device, data, &point), error);
}

static tess_status one_load(stats_study *study, int index, tess_error *error)
{
    tess_stats_data data;
    tess_status status =
        tess_stats_make(&LOADS[index], data_limit(study), &study->device[0].engine, &data, error);
    for (int d = 0; d < study->devices; d++)
        for (int resident = 0; resident < SOURCES && status == TESS_OK; resident++) {
            tess_stats_device *device = &study->device[d];
            const char *phase = study->settings->phase;
            tess_device_facts facts;
            device->engine.device->facts(device->engine.device, &facts);
            if (resident && device->link > 0 && tess_stats_bytes(&data) > facts.memory_free / 10 * 9)
                continue;
            if (strcmp(phase, "2") != 0)
                status = fit_load(study, d, index, &data, resident, error);
            if (strcmp(phase, "1") != 0 && status == TESS_OK)
                status = train_load(study, device, &data, resident, error);
        }
    tess_stats_free(&data);
    return status;
}

/* What a sweep varies. */
static double varied(const tess_stats_load *l)
{
    return (double)(strcmp(l->sweep, "samples") == 0    ? l->samples
                    : strcmp(l->sweep, "batch") == 0    ? l->batch
                    : strcmp(l->sweep, "channels") == 0 ? l->channels
                                                        : l->side);
}

/* Where the second device begins to be faster, between the points around the crossing as a power law; NaN: it never is; 0:
 * it always is. `more`: seconds that the second one has in addition. */
static double crossing(const stats_study *study, const char *sweep, int source, double more)
{
    double before = 0, place = 0;
    bool any = false;
    for (int i = 0; i < LOAD_COUNT; i++) {
        const double one = study->seconds[0][source][i], two = study->seconds[1][source][i];
        if (strcmp(LOADS[i].sweep, sweep) != 0 || one <= 0 || two <= 0)
            continue;
        const double ratio = log(one / (two + more)), at = log(varied(&LOADS[i]));
        if (ratio >= 0)
            return any ? exp(place + (at - place) * -before / (ratio - before)) : 0;
        before = ratio;
        place = at;
        any = true;
    }
    return NAN;
}

static tess_json *crossing_value(double at)
{
    return isnan(at) ? tess_json_string("never") : at > 0 ? tess_json_double(at) : tess_json_string("always");
}

/* One line for each sweep: from where on the card is faster than the CPU, once it is open, and with its opening. */
static tess_status tell_crossings(const stats_study *study, tess_error *error)
{
    static const char *const sweeps[] = {"samples", "batch", "channels", "size"};
    for (size_t i = 0; study->devices == 2 && i < sizeof sweeps / sizeof *sweeps; i++) {
        bool measured = false;
        for (int k = 0; k < LOAD_COUNT; k++)
            measured |= strcmp(LOADS[k].sweep, sweeps[i]) == 0 && study->seconds[1][0][k] > 0;
        if (!measured)
            continue;
        tess_json *record = tess_record_begin("bench", &study->device[1].engine);
        const double opening = study->device[1].open_seconds - study->device[0].open_seconds;
        tess_json_set_string(&record, "study", study->settings->study);
        tess_json_set_string(&record, "break_even", sweeps[i]);
        tess_json_set(&record, "open", crossing_value(crossing(study, sweeps[i], 0, 0)));
        tess_json_set(&record, "with_opening", crossing_value(crossing(study, sweeps[i], 0, opening)));
        tess_json_set(&record, "resident", crossing_value(crossing(study, sweeps[i], 1, 0)));
        TESS_TRY(tell(study, record, error));
    }
    return TESS_OK;
}

static tess_status open_device(stats_study *study, const char *kind, tess_error *error)
{
    tess_stats_device *d = &study->device[study->devices];
    tess_common common = study->settings->common;
    const double start = tess_clock();
    common.device = kind;
    d->open = true;
    TESS_TRY(tess_engine_open(&d->engine, study->memory, &common, error));
    d->open_seconds = tess_clock() - start;
    study->devices++;
    return tess_stats_link(d->engine.device, &d->link, error);
}

/* The CPU, and the card if there is one; or the device that was asked for. */
static tess_status open_devices(stats_study *study, tess_error *error)
{
    const char *asked = study->settings->common.device;
    tess_error none;
    if (strcmp(asked, "auto") != 0)
        return open_device(study, asked, error);
    TESS_TRY(open_device(study, "cpu", error));
    for (const tess_driver *const *driver = tess_device_drivers(); *driver; driver++) {
        if (strcmp((*driver)->kind, "cpu") == 0 || study->devices == TESS_STATS_DEVICES)
            continue;
        if (open_device(study, (*driver)->kind, &none) != TESS_OK) {
            tess_engine_close(&study->device[study->devices].engine);
            study->device[study->devices].open = false;
        }
    }
    return TESS_OK;
}

tess_status tess_bench_stats(const tess_bench_settings *settings, tess_memory *memory, tess_error *error)
{
    stats_study *study = tess_small_alloc(1, sizeof *study);
    if (!study)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the study");
    study->settings = settings;
    study->memory = memory;
    bool any = false;
    tess_status status = open_devices(study, error);
    for (int i = 0; i < LOAD_COUNT && status == TESS_OK; i++)
        if (wanted(settings, &LOADS[i])) {
            any = true;
            status = one_load(study, i, error);
        }
    if (status == TESS_OK && !any)
        status = tess_fail(
            error, TESS_BAD_OPTION,
            "`only` %s: no workload has this in its name; guide, samples, batch, channels and size do",
            settings->only);
    if (status == TESS_OK)
        status = tell_crossings(study, error);
    for (int d = 0; d < TESS_STATS_DEVICES; d++)
        if (study->device[d].open)
            tess_engine_close(&study->device[d].engine);
    tess_small_free(study);
    return status;
}
