/* stop.h: progress and cancellation of a job. Only the thread that started the job calls the caller's progress
 * callback, at most every TESS_STOP_SECONDS unless a part of the work was finished. Its return value is kept in
 * a flag that any thread can read with one relaxed load.
 *
 * Long loops poll the flag and stop in the middle when it is set, so their results are then invalid. Before
 * code keeps a result (writes a file, saves a rate), it must call tess_stop_check after the last computation.
 * The flag is never cleared, so this check always sees it. */
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
    _Atomic int64_t done; /* units of work; the job defines the unit */
    /* Used only by the owner: */
    int64_t total, shown;
    int64_t current; /* units that the running loop counts for */
    double start, next;
} tess_stop;

/* The calling thread becomes the owner. All other functions accept NULL, and then count and stop nothing. */
void tess_stop_init(tess_stop *stop, tess_progress_fn progress, void *user);
/* Owner only: sets the total units of work and resets `done` to 0. */
void tess_stop_begin(tess_stop *stop, int64_t total);
/* Any thread: adds finished units. The owner reports them at once. */
void tess_stop_add(tess_stop *stop, int64_t units);
/* Owner only: reports that everything is done. */
void tess_stop_end(tess_stop *stop);
/* Any thread: true when the job is to stop. Only the owner calls the callback, and at limited rate. */
bool tess_stop_poll(tess_stop *stop);
/* The same inside a loop that counts for `current` units, after `item` of `items`. */
bool tess_stop_poll_part(tess_stop *stop, int64_t item, int64_t items);
/* Owner only: the next loops count for `units`, which tess_stop_add adds when they are done. No effect on other
 * threads. */
void tess_stop_current(tess_stop *stop, int64_t units);
/* Polls; returns TESS_INTERRUPTED with a message when the job is to stop. */
tess_status tess_stop_check(tess_stop *stop, tess_error *error) TESS_MUST_CHECK;

static inline bool tess_stop_wanted(const tess_stop *stop)
{
    return stop && atomic_load_explicit(&stop->wanted, memory_order_relaxed);
}

#endif
