/* note.h: one line to the caller about a decision of the job or a doubt about its input. */
#ifndef TESS_JOB_NOTE_H
#define TESS_JOB_NOTE_H

#include "base/status.h"

/* Passes one line to common->note, if there is one. On the thread that began the job. */
void tess_note(const tess_common *common, tess_note_level level, const char *format, ...) TESS_PRINTF(3, 4);

#endif
