/* queue_impl.h: the struct of a queue, for the files queue*.c. */
#ifndef TESS_WINDOW_QUEUE_IMPL_H
#define TESS_WINDOW_QUEUE_IMPL_H

#include <pthread.h>

#include "base/pool.h"
#include "window/queue.h"
#include "window/sample_ops.h"
#include "window/window_impl.h"

enum { QUEUE_CHUNKS = 4, QUEUE_UNDER_WAY = 3, QUEUE_SHAPES = 16 };

/* Pinned memory for one piece; the event is recorded after the copy of the piece. */
typedef struct queue_chunk {
    char *data;
    tess_event *over;
} queue_chunk;

typedef struct queue_chunks {
    queue_chunk chunk[QUEUE_CHUNKS];
    size_t bytes; /* size of each chunk */
    int next;
} queue_chunks;

/* Start and end of a batch's computation, which may pause between `computed` and `exporting`. */
typedef struct queue_times {
    tess_event *start, *computed, *exporting, *over;
} queue_times;

/* A batch in the queue. */
typedef struct queue_batch {
    tess_queue *queue;
    const tess_queue_image *image;
    int64_t planes;
    tess_ticket *ticket;
    const queue_times *times;
    tess_window_batch windows;  /* copy for the downloader */
    bool has_submit, has_order; /* locks that its thread holds */
} queue_batch;

struct tess_queue {
    tess_device *device;
    tess_windows *windows;
    tess_block in_stage, out_stage, pinned;
    tess_stream *upload, *compute, *download;
    queue_chunks up, down;
    tess_event *uploaded, *imported, *origin;
    queue_times times[QUEUE_UNDER_WAY];
    /* A batch holds `submit` while it is planned, uploaded and imported, and `order` from its import until its
     * export is queued. It takes `order` before it releases `submit`, so that batches keep their order. */
    pthread_mutex_t submit, order;
    uint64_t submitted, turns; /* batches so far; protected by `submit` and by `order` */
    int64_t shapes_seen;       /* protected by `submit` */
    tess_worker *downloader;
    queue_batch download_job; /* used by the downloader */
    pthread_mutex_t mutex;    /* protects the tickets and the following members */
    pthread_cond_t done;
    bool lost; /* sticky: any result since may be wrong */
    double first, last, busy, span;
    double origin_clock; /* the host's clock when `origin` was queued */
    uint64_t least_free;
};

void tess_queue_lose(tess_queue *queue);       /* sets `lost` */
void tess_queue_see_memory(tess_queue *queue); /* updates least_free */

/* queue_copy.c: copy the batch's samples to the input stage, and the output stage to the image. */
int64_t tess_queue_in_rows(const queue_batch *batch, const tess_window_batch *windows);
int64_t tess_queue_out_rows(const queue_batch *batch, const tess_window_batch *windows);
/* The columns of a window that are written. */
tess_span tess_queue_core(const queue_batch *batch, const tess_window_batch *windows, int64_t item);
tess_status tess_queue_upload(const queue_batch *batch, const tess_window_batch *windows,
                              tess_error *error) TESS_MUST_CHECK;
tess_status tess_queue_download(const queue_batch *batch, tess_error *error) TESS_MUST_CHECK;

#endif
