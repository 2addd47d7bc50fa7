/* bench.h: the parts of the studies. A study opens an engine for each model, warms it up, and measures points. A
 * point is the network runs of one image with newly allocated blocks, so that planned bytes, counted bytes and the
 * system's figure describe the same thing. */
#ifndef TESS_JOB_BENCH_H
#define TESS_JOB_BENCH_H

#include "base/json.h"
#include "job/common/engine.h"
#include "plan/cut.h"
#include "tessera_study.h"
#include "window/window.h"

enum { TESS_BENCH_SHAPES = 96, TESS_BENCH_REPEATS = 1000, TESS_BENCH_RANKS = 4096 };

typedef struct tess_study {
    const tess_bench_settings *settings;
    const char *name; /* of the model, as given */
    tess_engine engine;
    tess_engine_model *model;
    tess_stream *compute, *up, *down; /* NULL if the device has only its default stream */
    uint64_t base;                    /* what the system counts after loading, without weights and blocks */
} tess_study;

/* The windows of one image. */
typedef struct tess_bench_work {
    tess_cut cut;
    bool transfer; /* every run's input comes from the host and its result returns there */
} tess_bench_work;

/* `count` windows of one size that do not overlap. */
tess_cut tess_bench_cut(int64_t count, int64_t height, int64_t width, int64_t batch);

typedef struct tess_bench_result {
    double seconds, spread; /* of one image: the median, and (largest - smallest) / median */
    double flop;
    tess_mem_bytes planned; /* on the device */
    tess_mem_usage counted; /* on the device, and pinned on the host */
    uint64_t driver_bytes;
} tess_bench_result;

/* Bytes held on the device besides weights, arena and workspace. */
tess_status tess_bench_io_bytes(tess_study *study, const tess_bench_work *work, uint64_t *bytes,
                                tess_error *error) TESS_MUST_CHECK;
tess_status tess_bench_measure(tess_study *study, const tess_bench_work *work, int repeats,
                               tess_bench_result *result, tess_error *error) TESS_MUST_CHECK;

/* Measures missing rates of the ops at this shape, and loads everything that a first run loads. */
tess_status tess_bench_warm(tess_study *study, tess_plan_shape shape, tess_error *error) TESS_MUST_CHECK;
/* Seconds that measuring missing rates may take. */
#define TESS_BENCH_CALIBRATION 10.0
/* Bytes in use by the count of the system: of the card, or resident. */
uint64_t tess_bench_used(tess_device *device);
/* Sorts the times; the median, and (largest - smallest) / median. */
double tess_bench_median(double *times, int64_t count, double *spread);

/* Called after warming up: bytes counted from here on belong to a point. */
tess_status tess_bench_settle(tess_study *study, tess_error *error) TESS_MUST_CHECK;
/* Memory limit for the plan of a point. */
uint64_t tess_bench_limit(tess_study *study);

/* Returns a record with the members that all studies share. */
tess_json *tess_bench_record(const tess_study *study, int64_t height, int64_t width,
                             const tess_cut_plan *choice, const tess_bench_result *result);
/* Passes the record to the caller as a line and frees it. */
tess_status tess_bench_tell(const tess_study *study, tess_json *record, tess_error *error) TESS_MUST_CHECK;

tess_status tess_bench_size(tess_study *study, tess_error *error) TESS_MUST_CHECK;
tess_status tess_bench_batch(tess_study *study, tess_error *error) TESS_MUST_CHECK;
/* Opens its engines itself: its network is not one for images. */
tess_status tess_bench_dem(const tess_bench_settings *settings, tess_memory *memory,
                           tess_error *error) TESS_MUST_CHECK;
/* Writes the scripts of `settings->slurm`, and a line that says so. */
tess_status tess_bench_slurm(const tess_bench_settings *settings, tess_error *error) TESS_MUST_CHECK;
/* The same: it has no network. */
tess_status tess_bench_stats(const tess_bench_settings *settings, tess_memory *memory,
                             tess_error *error) TESS_MUST_CHECK;
/* Collective, unless it simulates. */
tess_status tess_bench_scaling(const tess_bench_settings *settings, tess_context *context) TESS_MUST_CHECK;

#endif
