/* bench device: every workload on the CPU and on the card, then by `device` auto: what was predicted, what was chosen, and what
 * that cost against the better device. With machine files nothing is run: the same decisions for machines that are not here. */
#define _POSIX_C_SOURCE 200809L
#include "job/study/bench_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "job/common/note.h"
#include "job/common/record.h"

enum { DEVICES = 2, MOST_REPEATS = 3 };
static const char *const devices[DEVICES] = {"cpu", "cuda"};

typedef struct study {
    const tess_bench_settings *settings;
    tess_memory *memory;
    char folder[TESS_WORKLOAD_PATH / 2], program[4096], machines[4096];
    bool card;
    int repeats;
    /* sums over workloads that were measured on all devices */
    int count, wrong;
    double chosen, by_auto, better, worst;
    char worst_name[64];
} study;

/* What was measured of one workload; infinity: it was not. */
typedef struct outcome {
    double seconds[DEVICES], inside[DEVICES], by_auto;
    char chosen[64];
    int choice; /* of `devices`; -1: phases on both */
} outcome;

static tess_status tell(const study *s, tess_json *record, tess_error *error)
{
    char *text = NULL;
    TESS_TRY(tess_record_end(record, &text, error));
    const bool go_on = s->settings->line(s->settings->line_user, text);
    tess_small_free(text);
    return go_on ? TESS_OK
                 : tess_fail(error, TESS_INTERRUPTED, "stopped; the points reported so far are valid");
}

static tess_json *record_of(const char *name)
{
    tess_json *record = tess_record_begin("bench", NULL);
    tess_json_set_string(&record, "study", "device");
    tess_json_set_string(&record, "engine", "tessera");
    tess_json_set_string(&record, "workload", name);
    return record;
}

/* The best of the repeats on each device. */
static tess_status measure(const study *s, const tess_workload_command *command, outcome *o,
                           tess_error *error)
{
    for (int r = 0; r < s->repeats; r++)
        for (int k = 0; k < DEVICES; k++) {
            double seconds;
            tess_json *record = NULL;
            if (k > 0 && !s->card)
                continue;
            TESS_TRY(tess_workload_run(s->program, s->folder, command, devices[k], false, NULL, &seconds,
                                       &record, error));
            if (seconds < o->seconds[k]) {
                o->seconds[k] = seconds;
                o->inside[k] = tess_json_get_double(tess_json_get(record, "measured"), "wall_seconds", 0);
            }
            tess_json_free(record);
        }
    return TESS_OK;
}

/* The devices of the phases: "cpu", "cuda", or "cpu+cuda". */
static void read_choice(const tess_json *plan, outcome *o)
{
    const tess_json *chosen = tess_json_get(plan, "chosen");
    bool used[DEVICES] = {false};
    for (int64_t i = 0; i < tess_json_length(chosen); i++)
        for (int k = 0; k < DEVICES; k++)
            used[k] |= strcmp(tess_json_get_string(tess_json_at(chosen, i), "device", ""), devices[k]) == 0;
    o->choice = used[0] && used[1] ? -1 : used[1];
    snprintf(o->chosen, sizeof o->chosen, "%s", o->choice < 0 ? "cpu+cuda" : devices[o->choice]);
}

static tess_json *predicted_record(const tess_json *plan)
{
    static const char *const keys[] = {"seconds",      "compute_seconds", "transfer_seconds",
                                       "host_seconds", "fixed_seconds",   "open_seconds"};
    const tess_json *list = tess_json_get(plan, "devices");
    tess_json *all = tess_json_array();
    for (int64_t i = 0; i < tess_json_length(list); i++) {
        const tess_json *from = tess_json_at(list, i);
        tess_json *one = tess_json_object();
        tess_json_set_string(&one, "device", tess_json_get_string(from, "device", "?"));
        tess_json_set_string(&one, "device_name", tess_json_get_string(from, "device_name", "?"));
        tess_json_set_bool(&one, "calibrated", tess_json_get_bool(from, "calibrated", false));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            tess_json_set_double(&one, keys[k], tess_json_get_double(from, keys[k], 0));
        tess_json_append(&all, one);
    }
    return all;
}

static double predicted(const tess_json *plan, int64_t device)
{
    return tess_json_get_double(tess_json_at(tess_json_get(plan, "devices"), device), "seconds", NAN);
}

static tess_json *measured_record(const study *s, const outcome *o)
{
    tess_json *measured = tess_json_object();
    for (int k = 0; k < DEVICES; k++) {
        char key[32];
        if (!isfinite(o->seconds[k]))
            continue;
        snprintf(key, sizeof key, "%s_seconds", devices[k]);
        tess_json_set_double(&measured, key, o->seconds[k]);
        snprintf(key, sizeof key, "%s_outside_seconds",
                 devices[k]); /* of the job: loading the program, its end */
        tess_json_set_double(&measured, key, o->seconds[k] - o->inside[k]);
    }
    if (isfinite(o->by_auto))
        tess_json_set_double(&measured, "auto_seconds", o->by_auto);
    tess_json_set_int(&measured, "repeats", s->repeats);
    return measured;
}

static void add_up(study *s, const tess_workload *w, const outcome *o, tess_json **record)
{
    const double better = fmin(o->seconds[0], o->seconds[1]),
                 chosen = o->choice < 0 ? o->by_auto : o->seconds[o->choice];
    if (!s->card)
        return;
    tess_json_set_string(record, "better", devices[o->seconds[1] < o->seconds[0]]);
    tess_json_set_double(record, "cost", chosen / better);
    tess_json_set_double(record, "auto_cost", o->by_auto / better);
    s->count++;
    s->wrong += chosen > better;
    s->chosen += chosen;
    s->by_auto += o->by_auto;
    s->better += better;
    if (chosen / better > s->worst) {
        s->worst = chosen / better;
        snprintf(s->worst_name, sizeof s->worst_name, "%s", w->name);
    }
}

static void note_outcome(const study *s, const tess_workload *w, const outcome *o, const tess_json *plan)
{
    const double better = fmin(o->seconds[0], o->seconds[1]),
                 chosen = o->choice < 0 ? o->by_auto : o->seconds[o->choice];
    char card[96] = "";
    if (s->card)
        snprintf(card, sizeof card, ", cuda %.3f s (predicted %.3f)", o->seconds[1], predicted(plan, 1));
    tess_note(&s->settings->common, TESS_NOTE_DETAIL,
              "%-28s cpu %.3f s (predicted %.3f)%s, auto %.3f s: %s, cost %.2f", w->name, o->seconds[0],
              predicted(plan, 0), card, o->by_auto, o->chosen, chosen / better);
}

/* What auto would choose if this CPU had the card of a machine file. */
static tess_json *machines_record(const tess_json *plan)
{
    const tess_json *list = tess_json_get(plan, "devices"), *cpu = tess_json_at(list, 0);
    tess_json *all = tess_json_array();
    for (int64_t k = 1; k < tess_json_length(list); k++) {
        const tess_json *machine = tess_json_at(list, k), *phases = tess_json_get(machine, "phases"),
                        *on_cpu = tess_json_get(cpu, "phases");
        const double host = tess_json_get_double(cpu, "seconds", 0),
                     there = tess_json_get_double(machine, "seconds", 0);
        double mixed =
            tess_json_get_double(cpu, "fixed_seconds", 0) + tess_json_get_double(machine, "fixed_seconds", 0);
        for (int64_t i = 0; i < tess_json_length(phases); i++)
            mixed += fmin(tess_json_get_double(tess_json_at(phases, i), "seconds", 0),
                          tess_json_get_double(tess_json_at(on_cpu, i), "seconds", 0));
        const double best = fmin(host, fmin(there, mixed));
        tess_json *one = tess_json_object();
        tess_json_set_string(&one, "machine", tess_json_get_string(machine, "device_name", "?"));
        tess_json_set_double(&one, "seconds", there);
        tess_json_set_string(&one, "chosen", best >= host ? "cpu" : best >= there ? "machine" : "both");
        tess_json_set_double(&one, "speedup", host / best);
        tess_json_append(&all, one);
    }
    return all;
}

static void set_workload(tess_json **record, const tess_workload *w, const tess_workload_command *command)
{
    tess_json *arguments = tess_json_array();
    for (int i = 0; i < command->count; i++)
        tess_json_append_string(&arguments, command->list[i]);
    tess_json_set_string(record, "verb", w->verb);
    tess_json_set(record, "arguments", arguments);
}

/* A workload that this machine cannot do (a missing library) is reported, and the others are done. */
static tess_status give_up(const study *s, const tess_workload *w, tess_status status, tess_error *error)
{
    if (status == TESS_INTERRUPTED || status == TESS_NO_MEMORY)
        return status;
    tess_json *record = record_of(w->name);
    tess_json_set_string(&record, "error", error->text);
    tess_note(&s->settings->common, TESS_NOTE_WARNING, "%s: %s", w->name, error->text);
    return tell(s, record, error);
}

static tess_status one(study *s, const tess_workload *w, tess_error *error)
{
    outcome o = {.seconds = {INFINITY, INFINITY}, .by_auto = INFINITY};
    tess_workload_command command;
    tess_json *planned = NULL, *ran = NULL;
    double seconds = INFINITY;
    const bool predicts = s->machines[0] != '\0';
    TESS_TRY(tess_workload_make(w, s->folder, s->memory, &command, error));
    tess_status status = predicts ? TESS_OK : measure(s, &command, &o, error);
    if (status == TESS_OK)
        status = tess_workload_run(s->program, s->folder, &command, predicts ? "cpu" : "auto", true,
                                   s->machines, &seconds, &planned, error);
    for (int r = 0; r < s->repeats && status == TESS_OK && !predicts; r++) {
        status =
            tess_workload_run(s->program, s->folder, &command, "auto", false, NULL, &seconds, &ran, error);
        tess_json_free(ran);
        if (status == TESS_OK)
            o.by_auto = fmin(o.by_auto, seconds);
    }
    if (status != TESS_OK) {
        tess_json_free(planned);
        return give_up(s, w, status, error);
    }
    const tess_json *plan = tess_json_get(planned, "plan");
    tess_json *record = record_of(w->name);
    set_workload(&record, w, &command);
    tess_json_set(&record, "predicted", predicted_record(plan));
    if (predicts) {
        tess_json_set(&record, "machines", machines_record(plan));
    } else {
        read_choice(plan, &o);
        tess_json_set(&record, "measured", measured_record(s, &o));
        tess_json_set_string(&record, "chosen", o.chosen);
        tess_json_set_string(&record, "reason", tess_json_get_string(plan, "device_reason", ""));
        add_up(s, w, &o, &record);
        note_outcome(s, w, &o, plan);
    }
    tess_json_free(planned);
    return tell(s, record, error);
}

static tess_status total(const study *s, tess_error *error)
{
    if (!s->count)
        return TESS_OK;
    tess_json *record = record_of("total");
    tess_json_set_int(&record, "workloads", s->count);
    tess_json_set_int(&record, "not_the_better", s->wrong);
    tess_json_set_double(&record, "better_seconds", s->better);
    tess_json_set_double(&record, "chosen_seconds", s->chosen);
    tess_json_set_double(&record, "auto_seconds", s->by_auto);
    tess_json_set_double(&record, "cost", s->chosen / s->better);
    tess_json_set_double(&record, "auto_cost", s->by_auto / s->better);
    tess_json_set_double(&record, "worst_cost", s->worst);
    tess_json_set_string(&record, "worst", s->worst_name);
    tess_note(&s->settings->common, TESS_NOTE_DETAIL,
              "%d workloads: the choice costs %.3f of the better device, at worst %.2f (%s)", s->count,
              s->chosen / s->better, s->worst, s->worst_name);
    return tell(s, record, error);
}

static tess_status all(study *s, tess_error *error)
{
    const char *only = s->settings->only;
    int found = 0;
    for (int i = 0; i < tess_workload_count; i++) {
        if (only && !strstr(tess_workloads[i].name, only))
            continue;
        found++;
        TESS_TRY(one(s, &tess_workloads[i], error));
    }
    if (!found)
        return tess_fail(error, TESS_BAD_OPTION, "`only` %s: no workload has this in its name; one is \"%s\"",
                         only, tess_workloads[0].name);
    return total(s, error);
}

/* Asks the program itself, in a process of its own: this one must not open the card. */
static bool has_card(const study *s)
{
    tess_workload_command info = {.list = {"info"}, .count = 1};
    tess_json *record = NULL;
    tess_error ignored;
    double seconds;
    const tess_status status =
        tess_workload_run(s->program, s->folder, &info, "cuda", false, NULL, &seconds, &record, &ignored);
    tess_json_free(record);
    return status == TESS_OK;
}

static tess_status join_machines(study *s, tess_error *error)
{
    size_t used = 0;
    for (int i = 0; i < s->settings->machine_count; i++) {
        const int more = snprintf(s->machines + used, sizeof s->machines - used, "%s%s", i ? ":" : "",
                                  s->settings->machines[i]);
        if (more < 0 || used + (size_t)more >= sizeof s->machines)
            return tess_fail(error, TESS_BAD_OPTION, "`machines`: the names are too long");
        used += (size_t)more;
    }
    return TESS_OK;
}

tess_status tess_bench_device(const tess_bench_settings *settings, tess_memory *memory, tess_error *error)
{
    study s = {.settings = settings, .memory = memory};
    const char *temporary = getenv("TMPDIR");
    if (!settings->program)
        return tess_fail(error, TESS_BAD_OPTION, "bench device: the program to run is not set");
    const ssize_t length = readlink(settings->program, s.program, sizeof s.program - 1);
    if (length <= 0) /* no link */
        snprintf(s.program, sizeof s.program, "%s", settings->program);
    snprintf(s.folder, sizeof s.folder, "%.480s/tessera-bench-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    s.repeats = settings->repeats < MOST_REPEATS ? settings->repeats : MOST_REPEATS - 1;
    TESS_TRY(join_machines(&s, error));
    if (!mkdtemp(s.folder))
        return tess_fail(error, TESS_IO_FAILED, "%s: no folder can be made there", s.folder);
    s.card = !s.machines[0] && has_card(&s);
    const tess_status status = all(&s, error);
    tess_workload_remove(s.folder);
    return status;
}
