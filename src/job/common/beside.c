#include "job/common/beside.h"

#include <stdlib.h>

tess_status tess_beside_open(tess_beside *b, tess_engine *engine, tess_error *error)
{
    const char *isa = getenv("TESSERA_ISA");
    const tess_device_options options = {.threads = tess_pool_threads(engine->host),
                                         .memory = engine->memory,
                                         .stop = &engine->stop,
                                         .isa = isa && *isa ? isa : NULL,
                                         .as_host = true};
    TESS_TRY(tess_registry_open("cpu", &options, &b->device, error));
    return tess_rates_open(b->device, &b->rates, error);
}

void tess_beside_close(tess_beside *b)
{
    tess_rates_destroy(b->rates);
    tess_registry_close(b->device);
    *b = (tess_beside){NULL, NULL};
}
