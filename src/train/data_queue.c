/* The queue of micro-batches. Number b is in slot b % depth. Workers take samples in order, a group or one at a time, so that the
 * oldest batch, which the trainer waits for, is always finished first, whatever the number of workers. One mutex
 * protects all states; a sample takes much longer than the lock. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "train/data.h"

enum { ALIGNMENT = 256 }; /* of each array, for copies to a device */
enum { COPIERS = 4 };     /* most workers of a source that only copies */

typedef struct slot {
    char *data;
    int64_t done;   /* samples of its batch that are complete */
    int64_t failed; /* the first sample that failed, or -1 */
    tess_status status;
    tess_error error;
    bool free;
} slot;

typedef struct queue_worker {
    tess_data_queue *queue;
    tess_worker *thread;
    int number;
} queue_worker;

struct tess_data_queue {
    tess_data_settings settings;
    int workers;
    int64_t n; /* samples of a micro-batch */
    int64_t
        unit; /* of which a worker draws so many at a time: of one group, whatever the micro-batches are, or all */
    tess_block block;
    tess_stop end; /* set to end the workers */
    pthread_mutex_t mutex;
    pthread_cond_t work, ready; /* there may be a sample to draw; a batch is complete */
    slot *slots;
    int64_t filling, next; /* the batch that workers take samples from, and the next sample of it */
    int64_t taken;         /* batches that were taken */
    int drawing;           /* draws in work */
    bool broken;           /* a sample failed: no more are drawn */
    double waited;
    queue_worker *worker;
};

uint64_t tess_data_seed(uint64_t seed, tess_data_purpose purpose)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15u * ((uint64_t)purpose + 1); /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int worker_count(const tess_data_settings *s)
{
    const int64_t wanted = s->workers > 0 ? s->workers : tess_cpu_count();
    return (int)tess_min_i64(wanted, s->source->copies ? COPIERS : TESS_DATA_WORKERS);
}

static size_t item_bytes(const tess_source *source, int array)
{
    size_t bytes = 0;
    (void)tess_tensor_bytes(&source->array[array], &bytes); /* checked by the source */
    return bytes;
}

/* Offset of an array in a slot; of the array after the last: the size of a slot. */
static size_t array_at(const tess_data_settings *s, int array)
{
    size_t at = 0;
    for (int i = 0; i < array; i++)
        at += tess_align_size((size_t)(s->batch / s->parts) * item_bytes(s->source, i), ALIGNMENT);
    return at;
}

size_t tess_data_bytes(const tess_data_settings *s)
{
    return s->source->table->bytes(s->source, worker_count(s)) +
           tess_block_granted((size_t)s->depth * array_at(s, s->source->arrays));
}

/* With the mutex: true when there is a sample that a worker may draw now. */
static bool has_work(const tess_data_queue *q)
{
    return !q->broken && q->slots[q->filling % q->settings.depth].free;
}

static bool ended(tess_data_queue *q)
{
    return tess_stop_wanted(&q->end) || tess_stop_wanted(q->settings.stop);
}

static tess_status draw_some(tess_data_queue *q, int worker, int64_t batch, int64_t item, tess_error *error)
{
    const tess_data_settings *s = &q->settings;
    const int64_t part = batch % s->parts;
    const tess_sample sample = {.seed = s->seed,
                                .step = s->first_step + batch / s->parts,
                                .index = s->first + part * q->n + item,
                                .more = q->unit - 1,
                                .worker = worker,
                                .stop = &q->end};
    void *arrays[TESS_DATA_ARRAYS] = {0};
    for (int i = 0; i < s->source->arrays; i++)
        arrays[i] =
            q->slots[batch % s->depth].data + array_at(s, i) + (size_t)item * item_bytes(s->source, i);
    return s->source->table->draw(s->source, &sample, arrays, error);
}

/* With the mutex: notes the result of one draw. The failure of the smallest index is kept. */
static void note_result(tess_data_queue *q, int64_t batch, int64_t item, tess_status status,
                        const tess_error *error)
{
    slot *to = &q->slots[batch % q->settings.depth];
    if (status != TESS_OK) {
        q->broken = true;
        if (to->failed < 0 || item < to->failed) {
            to->failed = item;
            to->status = status;
            to->error = *error;
        }
    }
    to->done += q->unit;
    q->drawing--;
    if (to->done == q->n || q->broken)
        pthread_cond_broadcast(&q->ready);
}

static tess_status work(void *arg, tess_error *unused)
{
    (void)unused;
    const queue_worker *w = arg;
    tess_data_queue *q = w->queue;
    pthread_mutex_lock(&q->mutex);
    for (;;) {
        while (!has_work(q) && !ended(q))
            pthread_cond_wait(&q->work, &q->mutex);
        if (ended(q))
            break;
        const int64_t batch = q->filling, item = q->next;
        q->next += q->unit;
        q->drawing++;
        if (q->next == q->n) {
            q->slots[batch % q->settings.depth].free = false;
            q->filling++;
            q->next = 0;
        }
        pthread_mutex_unlock(&q->mutex);
        tess_error error = {{0}};
        const tess_status status = draw_some(q, w->number, batch, item, &error);
        pthread_mutex_lock(&q->mutex);
        note_result(q, batch, item, status, &error);
    }
    pthread_mutex_unlock(&q->mutex);
    return TESS_OK;
}

static tess_status check(const tess_data_settings *s, tess_error *error)
{
    if (s->batch < 1 || s->parts < 1 || s->batch % s->parts != 0)
        return tess_fail(error, TESS_BAD_OPTION,
                         "a batch of %lld samples cannot be divided into %d equal parts", (long long)s->batch,
                         s->parts);
    if (s->depth < 2 || s->depth > TESS_DATA_DEPTH)
        return tess_fail(error, TESS_BAD_OPTION, "%d batches ahead: use 2 to %d", s->depth, TESS_DATA_DEPTH);
    if (s->first_step < 0 || s->first_step >= UINT32_MAX || s->first < 0 || s->first + s->batch >= UINT32_MAX)
        return tess_fail(error, TESS_BAD_OPTION, "step %lld: steps and samples are counted to 2^32",
                         (long long)s->first_step);
    return TESS_OK;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

static tess_status open_parts(tess_data_queue *q, tess_error *error)
{
    const tess_data_settings *s = &q->settings;
    const size_t bytes = array_at(s, s->source->arrays);
    q->slots = tess_small_alloc((size_t)s->depth, sizeof *q->slots);
    q->worker = tess_small_alloc((size_t)q->workers, sizeof *q->worker);
    if (!q->slots || !q->worker)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a queue of batches");
    TESS_TRY(s->source->table->begin(s->source, q->workers, error));
    TESS_TRY(s->device->memory->host_alloc(s->device, &q->block, (size_t)s->depth * bytes, error));
    for (int i = 0; i < s->depth; i++)
        q->slots[i] = (slot){.data = (char *)q->block.data + (size_t)i * bytes, .failed = -1, .free = true};
    for (int i = 0; i < q->workers; i++) {
        q->worker[i] = (queue_worker){.queue = q, .number = i};
        TESS_TRY(tess_worker_create(&q->worker[i].thread, error));
        tess_worker_start(q->worker[i].thread, work, &q->worker[i]);
    }
    return TESS_OK;
}

tess_status tess_data_open(const tess_data_settings *settings, tess_data_queue **out, tess_error *error)
{
    *out = NULL;
    TESS_TRY(check(settings, error));
    tess_data_queue *q = tess_small_alloc(1, sizeof *q);
    if (!q)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a queue of batches");
    q->settings = *settings;
    q->workers = worker_count(settings);
    q->n = settings->batch / settings->parts;
    q->unit =
        settings->source->copies
            ? q->n
            : common_divisor(common_divisor(q->n, tess_max_i64(settings->source->group, 1)), settings->first);
    tess_stop_init(&q->end, NULL, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->ready, &monotonic);
    pthread_condattr_destroy(&monotonic);
    const tess_status status = open_parts(q, error);
    if (status != TESS_OK)
        tess_data_close(q);
    else
        *out = q;
    return status;
}

/* With the mutex: waits for a change for at most TESS_STOP_SECONDS, because the job's stop wakes nobody. */
static void wait_a_while(tess_data_queue *q)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + (int64_t)(TESS_STOP_SECONDS * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&q->ready, &q->mutex, &until);
}

tess_status tess_data_take(tess_data_queue *q, tess_batch *batch, tess_error *error)
{
    const tess_data_settings *s = &q->settings;
    const int number = (int)(q->taken % s->depth);
    slot *from = &q->slots[number];
    const double start = tess_clock();
    tess_status status = TESS_OK;
    pthread_mutex_lock(&q->mutex);
    while (from->done < q->n && !(q->broken && q->drawing == 0) && status == TESS_OK) {
        wait_a_while(q);
        pthread_mutex_unlock(&q->mutex);
        status = tess_stop_check(s->stop, error); /* may call the caller's function: not with the mutex */
        pthread_mutex_lock(&q->mutex);
    }
    if (status == TESS_OK && (from->failed >= 0 || from->done < q->n)) {
        status = from->status;
        if (error)
            *error = from->error;
    }
    q->waited += tess_clock() - start;
    pthread_mutex_unlock(&q->mutex);
    if (status != TESS_OK)
        return status;
    const int part = (int)(q->taken % s->parts);
    *batch = (tess_batch){.step = s->first_step + q->taken / s->parts,
                          .first = s->first + part * q->n,
                          .n = q->n,
                          .part = part,
                          .arrays = s->source->arrays,
                          .slot = number};
    for (int i = 0; i < batch->arrays; i++) {
        batch->data[i] = from->data + array_at(s, i);
        batch->array[i] = s->source->array[i];
        batch->array[i].n = q->n;
    }
    q->taken++;
    return TESS_OK;
}

void tess_data_release(tess_data_queue *q, const tess_batch *batch)
{
    pthread_mutex_lock(&q->mutex);
    slot *of = &q->slots[batch->slot];
    of->done = 0;
    of->free = true;
    if (q->unit == q->n) /* there is one draw more */
        pthread_cond_signal(&q->work);
    else
        pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->mutex);
}

double tess_data_waited(const tess_data_queue *queue)
{
    return queue->waited;
}

void tess_data_close(tess_data_queue *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->mutex);
    atomic_store(&q->end.wanted, true);
    pthread_cond_broadcast(&q->work);
    pthread_mutex_unlock(&q->mutex);
    for (int i = 0; q->worker && i < q->workers; i++)
        tess_worker_destroy(q->worker[i].thread); /* waits for its sample */
    if (q->block.data)
        q->settings.device->memory->host_free(q->settings.device, &q->block);
    pthread_mutex_destroy(&q->mutex);
    pthread_cond_destroy(&q->work);
    pthread_cond_destroy(&q->ready);
    tess_small_free(q->slots);
    tess_small_free(q->worker);
    tess_small_free(q);
}
