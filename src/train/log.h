/* log.h: the figures of a run as JSON lines, for reports and scripts. */
#ifndef TESS_TRAIN_LOG_H
#define TESS_TRAIN_LOG_H

#include "base/json.h"

typedef struct tess_log tess_log; /* owned by the caller: tess_log_close */

/* Opens a file of JSON lines, or makes it, and locks it. A file that another run writes, or that begins in another way than
 * a log of ours, is refused. Nothing of an existing file is removed before the first line is written. */
tess_status tess_log_open(const char *path, tess_log **out, tess_error *error) TESS_MUST_CHECK;
/* Where the log continues. `resumed_at`: the lines of a run that is resumed at this step and wrote later ones are removed
 * (they have "step" above it), so that the log reads like that of an uninterrupted run; -1 (default): all are. */
void tess_log_resume(tess_log *log, int64_t resumed_at);
/* Writes a record as one line. Frees the record; NULL: it could not be built, no memory. */
tess_status tess_log_line(tess_log *log, tess_json *record, tess_error *error) TESS_MUST_CHECK;
/* Removes a file that was made and got no line. */
void tess_log_close(tess_log *log);

#endif
