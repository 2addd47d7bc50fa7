/* bench_point.h: one point of a study, shared by bench_point.c (plan, allocate, capture) and bench_pass.c (run and
 * time). */
#ifndef TESS_JOB_BENCH_POINT_H
#define TESS_JOB_BENCH_POINT_H

#include "job/study/bench.h"

enum { TESS_BENCH_SLOTS = 2 };

typedef struct tess_bench_point {
    tess_study *study;
    tess_device *device;
    const tess_bench_work *work;
    tess_windows *windows;
    tess_windows_needs needs;
    tess_block in[TESS_BENCH_SLOTS], out[TESS_BENCH_SLOTS], host_in[TESS_BENCH_SLOTS],
        host_out[TESS_BENCH_SLOTS]; /* without transfer only in[0] */
    tess_event *uploaded[TESS_BENCH_SLOTS], *taken[TESS_BENCH_SLOTS], *computed[TESS_BENCH_SLOTS],
        *downloaded[TESS_BENCH_SLOTS];
    tess_event **marks; /* events between the passes */
    double *times;
    int repeats;
    int64_t runs; /* so far: runs use the slots in turn */
} tess_bench_point;

tess_window_net tess_bench_net(const tess_bench_point *p);
/* Warms up, then fills `times`. */
tess_status tess_bench_time(tess_bench_point *p, tess_error *error) TESS_MUST_CHECK;

#endif
