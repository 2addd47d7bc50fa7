/* dist.h: the communicator. A job runs as several processes, the ranks 0 to size - 1, which mpirun or srun has started
 * with the same arguments; alone it is rank 0 of 1. Callers have one code path for both.
 *
 * A function whose comment begins with "collective" must be called by all ranks, in the same order. Before a collective
 * call that follows work that can fail on one rank, ranks agree on the status (tess_dist_agree): a rank that returned
 * early would leave the others waiting. All collective calls and exchanges are made by one thread of a rank.
 *
 * A rank that dies or hangs ends the whole job: see dist/watch.h. */
#ifndef TESS_DIST_DIST_H
#define TESS_DIST_DIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { TESS_DIST_HOST = 64 };

/* Where a rank runs. */
typedef struct tess_dist_place {
    char host[TESS_DIST_HOST];
    int pid;
    int local, locals; /* which of the ranks on its host it is, and how many there are */
} tess_dist_place;

typedef struct tess_dist_ops tess_dist_ops; /* dist/ops.h */
typedef struct tess_dist {
    int rank, size;
    const char *name; /* "solo", "mpi" */
    const tess_dist_ops *ops;
    tess_dist_place *places;          /* of all ranks */
    char library[64];                 /* "Open MPI v4.1.4"; "": none */
    int threads;                      /* a rank's share of the cores, the same on all; 0: alone, all cores */
    struct tess_watch *watch;         /* NULL: alone */
    struct tess_mailboxes *mailboxes; /* NULL: all messages go through the library */
    struct tess_help *help;           /* NULL: the ranks of this host do not help each other */
    int64_t *numbers;                 /* scratch: two for each rank */
    uint32_t counters;                /* made so far */
    int64_t next;                     /* of the last counter, when alone */
    void (*lost)(void *user, const char *text); /* as in the settings */
    void *lost_user;
    uint64_t sent;            /* bytes of exchanges to other ranks so far */
    struct tess_trace *trace; /* where the time of exchanges is recorded; NULL: nowhere */
} tess_dist;

typedef struct tess_dist_settings {
    const char *version;      /* of the program; all ranks must run the same */
    const char *const *words; /* its arguments; all ranks must have the same */
    int word_count;
    /* A rank is lost, and this process is about to end: print the text, remove temporary files. The text is NULL if
     * another rank reports it. Called by another thread. */
    void (*lost)(void *user, const char *text);
    void *user;
} tess_dist_settings;

/* Collective. Joins the other ranks if the environment says that there are some, and checks that they all run the same
 * command. On failure the message is the same on all ranks, and *rank is still set: only rank 0 should print it. */
tess_status tess_dist_open(const tess_dist_settings *settings, tess_dist **out, int *rank,
                           tess_error *error) TESS_MUST_CHECK;
/* Collective. Accepts NULL. */
void tess_dist_close(tess_dist *dist);
/* Whether this installation has the module for MPI; it may still fail to load. */
bool tess_dist_has_mpi(void);
/* Rank 0 of 1, which needs no opening or closing; one for each user, because it holds a counter. */
void tess_dist_init_solo(tess_dist *dist);

/* Collective. Returns TESS_OK if `mine` is TESS_OK on all ranks. Otherwise all ranks get the status and the message of
 * the lowest rank that failed; "rank 3: " is put before it unless all ranks failed. */
tess_status tess_dist_agree(tess_dist *dist, tess_status mine, tess_error *error) TESS_MUST_CHECK;
/* Collective. All ranks get the `bytes` of each rank, in the order of ranks. Whoever sums these sums in this order, and
 * gets the same result on all ranks. */
tess_status tess_dist_gather(tess_dist *dist, const void *mine, size_t bytes, void *all,
                             tess_error *error) TESS_MUST_CHECK;
/* Collective. As tess_dist_gather for different sizes: *all is the pieces one after another, released by the caller
 * with tess_small_free. */
tess_status tess_dist_pool(tess_dist *dist, const void *mine, size_t bytes, void **all, size_t *total,
                           tess_error *error) TESS_MUST_CHECK;
/* Collective. All ranks get the bytes of rank `root`. */
tess_status tess_dist_broadcast(tess_dist *dist, int root, void *data, size_t bytes,
                                tess_error *error) TESS_MUST_CHECK;
/* Collective. Sums large arrays in place. The order of a sum depends on the number of ranks. */
tess_status tess_dist_sum_f32(tess_dist *dist, float *values, int64_t count,
                              tess_error *error) TESS_MUST_CHECK;
tess_status tess_dist_sum_f64(tess_dist *dist, double *values, int64_t count,
                              tess_error *error) TESS_MUST_CHECK;
/* Collective. Rank `root` gets or gives bytes[r] bytes of each rank r, one after another in `all`, which other ranks do
 * not use. `bytes` has an entry for each rank, the same on all ranks. */
tess_status tess_dist_collect(tess_dist *dist, int root, const void *mine, const size_t *bytes, void *all,
                              tess_error *error) TESS_MUST_CHECK;
tess_status tess_dist_scatter(tess_dist *dist, int root, const void *all, const size_t *bytes, void *mine,
                              tess_error *error) TESS_MUST_CHECK;
/* Collective. Returns when all ranks have called it. */
tess_status tess_dist_barrier(tess_dist *dist, tess_error *error) TESS_MUST_CHECK;

/* What is exchanged with one rank, which may be this one. Either size may be 0. */
typedef struct tess_dist_transfer {
    int peer;
    const void *send;
    size_t send_bytes;
    void *receive;
    size_t receive_bytes;
} tess_dist_transfer;

/* One exchange under way at a time; several of these may be under way together. Between two ranks, transfers match in
 * the order in which they were begun. begin and end allocate nothing. */
typedef struct tess_dist_exchange tess_dist_exchange;
tess_status tess_dist_exchange_create(tess_dist *dist, int most, tess_dist_exchange **out,
                                      tess_error *error) TESS_MUST_CHECK;
/* The same for one of `most` peers that are always the same, such as the neighbours inside a network: its messages between ranks of one
 * host go through memory that they share, where they can (dist/mailbox.h). They arrive while the sender computes; messages of many MPI
 * libraries move only while both ranks call the library. All peers must create theirs like this. */
tess_status tess_dist_exchange_create_near(tess_dist *dist, int most, tess_dist_exchange **out,
                                           tess_error *error) TESS_MUST_CHECK;
void tess_dist_exchange_destroy(tess_dist_exchange *exchange); /* accepts NULL; ends what is under way */
/* Starts to send and receive. Until the end, `send` must not change and `receive` is undefined. */
tess_status tess_dist_exchange_begin(tess_dist_exchange *exchange, const tess_dist_transfer *list, int count,
                                     tess_error *error) TESS_MUST_CHECK;
/* Moves transfers on that are under way, and does not wait: libraries do this only when they are called. */
tess_status tess_dist_exchange_poll(tess_dist_exchange *exchange, tess_error *error) TESS_MUST_CHECK;
tess_status tess_dist_exchange_end(tess_dist_exchange *exchange, tess_error *error) TESS_MUST_CHECK;

/* Independent work in dynamic order. Collective: makes a counter that starts at 0. Only the newest 64 are kept. */
uint32_t tess_dist_counter(tess_dist *dist);
/* Returns 0, 1, 2 and so on, each number to one rank. Not collective, and any thread may call it, one at a time. Rank 0
 * answers at once, whatever it computes. */
int64_t tess_dist_next(tess_dist *dist, uint32_t counter);
/* Not collective: from now on all ranks get INT64_MAX, so that they stop early. */
void tess_dist_drain(tess_dist *dist, uint32_t counter);

/* Not collective, and does not return if there are other ranks: this one cannot go on, and the others wait for it where nothing tells
 * them. Ends the job as the loss of a rank does. */
void tess_dist_lose(tess_dist *dist, const char *why);

/* Progress: every rank reports its own units of work, and rank 0 can ask for the sum over the others, which is about a
 * second old. Any thread may call them. */
void tess_dist_report(tess_dist *dist, int64_t done);
int64_t tess_dist_reported(tess_dist *dist);

#endif
