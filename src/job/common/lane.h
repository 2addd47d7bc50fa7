/* lane.h: the one lane to a device with memory of its own, which all files of a job share.
 *
 * Windows go through it in the order of their submission: rows are copied into pinned chunks and uploaded, the
 * network runs as one captured graph, the result is downloaded in chunks by a thread of the lane. While one
 * window computes, the next is uploaded and waits in the device's queue, and the one before is downloaded; so the
 * device idles only when no file has a window ready. One stage in, one stage out and one arena suffice: the
 * import frees the stage in as soon as it has run, and a window's export is queued only when the download before
 * it is over, which is long before its network is.
 *
 * All memory is taken at opening. Any number of threads may submit. */
#ifndef TESS_JOB_LANE_H
#define TESS_JOB_LANE_H

#include "job/common/pixels.h"
#include "net/plan.h"

typedef struct tess_lane tess_lane; /* owned by the caller: tess_lane_close */

/* The largest that any window of the job needs. */
typedef struct tess_lane_sizes {
    size_t arena, workspace, in_stage, out_stage;
} tess_lane_sizes;

/* Pinned bytes that a lane of these sizes takes on the host. */
size_t tess_lane_host_bytes(const tess_lane_sizes *sizes);
tess_status tess_lane_open(tess_device *device, const tess_lane_sizes *sizes, tess_lane **out,
                           tess_error *error) TESS_MUST_CHECK;
/* Waits for what is under way; accepts NULL. */
void tess_lane_close(tess_lane *lane);

/* A batch of windows side by side in a strip: `n` from tile `first` on. */
typedef struct tess_lane_window {
    const tess_bound *bound;
    const void *weights;
    const tess_pixels *pixels; /* these three are the caller's until the flight is settled */
    tess_strip strip; /* a copy; its input rows are needed only while submitting, unless there is alpha */
    tess_axis cols;
    int64_t first, n;
} tess_lane_window;

/* Windows that belong together, e.g. those of a strip; zeroed by the caller. */
typedef struct tess_flight {
    int pending;
    double seconds; /* of the device */
    tess_status status;
    tess_error error;
} tess_flight;

/* Returns when the input rows are read; the output rows are written some time before settle returns. */
tess_status tess_lane_submit(tess_lane *lane, const tess_lane_window *window, tess_flight *flight,
                             tess_error *error) TESS_MUST_CHECK;
/* Waits for all windows of the flight. Must be called before their memory goes, also after an error. */
tess_status tess_lane_settle(tess_lane *lane, tess_flight *flight, tess_error *error) TESS_MUST_CHECK;

typedef struct tess_lane_figures {
    double seconds; /* from the first upload to the end of the last download */
    double busy;    /* share of the time between the first and the last window that the device computed */
    double shape_seconds,
        shape_mean_seconds; /* what a new shape cost before its first run: the most, the mean */
    uint64_t least_free;    /* of the device's memory, as its driver says */
    int64_t shapes;         /* prepared in all */
} tess_lane_figures;
void tess_lane_measured(tess_lane *lane, tess_lane_figures *figures);

/* Runs the network once at its smallest size and frees everything again: what libraries and drivers load on first
 * use is loaded then. */
tess_status tess_lane_warm(tess_device *device, const tess_bound *bound, const tess_net *net,
                           tess_error *error) TESS_MUST_CHECK;

#endif
