/* stop.h: how a job is watched and stopped. The caller's progress callback is called by the thread that began the job and
 * by no other, at most every TESS_STOP_SECONDS unless a part of the work was finished; its answer is kept in a flag that
 * any thread reads at the cost of one relaxed load.
 *
 * Long loops poll, and leave their work half done when the flag is set. What they computed is then garbage; so whoever
 * keeps a result (writes a file, saves a rate) calls tess_stop_check after the last computation and before keeping it.
 * The flag is never cleared, so that check cannot miss. */
#ifndef TESS_BASE_STOP_H
#define TESS_BASE_STOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"

#define TESS_STOP_SECONDS 0.05

typedef struct tess_stop {
    tess_progress_fn progress; /* NULL: there is no callback */
    void *user;
    pthread_t owner;
    atomic_bool wanted;
    _Atomic int64_t done; /* units of work, whatever the job counts */
    /* The owner's: */
    int64_t total, shown;
    int64_t current; /* units that the loop under way is worth */
    double start, next;
} tess_stop;

/* The calling thread becomes the owner. All functions but this one accept NULL: then nothing is counted or stopped. */
void tess_stop_init(tess_stop *stop, tess_progress_fn progress, void *user);
/* The owner: so many units of work in all; done begins with 0. */
void tess_stop_begin(tess_stop *stop, int64_t total);
/* Any thread: so many more units are done. The owner reports them at once. */
void tess_stop_add(tess_stop *stop, int64_t units);
/* The owner: everything is done. */
void tess_stop_end(tess_stop *stop);
/* Any thread: true when the job is to stop. Only the owner asks the callback, and not too often. */
bool tess_stop_poll(tess_stop *stop);
/* The same inside a loop that is worth `current` units, of which this share is done. */
bool tess_stop_poll_part(tess_stop *stop, int64_t item, int64_t items);
/* The owner: the next loops are worth so many units, which tess_stop_add adds when they are over. Others: no effect. */
void tess_stop_current(tess_stop *stop, int64_t units);
/* Polls; TESS_INTERRUPTED with a message when the job is to stop. */
tess_status tess_stop_check(tess_stop *stop, tess_error *error) TESS_MUST_CHECK;

static inline bool tess_stop_wanted(const tess_stop *stop)
{
    return stop && atomic_load_explicit(&stop->wanted, memory_order_relaxed);
}

#endif
