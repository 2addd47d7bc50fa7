/* engine.h: an open device, its rates, a thread pool for work on the host, and the loaded models. */
#ifndef TESS_JOB_ENGINE_H
#define TESS_JOB_ENGINE_H

#include "base/pool.h"
#include "base/stop.h"
#include "device/device.h"
#include "dist/dist.h"
#include "model/model.h"
#include "net/plan.h"
#include "plan/choose.h"
#include "plan/rates.h"

enum { TESS_ENGINE_MODELS = 2 }; /* a folder can mix gray and colour images */

typedef struct tess_engine_model {
    char path[4096];
    bool inflated; /* the weights of a 2-D network are made 3-D, as `how` says */
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

/* What one of the ranks computes on; `id` tells the devices of a host apart. */
typedef struct tess_rank_device {
    char kind[16], name[96];
    uint64_t id;
} tess_rank_device;

/* How the device was decided on: job/common/choice.h. */
typedef struct tess_engine_choice {
    bool undecided, predicted, was_auto;
    tess_decision decision;
    char refused[256];   /* why the card that was chosen is not used; "": it is, or none was chosen */
    double open_seconds; /* of the device in use */
    double load_seconds; /* of reading and packing weights */
} tess_engine_choice;

typedef struct tess_engine {
    tess_dist *dist; /* the ranks that share the job, or &alone */
    tess_dist alone;
    int sharing;         /* ranks that use this device's memory */
    tess_stop stop;      /* stops everything that runs on this engine */
    tess_memory *memory; /* the context's counter: counts all blocks of the job, also on the host */
    tess_device *device;
    tess_device_facts facts;
    tess_rates *rates;
    tess_pool *host;
    tess_dtype dtype;
    bool tf32;
    /* the device has its own memory: rows stay on the host and windows pass through a queue */
    bool separate_memory;
    const char *precision; /* the precision in use, resolved from "auto" */
    tess_engine_model models[TESS_ENGINE_MODELS];
    int model_count;
    tess_engine_choice choice;
} tess_engine;

/* Sets `stop` first, so that it is valid also if this fails. The engine must not move afterwards. */
tess_status tess_engine_open(tess_engine *engine, tess_memory *memory, const tess_common *common,
                             tess_error *error) TESS_MUST_CHECK;
/* Collective: the same for a job that ranks share; NULL: alone. Each takes its part of the host's cores and cards, and all must have
 * found the same kind of device. */
tess_status tess_engine_open_ranks(tess_engine *engine, tess_dist *dist, tess_memory *memory,
                                   const tess_common *common, tess_error *error) TESS_MUST_CHECK;
/* Its two parts. The first is not collective; NULL: alone. The second counts the ranks that share the device's memory, and
 * is called again when the device has changed. */
tess_status tess_engine_open_on(tess_engine *engine, tess_dist *dist, tess_memory *memory,
                                const tess_common *common, tess_error *error) TESS_MUST_CHECK;
tess_status tess_engine_compare(tess_engine *engine, tess_error *error) TESS_MUST_CHECK;
/* Collective: the devices of all ranks, for the caller to release; whether two of them are the same one. */
tess_status tess_engine_rank_devices(tess_engine *engine, tess_rank_device **all,
                                     tess_error *error) TESS_MUST_CHECK;
bool tess_engine_same_device(const tess_engine *engine, const tess_rank_device *all, int a, int b);
void tess_engine_close(tess_engine *engine);
/* Opens another device in place of the one in use; memory, stop and host threads stay. Models are bound again; their weights
 * must not be loaded. If the device cannot be opened, nothing changes. */
tess_status tess_engine_move(tess_engine *engine, const tess_common *common, const char *kind,
                             tess_error *error) TESS_MUST_CHECK;
/* Which memory the job's total counts: without host memory if the device has separate memory. */
tess_mem_scope tess_engine_scope(const tess_engine *engine);
/* Resolves "auto", "fp16" and so on for this device. */
tess_status tess_precision_of(const tess_device_facts *facts, const char *wanted, tess_precision *out,
                              tess_error *error) TESS_MUST_CHECK;
/* Opens a model outside of the engine's list. The caller sets path, inflated and how, and closes the model also if
 * this fails. */
tess_status tess_engine_model_open(tess_engine *engine, const tess_precision *precision,
                                   tess_engine_model *model, tess_error *error) TESS_MUST_CHECK;
/* Copies the weights to the device; does not wait for the last copy. */
tess_status tess_engine_model_load(tess_engine *engine, tess_engine_model *model,
                                   tess_error *error) TESS_MUST_CHECK;
void tess_engine_model_close(tess_engine *engine, tess_engine_model *model);
/* Finds the model of this name and binds its layers to the device; does not load the weights. */
tess_status tess_engine_model_of(tess_engine *engine, const char *name, tess_engine_model **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* Finds the bundled model for images of so many channels; the error says what to do if it is missing. */
tess_status tess_engine_bundled_of(tess_engine *engine, int64_t channels, tess_engine_model **out,
                                   tess_error *error) TESS_MUST_CHECK;
/* The same for volumes: a 2-D network is made 3-D, a 3-D one is used as it is. */
tess_status tess_engine_volume_of(tess_engine *engine, const char *name, tess_inflation how,
                                  tess_engine_model **out, tess_error *error) TESS_MUST_CHECK;
tess_status tess_engine_load(tess_engine *engine, tess_error *error) TESS_MUST_CHECK;
/* Learns the rate of reading and packing weights, in seconds for so many values. */
void tess_engine_learn_weights(tess_engine *engine, double seconds, double values);
/* From now on, ranks of one host help each other (base/help.h) where they can: each computes with one thread of the CPU, in fp32. Before the
 * memory that they compute in is allocated. */
void tess_engine_help(tess_engine *engine);
void tess_engine_unload(tess_engine *engine);
/* Collective: fails if a rank has another hash than rank 0, of what it found out about its inputs. */
tess_status tess_engine_same_inputs(tess_engine *engine, uint64_t hash, tess_error *error) TESS_MUST_CHECK;
/* Collective: the least limit of all ranks, which plan with it. */
tess_status tess_engine_share_limit(tess_engine *engine, uint64_t *limit, tess_error *error) TESS_MUST_CHECK;
/* What a rank has measured; after sharing, the most of all ranks, but the sum of the last two. Collective. */
typedef struct tess_engine_figures {
    tess_mem_usage peak;
    uint64_t resident, overhead;
    double seconds;
    int64_t units; /* of work or bytes, as the verb likes */
    double operations;
} tess_engine_figures;
tess_status tess_engine_share_figures(tess_engine *engine, tess_engine_figures *figures,
                                      tess_error *error) TESS_MUST_CHECK;
/* Returns the memory that the device can give to this rank if no limit is set. */
uint64_t tess_engine_free_limit(const tess_engine *engine);

#endif
