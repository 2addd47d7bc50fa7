/* events.h: the figures of a run while it trains: TensorBoard event files, and a log of JSON lines.
 *
 * An event file is a sequence of TFRecords (length, masked CRC-32C of the length, bytes, masked CRC-32C of the bytes), each
 * a protobuf message tensorflow.Event. Only scalars are written, so the few fields are encoded by hand. Every record is
 * flushed: a run that is killed leaves whole records. */
#ifndef TESS_TRAIN_EVENTS_H
#define TESS_TRAIN_EVENTS_H

#include "base/json.h"

typedef struct tess_events tess_events; /* owned by the caller: tess_events_close */

/* Makes a new event file in `folder`, which is made if it is missing. A resumed run adds a file: TensorBoard joins all
 * files of a folder. */
tess_status tess_events_open(const char *folder, tess_events **out, tess_error *error) TESS_MUST_CHECK;
tess_status tess_events_scalar(tess_events *events, const char *tag, int64_t step, double value,
                               tess_error *error) TESS_MUST_CHECK;
/* NULL is accepted. */
void tess_events_close(tess_events *events);

typedef struct tess_log tess_log; /* owned by the caller: tess_log_close */

/* Appends to a file of JSON lines. `resumed_at`: the lines of a run that is resumed at this step and wrote later ones are
 * removed (they have "step" above it), so that the log reads like that of an uninterrupted run; -1: starts a new log. */
tess_status tess_log_open(const char *path, int64_t resumed_at, tess_log **out,
                          tess_error *error) TESS_MUST_CHECK;
/* Writes a record as one line. Frees the record; NULL: it could not be built, no memory. */
tess_status tess_log_line(tess_log *log, tess_json *record, tess_error *error) TESS_MUST_CHECK;
void tess_log_close(tess_log *log);

#endif
