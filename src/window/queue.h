/* queue.h: the queue to a device with separate memory, shared by all files of a job.
 *
 * Windows run in the order of submission. Samples are copied into pinned chunks and uploaded, the network runs
 * as one captured graph, and a thread of the queue downloads the result in chunks. While one batch computes,
 * the next is uploaded and waits on the device, and the previous one is downloaded; so the device is idle only
 * when no thread has a window ready. One input stage, one output stage and one arena suffice: the import frees
 * the input stage as soon as it has run, and the export of a batch is queued only when the previous download is
 * done, which is long before its network is.
 *
 * All memory is allocated at opening. Any number of threads may submit. */
#ifndef TESS_WINDOW_QUEUE_H
#define TESS_WINDOW_QUEUE_H

#include "window/window.h"

typedef struct tess_queue tess_queue; /* owned by the caller: tess_queue_close */

/* The largest sizes that any batch of the job needs. */
typedef struct tess_queue_sizes {
    size_t arena, workspace, in_stage, out_stage;
} tess_queue_sizes;

/* Pinned bytes on the host that a queue of these sizes allocates. */
size_t tess_queue_host_bytes(const tess_queue_sizes *sizes);
tess_status tess_queue_open(tess_device *device, const tess_queue_sizes *sizes, tess_queue **out,
                            tess_error *error) TESS_MUST_CHECK;
/* Waits for submitted work; accepts NULL. */
void tess_queue_close(tess_queue *queue);

/* An image on the host. Its samples are transferred as they are; the device converts them. `read` is called
 * during submission and returns `count` pixels of row y from column x on, all inside the image. `write`
 * receives pixels of the result, on the queue's thread, before the ticket is done. */
typedef struct tess_queue_image {
    int64_t height, width, channels;
    tess_dtype in, out;
    double full_scale;   /* the sample that means 1; 1 for floats */
    bool level_channel;  /* the network's last input channel is the noise level: */
    const float *levels; /* one per plane, the last repeated if there are fewer, unless */
    int level_count;
    int32_t level_from; /* this channel of the image holds the level; 0: none */
    void (*read)(void *user, int64_t y, int64_t x, int64_t count, void *to);
    void (*write)(void *user, int64_t y, int64_t x, int64_t count, const void *from);
    void *user;
    const tess_exchanger *exchanger; /* for a cut with neighbours, which is prepared; else NULL */
    void *exchange_user;
} tess_queue_image;

/* Prepares every shape of the cut, so that submitting it does not fail between exchanges with neighbours. */
tess_status tess_queue_prepare(tess_queue *queue, const tess_window_net *net, const tess_cut *cut,
                               tess_error *error) TESS_MUST_CHECK;

/* A group of batches, e.g. those of a strip. The caller zeroes it. */
typedef struct tess_ticket {
    int pending;
    double seconds; /* time on the device */
    tess_status status;
    tess_error error;
} tess_ticket;

/* Submits the windows of one strip of an image (the first slab of the cut), or of all strips of a cut with one
 * slab (TESS_ALL_STRIPS). Returns when their samples have been read. The image and the ticket must exist until
 * the ticket is done. */
tess_status tess_queue_submit(tess_queue *queue, const tess_window_net *net, const tess_cut *cut,
                              int64_t strip, const tess_queue_image *image, tess_ticket *ticket,
                              tess_error *error) TESS_MUST_CHECK;
/* Waits for all windows of the ticket. Must be called before their memory is released, even after an error. */
tess_status tess_queue_wait(tess_queue *queue, tess_ticket *ticket, tess_error *error) TESS_MUST_CHECK;

typedef struct tess_queue_figures {
    double seconds; /* from the first upload to the end of the last download */
    double busy;    /* share of the time between the first and the last window in which the device computed */
    double shape_seconds, shape_mean_seconds; /* to prepare a new shape: the most, the mean */
    uint64_t least_free;                      /* least free memory of the device, as reported by its driver */
    int64_t shapes;                           /* total number of prepared shapes */
} tess_queue_figures;
void tess_queue_measured(tess_queue *queue, tess_queue_figures *figures);

/* Runs the network once at its smallest size and frees everything again, so that libraries and drivers load now
 * what they load on first use. */
tess_status tess_queue_warm(tess_device *device, const tess_bound *bound, const tess_net *net,
                            tess_error *error) TESS_MUST_CHECK;

#endif
