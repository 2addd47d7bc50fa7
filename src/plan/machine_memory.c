/* Costs of memory: copies between pinned host memory and a device with separate memory; the first use of host memory, which
 * the system clears page by page. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "plan/machine.h"

enum { LARGE = 32 << 20, SMALL = 4096, REPEATS = 4 };

typedef struct bus {
    tess_device *device;
    tess_block host, there;
} bus;

static tess_status time_copy(const bus *b, bool up, size_t bytes, double *seconds, tess_error *error)
{
    const tess_device_memory *memory = b->device->memory;
    *seconds = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        const double start = tess_clock();
        memory->copy(b->device, up ? b->there.data : b->host.data, up ? b->host.data : b->there.data, bytes,
                     NULL);
        TESS_TRY(b->device->streams->sync(b->device, NULL, error));
        *seconds = fmin(*seconds, tess_clock() - start);
    }
    return TESS_OK;
}

static tess_status measure(tess_rates *rates, const bus *b, tess_error *error)
{
    static const char *const classes[] = {TESS_COST_DOWN, TESS_COST_UP};
    for (int up = 0; up < 2; up++) {
        double small, large;
        TESS_TRY(time_copy(b, up, SMALL, &small, error));
        TESS_TRY(time_copy(b, up, LARGE, &large, error));
        tess_rates_set(rates, classes[up], small, fmax(large - small, large / 2) / (LARGE - SMALL));
    }
    return TESS_OK;
}

tess_status tess_machine_measure_bus(tess_rates *rates, tess_error *error)
{
    bus b = {.device = tess_rates_device(rates)};
    if (b.device->host_memory || tess_rates_has(rates, TESS_COST_UP))
        return TESS_OK;
    const tess_device_memory *memory = b.device->memory;
    tess_status status = memory->host_alloc(b.device, &b.host, LARGE, error);
    if (status == TESS_OK)
        status = memory->alloc(b.device, &b.there, TESS_MEM_WORKSPACE, LARGE, error);
    if (status == TESS_OK)
        status = measure(rates, &b, error);
    if (b.there.data)
        memory->free(b.device, &b.there);
    if (b.host.data)
        memory->host_free(b.device, &b.host);
    return status;
}

tess_status tess_machine_measure_fresh(tess_rates *rates, tess_error *error)
{
    tess_device *device = tess_rates_device(rates);
    double fresh = INFINITY, again = INFINITY;
    if (!device->host_memory || tess_rates_has(rates, TESS_COST_FRESH))
        return TESS_OK;
    for (int i = 0; i < REPEATS; i++) {
        tess_block block = {0};
        const double start = tess_clock();
        TESS_TRY(device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, LARGE, error));
        memset(block.data, 1, LARGE);
        const double middle = tess_clock();
        memset(block.data, 2, LARGE);
        fresh = fmin(fresh, middle - start);
        again = fmin(again, tess_clock() - middle);
        device->memory->free(device, &block);
    }
    tess_rates_set(rates, TESS_COST_FRESH, 0, fmax(fresh - again, 0.01 * fresh) / LARGE);
    return TESS_OK;
}
