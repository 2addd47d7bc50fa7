/* steps.h: the optimizer steps that are queued on a device, and the batches that they read. A loop may queue the next step before it
 * waits for the result of the one before. Between two steps the device then does not wait for the host, which takes longer than the
 * steps of small networks. Batches are held until the step that reads them is complete. */
#ifndef TESS_TRAIN_STEPS_H
#define TESS_TRAIN_STEPS_H

#include "train/feed.h"

enum { TESS_STEPS_PARTS = 64 }; /* most micro-batches of a step */

/* The caller sets the first three. */
typedef struct tess_steps {
    tess_training *training;
    tess_data_queue
        *queue; /* NULL: the caller fills the tensors of the step from memory that does not change */
    tess_feed *feed;
    tess_batch held[TESS_STEPS_PARTS + 1]; /* those that the device may still read, the oldest first */
    int holds;
    bool fed; /* the first part of the next step is on its way to the device */
} tess_steps;

/* True if the next step can be queued before the result of this one is known: no loss scale depends on it. A step of several
 * micro-batches takes long enough, and two of them would hold their batches twice. */
bool tess_steps_overlap(tess_dtype dtype, int micro_batches);
/* Micro-batches of the queue: all of a step and one that is on its way, and one that is filled meanwhile; if steps overlap, two. */
int tess_steps_depth(bool overlap, int micro_batches);
/* Takes the next micro-batch from the queue, holds it and queues its copy. */
tess_status tess_steps_feed(tess_steps *steps, tess_error *error) TESS_MUST_CHECK;
/* Takes the result of the oldest step that is queued, number `step`, as tess_training_result, and releases its batches. */
tess_status tess_steps_result(tess_steps *steps, int64_t step, double *loss, double *norm,
                              tess_error *error) TESS_MUST_CHECK;
/* Waits for all that is queued, whose results are lost, and releases all batches. Before the queue is closed. */
void tess_steps_stop(tess_steps *steps);

#endif
