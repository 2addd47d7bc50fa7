/* engine.h: a device that is open, its rates, a pool for the host's own work, and the models in use. */
#ifndef TESS_JOB_ENGINE_H
#define TESS_JOB_ENGINE_H

#include "base/pool.h"
#include "base/stop.h"
#include "device/device.h"
#include "model/model.h"
#include "net/plan.h"
#include "plan/rates.h"

enum { TESS_ENGINE_MODELS = 2 }; /* a folder can mix gray and colour images */

typedef struct tess_engine_model {
    char path[4096];
    bool inflated; /* a 2-D network's weights are made 3-D, in this way: */
    tess_inflation how;
    tess_weights *file;
    tess_model_net model;
    tess_bound *bound;
    tess_block weights;
} tess_engine_model;

typedef struct tess_precision {
    tess_dtype dtype;
    bool tf32;
    const char *name;
} tess_precision;

typedef struct tess_engine {
    tess_stop stop;      /* of everything that runs here */
    tess_memory *memory; /* of all blocks of the job, also those of the host; the context's */
    tess_device *device;
    tess_device_facts facts;
    tess_rates *rates;
    tess_pool *host;
    tess_dtype dtype;
    bool tf32;
    /* the device has its own memory: rows stay on the host and windows pass through a queue */
    bool separate_memory;
    const char *precision; /* as it ended up */
    tess_engine_model models[TESS_ENGINE_MODELS];
    int model_count;
} tess_engine;

/* Its `stop` is filled first, so that it can be asked also when this failed. The engine must not move afterwards. */
tess_status tess_engine_open(tess_engine *engine, tess_memory *memory, const tess_common *common,
                             tess_error *error) TESS_MUST_CHECK;
void tess_engine_close(tess_engine *engine);
/* What the job's total is of: without the host's memory where the device has its own. */
tess_mem_scope tess_engine_scope(const tess_engine *engine);
/* What "auto", "fp16" and so on mean on this device. */
tess_status tess_precision_of(const tess_device_facts *facts, const char *wanted, tess_precision *out,
                              tess_error *error) TESS_MUST_CHECK;
/* A model outside of the engine's list: the caller sets path, inflated and how, and closes it also when this failed. */
tess_status tess_engine_model_open(tess_engine *engine, const tess_precision *precision,
                                   tess_engine_model *model, tess_error *error) TESS_MUST_CHECK;
/* Its weights, to the device; does not wait for the last of them. */
tess_status tess_engine_model_load(tess_engine *engine, tess_engine_model *model,
                                   tess_error *error) TESS_MUST_CHECK;
void tess_engine_model_close(tess_engine *engine, tess_engine_model *model);
/* The model of this name, its layers bound to the device, its weights not loaded yet. */
tess_status tess_engine_model_of(tess_engine *engine, const char *name, tess_engine_model **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* The bundled model for images of so many channels; says what to do when it is missing. */
tess_status tess_engine_bundled_of(tess_engine *engine, int64_t channels, tess_engine_model **out,
                                   tess_error *error) TESS_MUST_CHECK;
/* The same for volumes: a 2-D network is made 3-D, a 3-D one is taken as it is. */
tess_status tess_engine_volume_of(tess_engine *engine, const char *name, tess_inflation how,
                                  tess_engine_model **out, tess_error *error) TESS_MUST_CHECK;
tess_status tess_engine_load(tess_engine *engine, tess_error *error) TESS_MUST_CHECK;
void tess_engine_unload(tess_engine *engine);
/* What the device can give without a limit set. */
uint64_t tess_engine_free_limit(const tess_engine *engine);

#endif
