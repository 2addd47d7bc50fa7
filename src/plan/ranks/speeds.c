#include "plan/ranks/speeds.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/trace.h"
#include "plan/op_bench.h"
#include "plan/rates_impl.h"

/* A pass computes each op once. In a round, all ranks compute passes for the same time, about PASSES of them; before that, one pass
 * warms up. */
enum { OPS = 3, ROUNDS = 3, PASSES = 2 };

/* What all ranks compute; rank 0 decides, because rates of ranks may differ. */
typedef struct choice {
    char classes[OPS][TESS_RATES_CLASS]; /* of the convolutions that take most of the time, in this order */
    int count;
    double share; /* of the strip's rows */
} choice;

typedef struct speeds {
    const tess_rates *rates;
    const tess_speeds_work *work;
    tess_net_plan *plan; /* of a strip */
    choice chosen;
    tess_op_bench benches[OPS];
    int open;
} speeds;

/* The first op of this class; NULL: none. *seconds: of all of them. */
static const tess_op *op_of(const speeds *s, const char *op_class, double *seconds)
{
    const tess_op *first = NULL;
    bool measured = true;
    char other[TESS_RATES_CLASS];
    *seconds = 0;
    for (int i = 0; i < tess_net_plan_op_count(s->plan); i++) {
        const tess_op *op = tess_net_plan_op(s->plan, i);
        tess_op_class(op, other, sizeof other);
        if (strcmp(other, op_class) != 0)
            continue;
        first = first ? first : op;
        *seconds += tess_rates_op_seconds(s->rates, op, &measured);
    }
    return first;
}

static void add_class(choice *c, double *seconds, const char *op_class, double of_class)
{
    int at = c->count;
    for (int k = 0; k < c->count; k++)
        if (strcmp(c->classes[k], op_class) == 0)
            return;
    while (at > 0 && of_class > seconds[at - 1])
        at--;
    if (at == OPS)
        return;
    c->count = c->count < OPS ? c->count + 1 : OPS;
    for (int k = c->count - 1; k > at; k--) {
        memcpy(c->classes[k], c->classes[k - 1], sizeof c->classes[k]);
        seconds[k] = seconds[k - 1];
    }
    memcpy(c->classes[at], op_class, sizeof c->classes[at]);
    seconds[at] = of_class;
}

static tess_op op_to_time(const speeds *s, const tess_op *op)
{
    const tess_tensor *out = &op->out[0];
    return tess_calibrate_sized(op, tess_max_i64((int64_t)(s->chosen.share * (double)out->h), 1), out->w);
}

/* The classes, on as many rows as the time allows. Where memory does not suffice, the first ones. */
static tess_status choose(speeds *s, tess_error *error)
{
    choice *c = &s->chosen;
    double seconds[OPS], of_class, whole = 0;
    size_t used = 0;
    bool measured = true;
    for (int i = 0; i < tess_net_plan_op_count(s->plan); i++) {
        char op_class[TESS_RATES_CLASS] = "";
        const tess_op *op = tess_net_plan_op(s->plan, i);
        tess_op_class(op, op_class, sizeof op_class);
        if (op->kind == TESS_OP_CONV && op_of(s, op_class, &of_class))
            add_class(c, seconds, op_class, of_class);
    }
    for (int k = 0; k < c->count; k++)
        whole += tess_rates_op_seconds(s->rates, op_of(s, c->classes[k], &of_class), &measured);
    c->share = fmin(1, s->work->seconds / (ROUNDS * PASSES + 1) / whole);
    for (int k = 0; k < c->count; k++) {
        const tess_op op = op_to_time(s, op_of(s, c->classes[k], &of_class));
        size_t bytes;
        TESS_TRY(tess_op_bench_bytes(tess_rates_device(s->rates), &op, &bytes, error));
        used += bytes;
        if (used > s->work->bytes)
            c->count = k;
    }
    return TESS_OK;
}

static tess_status open_benches(speeds *s, tess_error *error)
{
    for (int k = 0; k < s->chosen.count; k++) {
        double ignored;
        const tess_op *found = op_of(s, s->chosen.classes[k], &ignored);
        if (!found) /* a rank with other kernels; nothing is measured */
            return TESS_OK;
        const tess_op op = op_to_time(s, found);
        TESS_TRY(tess_op_bench_open(&s->benches[s->open++], tess_rates_device(s->rates), &op, error));
    }
    return TESS_OK;
}

static tess_status prepare(speeds *s, tess_dist *dist, bool takes_part, tess_error *error)
{
    const tess_plan_shape shape = {.n = 1, .h = s->work->rows, .w = s->work->width};
    tess_status status = takes_part ? tess_net_plan_create(s->work->bound, shape, &s->plan, error) : TESS_OK;
    if (status == TESS_OK && dist->rank == 0)
        status = choose(s, error);
    TESS_TRY(tess_dist_agree(dist, status, error));
    TESS_TRY(tess_dist_broadcast(dist, 0, &s->chosen, sizeof s->chosen, error));
    return tess_dist_agree(dist, takes_part ? open_benches(s, error) : TESS_OK, error);
}

/* Seconds of a pass: the mean of as many as begin within `least`, one at least. */
static tess_status run_round(const speeds *s, double least, double *seconds, tess_error *error)
{
    tess_device *device = tess_rates_device(s->rates);
    const double start = tess_clock();
    int passes = 0;
    do {
        for (int i = 0; i < s->open; i++)
            tess_op_bench_run(&s->benches[i]);
        TESS_TRY(device->streams->sync(device, NULL, error));
        *seconds = tess_clock() - start;
        passes++;
    } while (*seconds < least);
    *seconds /= passes;
    return TESS_OK;
}

/* Seconds of a pass: the mean of all rounds but the slowest, in which something else may have happened. What slows a core down again
 * and again does so in the job, too. */
static tess_status run_rounds(const speeds *s, tess_dist *dist, bool takes_part, double *seconds,
                              tess_error *error)
{
    const double least = s->work->seconds * PASSES / (ROUNDS * PASSES + 1);
    tess_status status = TESS_OK;
    double sum = 0, slowest = 0;
    for (int round = -1; round < ROUNDS; round++) {
        double now = 0;
        TESS_TRY(tess_dist_barrier(dist, error));
        if (takes_part && status == TESS_OK)
            status = run_round(s, round < 0 ? 0 : least, &now, error);
        if (round >= 0) {
            sum += now;
            slowest = fmax(slowest, now);
        }
    }
    *seconds = (sum - slowest) / (ROUNDS - 1);
    return tess_dist_agree(dist, status, error);
}

/* In place: times become speeds. */
static void compare(double *times, int ranks, int size)
{
    double mean = 0;
    bool measured = true;
    for (int r = 0; r < ranks; r++) {
        mean += times[r] / ranks;
        measured = measured && times[r] > 0;
    }
    for (int r = 0; r < size; r++)
        times[r] = r < ranks && measured ? mean / times[r] : 1;
}

tess_status tess_speeds_measure(tess_dist *dist, const tess_rates *rates, const tess_speeds_work *work,
                                double *out, tess_error *error)
{
    speeds *s = tess_small_alloc(1, sizeof *s);
    tess_status status = s ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to measure speeds");
    status = tess_dist_agree(dist, status, error);
    if (status != TESS_OK) {
        tess_small_free(s);
        return status;
    }
    tess_trace *trace = tess_rates_device(rates)->counter->trace;
    const double start = tess_trace_begin(trace);
    const bool takes_part = dist->rank < work->ranks;
    double mine = 0;
    tess_trace_hush(trace, true);
    *s = (speeds){.rates = rates, .work = work};
    status = prepare(s, dist, takes_part, error);
    if (status == TESS_OK)
        status = run_rounds(s, dist, takes_part, &mine, error);
    for (int i = 0; i < s->open; i++)
        tess_op_bench_close(&s->benches[i]);
    tess_trace_hush(trace, false);
    tess_trace_end(trace, TESS_TRACE_PLAN, "measure speeds", start);
    if (s->open < s->chosen.count || s->open == 0)
        mine = 0;
    tess_net_plan_destroy(s->plan);
    tess_small_free(s);
    TESS_TRY(status);
    TESS_TRY(tess_dist_gather(dist, &mine, sizeof mine, out, error));
    compare(out, work->ranks, dist->size);
    return TESS_OK;
}
