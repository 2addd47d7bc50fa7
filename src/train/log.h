/* log.h: the figures of a run as JSON lines, for reports and scripts. */
#ifndef TESS_TRAIN_LOG_H
#define TESS_TRAIN_LOG_H

#include "base/json.h"

typedef struct tess_log tess_log; /* owned by the caller: tess_log_close */

/* Appends to a file of JSON lines. `resumed_at`: the lines of a run that is resumed at this step and wrote later ones are
 * removed (they have "step" above it), so that the log reads like that of an uninterrupted run; -1: starts a new log. */
tess_status tess_log_open(const char *path, int64_t resumed_at, tess_log **out,
                          tess_error *error) TESS_MUST_CHECK;
/* Writes a record as one line. Frees the record; NULL: it could not be built, no memory. */
tess_status tess_log_line(tess_log *log, tess_json *record, tess_error *error) TESS_MUST_CHECK;
void tess_log_close(tess_log *log);

#endif
