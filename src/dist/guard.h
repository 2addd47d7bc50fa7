/* guard.h: ends the process if the ranks do not come together in time. Until they have, there is no connection by which
 * one could notice that another hangs, and MPI would wait forever. */
#ifndef TESS_DIST_GUARD_H
#define TESS_DIST_GUARD_H

#include "dist/dist.h"

typedef struct tess_guard tess_guard;

/* Calls `late` from a thread of its own after `seconds`, unless tess_guard_end was called before. Returns NULL if there
 * is no memory or thread for it. */
tess_guard *tess_guard_begin(double seconds, void (*late)(void *user), void *user);
void tess_guard_end(tess_guard *guard); /* accepts NULL */

/* Seconds of silence after which a rank is lost; the environment can change them, for tests and for hosts that are often stopped. */
double tess_guard_silence(void);

#endif
