/* bench_point.h: one point of a study at work, between bench_run.c (plan, allocate, capture) and bench_pass.c (run and
 * time). */
#ifndef TESS_JOB_BENCH_POINT_H
#define TESS_JOB_BENCH_POINT_H

#include "job/study/bench.h"

enum { TESS_BENCH_SLOTS = 2 };

typedef struct tess_bench_prepared {
    tess_net_plan *plan;
    tess_graph *graph; /* NULL: run the plan itself */
    tess_tensor in, out;
    size_t in_at, out_at, in_bytes, out_bytes;
} tess_bench_prepared;

typedef struct tess_bench_point {
    tess_study *study;
    tess_device *device;
    const tess_bench_work *work;
    tess_bench_prepared shapes[TESS_BENCH_SHAPES];
    size_t arena_bytes, workspace_bytes, in_bytes, out_bytes;
    tess_block arena, workspace;
    tess_block in[TESS_BENCH_SLOTS], out[TESS_BENCH_SLOTS], host_in[TESS_BENCH_SLOTS],
        host_out[TESS_BENCH_SLOTS]; /* without transfer only in[0] */
    tess_event *uploaded[TESS_BENCH_SLOTS], *taken[TESS_BENCH_SLOTS], *computed[TESS_BENCH_SLOTS],
        *downloaded[TESS_BENCH_SLOTS];
    tess_event **marks; /* between the passes */
    double *times;
    int repeats;
    int64_t runs; /* so far: they take the slots in turn */
} tess_bench_point;

/* Warms up, then fills `times`. */
tess_status tess_bench_time(tess_bench_point *p, tess_error *error) TESS_MUST_CHECK;

#endif
