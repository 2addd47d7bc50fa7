/* watch_impl.h: what the files of the watch share. */
#ifndef TESS_DIST_WATCH_IMPL_H
#define TESS_DIST_WATCH_IMPL_H

#include <pthread.h>

#include "dist/watch.h"

enum { TESS_WATCH_COUNTERS = 64 };
typedef enum tess_watch_kind {
    TESS_WATCH_BEATS = 1,
    TESS_WATCH_ASKS,
    TESS_WATCH_ANSWERS,
    TESS_WATCH_DRAINS,
    TESS_WATCH_LEAVES,
    TESS_WATCH_ENDS
} tess_watch_kind;

typedef struct tess_watch_message {
    uint32_t kind, counter;
    int64_t value; /* beats: units done; answers: the number */
} tess_watch_message;

/* A connection: rank 0 has one to every other rank, the others have one to rank 0. */
typedef struct tess_watch_peer {
    int rank, socket; /* -1: none */
    bool left;        /* it has said that it is done */
    double heard;
    int64_t done;
    size_t got; /* bytes of a message that has not arrived completely */
    char part[sizeof(tess_watch_message)];
} tess_watch_peer;

typedef struct tess_watch_number {
    uint32_t counter;
    int64_t next;
} tess_watch_number;

struct tess_watch {
    tess_watch_settings settings;
    int listener, wake[2];
    uint64_t secret;
    tess_watch_peer *peers;
    int count;
    struct pollfd *polled;
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex; /* for all below, for `done` of peers and for sending */
    pthread_cond_t answered;
    bool leaving, closing, waiting;
    int64_t answer, done;
    tess_watch_number numbers[TESS_WATCH_COUNTERS]; /* rank 0: slot counter % TESS_WATCH_COUNTERS */
};

/* watch_thread.c. The first three need the lock. */
void tess_watch_send(const tess_watch_peer *to, tess_watch_kind kind, uint32_t counter, int64_t value);
int64_t tess_watch_take(tess_watch *watch, uint32_t counter); /* rank 0 */
void tess_watch_empty(tess_watch *watch, uint32_t counter);   /* rank 0 */
void *tess_watch_run(void *watch);                            /* the thread */
/* "rank 3 (host, pid 123) `what`" */
void tess_watch_name(const tess_watch *watch, int rank, const char *what, tess_error *line);

#endif
