/* What is made of the operations of ops.h, for every library alike. */
#include "dist/dist.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/trace.h"
#include "dist/ops.h"
#include "dist/watch.h"

tess_status tess_dist_timed(const tess_dist *dist, const char *name, double start, tess_status status)
{
    if (dist->size > 1)
        tess_trace_end(dist->trace, TESS_TRACE_EXCHANGE, name, start);
    return status;
}

tess_status tess_dist_gather(tess_dist *dist, const void *mine, size_t bytes, void *all, tess_error *error)
{
    const double start = tess_trace_begin(dist->trace);
    const tess_status status = dist->ops->gather(mine, bytes, all, error);
    return tess_dist_timed(dist, "gather", start, status);
}

tess_status tess_dist_broadcast(tess_dist *dist, int root, void *data, size_t bytes, tess_error *error)
{
    const double start = tess_trace_begin(dist->trace);
    const tess_status status = dist->ops->broadcast(root, data, bytes, error);
    return tess_dist_timed(dist, "broadcast", start, status);
}

tess_status tess_dist_sum_f32(tess_dist *dist, float *values, int64_t count, tess_error *error)
{
    const double start = tess_trace_begin(dist->trace);
    const tess_status status = dist->ops->sum_f32(values, count, error);
    return tess_dist_timed(dist, "sum", start, status);
}

tess_status tess_dist_sum_f64(tess_dist *dist, double *values, int64_t count, tess_error *error)
{
    const double start = tess_trace_begin(dist->trace);
    const tess_status status = dist->ops->sum_f64(values, count, error);
    return tess_dist_timed(dist, "sum", start, status);
}

tess_status tess_dist_barrier(tess_dist *dist, tess_error *error)
{
    const double start = tess_trace_begin(dist->trace);
    const tess_status status = dist->ops->barrier(error);
    return tess_dist_timed(dist, "barrier", start, status);
}

tess_status tess_dist_agree(tess_dist *dist, tess_status mine, tess_error *error)
{
    if (dist->size == 1)
        return mine;
    const int64_t number = mine;
    tess_error text = {""};
    int lowest = -1, failed = 0;
    TESS_TRY(tess_dist_gather(dist, &number, sizeof number, dist->numbers, error));
    for (int r = dist->size - 1; r >= 0; r--)
        if (dist->numbers[r] != TESS_OK)
            lowest = r, failed++;
    if (!failed)
        return TESS_OK;
    const tess_status status = (tess_status)dist->numbers[lowest];
    if (dist->rank == lowest && error)
        text = *error;
    text.text[TESS_ERROR_TEXT - 1] = '\0';
    TESS_TRY(tess_dist_broadcast(dist, lowest, &text, sizeof text, error));
    if (failed == dist->size)
        return tess_fail(error, status, "%s", text.text);
    return tess_fail(error, status, "rank %d: %s", lowest, text.text);
}

/* Adds the sizes of the pieces; 0 if they do not fit into memory at all. */
static size_t total_of(const size_t *bytes, int count)
{
    size_t total = 0;
    for (int r = 0; r < count; r++) {
        if (bytes[r] > SIZE_MAX / 2 - total)
            return 0;
        total += bytes[r];
    }
    return total;
}

/* Moves the pieces between `root` and all ranks; `to_root` says in which direction. */
static tess_status move_pieces(tess_dist *dist, int root, const size_t *bytes, char *all, void *mine,
                               bool to_root, tess_error *error)
{
    const bool is_root = dist->rank == root;
    const int count = is_root ? dist->size : 1;
    tess_dist_exchange *exchange = NULL;
    tess_dist_transfer *list = tess_small_alloc((size_t)count + 1, sizeof *list);
    tess_status status = list ? tess_dist_exchange_create(dist, count + 1, &exchange, error)
                              : tess_fail(error, TESS_NO_MEMORY, "no memory for the pieces of the ranks");
    status = tess_dist_agree(dist, status, error);
    char *at = all;
    for (int r = 0; r < dist->size && is_root && status == TESS_OK; at += bytes[r], r++)
        list[r] = to_root ? (tess_dist_transfer){.peer = r, .receive = at, .receive_bytes = bytes[r]}
                          : (tess_dist_transfer){.peer = r, .send = at, .send_bytes = bytes[r]};
    if (status == TESS_OK) {
        tess_dist_transfer *own = &list[is_root ? root : 0];
        own->peer = root;
        if (to_root)
            own->send = mine, own->send_bytes = bytes[dist->rank];
        else
            own->receive = mine, own->receive_bytes = bytes[dist->rank];
        status = tess_dist_exchange_begin(exchange, list, count, error);
    }
    if (status == TESS_OK)
        status = tess_dist_exchange_end(exchange, error);
    tess_dist_exchange_destroy(exchange);
    tess_small_free(list);
    return status;
}

tess_status tess_dist_collect(tess_dist *dist, int root, const void *mine, const size_t *bytes, void *all,
                              tess_error *error)
{
    return move_pieces(dist, root, bytes, all, (void *)(size_t)mine, true, error);
}

tess_status tess_dist_scatter(tess_dist *dist, int root, const void *all, const size_t *bytes, void *mine,
                              tess_error *error)
{
    return move_pieces(dist, root, bytes, (char *)(size_t)all, mine, false, error);
}

tess_status tess_dist_pool(tess_dist *dist, const void *mine, size_t bytes, void **all, size_t *total,
                           tess_error *error)
{
    size_t alone, *sizes = dist->size > 1 ? (size_t *)dist->numbers + dist->size : &alone;
    _Static_assert(sizeof(size_t) == sizeof(int64_t), "sizes are gathered into numbers");
    *all = NULL;
    TESS_TRY(tess_dist_gather(dist, &bytes, sizeof bytes, sizes, error));
    *total = total_of(sizes, dist->size);
    *all = tess_small_alloc(*total + 1, 1);
    tess_status status =
        *all ? TESS_OK
             : tess_fail(error, TESS_NO_MEMORY, "no memory for %zu bytes of the other ranks", *total);
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = tess_dist_collect(dist, 0, mine, sizes, *all, error);
    if (status == TESS_OK)
        status = tess_dist_broadcast(dist, 0, *all, *total, error);
    if (status != TESS_OK) {
        tess_small_free(*all);
        *all = NULL;
    }
    return status;
}

uint32_t tess_dist_counter(tess_dist *dist)
{
    dist->next = 0;
    return dist->counters++;
}

int64_t tess_dist_next(tess_dist *dist, uint32_t counter)
{
    if (dist->watch)
        return tess_watch_next(dist->watch, counter);
    if (counter + 1 != dist->counters || dist->next == INT64_MAX)
        return INT64_MAX;
    return dist->next++;
}

void tess_dist_drain(tess_dist *dist, uint32_t counter)
{
    if (dist->watch)
        tess_watch_drain(dist->watch, counter);
    else if (counter + 1 == dist->counters)
        dist->next = INT64_MAX;
}

void tess_dist_report(tess_dist *dist, int64_t done)
{
    if (dist->watch)
        tess_watch_report(dist->watch, done);
}

int64_t tess_dist_reported(tess_dist *dist)
{
    return dist->watch ? tess_watch_reported(dist->watch) : 0;
}
