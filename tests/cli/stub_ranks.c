/* Rank 0 of 2 without the other one, to test what the program says when it is lost. The library calls `lost` in a thread
 * of its own, and ends the process some time after it, so that the program has time to say something more. */
#define _POSIX_C_SOURCE 200809L
#include "stub_ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tessera_ranks.h"

static tess_lost_fn report;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool told;

bool stub_is(const char *behaviour)
{
    const char *named = getenv("STUB");
    return named && strcmp(named, behaviour) == 0;
}

bool stub_has_ranks(void)
{
    return stub_is("lost") || stub_is("elsewhere") || stub_is("failed");
}

static void *watch(void *unused)
{
    (void)unused;
    report(stub_is("elsewhere") ? NULL : "rank 1 (host, pid 1) has died; the job ends");
    pthread_mutex_lock(&mutex);
    told = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    _exit(1);
}

void stub_lose_rank(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL) != 0)
        _exit(3);
    pthread_mutex_lock(&mutex);
    while (!told)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

tess_status tess_context_join(tess_context *context, const char *const *words, int count, tess_lost_fn lost)
{
    (void)context, (void)words, (void)count;
    report = lost;
    return TESS_OK;
}

int tess_context_rank(const tess_context *context)
{
    (void)context;
    return 0;
}

int tess_context_ranks(const tess_context *context)
{
    (void)context;
    return stub_has_ranks() ? 2 : 1;
}

tess_status tess_context_agree(tess_context *context, tess_status mine, const char *message)
{
    (void)context, (void)message;
    return mine;
}
