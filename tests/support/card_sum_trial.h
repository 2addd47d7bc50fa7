/* card_sum_trial.h: sums of arrays of several ranks, which are threads with a device each (nccl_hub.h): the bits of a sum in the order of the
 * ranks, for arrays smaller and larger than a piece, and shorter than the number of ranks. */
#ifndef TESS_TESTS_CARD_SUM_TRIAL_H
#define TESS_TESTS_CARD_SUM_TRIAL_H

#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "late_device.h"
#include "nccl_hub.h"
#include "train/card_sum.h"

typedef struct sum_trial {
    const char *kind; /* of device */
    int64_t count;
    tess_device *devices[MOST_RANK_THREADS];
    tess_memory counters[MOST_RANK_THREADS];
    float *given[MOST_RANK_THREADS];
    float *expected;
} sum_trial;

static inline void sum_on_device(rank_thread *thread, tess_device *device)
{
    const sum_trial *t = thread->user;
    const size_t bytes = (size_t)t->count * sizeof(float);
    tess_error error;
    tess_stream *stream = NULL;
    tess_nccl *nccl = NULL;
    tess_card_sum *sum = NULL;
    tess_block values;
    float *result = malloc(bytes);
    CHECK(device->streams->create(device, &stream, &error) == TESS_OK);
    CHECK(device->memory->alloc(device, &values, TESS_MEM_WEIGHTS, bytes, &error) == TESS_OK);
    CHECK_MSG(tess_nccl_open(&thread->dist, device, &hub_api, &nccl, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_card_sum_open(&thread->dist, nccl, device, values.data, t->count, &sum, &error) == TESS_OK,
              "%s", error.text);
    device->memory->copy(device, values.data, t->given[thread->dist.rank], bytes, stream);
    CHECK_MSG(tess_card_sum_run(sum, stream, &error) == TESS_OK, "%s", error.text);
    device->memory->copy(device, result, values.data, bytes, stream);
    CHECK_MSG(device->streams->sync(device, stream, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(memcmp(result, t->expected, bytes) == 0, "%lld values, rank %d of %d", (long long)t->count,
              thread->dist.rank, thread->dist.size);
    pthread_barrier_wait(&rank_threads.meet); /* streams of late devices point to each other */
    tess_card_sum_close(sum);
    tess_nccl_close(nccl);
    device->memory->free(device, &values);
    device->streams->destroy(device, stream);
    free(result);
}

static inline void sum_rank(rank_thread *thread)
{
    const sum_trial *t = thread->user;
    sum_on_device(thread, t->devices[thread->dist.rank]);
}

static inline void open_rank(sum_trial *t, int rank)
{
    const tess_device_options options = {.threads = 1, .memory = &t->counters[rank]};
    tess_error error;
    CHECK_MSG(tess_registry_open(t->kind, &options, &t->devices[rank], &error) == TESS_OK, "%s", error.text);
    if (t->devices[rank]->host_memory)
        late_device(t->devices[rank]);
    t->given[rank] = malloc((size_t)t->count * sizeof(float));
    tess_rng_normal((tess_rng_key){(uint64_t)rank, 8, 9}, 0, t->count, t->given[rank]);
    for (int64_t i = 0; i < t->count; i++)
        t->expected[i] = rank ? t->expected[i] + t->given[rank][i] : t->given[rank][i];
}

static inline void close_rank(sum_trial *t, int rank, int ranks)
{
    tess_mem_usage peak;
    const size_t planned = tess_card_sum_bytes(t->devices[rank], t->count, ranks);
    tess_memory_peak(&t->counters[rank], TESS_MEM_OF_PROCESS, &peak);
    CHECK_MSG(peak.bytes.by[TESS_MEM_WORKSPACE] == planned, "%lld bytes planned, %lld counted",
              (long long)planned, (long long)peak.bytes.by[TESS_MEM_WORKSPACE]);
    tess_registry_close(t->devices[rank]);
    free(t->given[rank]);
}

/* The hub is open. */
static inline void test_card_sums(const char *kind)
{
    static const int64_t counts[] = {1, 3, 1000, ((int64_t)1 << 22) + 1, ((int64_t)2 << 22) + 12345};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (int ranks = 2; ranks <= 4; ranks++) {
            sum_trial t = {.kind = kind, .count = counts[c]};
            t.expected = malloc((size_t)t.count * sizeof(float));
            for (int r = 0; r < ranks; r++)
                open_rank(&t, r);
            rank_threads_run(ranks, NULL, sum_rank, &t);
            for (int r = 0; r < ranks; r++)
                close_rank(&t, r, ranks);
            free(t.expected);
        }
}

#endif
