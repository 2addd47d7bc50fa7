/* bench_stats.h: the study of hyperspectral pipelines, shared by bench_stats.c (workloads, lines, break-even),
 * bench_stats_data.c (made-up cubes), bench_stats_point.c (phase 1 of one workload on one device), bench_stats_train.c and bench_stats_epochs.c (its
 * phase 2) and bench_stats_record.c. */
#ifndef TESS_JOB_BENCH_STATS_H
#define TESS_JOB_BENCH_STATS_H

#include "job/study/bench.h"
#include "train/statistics/statistics.h"

enum { TESS_STATS_DEVICES = 2 };

typedef struct tess_stats_load {
    const char *sweep; /* what it varies: "guide", "samples", "batch", "channels" or "size" */
    int64_t samples, side, channels, batch;
} tess_stats_load;

/* Cubes in the host's memory. If they do not fit, the first `distinct` ones are used again and again. A batch of cubes is one
 * image, since pixels are independent here. */
typedef struct tess_stats_data {
    tess_stats_load load;
    int64_t distinct;
    tess_block block;
    tess_pixel_image *images; /* one a batch */
    tess_pixel_image *cubes;  /* one a cube */
    int64_t count;
    double seconds;   /* that making them took */
    const char *base; /* of the cubes in the memory of the device that computes */
} tess_stats_data;

/* `most`: bytes of host memory. */
tess_status tess_stats_make(const tess_stats_load *load, uint64_t most, tess_engine *engine,
                            tess_stats_data *data, tess_error *error) TESS_MUST_CHECK;
void tess_stats_free(tess_stats_data *data);
size_t tess_stats_bytes(const tess_stats_data *data); /* of the distinct cubes */
/* resident: `base` is where the device computes; otherwise the cubes are read from the host's memory. */
tess_pixel_set tess_stats_set(tess_stats_data *data, bool resident);
/* The same with an image for each cube. */
tess_pixel_set tess_stats_cubes(tess_stats_data *data, bool resident);

typedef struct tess_stats_device {
    tess_engine engine;
    bool open;
    double open_seconds;
    double link; /* bytes a second from pinned memory; 0: the memory is the host's */
} tess_stats_device;

typedef struct tess_stats_point {
    bool resident;
    const char *precision; /* of phase 2; NULL: phase 1 */
    bool condensed;        /* phase 2: some pixels stand for each cube: train/statistics/condense.h */
    /* measured: */
    double seconds, spread;  /* of phase 1, or of an epoch of phase 2 */
    int64_t steps;           /* these four of phase 2 */
    double condense_seconds; /* the least of a run; an epoch has its share of it */
    int micro_batches;
    double loss;              /* of the last step */
    double processor_seconds; /* the least of a run, of all threads together: says more on a busy machine */
    int repeats, passes;
    tess_mem_bytes planned;
    tess_mem_usage counted;
} tess_stats_point;

/* Bytes a second from pinned memory to the device. */
tess_status tess_stats_link(tess_device *device, double *rate, tess_error *error) TESS_MUST_CHECK;
tess_status tess_stats_measure(tess_stats_device *device, const tess_bench_settings *settings,
                               tess_stats_data *data, tess_stats_point *point,
                               tess_error *error) TESS_MUST_CHECK;
/* Phase 2 in one precision. */
tess_status tess_stats_train(tess_stats_device *device, const tess_bench_settings *settings,
                             tess_stats_data *data, const tess_precision *precision, tess_stats_point *point,
                             tess_error *error) TESS_MUST_CHECK;
/* Sets `base`: resident cubes are copied to the device, into `card`, which the caller frees. */
tess_status tess_stats_place(tess_device *device, tess_stats_data *data, bool resident, tess_block *card,
                             tess_error *error) TESS_MUST_CHECK;

enum { TESS_STATS_NAME = 64 };
void tess_stats_name(const tess_stats_load *load, char text[TESS_STATS_NAME]);
tess_json *tess_stats_record(const tess_bench_settings *settings, const tess_stats_device *device,
                             const tess_stats_data *data, const tess_stats_point *point);

#endif
