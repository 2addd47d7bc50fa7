/* fill_job.h: a run of the verb `fill`, shared by its files. */
#ifndef TESS_JOB_FILL_JOB_H
#define TESS_JOB_FILL_JOB_H

#include "base/json.h"
#include "job/common/context.h"
#include "job/common/engine.h"
#include "job/fill/fill_blend.h"
#include "job/fill/fill_quality.h"
#include "solve/diffusion_sampler.h"
#include "tessera_fill.h"

typedef struct tess_fill_job {
    const tess_fill_settings *settings;
    tess_engine engine;
    tess_raster *raster, *second, *truth; /* the last two may be NULL */
    tess_fill_look second_look, truth_look;
    tess_fill_map map;
    tess_fill_list list;
    tess_fill_journal *journal;
    const char *model; /* its name as given, or of the bundled one */
    char model_path[4096];
    tess_weights *file;
    tess_diffusion_net net;
    tess_bound *embedding, *step;
    tess_block embedding_weights, step_weights;
    tess_diffusion_schedule schedule;
    tess_steps_settings steps;
    char warning[256]; /* about the schedule; empty: none */
    int64_t tile, overlap, batch, samples, step_count;
    bool conditioned;        /* the model takes the channels of tensor/terrain/conditions.h */
    double deviation_factor; /* of the model's metadata: calibrates deviations */
    tess_mem_bytes planned;  /* while tiles are computed */
    uint64_t planned_total;  /* at most, also while the output is written */
    double planned_seconds;
    bool calibrated;
    uint64_t limit, overhead;
    uint32_t counter;                       /* of the tiles of a group, which ranks take */
    int64_t resumed;                        /* tiles that were there already */
    double begin, seconds, compute_seconds; /* when it began; all; in the sampler */
    double prepare_seconds;                 /* of these: before the first steps of samplers */
    int64_t tile_steps;
    tess_meter *meter; /* from the first tile on; NULL: not begun, or the device has none */
    tess_meter_reading reading;
    double operations;
    tess_fill_seams seams;
    tess_fill_quality quality;
    char notes[512];             /* of the output's commit */
    tess_engine_figures figures; /* of all ranks; units: steps of tiles */
} tess_fill_job;

/* fill_open.c, collective: rasters, network, voids, plan. With `plan_only`, no output is touched; else those are tried that would
 * fail only at the end. */
tess_status tess_fill_open(tess_fill_job *job, tess_context *context, bool plan_only,
                           tess_error *error) TESS_MUST_CHECK;
void tess_fill_close(tess_fill_job *job);
/* The settings of the sampler for guided tiles or the others, for batches of this size. */
tess_sampler_settings tess_fill_sampler_settings(const tess_fill_job *job, bool guided, int64_t batch);
/* Whether the given nodata value takes the place of another that the file declares. */
bool tess_fill_overrides(const tess_fill_job *job);
/* fill_doubts.c: notes on samples that may be voids though nothing declares them. */
void tess_fill_note_doubts(const tess_fill_job *job);
/* Adds the marks that were taken for voids: [{"value", "pixels"}] for each map that has some. */
void tess_fill_marks_record(const tess_fill_job *job, tess_json **voids);
/* Bytes on the host while tiles are computed, and while they are put together. */
size_t tess_fill_stage_bytes(const tess_fill_job *job, int64_t batch);
/* GDAL's side of the output. */
tess_raster_target tess_fill_target(const tess_fill_settings *settings);
/* fill_plan.c: what every map of this size needs, before it is read; then bytes, seconds and batch. Both check the limit. */
tess_status tess_fill_plan_least(tess_fill_job *job, tess_error *error) TESS_MUST_CHECK;
tess_status tess_fill_plan(tess_fill_job *job, tess_error *error) TESS_MUST_CHECK;
/* The work of all tiles. */
tess_status tess_fill_list_work(const tess_fill_job *job, tess_work *work, tess_error *error) TESS_MUST_CHECK;
/* fill_run.c, collective. Ranks compute tiles; rank 0 puts them together and writes the output. */
tess_status tess_fill_run(tess_fill_job *job, tess_error *error) TESS_MUST_CHECK;
/* Of the files and the voids, and, with `device`, of everything else that decides the values of a tile. */
uint64_t tess_fill_fingerprint(const tess_fill_job *job, bool device);
/* fill_tile.c: computes tiles of one level and group that are not in the journal, as long as there are some. */
tess_status tess_fill_group(tess_fill_job *job, int level, bool guided, tess_error *error) TESS_MUST_CHECK;
/* The next of them that this rank takes; -1: there is no more. */
int64_t tess_fill_take(tess_fill_job *job, int level, bool guided);
/* fill_record.c */
tess_json *tess_fill_record(const tess_fill_job *job, bool ran);

#endif
