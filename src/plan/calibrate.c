/* Measures op rates. Each class of op runs at two image sizes with random data, repeated until the two best
 * times agree (on a busy machine the first ones do not), and a straight line is fitted through the two. The
 * larger size is a few gigaflop on the host. It is a hundred on a device with queues, which smaller work does
 * not fill; there the runs are queued one after another and timed by events, so that the launch cost on the
 * host does not count. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/trace.h"
#include "plan/op_bench.h"
#include "plan/rates_impl.h"

enum { SMALL = 16, REPEATS = 3, MOST_REPEATS = 20, IN_A_ROW = 8 };
static const double AGREE = 1.03, MOST_SECONDS = 0.5; /* for one op at one size */
static const int64_t LARGEST = 256, LARGEST_HOST = 768, LARGEST_QUEUED = 1024;
static const double LONG_ENOUGH = 0.015; /* seconds */
static const double LARGE_FLOPS = 3e9, LARGE_FLOPS_QUEUED = 1e11;

static bool queued(const tess_device *device)
{
    return !device->host_memory;
}

/* Seconds of one run among others in the device's queue. */
static tess_status time_queued(const tess_op_bench *bench, double *seconds, tess_error *error)
{
    tess_device *device = bench->device;
    tess_event *from = NULL, *to = NULL;
    tess_status status = device->streams->event_create(device, &from, error);
    if (status == TESS_OK)
        status = device->streams->event_create(device, &to, error);
    tess_op_bench_run(bench); /* loads what is loaded on first use */
    for (int repeat = 0; repeat < REPEATS && status == TESS_OK; repeat++) {
        device->streams->record(device, from, NULL);
        for (int i = 0; i < IN_A_ROW; i++)
            tess_op_bench_run(bench);
        device->streams->record(device, to, NULL);
        status = device->streams->event_sync(device, to, error);
        if (status == TESS_OK)
            *seconds = fmin(*seconds, device->streams->elapsed(device, from, to) / IN_A_ROW);
    }
    if (from)
        device->streams->event_destroy(device, from);
    if (to)
        device->streams->event_destroy(device, to);
    return status;
}

static tess_status time_now(const tess_op_bench *bench, double *seconds, tess_error *error)
{
    const double begin = tess_clock();
    double best = INFINITY, second = INFINITY;
    for (int repeat = 0; repeat < MOST_REPEATS; repeat++) {
        const double start = tess_clock();
        if (repeat >= REPEATS && (second <= AGREE * best || start - begin > MOST_SECONDS))
            break;
        tess_op_bench_run(bench);
        TESS_TRY(bench->device->streams->sync(bench->device, NULL, error));
        const double now = tess_clock() - start;
        second = fmin(second, fmax(best, now));
        best = fmin(best, now);
    }
    *seconds = fmin(*seconds, best);
    return TESS_OK;
}

/* Seconds of one run at `side`. */
static tess_status time_op(tess_device *device, const tess_op *base, int64_t side, double *seconds,
                           tess_error *error)
{
    const tess_op op = tess_calibrate_resized(base, side);
    tess_op_bench bench;
    tess_status status = tess_op_bench_open(&bench, device, &op, error);
    *seconds = INFINITY;
    if (status == TESS_OK)
        status = (queued(device) ? time_queued : time_now)(&bench, seconds, error);
    tess_op_bench_close(&bench);
    return status;
}

static tess_status fits(tess_device *device, const tess_op *op, int64_t side, size_t bytes, bool *enough,
                        tess_error *error)
{
    const tess_op sized = tess_calibrate_resized(op, side);
    size_t total;
    TESS_TRY(tess_op_bench_bytes(device, &sized, &total, error));
    *enough = total <= bytes;
    return TESS_OK;
}

/* A size of a few gigaflop, or down to half its side when memory does not suffice; 0 (skip it now) when even
 * that does not fit. */
static tess_status large_side(tess_device *device, const tess_op *op, size_t bytes, int64_t *side,
                              tess_error *error)
{
    const tess_op few = tess_calibrate_resized(op, SMALL);
    double per_pixel = tess_op_flops(&few) / (SMALL * SMALL);
    const double flops = queued(device) ? LARGE_FLOPS_QUEUED : LARGE_FLOPS;
    *side = tess_min_i64(tess_max_i64((int64_t)sqrt(flops / per_pixel) / 16 * 16, 2 * SMALL),
                         queued(device) ? LARGEST_QUEUED : LARGEST);
    /* If operations grow faster than the pixels (attention), this size would take too long: reduce it. */
    for (tess_op large = tess_calibrate_resized(op, *side);
         *side > 2 * SMALL && tess_op_flops(&large) > 2 * flops; large = tess_calibrate_resized(op, *side))
        *side -= 16;
    const int64_t least = tess_calibrate_of_pixels(op) ? 2 * SMALL : tess_max_i64(*side / 2, 2 * SMALL);
    bool enough = false;
    for (; *side >= least && !enough; *side -= enough ? 0 : 16)
        TESS_TRY(fits(device, op, *side, bytes, &enough, error));
    *side = enough ? *side : 0;
    return TESS_OK;
}

/* On the host, a very short op found its data in a cache, unlike the ops of a real image. So it is timed at a
 * larger size, as far as memory allows. */
static tess_status time_large(tess_device *device, const tess_op *op, size_t bytes, int64_t *side,
                              double *seconds, tess_error *error)
{
    TESS_TRY(time_op(device, op, *side, seconds, error));
    bool enough = !queued(device);
    while (enough && *seconds < LONG_ENOUGH && 2 * *side <= LARGEST_HOST) {
        TESS_TRY(fits(device, op, 2 * *side, bytes, &enough, error));
        if (!enough)
            break;
        *side *= 2;
        TESS_TRY(time_op(device, op, *side, seconds, error));
    }
    return TESS_OK;
}

static tess_status measure(tess_rates *rates, const tess_op *op, const char *op_class, size_t bytes,
                           tess_error *error)
{
    tess_device *device = tess_rates_device(rates);
    double small, large;
    int64_t side;
    TESS_TRY(large_side(device, op, bytes, &side, error));
    if (side == 0)
        return TESS_OK;
    TESS_TRY(time_op(device, op, SMALL, &small, error));
    TESS_TRY(time_large(device, op, bytes, &side, &large, error));
    const tess_op smallest = tess_calibrate_resized(op, SMALL), largest = tess_calibrate_resized(op, side);
    const double pixels = tess_rates_pixels(rates, &largest), few = tess_rates_pixels(rates, &smallest);
    double per_pixel = fmax((large - small) / (pixels - few), large / pixels / 4);
    tess_rates_set(rates, op_class, fmax(large - per_pixel * pixels, 0), per_pixel);
    return TESS_OK;
}

static tess_status measure_class(tess_rates *rates, const tess_op *op, const char *op_class, size_t bytes,
                                 tess_error *error)
{
    tess_trace *trace = tess_rates_device(rates)->counter->trace;
    const double start = tess_trace_begin(trace);
    tess_trace_hush(trace, true);
    const tess_status status = measure(rates, op, op_class, bytes, error);
    tess_trace_hush(trace, false);
    tess_trace_end(trace, TESS_TRACE_PLAN, "measure a rate", start);
    return status;
}

tess_status tess_rates_tune(tess_rates *rates, const tess_net_plan *plan, tess_rates_budget budget,
                            tess_error *error)
{
    tess_device *device = tess_rates_device(rates);
    if (!device->ops->tune)
        return TESS_OK;
    const double start = tess_clock();
    size_t most = 0;
    for (int i = 0; i < tess_net_plan_op_count(plan); i++) {
        size_t sizes[TESS_OP_BENCH_BLOCKS], total = 0;
        TESS_TRY(tess_op_bench_sizes(device, tess_net_plan_op(plan, i), sizes, error));
        for (int k = 0; k < TESS_OP_BENCH_BLOCKS; k++)
            total += tess_align_size(sizes[k], 4096);
        most = total > most ? total : most;
    }
    if (device->memory->granted(device, most) > budget.bytes)
        most = budget.bytes / 2; /* larger ops are tuned on less memory, or not at all: the device decides */
    tess_block scratch;
    tess_status status = device->memory->alloc(device, &scratch, TESS_MEM_WORKSPACE, most, error);
    if (status != TESS_OK)
        return status == TESS_NO_MEMORY ? TESS_OK : status;
    for (int i = 0; i < tess_net_plan_op_count(plan) && tess_clock() - start < budget.seconds; i++) {
        status = device->ops->tune(device, tess_net_plan_op(plan, i), scratch.data, scratch.bytes, error);
        if (status == TESS_DEVICE_LOST)
            break;
        status = TESS_OK; /* a class that could not be tuned keeps its engine */
    }
    device->memory->free(device, &scratch);
    return status;
}

tess_status tess_rates_measure_op(tess_rates *rates, const tess_op *op, tess_rates_budget budget,
                                  tess_error *error)
{
    char op_class[TESS_RATES_CLASS], kind[TESS_RATES_CLASS];
    tess_op_class(op, op_class, sizeof op_class);
    if (tess_rates_has(rates, op_class) && !budget.again)
        return TESS_OK;
    TESS_TRY(measure_class(rates, op, op_class, budget.bytes, error));
    if (!tess_rates_has(rates, op_class))
        return TESS_OK;
    bool measured = true;
    const tess_op_amount amount = tess_rates_amount(rates, op);
    const tess_device_facts *facts = tess_rates_facts(rates);
    snprintf(kind, sizeof kind, "%s", tess_op_kind_name(op->kind)); /* for other numbers of bands */
    tess_rates_set_operator(rates, kind,
                            tess_rates_op_seconds(rates, op, &measured) /
                                fmax(amount.flops / facts->flops, amount.bytes / facts->bytes));
    return TESS_OK;
}

/* True when an earlier op of the plan has this class. */
static bool seen(const tess_net_plan *plan, int index, const char *op_class)
{
    char other[64];
    for (int i = 0; i < index; i++) {
        tess_op_class(tess_net_plan_op(plan, i), other, sizeof other);
        if (strcmp(other, op_class) == 0)
            return true;
    }
    return false;
}

tess_status tess_rates_measure(tess_rates *rates, const tess_net_plan *plan, tess_rates_budget budget,
                               tess_error *error)
{
    const double start = tess_clock();
    bool changed = false;
    for (int i = 0; i < tess_net_plan_op_count(plan) && tess_clock() - start < budget.seconds; i++) {
        const tess_op *op = tess_net_plan_op(plan, i);
        char op_class[64];
        tess_op_class(op, op_class, sizeof op_class);
        if (tess_rates_has(rates, op_class) && (!budget.again || seen(plan, i, op_class)))
            continue;
        changed = true;
        TESS_TRY(measure_class(rates, op, op_class, budget.bytes, error));
    }
    if (changed)
        (void)tess_rates_save(rates, NULL);
    return TESS_OK;
}
