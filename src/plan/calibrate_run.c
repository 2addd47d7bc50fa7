/* What a run of a whole network costs beyond the sum of its ops. An op is timed with its weights in a cache; in
 * a network the weights of all layers pass through that cache, and each layer reads its own from main memory.
 * This cost does not grow with the image, so the smallest image shows it best. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "plan/rates.h"

enum { REPEATS = 4, CLASS_NAME = 64 };

static void class_of(const tess_bound *bound, char text[CLASS_NAME])
{
    snprintf(text, CLASS_NAME, "run %s %zu", tess_dtype_name(tess_bound_dtype(bound)),
             tess_bound_weight_bytes(bound));
}

double tess_rates_run_overhead(const tess_rates *rates, const tess_bound *bound)
{
    char name[CLASS_NAME];
    class_of(bound, name);
    return tess_rates_overhead(rates, name);
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

tess_status tess_rates_measure_run(tess_rates *rates, const tess_bound *bound, tess_plan_shape shape,
                                   const void *weights, tess_rates_budget budget, tess_error *error)
{
    tess_device *device = tess_rates_device(rates);
    char name[CLASS_NAME];
    class_of(bound, name);
    if (!device->host_memory || (tess_rates_has(rates, name) && !budget.again))
        return TESS_OK;
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(bound, shape, &plan, error));
    bool measured = true;
    double seconds = INFINITY;
    const double ops = tess_rates_plan_seconds(rates, plan, &measured);
    const size_t bytes = device->memory->granted(device, tess_net_plan_arena_bytes(plan)) +
                         device->memory->granted(device, tess_net_plan_workspace_bytes(plan));
    tess_status status = TESS_OK;
    if (measured && bytes <= budget.bytes && REPEATS * ops < budget.seconds) {
        status = time_run(device, plan, weights, &seconds, error);
        if (status == TESS_OK) {
            tess_rates_set(rates, name, fmax(seconds - ops, 0), 1e-15);
            (void)tess_rates_save(rates, NULL);
        }
    }
    tess_net_plan_destroy(plan);
    return status;
}
