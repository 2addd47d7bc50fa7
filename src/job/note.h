/* note.h: a line to the caller about what a job decided, or doubts. */
#ifndef TESS_JOB_NOTE_H
#define TESS_JOB_NOTE_H

#include "tessera.h"

void tess_note(const tess_common *common, tess_note_level level, const char *format, ...) TESS_PRINTF(3, 4);

#endif
