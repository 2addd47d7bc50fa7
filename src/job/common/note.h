/* note.h: one line for the caller about a decision of the job or a problem with its input. */
#ifndef TESS_JOB_NOTE_H
#define TESS_JOB_NOTE_H

#include "base/status.h"

/* Passes one line to common->note, unless that is NULL. Must be called on the thread that started the job. */
void tess_note(const tess_common *common, tess_note_level level, const char *format, ...) TESS_PRINTF(3, 4);

#endif
