/* Joins the ranks of a job, in this order: the module, the library, the same command everywhere, the watch, shared memory. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "dist/assist.h"
#include "dist/guard.h"
#include "dist/identity.h"
#include "dist/launch.h"
#include "dist/mailbox.h"
#include "dist/ops.h"
#include "dist/watch.h"

static const double CONNECT = 20; /* seconds */
enum { ALONE = 4 };               /* seconds */
static const double TOGETHER = 7; /* seconds more than the silence, for all ranks to start */

/* Ends this process. The rank that reports a loss ends the whole job; the others leave it time to print. */
static void end_job(void *user, const char *text)
{
    tess_dist *dist = user;
    if (dist->lost)
        dist->lost(dist->lost_user, text);
    if (text)
        dist->ops->abort();
    sleep(2);
    _exit(1);
}

/* The ranks report in turn, because rank 0 may be the one that hangs; the first ends the job. */
static void end_start(void *user)
{
    tess_dist *dist = user;
    char text[160];
    snprintf(
        text, sizeof text,
        "the %d ranks have not come together within %.0f seconds: one of them hangs, or cannot reach rank 0",
        dist->size, TOGETHER + tess_guard_silence());
    sleep((unsigned)(dist->rank < 3 ? 2 * dist->rank : 6));
    if (dist->lost)
        dist->lost(dist->lost_user, text);
    _exit(1);
}

/* This rank cannot even reach the others, which would wait for it. If all fail alike, the launcher ends this one when rank 0 has
 * reported; otherwise it reports itself, and its status ends the others. */
static void end_alone(const tess_dist *dist, const char *why)
{
    char text[TESS_ERROR_TEXT];
    sleep(ALONE);
    snprintf(text, sizeof text, "rank %d: %.*s", dist->rank, (int)sizeof text - 32, why);
    if (dist->lost)
        dist->lost(dist->lost_user, text);
    _exit(1);
}

static tess_status open_watch(tess_dist *dist, tess_error *error)
{
    const tess_watch_settings settings = {.rank = dist->rank,
                                          .size = dist->size,
                                          .silence = tess_guard_silence(),
                                          .connect_seconds = CONNECT,
                                          .places = dist->places,
                                          .lost = end_job,
                                          .user = dist};
    tess_watch_address address;
    tess_status status = TESS_OK;
    memset(&address, 0, sizeof address);
    if (dist->rank == 0)
        status =
            tess_watch_listen(&settings, dist->places[0].locals == dist->size, &address, &dist->watch, error);
    TESS_TRY(tess_dist_agree(dist, status, error));
    TESS_TRY(tess_dist_broadcast(dist, 0, &address, sizeof address, error));
    if (dist->rank != 0)
        status = tess_watch_connect(&settings, &address, &dist->watch, error);
    if (status == TESS_OK)
        status = tess_watch_start(dist->watch, error);
    return tess_dist_agree(dist, status, error);
}

static void release(tess_dist *dist)
{
    if (dist->ops != &tess_dist_solo) {
        tess_small_free(dist->places);
        tess_small_free(dist->numbers);
    }
    tess_small_free(dist);
}

static tess_status join(const tess_dist_settings *settings, const tess_launch *launch, tess_dist *dist,
                        tess_error *error)
{
    const tess_dist_ops *ops;
    TESS_TRY(tess_launch_module(launch, &ops, error));
    TESS_TRY(ops->open(&dist->rank, &dist->size, dist->library, sizeof dist->library, error));
    dist->ops = ops;
    dist->name = ops->name;
    dist->places = NULL;
    if (dist->size != launch->size)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "the launcher started %d ranks (%s), but %s sees %d; start tessera with the launcher "
            "of the MPI library that it was built with",
            launch->size, launch->variable, dist->library, dist->size);
    dist->numbers = tess_small_alloc((size_t)dist->size * 2, sizeof *dist->numbers);
    if (!dist->numbers)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d ranks", dist->size);
    TESS_TRY(tess_identity_compare(dist, settings, error));
    TESS_TRY(open_watch(dist, error));
    TESS_TRY(tess_mailboxes_open(dist, error));
    return tess_assist_open(dist, error);
}

void tess_dist_lose(tess_dist *dist, const char *why)
{
    char text[TESS_ERROR_TEXT + 32];
    if (dist->size == 1)
        return;
    snprintf(text, sizeof text, "rank %d: %s", dist->rank, why);
    end_job(dist, text);
}

tess_status tess_dist_open(const tess_dist_settings *settings, tess_dist **out, int *rank, tess_error *error)
{
    const tess_launch launch = tess_launch_find();
    tess_dist *dist = tess_small_alloc(1, sizeof *dist);
    *out = NULL;
    *rank = launch.rank;
    if (!dist)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
    tess_dist_init_solo(dist);
    dist->lost = settings->lost;
    dist->lost_user = settings->user;
    tess_status status = TESS_OK;
    if (launch.size > 1) {
        dist->rank = launch.rank;
        dist->size = launch.size;
        tess_guard *guard = tess_guard_begin(TOGETHER + tess_guard_silence(), end_start, dist);
        status = join(settings, &launch, dist, error);
        if (status != TESS_OK && dist->ops == &tess_dist_solo && dist->rank > 0)
            end_alone(dist, error->text);
        if (status != TESS_OK) {
            tess_watch_close(dist->watch);
            tess_assist_close(dist);
            tess_mailboxes_close(dist);
            dist->ops->close();
        }
        tess_guard_end(guard);
    }
    if (status != TESS_OK) {
        release(dist);
        return status;
    }
    *rank = dist->rank;
    *out = dist;
    return TESS_OK;
}

void tess_dist_close(tess_dist *dist)
{
    if (!dist)
        return;
    dist->ops->close(); /* waits for the others, so they are watched until it is done */
    tess_watch_leave(dist->watch);
    tess_watch_close(dist->watch);
    tess_assist_close(dist);
    tess_mailboxes_close(dist);
    release(dist);
}
