/* feed.h: moves a batch from the queue into the tensors of a training step, in the order of the device's stream. Noise is
 * made on the device, from a table of a few numbers for each image. */
#ifndef TESS_TRAIN_FEED_H
#define TESS_TRAIN_FEED_H

#include "net/training.h"
#include "train/data.h"

typedef struct tess_feed {
    tess_device *device;
    tess_training *training;
    const tess_source *source;
    tess_prepared *noise; /* NULL: the source gives inputs */
    tess_block table;
} tess_feed;

/* Device memory that open allocates, as counted. */
size_t tess_feed_bytes(tess_device *device, const tess_source *source, int64_t micro_batch);
tess_status tess_feed_open(tess_feed *feed, tess_device *device, tess_training *training,
                           const tess_source *source, uint64_t seed, tess_error *error) TESS_MUST_CHECK;
void tess_feed_close(tess_feed *feed);
/* Queues the copies and the noise. The batch may be released after the next synchronisation. */
void tess_feed_batch(tess_feed *feed, const tess_batch *batch);

#endif
