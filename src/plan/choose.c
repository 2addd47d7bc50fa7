#include "plan/choose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The class in the precision in which the device computes networks. */
static void class_on(const tess_work *work, const tess_work_item *item, const tess_rates *rates,
                     char op_class[TESS_RATES_CLASS])
{
    char *type;
    snprintf(op_class, TESS_RATES_CLASS, "%s", item->op_class);
    if (!item->layer || !tess_rates_facts(rates)->fp16 || !work->card_precision ||
        !(type = strrchr(op_class, ' ')))
        return;
    type++;
    snprintf(type, (size_t)(TESS_RATES_CLASS - (type - op_class)), "%s", work->card_precision);
}

static double operator_seconds(const tess_work_item *item, const tess_rates *rates, bool *measured)
{
    const tess_device_facts *facts = tess_rates_facts(rates);
    return (item->amount.flops / facts->flops + item->amount.bytes / facts->bytes) *
           tess_rates_operator(rates, item->op_class, measured);
}

static double item_seconds(const tess_work *work, const tess_work_item *item, const tess_rates *rates,
                           bool *measured)
{
    char op_class[TESS_RATES_CLASS];
    switch (item->kind) {
    case TESS_WORK_OP:
    case TESS_WORK_HOST:
    case TESS_WORK_READ:
        class_on(work, item, rates, op_class);
        return tess_rates_class_seconds(rates, op_class, &item->amount, measured);
    case TESS_WORK_OPERATOR:
        return operator_seconds(item, rates, measured);
    case TESS_WORK_BEYOND:
        break;
    }
    const tess_run_cost cost = tess_rates_cost(rates, item->op_class);
    return item->amount.runs * cost.overhead + item->amount.pixels * cost.per_pixel;
}

/* How measured runs of this kind compare with the sum of their ops. */
static double correction(const tess_work *work, const tess_work_phase *phase, const tess_rates *rates,
                         bool *measured)
{
    char name[TESS_RATES_CLASS];
    const bool card = tess_rates_facts(rates)->fp16 && work->card_precision;
    if (!phase->factor[0])
        return 1;
    snprintf(name, sizeof name, "%s %s", phase->factor, card ? work->card_precision : "F32");
    return tess_rates_operator(rates, name, measured);
}

static double copy_seconds(const tess_work_phase *phase, const tess_rates *rates, bool *measured)
{
    if (!(phase->up + phase->down > 0) || strcmp(tess_rates_kind(rates), "cpu") == 0)
        return 0;
    const tess_run_cost up = tess_machine_cost(rates, TESS_COST_UP, measured),
                        down = tess_machine_cost(rates, TESS_COST_DOWN, measured);
    return phase->copies * (up.overhead + down.overhead) + phase->up * up.per_pixel +
           phase->down * down.per_pixel;
}

static tess_predicted_phase predict_phase(const tess_work *work, const tess_work_phase *phase,
                                          const tess_rates *rates, const tess_rates *host, bool *measured)
{
    tess_predicted_phase p = {.transfer = copy_seconds(phase, rates, measured)};
    bool sums = true; /* a correction was measured against sums of built-in rates, too */
    for (int i = 0; i < phase->count; i++) {
        const tess_work_item *item = &phase->items[i];
        const bool reads = item->kind == TESS_WORK_READ, by_host = reads || item->kind == TESS_WORK_HOST;
        *(reads     ? &p.reading
          : by_host ? &p.host
                    : &p.compute) += item_seconds(work, item, by_host ? host : rates, &sums);
    }
    p.compute *= correction(work, phase, rates, phase->factor[0] ? measured : &sums);
    if (!phase->factor[0])
        *measured = *measured && sums;
    const double aside = phase->copies_overlap ? p.transfer : 0,
                 ops = p.compute + p.host + p.transfer - aside, longest = fmax(ops, fmax(aside, p.reading));
    p.seconds = longest + (ops + aside + p.reading - longest) / fmax(1, phase->pieces);
    return p;
}

void tess_predict(const tess_work *work, const tess_rates *rates, const tess_rates *host, tess_prediction *p)
{
    const tess_device_facts *facts = tess_rates_facts(rates);
    const bool card = strcmp(tess_rates_kind(rates), "cpu") != 0;
    char job[TESS_RATES_CLASS];
    *p = (tess_prediction){.calibrated = tess_machine_known(rates),
                           .possible =
                               !(card && facts->memory_total && work->least_memory > facts->memory_total)};
    snprintf(p->kind, sizeof p->kind, "%s", tess_rates_kind(rates));
    snprintf(p->name, sizeof p->name, "%s", facts->name);
    snprintf(job, sizeof job, "%s %s", TESS_COST_JOB, work->verb ? work->verb : "");
    p->open = tess_machine_cost(rates, TESS_COST_OPEN, &p->calibrated).overhead;
    bool ignored = true;
    p->fixed = p->open + tess_machine_cost(rates, TESS_COST_CLOSE, &ignored).overhead +
               tess_machine_cost(rates, job, &p->calibrated).overhead;
    if (work->weight_bytes > 0)
        p->fixed += work->weight_bytes * tess_machine_cost(rates, TESS_COST_PACK, &p->calibrated).per_pixel;
    if (work->shapes > 0)
        p->fixed += work->shapes * tess_machine_cost(rates, TESS_COST_SHAPE, &p->calibrated).overhead;
    p->seconds = p->fixed;
    p->phases_calibrated = tess_machine_known(rates);
    for (int i = 0; i < work->phases; i++) {
        p->phase[i] = predict_phase(work, &work->phase[i], rates, host, &p->phases_calibrated);
        p->seconds += p->phase[i].seconds;
    }
    p->calibrated = p->calibrated && p->phases_calibrated;
}

/* Seconds of one assignment of devices to phases; infinity if it is not possible. */
static double seconds_of(const tess_decision *d, const int *chosen)
{
    double seconds = 0;
    bool used[TESS_CHOOSE_DEVICES] = {false};
    for (int i = 0; i < d->phases; i++) {
        used[chosen[i]] = true;
        seconds += d->device[chosen[i]].possible ? d->device[chosen[i]].phase[i].seconds : INFINITY;
    }
    for (int k = 0; k < d->devices; k++)
        seconds += used[k] ? d->device[k].fixed : 0;
    return seconds;
}

/* The next assignment, counting up; false at the end. */
static bool next_of(int *chosen, int phases, int candidates)
{
    for (int i = phases - 1; i >= 0; i--) {
        if (++chosen[i] < candidates)
            return true;
        chosen[i] = 0;
    }
    return false;
}

static void say_why(tess_decision *d, int candidates)
{
    char *text = d->why;
    size_t left = sizeof d->why;
    if (candidates < 2) {
        snprintf(text, left, "%s is the only device", d->device[0].kind);
        return;
    }
    for (int k = 0; k < candidates && left > 1; k++) {
        const tess_prediction *p = &d->device[k];
        double compute = 0, transfer = 0, host = 0;
        for (int i = 0; i < d->phases; i++) {
            compute += p->phase[i].compute;
            transfer += p->phase[i].transfer;
            host += p->phase[i].host + p->phase[i].reading;
        }
        const int n = p->possible ? snprintf(text, left,
                                             "%s%s %.3g s (compute %.3g, bus %.3g, host %.3g, fixed %.3g%s)",
                                             k ? ", " : "", p->kind, p->seconds, compute, transfer, host,
                                             p->fixed, p->calibrated ? "" : ", not calibrated")
                                  : snprintf(text, left, "%s%s cannot do it", k ? ", " : "", p->kind);
        const size_t used = n > 0 ? (size_t)n : 0;
        text += used < left ? used : left - 1;
        left -= used < left ? used : left - 1;
    }
}

void tess_choose(const tess_work *work, const tess_rates *const *devices, int count, int candidates,
                 tess_decision *d)
{
    int trial[TESS_WORK_PHASES] = {0};
    *d = (tess_decision){.devices = count, .phases = work->phases, .seconds = INFINITY};
    for (int k = 0; k < count; k++)
        tess_predict(work, devices[k], devices[0], &d->device[k]);
    for (int i = 0; i < d->phases; i++)
        snprintf(d->phase_name[i], TESS_WORK_NAME, "%s", work->phase[i].name);
    do {
        const double seconds = seconds_of(d, trial);
        if (seconds < d->seconds) {
            d->seconds = seconds;
            memcpy(d->chosen, trial, sizeof trial);
        }
    } while (next_of(trial, d->phases, candidates));
    say_why(d, candidates);
}
