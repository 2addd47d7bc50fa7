/* events.h: the figures of a run as TensorBoard event files.
 *
 * An event file is a sequence of TFRecords (length, masked CRC-32C of the length, bytes, masked CRC-32C of the bytes), each
 * a protobuf message tensorflow.Event. Only scalars are written, so the few fields are encoded by hand. Every record is
 * flushed: a run that is killed leaves whole records. */
#ifndef TESS_TRAIN_EVENTS_H
#define TESS_TRAIN_EVENTS_H

#include "base/status.h"

typedef struct tess_events tess_events; /* owned by the caller: tess_events_close */

/* Makes a new event file in `folder`, which is made if it is missing. A run that is resumed at a step adds a file:
 * TensorBoard joins all files of a folder, and drops what an earlier file has of later steps. -1: a new run, of which
 * earlier files have nothing to show. */
tess_status tess_events_open(const char *folder, int64_t resumed_at, tess_events **out,
                             tess_error *error) TESS_MUST_CHECK;
tess_status tess_events_scalar(tess_events *events, const char *tag, int64_t step, double value,
                               tess_error *error) TESS_MUST_CHECK;
/* NULL is accepted. */
void tess_events_close(tess_events *events);

#endif
