/* What a run of a whole network costs beyond the sum of its ops. An op is timed with its weights and its input in a
 * cache. In a network each layer reads its weights from main memory: a cost of the run, which a small image shows best.
 * Activations that do not fit in the cache are read from main memory too: a cost of each pixel, which a larger
 * image shows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/trace.h"
#include "plan/rates.h"

enum { REPEATS = 4, SMALL_SIDE = 96, CLASS_NAME = TESS_RATES_CLASS };

static const int64_t larger_sides[] = {384, 256, 192};

void tess_rates_run_class(const tess_bound *bound, char text[TESS_RATES_CLASS])
{
    snprintf(text, CLASS_NAME, "run %s %zu", tess_dtype_name(tess_bound_dtype(bound)),
             tess_bound_weight_bytes(bound));
}

tess_run_cost tess_rates_run_cost(const tess_rates *rates, const tess_bound *bound)
{
    char name[CLASS_NAME];
    tess_rates_run_class(bound, name);
    return tess_rates_cost(rates, name);
}

static tess_status time_run(tess_device *device, tess_net_plan *plan, const void *weights, double *seconds,
                            tess_error *error)
{
    tess_block arena = {0}, workspace = {0};
    tess_status status = tess_net_plan_prepare(plan, error);
    if (status == TESS_OK)
        status = device->memory->alloc(device, &arena, TESS_MEM_ACTIVATIONS, tess_net_plan_arena_bytes(plan),
                                       error);
    if (status == TESS_OK)
        status = device->memory->alloc(device, &workspace, TESS_MEM_WORKSPACE,
                                       tess_net_plan_workspace_bytes(plan), error);
    for (int i = 0; i < REPEATS && status == TESS_OK; i++) {
        const double start = tess_clock();
        tess_net_plan_run(plan, arena.data, workspace.data, weights, NULL);
        status = device->streams->sync(device, NULL, error);
        *seconds = fmin(*seconds, tess_clock() - start);
    }
    device->memory->free(device, &arena);
    device->memory->free(device, &workspace);
    return status;
}

/* Seconds of a run of this side beyond the sum of its ops; leaves *extra alone where the budget does not allow it. */
static tess_status measure_side(tess_rates *rates, const tess_bound *bound, int64_t side, const void *weights,
                                tess_rates_budget budget, double *extra, tess_error *error)
{
    tess_device *device = tess_rates_device(rates);
    const tess_plan_shape shape = {.n = 1, .h = side, .w = side};
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(bound, shape, &plan, error));
    bool measured = true;
    double seconds = INFINITY;
    const double ops = tess_rates_plan_seconds(rates, plan, &measured);
    const size_t bytes = device->memory->granted(device, tess_net_plan_arena_bytes(plan)) +
                         device->memory->granted(device, tess_net_plan_workspace_bytes(plan));
    tess_status status = TESS_OK;
    if (measured && bytes <= budget.bytes && REPEATS * ops < budget.seconds) {
        tess_trace *trace = device->counter->trace;
        const double start = tess_trace_begin(trace);
        tess_trace_hush(trace, true);
        status = time_run(device, plan, weights, &seconds, error);
        tess_trace_hush(trace, false);
        tess_trace_end(trace, TESS_TRACE_PLAN, "measure a rate", start);
        if (status == TESS_OK)
            *extra = fmax(seconds - ops, 0);
    }
    tess_net_plan_destroy(plan);
    return status;
}

tess_status tess_rates_measure_run(tess_rates *rates, const tess_bound *bound, int64_t grid,
                                   const void *weights, tess_rates_budget budget, tess_error *error)
{
    const double start = tess_clock(), nothing = 1e-15; /* a rate must be positive */
    char name[CLASS_NAME];
    tess_rates_run_class(bound, name);
    if (!tess_rates_device(rates)->host_memory || (tess_rates_has(rates, name) && !budget.again))
        return TESS_OK;
    const int64_t small = tess_round_up(SMALL_SIDE, grid);
    double of_small = -1, of_larger = -1;
    int64_t larger = 0;
    TESS_TRY(measure_side(rates, bound, small, weights, budget, &of_small, error));
    if (of_small < 0)
        return TESS_OK;
    for (size_t i = 0; i < sizeof larger_sides / sizeof *larger_sides && of_larger < 0; i++) {
        larger = tess_round_up(larger_sides[i], grid);
        tess_rates_budget left = budget;
        left.seconds -= tess_clock() - start;
        TESS_TRY(measure_side(rates, bound, larger, weights, left, &of_larger, error));
    }
    const double per_pixel = (of_larger - of_small) / (double)(larger * larger - small * small);
    tess_rates_set(rates, name, fmax(of_small - fmax(per_pixel, 0) * (double)(small * small), 0),
                   fmax(per_pixel, nothing));
    (void)tess_rates_save(rates, NULL);
    return TESS_OK;
}
