/* rank_threads.h: ranks as threads of one process, for operators that ranks share. Every exchange and gather is made by all of
 * them in the same order, so a barrier before and after each is all that it takes. */
#ifndef TESS_TESTS_RANK_THREADS_H
#define TESS_TESTS_RANK_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "dist/ops.h"
#include "dist/share.h"

enum { MOST_RANK_THREADS = 9, MOST_RANK_TRANSFERS = 64 };

/* Of all ranks. */
static struct {
    pthread_barrier_t meet;
    int size;
    tess_dist_transfer list[MOST_RANK_THREADS][MOST_RANK_TRANSFERS];
    int count[MOST_RANK_THREADS];
    const void *mine[MOST_RANK_THREADS];
} rank_threads;
static _Thread_local int rank_of_thread;

static inline size_t rank_request_bytes(int most)
{
    (void)most;
    return 0;
}

static inline tess_status rank_begin(tess_dist_requests *requests, const tess_dist_transfer *list, int count,
                                     tess_error *error)
{
    (void)requests, (void)error;
    if (count > MOST_RANK_TRANSFERS)
        exit(1);
    memcpy(rank_threads.list[rank_of_thread], list, (size_t)count * sizeof *list);
    rank_threads.count[rank_of_thread] = count;
    return TESS_OK;
}

/* The n-th bytes that `peer` sends to this rank. */
static inline const tess_dist_transfer *rank_sent(int peer, int n)
{
    for (int i = 0; i < rank_threads.count[peer]; i++) {
        const tess_dist_transfer *t = &rank_threads.list[peer][i];
        if (t->peer == rank_of_thread && t->send_bytes && n-- == 0)
            return t;
    }
    return NULL;
}

static inline tess_status rank_end(tess_dist_requests *requests, tess_error *error)
{
    int taken[MOST_RANK_THREADS] = {0};
    bool good = true;
    (void)requests;
    pthread_barrier_wait(&rank_threads.meet);
    for (int i = 0; i < rank_threads.count[rank_of_thread]; i++) {
        const tess_dist_transfer *t = &rank_threads.list[rank_of_thread][i];
        const tess_dist_transfer *from = t->receive_bytes ? rank_sent(t->peer, taken[t->peer]++) : NULL;
        good = good && (!t->receive_bytes || (from && from->send_bytes == t->receive_bytes));
        if (from && good)
            memcpy(t->receive, from->send, t->receive_bytes);
    }
    for (int r = 0; r < rank_threads.size; r++)
        good = good && !rank_sent(r, taken[r]); /* nothing is sent that nobody receives */
    pthread_barrier_wait(&rank_threads.meet);
    return good ? TESS_OK : tess_fail(error, TESS_INTERNAL, "transfers do not match");
}

static inline tess_status rank_gather(const void *mine, size_t bytes, void *all, tess_error *error)
{
    (void)error;
    rank_threads.mine[rank_of_thread] = mine;
    pthread_barrier_wait(&rank_threads.meet);
    for (int r = 0; r < rank_threads.size; r++)
        memcpy((char *)all + (size_t)r * bytes, rank_threads.mine[r], bytes);
    pthread_barrier_wait(&rank_threads.meet);
    return TESS_OK;
}

static inline tess_status rank_broadcast(int root, void *data, size_t bytes, tess_error *error)
{
    (void)error;
    rank_threads.mine[rank_of_thread] = data;
    pthread_barrier_wait(&rank_threads.meet);
    if (rank_of_thread != root)
        memcpy(data, rank_threads.mine[root], bytes);
    pthread_barrier_wait(&rank_threads.meet);
    return TESS_OK;
}

static const tess_dist_ops rank_ops = {.name = "threads",
                                       .request_bytes = rank_request_bytes,
                                       .begin = rank_begin,
                                       .end = rank_end,
                                       .gather = rank_gather,
                                       .broadcast = rank_broadcast};

/* One rank: give it to tess_share. */
typedef struct rank_thread {
    tess_dist dist;
    int64_t numbers[2 * MOST_RANK_THREADS];
    tess_share share;
    pthread_t thread;
    void (*run)(struct rank_thread *);
    void *user;
} rank_thread;

static inline void rank_init(rank_thread *t, int rank, int size, const int64_t *from)
{
    t->dist = (tess_dist){.rank = rank, .size = size, .ops = &rank_ops, .numbers = t->numbers};
    t->share = (tess_share){.dist = &t->dist, .from = (int64_t *)(size_t)from};
}

static inline void *rank_start(void *user)
{
    rank_thread *t = user;
    rank_of_thread = t->dist.rank;
    t->run(t);
    return NULL;
}

/* Runs `run` on `size` ranks; rank r has rows [from[r], from[r + 1]). */
static inline void rank_threads_run(int size, const int64_t *from, void (*run)(rank_thread *), void *user)
{
    rank_thread *ranks = calloc((size_t)size, sizeof *ranks);
    if (!ranks || pthread_barrier_init(&rank_threads.meet, NULL, (unsigned)size) != 0)
        exit(1);
    rank_threads.size = size;
    for (int r = 0; r < size; r++) {
        rank_init(&ranks[r], r, size, from);
        ranks[r].run = run;
        ranks[r].user = user;
        if (pthread_create(&ranks[r].thread, NULL, rank_start, &ranks[r]) != 0)
            exit(1);
    }
    for (int r = 0; r < size; r++)
        CHECK(pthread_join(ranks[r].thread, NULL) == 0);
    pthread_barrier_destroy(&rank_threads.meet);
    free(ranks);
}

#endif
