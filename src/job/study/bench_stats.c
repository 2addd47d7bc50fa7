/* bench stats: phase 1 of a hyperspectral pipeline over the workloads of cuvis.ai's guide to GPUs and its sweeps, on each device,
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
enum { LOAD_COUNT = sizeof LOADS / sizeof *LOADS, SOURCES = 2, NAME = 64 };

/* Seconds of every workload: [device][resident][workload]; 0: not measured. */
typedef struct stats_study {
    const tess_bench_settings *settings;
    tess_memory *memory;
    tess_stats_device device[TESS_STATS_DEVICES];
    int devices;
    double seconds[TESS_STATS_DEVICES][SOURCES][LOAD_COUNT];
} stats_study;

static void name_of(const tess_stats_load *l, char text[NAME])
{
    snprintf(text, NAME, "%s-%lldx%lldx%lldx%lld-b%lld", l->sweep, (long long)l->samples, (long long)l->side,
             (long long)l->side, (long long)l->channels, (long long)l->batch);
}

static bool wanted(const tess_bench_settings *s, const tess_stats_load *l)
{
    char name[NAME];
    name_of(l, name);
    return !s->only || strstr(name, s->only);
}

static tess_json *measured_record(const tess_stats_device *d, const tess_stats_data *data,
                                  const tess_stats_point *p)
{
    const double bytes = (double)data->load.samples * (double)tess_stats_bytes(data) / (double)data->distinct;
    tess_json *measured = tess_json_object();
    tess_json_set_double(&measured, "seconds", p->seconds);
    tess_json_set_double(&measured, "spread", p->spread);
    tess_json_set_double(&measured, "processor_seconds", p->processor_seconds);
    tess_json_set_int(&measured, "repeats", p->repeats);
    tess_json_set_double(&measured, "gb_per_second", 1e-9 * bytes / p->seconds);
    if (d->link > 0 && !p->resident) {
        tess_json_set_double(&measured, "link_gb_per_second", 1e-9 * d->link);
        tess_json_set_double(&measured, "link_seconds", bytes / d->link);
        tess_json_set_double(&measured, "of_link_time", p->seconds * d->link / bytes);
    }
    tess_json_set(&measured, "peak_bytes", tess_record_bytes(&p->counted.bytes, p->counted.total));
    return measured;
}

static tess_json *record_of(const stats_study *study, const tess_stats_device *d, const tess_stats_data *data,
                            const tess_stats_point *p)
{
    const tess_stats_load *l = &data->load;
    tess_json *record = tess_record_begin("bench", &d->engine), *input = tess_json_object(),
              *plan = tess_json_object();
    char name[NAME];
    name_of(l, name);
    tess_json_set_string(&record, "study", study->settings->study);
    tess_json_set_string(&record, "engine", "tessera");
    tess_json_set_string(&record, "workload", name);
    tess_json_set_string(&record, "sweep", l->sweep);
    tess_json_set_string(&record, "phase", "statistics");
    tess_json_set_string(&record, "source", p->resident ? "device" : "host");
    tess_json_set_int(&input, "samples", l->samples);
    tess_json_set_int(&input, "distinct", data->distinct);
    tess_json_set_int(&input, "height", l->side);
    tess_json_set_int(&input, "width", l->side);
    tess_json_set_int(&input, "channels", l->channels);
    tess_json_set_int(&input, "batch", l->batch);
    tess_json_set_double(&input, "seconds", data->seconds);
    tess_json_set(&record, "input", input);
    tess_json_set_double(&record, "open_seconds", d->open_seconds);
    tess_json_set_int(&plan, "passes", p->passes);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&p->planned, tess_mem_total(&p->planned)));
    tess_json_set(&record, "plan", plan);
    tess_json_set(&record, "measured", measured_record(d, data, p));
    return record;
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

static tess_status one_load(stats_study *study, int index, tess_error *error)
{
    tess_stats_data data;
    tess_status status =
        tess_stats_make(&LOADS[index], data_limit(study), &study->device[0].engine, &data, error);
    for (int d = 0; d < study->devices; d++)
        for (int resident = 0; resident < SOURCES && status == TESS_OK; resident++) {
            tess_stats_device *device = &study->device[d];
            tess_device_facts facts;
            tess_stats_point point = {.resident = resident};
            device->engine.device->facts(device->engine.device, &facts);
            if (resident && device->link > 0 && tess_stats_bytes(&data) > facts.memory_free / 10 * 9)
                continue;
            status = tess_stats_measure(device, study->settings, &data, &point, error);
            if (status != TESS_OK)
                break;
            study->seconds[d][resident][index] = point.seconds;
            status = tell(study, record_of(study, device, &data, &point), error);
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
