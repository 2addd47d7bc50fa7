/* voice.h: one voice for the ranks of a job. Rank 0 reports the progress of all and passes on the notes that other ranks
 * have about their part of the work. Notes about the whole job come up on every rank, and only rank 0's are heard. */
#ifndef TESS_JOB_VOICE_H
#define TESS_JOB_VOICE_H

#include <pthread.h>

#include "dist/dist.h"

typedef struct tess_voice {
    tess_dist *dist;
    tess_common original;
    pthread_mutex_t mutex; /* for all below: threads of the job have notes too */
    bool own;              /* notes are about this rank's part of the work, and are kept */
    char *text;            /* of notes: a byte for the level, the line, a zero */
    size_t used, size;
} tess_voice;

/* Replaces the callbacks of `common`, if there are several ranks. */
void tess_voice_begin(tess_voice *voice, tess_dist *dist, tess_common *common);
/* From now on, notes are about this rank's own work, or about the whole job. */
void tess_voice_own(tess_voice *voice, bool own);
/* Collective. Rank 0 passes on the notes that the others have kept. */
tess_status tess_voice_share(tess_voice *voice, tess_error *error) TESS_MUST_CHECK;
void tess_voice_end(tess_voice *voice);

#endif
