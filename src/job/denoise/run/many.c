/* Processes many files at once through one queue. Each thread takes a file, decodes it, submits its windows and
 * encodes the result, so that all cores feed one device. The result of a file does not depend on the others. */
#include <pthread.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/process.h"
#include "job/denoise/denoise.h"

enum { OPENINGS = 3, WAITING = 2 }; /* files waiting for the device while others use the cores */
static const uint64_t SMALL_JOB = (uint64_t)64 << 20; /* a smaller plan would gain nothing */

typedef struct many {
    tess_denoise_job *job;
    tess_queue *queue;
    pthread_mutex_t mutex;
    int64_t next; /* after the last file that has started */
    int64_t announced;
    tess_status status; /* the error that stops the job, and its message */
    tess_error error;
} many;

/* Loads the weights and opens the queue; on failure everything is released. */
static tess_status open_queue(tess_denoise_job *job, tess_queue **queue, tess_error *error)
{
    tess_status status = tess_engine_load(&job->engine, error);
    if (status == TESS_OK)
        status = tess_queue_open(job->engine.device, &job->queue_sizes, queue, error);
    if (status != TESS_OK)
        tess_engine_unload(&job->engine);
    return status;
}

/* Other processes use the device too: memory that was free when the plan was made may be taken. The job is then
 * planned again with the free memory, before anything has started. */
static tess_status open_or_replan(tess_denoise_job *job, tess_queue **queue, tess_error *error)
{
    tess_engine *engine = &job->engine;
    for (int attempt = 1;; attempt++) {
        engine->device->facts(engine->device, &engine->facts);
        const uint64_t left = engine->facts.memory_free, planned = job->planned_total;
        const bool enough = left >= planned;
        job->baseline = left; /* planning may have opened a library, whose memory is not part of the plan */
        tess_status status = enough ? open_queue(job, queue, error) : TESS_NO_MEMORY;
        if (status != TESS_NO_MEMORY || attempt == OPENINGS) {
            if (status == TESS_NO_MEMORY && !enough)
                return tess_fail(error, status,
                                 "the device has %.0f MiB free and %.0f are needed; end what else uses it, "
                                 "or set a smaller `memory_limit`",
                                 (double)left / (1 << 20), (double)planned / (1 << 20));
            return status;
        }
        engine->device->facts(engine->device, &engine->facts);
        uint64_t limit = tess_engine_free_limit(engine);
        /* An allocation within the free bytes failed: memory is fragmented, or was taken meanwhile. Plan for less. */
        const uint64_t less = planned / 8 * 7, asked = job->settings->common.memory_limit;
        if (enough && less < limit)
            limit = less > SMALL_JOB ? less : SMALL_JOB;
        limit = asked && asked < limit ? asked : limit;
        for (int64_t i = 0; i < job->count; i++)
            job->files[i].request.asked_limit = 0; /* the user's limit is not the cause */
        snprintf(job->replanned, sizeof job->replanned,
                 "re-planned: the card had %.0f MiB free, %.0f were planned", (double)left / (1 << 20),
                 (double)planned / (1 << 20));
        TESS_TRY(tess_denoise_plan(job, limit, error));
    }
}

/* Number of threads, limited by the files, the cores (and a few more) and a quarter of the host's memory. */
static int64_t thread_count(const tess_denoise_job *job)
{
    int64_t files = 0;
    uint64_t most = 1;
    for (int64_t i = 0; i < job->count; i++) {
        const tess_denoise_file *file = &job->files[i];
        if (!tess_denoise_todo(file))
            continue;
        const uint64_t bytes = file->choice.io_block + file->request.held_bytes;
        most = bytes > most ? bytes : most;
        files++;
    }
    int64_t room = (int64_t)(tess_host_memory_left() / 4 / most);
    int64_t count = tess_min_i64(tess_pool_threads(job->engine.host) + WAITING, room);
    return tess_min_i64(files, tess_max_i64(count, 2));
}

static tess_denoise_file *take_file(many *m)
{
    tess_denoise_file *file = NULL;
    pthread_mutex_lock(&m->mutex);
    const int64_t index =
        m->status == TESS_OK && !tess_stop_wanted(&m->job->engine.stop) ? tess_denoise_take(m->job) : -1;
    if (index >= 0) {
        file = &m->job->files[index];
        file->begun = true;
        m->next = tess_max_i64(m->next, index + 1);
    }
    pthread_mutex_unlock(&m->mutex);
    return file;
}

static tess_status run_file(many *m, tess_denoise_file *file, tess_denoise_blocks *blocks, tess_error *error)
{
    if (blocks->io.bytes < file->choice.io_block) {
        tess_block_free(&blocks->io);
        TESS_TRY(tess_block_alloc(m->job->engine.memory, &blocks->io, TESS_MEM_HOST, file->choice.io_block,
                                  error));
    }
    TESS_TRY(tess_denoise_make_folder(m->job, file, error));
    return tess_denoise_image(&m->job->engine, m->job->settings, file, blocks, error);
}

static tess_status work(void *arg, tess_error *error)
{
    many *m = arg;
    tess_denoise_blocks blocks = {.queue = m->queue};
    for (tess_denoise_file *file; (file = take_file(m));) {
        tess_status status = run_file(m, file, &blocks, error);
        pthread_mutex_lock(&m->mutex);
        file->done = status == TESS_OK;
        status = tess_denoise_settle(m->job, file, status, error);
        if (status != TESS_OK && m->status == TESS_OK) {
            m->status = status;
            m->error = *error;
        }
        pthread_mutex_unlock(&m->mutex);
    }
    tess_block_free(&blocks.io);
    return TESS_OK;
}

/* Only this thread calls the callbacks: it reports files that have started, and polls for a stop. */
static void watch(many *m)
{
    pthread_mutex_lock(&m->mutex);
    const int64_t begun = m->next;
    pthread_mutex_unlock(&m->mutex);
    for (; m->announced < begun; m->announced++)
        if (m->job->files[m->announced].begun)
            tess_denoise_announce(m->job, m->announced);
    (void)tess_stop_poll(&m->job->engine.stop);
}

static tess_status run_threads(many *m, int64_t count, tess_error *error)
{
    tess_worker **workers = tess_small_alloc((size_t)count, sizeof *workers);
    if (!workers)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %lld threads", (long long)count);
    tess_status status = TESS_OK;
    for (int64_t i = 0; i < count && status == TESS_OK; i++) {
        status = tess_worker_create(&workers[i], error);
        if (status == TESS_OK)
            tess_worker_start(workers[i], work, m);
        else if (i > 0)
            status = TESS_OK, count = i; /* fewer threads also work */
    }
    for (int64_t i = 0; i < count; i++) {
        while (workers[i] && tess_worker_busy(workers[i], TESS_STOP_SECONDS))
            watch(m);
        tess_worker_destroy(workers[i]);
    }
    watch(m);
    tess_small_free(workers);
    return status;
}

tess_status tess_denoise_run_queue(tess_denoise_job *job, tess_error *error)
{
    many m = {.job = job};
    TESS_TRY(open_or_replan(job, &m.queue, error));
    job->loaded = tess_process_resident();
    pthread_mutex_init(&m.mutex, NULL);
    tess_status status = run_threads(&m, thread_count(job), error);
    if (status == TESS_OK && m.status != TESS_OK) {
        status = m.status;
        *error = m.error;
    }
    pthread_mutex_destroy(&m.mutex);
    tess_queue_measured(m.queue, &job->figures);
    tess_queue_close(m.queue);
    return status;
}
