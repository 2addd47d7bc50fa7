/* lane_impl.h: the body of a lane, for the files lane*.c. */
#ifndef TESS_JOB_LANE_IMPL_H
#define TESS_JOB_LANE_IMPL_H

#include <pthread.h>

#include "job/common/lane.h"

enum { LANE_CHUNKS = 4, LANE_TIMES = 3, LANE_NETWORKS = 16, LANE_SAMPLE_OPS = 32 };

/* Pinned memory, a piece at a time; an event says when the copy of a piece is over. */
typedef struct lane_chunk {
    char *data;
    tess_event *over;
} lane_chunk;

typedef struct lane_chunks {
    lane_chunk chunk[LANE_CHUNKS];
    size_t bytes; /* of each */
    int next;
} lane_chunks;

/* A network at one size, bound to the lane's memory. */
typedef struct lane_network {
    const tess_bound *bound;
    tess_plan_shape shape;
    tess_net_plan *plan;
    tess_graph *graph; /* NULL where the device needs none */
    uint64_t used;
} lane_network;

typedef struct lane_sample_op {
    tess_op op;
    tess_prepared *prepared;
    uint64_t used;
} lane_sample_op;

/* When a window's computation began and ended; it may pause between `computed` and `exporting`. */
typedef struct lane_times {
    tess_event *start, *computed, *exporting, *over;
} lane_times;

typedef struct lane_download {
    tess_lane_window window;
    tess_flight *flight;
    const lane_times *times;
} lane_download;

struct tess_lane {
    tess_device *device;
    tess_block arena, workspace, in_stage, out_stage, pinned;
    tess_stream *upload, *compute, *download, *capture;
    lane_chunks up, down;
    tess_event *uploaded, *imported, *origin;
    lane_times times[LANE_TIMES];
    lane_network networks[LANE_NETWORKS];
    lane_sample_op sample_ops[LANE_SAMPLE_OPS];
    /* A window holds `boarding` while it is prepared, uploaded and imported, and `running` from its import until
     * its export is queued. It takes the second before it leaves the first, so that windows keep their order. */
    pthread_mutex_t boarding, running;
    uint64_t boarded; /* windows so far: boarding's */
    uint64_t turns;   /* running's */
    tess_worker *downloader;
    lane_download job;     /* the downloader's */
    pthread_mutex_t mutex; /* of the flights and of what follows */
    pthread_cond_t landed;
    bool lost;
    double first, last, busy, span, shape_seconds, shape_total;
    uint64_t least_free;
    int64_t shapes;
};

/* lane.c: the device told an error, to whoever asked first: no window that is under way can be trusted. */
void tess_lane_lose(tess_lane *lane);

/* lane_network.c */
tess_status tess_lane_network(tess_lane *lane, const tess_lane_window *window, lane_network **out,
                              tess_error *error) TESS_MUST_CHECK;
void tess_lane_network_run(tess_lane *lane, const lane_network *network, const void *weights);
tess_status tess_lane_sample_op(tess_lane *lane, const tess_op *op, const tess_prepared **out,
                                tess_error *error) TESS_MUST_CHECK;
void tess_lane_networks_clear(tess_lane *lane);
void tess_lane_look_at_memory(tess_lane *lane);

/* lane_copy.c: the window's samples to the stage in; the stage out to the strip's rows. */
tess_dtype tess_lane_in_dtype(const tess_pixels *pixels);
tess_dtype tess_lane_out_dtype(const tess_pixels *pixels);
/* Rows of the strip's window that are inside the image. */
int64_t tess_lane_in_rows(const tess_lane_window *window);
/* Columns of tile `index` that are written. */
tess_span tess_lane_core(const tess_lane_window *window, int64_t index);
tess_status tess_lane_upload(tess_lane *lane, const tess_lane_window *window,
                             tess_error *error) TESS_MUST_CHECK;
tess_status tess_lane_download(tess_lane *lane, const tess_lane_window *window,
                               tess_error *error) TESS_MUST_CHECK;

#endif
