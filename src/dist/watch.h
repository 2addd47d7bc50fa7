/* watch.h: a thread on every rank that notices when a rank dies or hangs, and answers small questions at once.
 *
 * MPI itself waits forever for a rank that is stopped, and its one-sided calls may wait until the target calls MPI
 * again. So every rank has a TCP connection to rank 0, and a thread that sends a beat over it each second, both ways. A
 * connection that is closed, or silent for `silence` seconds, means that the rank behind it is lost: whoever notices
 * reports it, and the job ends. Rank 0's thread also gives out the numbers of dynamic work, and beats carry progress. */
#ifndef TESS_DIST_WATCH_H
#define TESS_DIST_WATCH_H

#include "dist/dist.h"
#include "dist/watch_socket.h"

typedef struct tess_watch tess_watch;

typedef struct tess_watch_settings {
    int rank, size;
    double silence;                /* seconds */
    double connect_seconds;        /* for all ranks to connect */
    const tess_dist_place *places; /* of all ranks, for messages; must outlive the watch */
    /* Called once, by the watch thread, with one line about the lost rank; NULL: another rank reports it. The watch
     * does nothing after it. */
    void (*lost)(void *user, const char *text);
    void *user;
} tess_watch_settings;

/* Rank 0: opens a port. `local`: all ranks are on this host, and no other can connect. */
tess_status tess_watch_listen(const tess_watch_settings *settings, bool local, tess_watch_address *address,
                              tess_watch **out, tess_error *error) TESS_MUST_CHECK;
/* The other ranks: connect to it. */
tess_status tess_watch_connect(const tess_watch_settings *settings, const tess_watch_address *address,
                               tess_watch **out, tess_error *error) TESS_MUST_CHECK;
/* Starts the thread; rank 0 first waits until all have connected. */
tess_status tess_watch_start(tess_watch *watch, tess_error *error) TESS_MUST_CHECK;
/* Collective. Returns when all ranks have called it; until then, a rank that dies or hangs is still reported. Accepts
 * NULL. */
void tess_watch_leave(tess_watch *watch);
/* Accepts NULL. */
void tess_watch_close(tess_watch *watch);

/* As in dist/dist.h. */
int64_t tess_watch_next(tess_watch *watch, uint32_t counter);
void tess_watch_drain(tess_watch *watch, uint32_t counter);
void tess_watch_report(tess_watch *watch, int64_t done);
int64_t tess_watch_reported(tess_watch *watch);

#endif
