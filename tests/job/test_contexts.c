/* test_contexts.c: two contexts in two threads, each with its own device, run jobs at once; the memory in each record
 * equals, to the byte, that of the job run alone. The jobs wait for each other while both hold their blocks, so that
 * a shared counter would show the sum. */
#define _XOPEN_SOURCE 700
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "check.h"
#include "counter.h"
#include "folder.h"
#include "io/image.h"
#include "job/common/context.h"

enum { WAIT_SECONDS = 60 };

/* Where the jobs meet; of a job alone `expected` is 1. */
typedef struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int expected, arrived;
} meeting;

typedef struct job {
    bool reconstruct;
    const char *input, *output;
    int64_t tile;
    meeting *meeting;
    bool met;
    tess_context *context;
    /* What became of it, for the main thread to check: */
    tess_status status;
    char error[TESS_ERROR_TEXT];
    char *planned, *measured; /* its record's bytes, as text */
    int64_t planned_host, measured_host;
    uint64_t left; /* bytes still held at the end */
} job;

/* True when the others came. */
static bool meet(meeting *m)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_SECONDS;
    pthread_mutex_lock(&m->mutex);
    m->arrived++;
    pthread_cond_broadcast(&m->changed);
    while (m->arrived < m->expected && pthread_cond_timedwait(&m->changed, &m->mutex, &until) == 0)
        ;
    const bool all = m->arrived >= m->expected;
    pthread_mutex_unlock(&m->mutex);
    return all;
}

/* Work that has begun and is not over holds all its blocks. */
static bool progress(void *user, int64_t done, int64_t total, double seconds)
{
    job *j = user;
    (void)seconds;
    (void)total; /* through the queue a small job may report its progress only once, at the end */
    if (done > 0 && !j->met)
        j->met = meet(j->meeting);
    return true;
}

static tess_status run_denoise(job *j, const tess_common *common, char **record)
{
    tess_denoise_settings s;
    tess_denoise_settings_init(&s);
    s.common = *common;
    s.input = j->input;
    s.output = j->output;
    s.model = "random:dncnn";
    s.sigma = 0.1;
    s.tile_height = s.tile_width = j->tile;
    s.halo = 8;
    s.batch = 1;
    return tess_denoise(j->context, &s, record);
}

static tess_status run_reconstruct(job *j, const tess_common *common, char **record)
{
    tess_reconstruct_settings s;
    tess_reconstruct_settings_init(&s);
    s.common = *common;
    s.problem = "deblur";
    s.output = j->output;
    s.model = "random:dncnn";
    s.size = 24;
    s.iterations = 3;
    s.tile_height = s.tile_width = TESS_TILE_WHOLE;
    s.batch = 1;
    return tess_reconstruct(j->context, &s, record);
}

static char *bytes_of(const tess_json *record, const char *part, int64_t *host)
{
    const tess_json *object = tess_json_get(record, part);
    *host = tess_json_get_int(object, "host_bytes", -1);
    return tess_json_dump(tess_json_get(object, "peak_bytes"), false);
}

static void *run(void *user)
{
    job *j = user;
    tess_common common;
    tess_common_init(&common);
    common.device = "cpu";
    common.threads = 2;
    common.memory_limit = (uint64_t)1 << 30;
    common.progress = progress;
    common.progress_user = j;
    char *text = NULL;
    tess_json *record = NULL;
    j->status = tess_context_create(&j->context);
    if (j->status != TESS_OK)
        return NULL;
    j->status = (j->reconstruct ? run_reconstruct : run_denoise)(j, &common, &text);
    snprintf(j->error, sizeof j->error, "%s", tess_context_error(j->context));
    if (text && tess_json_parse(text, strlen(text), &record, NULL) == TESS_OK) {
        j->planned = bytes_of(record, "plan", &j->planned_host);
        j->measured = bytes_of(record, "measured", &j->measured_host);
    }
    tess_json_free(record);
    tess_record_free(text);
    tess_mem_usage held;
    tess_memory_held(&j->context->memory, TESS_MEM_OF_PROCESS, &held);
    j->left = held.total;
    tess_context_destroy(j->context);
    return NULL;
}

static void clear(job *j)
{
    tess_small_free(j->planned);
    tess_small_free(j->measured);
}

static void run_together(job *jobs, int count)
{
    meeting m = {.expected = count};
    pthread_t threads[2];
    pthread_mutex_init(&m.mutex, NULL);
    pthread_cond_init(&m.changed, NULL);
    for (int i = 0; i < count; i++) {
        jobs[i].meeting = &m;
        CHECK(pthread_create(&threads[i], NULL, run, &jobs[i]) == 0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++) {
        CHECK_MSG(jobs[i].status == TESS_OK, "%s", jobs[i].error);
        CHECK_MSG(jobs[i].met, "job %d did not meet the other", i);
        CHECK_MSG(jobs[i].left == 0, "%llu bytes are still held", (unsigned long long)jobs[i].left);
    }
    pthread_cond_destroy(&m.changed);
    pthread_mutex_destroy(&m.mutex);
}

static void test_pair(const job *one, const job *other)
{
    job alone[2] = {*one, *other}, both[2] = {*one, *other};
    for (int i = 0; i < 2; i++)
        run_together(&alone[i], 1);
    run_together(both, 2);
    for (int i = 0; i < 2; i++) {
        CHECK_MSG(both[i].measured && alone[i].measured && strcmp(both[i].measured, alone[i].measured) == 0,
                  "job %d: %s beside another, %s alone", i, both[i].measured, alone[i].measured);
        CHECK_MSG(both[i].planned && strcmp(both[i].planned, both[i].measured) == 0,
                  "job %d: %s planned, %s measured", i, both[i].planned, both[i].measured);
        CHECK(both[i].measured_host == alone[i].measured_host);
        clear(&alone[i]);
        clear(&both[i]);
    }
}

static void write_image(const char *name, int64_t height, int64_t width)
{
    const tess_image_info info = {
        .height = height, .width = width, .channels = 3, .dtype = TESS_U8, .full_scale = 255};
    tess_writer *writer = NULL;
    unsigned char row[3 * 256];
    CHECK(tess_writer_open(&test_counter, name, &info, NULL, &writer, NULL) == TESS_OK);
    for (int64_t y = 0; y < height; y++) {
        for (int64_t i = 0; i < 3 * width; i++)
            row[i] = (unsigned char)draw();
        CHECK(tess_writer_rows(writer, 1, row, NULL) == TESS_OK);
    }
    CHECK(tess_writer_commit(writer, NULL) == TESS_OK);
    tess_writer_close(writer);
}

int main(void)
{
    char names[5][64];
    static const char *const ends[] = {"small.png", "large.png", "small-out.png", "large-out.npy",
                                       "solved.npy"};
    if (!mkdtemp(folder))
        return check_skip("no temporary folder");
    for (int i = 0; i < 5; i++)
        snprintf(names[i], sizeof names[i], "%s/%s", folder, ends[i]);
    setenv("TESSERA_CACHE", folder, 1);
    write_image(names[0], 40, 56);
    write_image(names[1], 72, 48);
    const job small = {.input = names[0], .output = names[2], .tile = 16},
              large = {.input = names[1], .output = names[3], .tile = 24},
              solved = {.reconstruct = true, .output = names[4]};
    test_pair(&small, &large);
    test_pair(&solved, &large);
    setenv("TESSERA_QUEUE", "1", 1); /* with separate memory: host bytes are not part of the total */
    test_pair(&small, &large);
    test_pair(&large, &solved);
    sweep_folder(true);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
