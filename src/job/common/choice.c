#include "job/common/choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/common/note.h"

/* The devices whose seconds are predicted; rates of machines that are not the engine's are owned. */
typedef struct line_up {
    tess_rates *rates[TESS_CHOOSE_DEVICES];
    bool owned[TESS_CHOOSE_DEVICES];
    int count, candidates;
} line_up;

/* NULL: not set. Set and empty, it asks for predictions without further machines. */
static const char *machine_files(void)
{
    return getenv("TESSERA_MACHINES");
}

static bool has_cards(void)
{
    for (const tess_driver *const *driver = tess_device_drivers(); *driver; driver++)
        if (strcmp((*driver)->kind, "cpu") != 0)
            return true;
    return false;
}

/* The CPU has no fp16 and no tf32. */
static bool only_cards_have(const char *precision)
{
    return strcmp(precision, "fp16") == 0 || strcmp(precision, "tf32") == 0;
}

tess_status tess_choice_open(tess_engine *engine, tess_memory *memory, const tess_common *common,
                             tess_error *error)
{
    return tess_choice_open_ranks(engine, NULL, memory, common, error);
}

tess_status tess_choice_open_ranks(tess_engine *engine, tess_dist *dist, tess_memory *memory,
                                   const tess_common *common, tess_error *error)
{
    const bool is_auto = strcmp(common->device, "auto") == 0,
               open = is_auto && has_cards() && !only_cards_have(common->precision);
    tess_common on_host = *common;
    on_host.device = "cpu";
    TESS_TRY(tess_engine_open_ranks(engine, dist, memory, open ? &on_host : common, error));
    engine->choice.undecided = open;
    return TESS_OK;
}

bool tess_choice_wants_work(const tess_engine *engine)
{
    return engine->choice.undecided || machine_files();
}

const char *tess_choice_card_precision(const char *precision, const char *usual)
{
    static const struct {
        const char *name, *type;
    } known[] = {{"fp32", "F32"}, {"tf32", "TF32"}, {"fp16", "F16"}, {"bf16", "BF16"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(precision, known[i].name) == 0)
            return known[i].type;
    return usual;
}

static void leave(line_up *l)
{
    for (int i = 0; i < l->count; i++)
        if (l->owned[i])
            tess_rates_destroy(l->rates[i]);
}

static void join(line_up *l, tess_rates *rates, bool owned)
{
    l->rates[l->count] = rates;
    l->owned[l->count++] = owned;
}

/* Machine files are separated by colons, as folders in PATH. */
static tess_status join_files(line_up *l, tess_error *error)
{
    const char *next = machine_files();
    while (next && *next && l->count < TESS_CHOOSE_DEVICES) {
        char path[4096];
        const size_t length = strcspn(next, ":");
        snprintf(path, sizeof path, "%.*s", (int)length, next);
        tess_rates *rates = NULL;
        if (length)
            TESS_TRY(tess_machine_read(path, &rates, error));
        if (rates)
            join(l, rates, true);
        next += length + (next[length] == ':');
    }
    return TESS_OK;
}

/* The CPU first; then the cards of this build, or the one that was asked for; then machine files. */
static tess_status gather(const tess_engine *engine, line_up *l, tess_error *error)
{
    tess_rates *rates = NULL;
    const bool on_host = strcmp(engine->device->kind, "cpu") == 0;
    if (!on_host)
        TESS_TRY(tess_machine_recall("cpu", &rates, error));
    join(l, on_host ? engine->rates : rates, !on_host);
    if (!on_host)
        join(l, engine->rates, false);
    for (const tess_driver *const *driver = tess_device_drivers(); *driver && engine->choice.undecided;
         driver++) {
        if (strcmp((*driver)->kind, "cpu") == 0)
            continue;
        TESS_TRY(tess_machine_recall((*driver)->kind, &rates, error));
        join(l, rates, true);
    }
    l->candidates = l->count;
    return join_files(l, error);
}

/* The device is not for this to decide: the decision only says what it and the others would take. */
static void as_it_is(tess_engine *engine, bool asked)
{
    tess_decision *d = &engine->choice.decision;
    const int device = strcmp(engine->device->kind, "cpu") == 0 ? 0 : 1;
    for (int i = 0; i < d->phases; i++)
        d->chosen[i] = device;
    d->seconds = d->device[device].seconds;
    if (asked)
        snprintf(d->why, sizeof d->why, "as asked");
    else if (device)
        snprintf(d->why, sizeof d->why, "only a card computes in %s", engine->precision);
}

static bool any_on_card(const tess_decision *d)
{
    bool any = false;
    for (int i = 0; i < d->phases; i++)
        any |= d->chosen[i] > 0;
    return any;
}

/* A card that cannot be opened leaves the engine on the CPU. */
static tess_status move_to_card(tess_engine *engine, const tess_common *common, tess_error *error)
{
    tess_engine_choice *choice = &engine->choice;
    tess_decision *d = &choice->decision;
    tess_error why = {""};
    const tess_status status = tess_engine_move(engine, common, "cuda", &why);
    if (status == TESS_OK)
        return TESS_OK;
    if (strcmp(engine->device->kind, "cpu") != 0) /* opened, and then failed */
        return tess_fail(error, status, "%s", why.text);
    snprintf(choice->refused, sizeof choice->refused, "%.*s", (int)sizeof choice->refused - 1, why.text);
    for (int i = 0; i < d->phases; i++)
        d->chosen[i] = 0;
    d->seconds = d->device[0].seconds;
    return TESS_OK;
}

tess_status tess_choice_settle(tess_engine *engine, const tess_common *common, const tess_work *work,
                               tess_error *error)
{
    tess_engine_choice *choice = &engine->choice;
    tess_decision *d = &choice->decision;
    line_up l = {.count = 0};
    tess_status status =
        work->failed ? tess_fail(error, TESS_NO_MEMORY, "no memory for the list of ops") : TESS_OK;
    if (status == TESS_OK)
        status = gather(engine, &l, error);
    if (status == TESS_OK) {
        tess_choose(work, (const tess_rates *const *)l.rates, l.count, l.candidates, d);
        choice->predicted = true;
    }
    leave(&l);
    TESS_TRY(tess_dist_agree(engine->dist, status, error));
    if (!choice->undecided) {
        as_it_is(engine, strcmp(common->device, "auto") != 0);
        return TESS_OK;
    }
    choice->undecided = false;
    /* Rank 0 decides for all: hosts may have measured different rates. */
    TESS_TRY(tess_dist_broadcast(engine->dist, 0, d->chosen, sizeof d->chosen, error));
    if (!any_on_card(d))
        return TESS_OK;
    TESS_TRY(tess_dist_agree(engine->dist, move_to_card(engine, common, error), error));
    return tess_engine_compare(engine, error);
}

bool tess_choice_of_phase(const tess_engine *engine, int phase)
{
    const tess_decision *d = &engine->choice.decision;
    return strcmp(engine->device->kind, "cpu") == 0 || !engine->choice.predicted || d->chosen[phase] > 0;
}

static tess_json *device_record(const tess_decision *d, const tess_prediction *p)
{
    tess_json *device = tess_json_object(), *phases = tess_json_array();
    double compute = 0, transfer = 0, host = 0;
    for (int i = 0; i < d->phases; i++) {
        const tess_predicted_phase *phase = &p->phase[i];
        tess_json *entry = tess_json_object();
        tess_json_set_string(&entry, "name", d->phase_name[i]);
        tess_json_set_double(&entry, "seconds", phase->seconds);
        tess_json_set_double(&entry, "compute_seconds", phase->compute);
        tess_json_set_double(&entry, "transfer_seconds", phase->transfer);
        tess_json_set_double(&entry, "host_seconds", phase->host);
        tess_json_set_double(&entry, "reading_seconds", phase->reading);
        tess_json_append(&phases, entry);
        compute += phase->compute, transfer += phase->transfer, host += phase->host + phase->reading;
    }
    tess_json_set_string(&device, "device", p->kind);
    tess_json_set_string(&device, "device_name", p->name);
    tess_json_set_bool(&device, "possible", p->possible);
    tess_json_set_bool(&device, "calibrated", p->calibrated);
    tess_json_set_double(&device, "seconds", p->seconds);
    tess_json_set_double(&device, "compute_seconds", compute);
    tess_json_set_double(&device, "transfer_seconds", transfer);
    tess_json_set_double(&device, "host_seconds", host);
    tess_json_set_double(&device, "fixed_seconds", p->fixed);
    tess_json_set_double(&device, "open_seconds", p->open);
    tess_json_set(&device, "phases", phases);
    return device;
}

void tess_choice_record(const tess_engine *engine, tess_json **plan)
{
    const tess_engine_choice *choice = &engine->choice;
    const tess_decision *d = &choice->decision;
    if (!choice->predicted)
        return;
    tess_json *devices = tess_json_array(), *chosen = tess_json_array();
    for (int k = 0; k < d->devices; k++)
        tess_json_append(&devices, device_record(d, &d->device[k]));
    for (int i = 0; i < d->phases; i++) {
        tess_json *entry = tess_json_object();
        tess_json_set_string(&entry, "phase", d->phase_name[i]);
        tess_json_set_string(&entry, "device", d->device[d->chosen[i]].kind);
        tess_json_append(&chosen, entry);
    }
    char reason[TESS_CHOOSE_WHY + sizeof choice->refused + 16];
    snprintf(reason, sizeof reason, "%s%s%s", d->why, choice->refused[0] ? "; " : "", choice->refused);
    tess_json_set(plan, "devices", devices);
    tess_json_set(plan, "chosen", chosen);
    tess_json_set_double(plan, "chosen_seconds", d->seconds);
    tess_json_set_string(plan, "device_reason", reason);
}

double tess_choice_measure_seconds(double wall)
{
    static const double LEAST = 0.1, MOST = 3, SHARE = 0.15; /* the rest is measured after the next runs */
    return fmin(fmax(SHARE * wall, LEAST), MOST);
}

void tess_choice_measure_net(tess_engine *engine, const tess_bound *bound, tess_plan_shape shape,
                             uint64_t bytes, double wall)
{
    const tess_rates_budget budget = {tess_choice_measure_seconds(wall), (size_t)bytes, false};
    tess_net_plan *plan = NULL;
    engine->stop.progress = NULL; /* the job was reported as done */
    if (tess_net_plan_create(bound, shape, &plan, NULL) != TESS_OK)
        return;
    (void)!tess_rates_measure(engine->rates, plan, budget, NULL);
    tess_net_plan_destroy(plan);
}

void tess_choice_learn(tess_engine *engine, const tess_choice_run *run)
{
    char name[TESS_RATES_CLASS];
    const double phases = run->calibrated ? fmin(run->seconds, run->planned) : run->seconds,
                 rest = run->wall - phases - engine->choice.open_seconds - engine->choice.load_seconds;
    snprintf(name, sizeof name, "%s %s", TESS_COST_JOB, run->verb);
    const bool known = tess_rates_has(engine->rates, name);
    const double before = tess_rates_cost(engine->rates, name).overhead;
    if (run->calibrated || !known)
        tess_rates_set(engine->rates, name, fmax(rest, 1e-4), 1e-18);
    /* Not when it is opened: a plan and the run after it would predict with different times. */
    tess_rates_set(engine->rates, TESS_COST_OPEN, engine->choice.open_seconds, 1e-18);
    (void)!tess_machine_measure_bus(engine->rates, NULL);
    (void)!tess_machine_measure_fresh(engine->rates, NULL);
    tess_machine_remember(engine->rates);
    if (!known || tess_rates_cost(engine->rates, name).overhead < 0.95 * before)
        (void)tess_rates_save(engine->rates, NULL);
}
