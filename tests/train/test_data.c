/* test_data.c: a sample depends on seed, step and index alone, whatever the workers, the parts of a batch, the memory
 * and the first step; memory is what was planned; a queue ends while a sample is being drawn. */
#define _XOPEN_SOURCE 700
#include "train_images.h"

#include <sched.h>

enum { CROP = 16, BATCH = 12, STEPS = 5 };
static tess_device *device;

/* All values of steps [first, STEPS), as bytes. The caller frees them. */
typedef struct record {
    char *data;
    size_t bytes;
} record;

static record take_all(const tess_folder_settings *folder_of, int workers, int parts, int64_t first)
{
    tess_source *source = open_folder(folder_of);
    const tess_data_settings settings = {.source = source,
                                         .device = device,
                                         .seed = 99,
                                         .batch = BATCH,
                                         .parts = parts,
                                         .first_step = first,
                                         .depth = 3,
                                         .workers = workers};
    const uint64_t before = counted_now();
    tess_memory_reset_peak(&test_counter);
    tess_data_queue *queue = open_queue(&settings);
    record all = {0};
    for (int64_t b = 0; b < (STEPS - first) * parts; b++) {
        tess_batch batch;
        tess_error error = {""};
        CHECK_MSG(tess_data_take(queue, &batch, &error) == TESS_OK, "%s", error.text);
        CHECK(batch.step == first + b / parts && batch.part == b % parts && batch.n == BATCH / parts);
        CHECK(batch.first == batch.part * batch.n && batch.arrays == source->arrays);
        /* Sample by sample, so that all divisions give one order. */
        for (int64_t i = 0; i < batch.n; i++)
            for (int k = 0; k < batch.arrays; k++) {
                size_t bytes = 0;
                CHECK(batch.array[k].n == batch.n && tess_tensor_bytes(&source->array[k], &bytes));
                all.data = realloc(all.data, all.bytes + bytes);
                memcpy(all.data + all.bytes, (char *)batch.data[k] + (size_t)i * bytes, bytes);
                all.bytes += bytes;
            }
        tess_data_release(queue, &batch);
    }
    CHECK(tess_data_waited(queue) >= 0);
    tess_data_close(queue);
    CHECK_MSG(counted_peak() - before <= tess_data_bytes(&settings), "peak %llu of %zu bytes",
              (unsigned long long)(counted_peak() - before), tess_data_bytes(&settings));
    tess_source_close(source);
    CHECK(counted_now() == before);
    return all;
}

static void test_determinism(void)
{
    tess_folder_settings s = folder_settings(3, CROP);
    s.host_noise = s.level_channel = true;
    const record want = take_all(&s, 1, 1, 0);
    const size_t sample = (CROP * CROP * 7) * sizeof(float) + 4 * sizeof(double);
    CHECK(want.bytes == sample * BATCH * STEPS);
    CHECK(memcmp(want.data, want.data + sample, sample) != 0);
    static const size_t budgets[] = {(size_t)1 << 30, 12288, 0};
    for (int workers = 1; workers <= 4; workers++)
        for (int k = 0; k < 3; k++)
            for (int64_t first = 0; first < STEPS; first += 3) {
                s.images.budget = budgets[k];
                const record got = take_all(&s, workers, k + 1, first);
                const size_t skipped = sample * BATCH * (size_t)first;
                CHECK_MSG(got.bytes == want.bytes - skipped &&
                              memcmp(got.data, want.data + skipped, got.bytes) == 0,
                          "%d workers, budget %zu, first step %d", workers, budgets[k], (int)first);
                free(got.data);
            }
    free(want.data);
}

/* Ranks that share a batch draw its samples. */
static void test_shares(void)
{
    tess_folder_settings s = folder_settings(3, CROP);
    const record want = take_all(&s, 1, 1, 0);
    tess_source *source = open_folder(&s);
    size_t bytes = 0, sample = 0, at = 0;
    for (int k = 0; k < source->arrays; k++) {
        CHECK(tess_tensor_bytes(&source->array[k], &bytes));
        sample += bytes;
    }
    tess_source_close(source);
    for (int64_t first = 0, count; first < BATCH; first += count) {
        count = first ? 7 : 5;
        source = open_folder(&s);
        const tess_data_settings settings = {.source = source,
                                             .device = device,
                                             .seed = 99,
                                             .batch = count,
                                             .first = first,
                                             .parts = 1,
                                             .depth = 2,
                                             .workers = 2};
        tess_data_queue *queue = open_queue(&settings);
        tess_batch batch;
        CHECK(tess_data_take(queue, &batch, NULL) == TESS_OK && batch.first == first && batch.n == count);
        for (int64_t i = 0; i < count; i++, at += sample) {
            size_t within = 0;
            for (int k = 0; k < batch.arrays; k++, within += bytes) {
                CHECK(tess_tensor_bytes(&source->array[k], &bytes));
                CHECK(memcmp(want.data + at + within, (char *)batch.data[k] + (size_t)i * bytes, bytes) == 0);
            }
        }
        tess_data_release(queue, &batch);
        tess_data_close(queue);
        tess_source_close(source);
    }
    CHECK(at == sample * BATCH);
    free(want.data);
}

static void test_budget(void)
{
    tess_folder_settings s = folder_settings(3, CROP);
    size_t last = 0;
    for (size_t budget = 0; budget <= 32768; budget += 4096) {
        s.images.budget = budget;
        tess_source *source = open_folder(&s);
        int64_t kept = 0;
        const size_t bytes = tess_images_kept_bytes(tess_folder_images(source), &kept);
        CHECK(bytes <= budget && bytes >= last && (kept > 0) == (budget >= 4096));
        CHECK(budget < 32768 || kept == 4);
        last = bytes;
        tess_source_close(source);
    }
}

/* A source whose draws never end by themselves, to be ended by the queue. */
static _Atomic int drawing;

static size_t no_bytes(const tess_source *source, int workers)
{
    (void)source, (void)workers;
    return 0;
}

static tess_status begin_nothing(tess_source *source, int workers, tess_error *error)
{
    (void)source, (void)workers, (void)error;
    return TESS_OK;
}

static tess_status draw_forever(tess_source *source, const tess_sample *sample, void *const arrays[],
                                tess_error *error)
{
    (void)source, (void)arrays;
    atomic_fetch_add(&drawing, 1);
    while (!tess_stop_wanted(sample->stop))
        sched_yield();
    return tess_stop_check(sample->stop, error);
}

static void close_nothing(tess_source *source)
{
    (void)source;
}

static bool not_again(void *user, int64_t done, int64_t total, double seconds)
{
    (void)user, (void)done, (void)total, (void)seconds;
    return false;
}

static void test_stop(void)
{
    static const tess_source_table table = {"forever", no_bytes, begin_nothing, draw_forever, close_nothing};
    tess_source source = {
        .table = &table, .arrays = 1, .array = {tess_tensor_2d(TESS_F32, 1, 1, 1, 1)}, .items = 1};
    tess_stop stop;
    tess_stop_init(&stop, not_again, NULL);
    const tess_data_settings settings = {
        .source = &source, .device = device, .stop = &stop, .batch = 4, .parts = 1, .depth = 2, .workers = 3};
    tess_data_queue *queue = open_queue(&settings);
    while (atomic_load(&drawing) < 3)
        sched_yield();
    tess_batch batch;
    tess_error error = {""};
    CHECK(tess_data_take(queue, &batch, &error) == TESS_INTERRUPTED);
    tess_data_close(queue);
    /* Full, and nobody takes. */
    const tess_folder_settings s = folder_settings(3, CROP);
    tess_source *crops = open_folder(&s);
    const tess_data_settings full = {
        .source = crops, .device = device, .batch = 2, .parts = 1, .depth = 2, .workers = 3};
    tess_data_close(open_queue(&full));
    queue = open_queue(&full);
    CHECK(tess_data_take(queue, &batch, &error) == TESS_OK);
    tess_data_close(queue);
    tess_source_close(crops);
}

static _Atomic int copied; /* calls */

static tess_status draw_numbers(tess_source *source, const tess_sample *sample, void *const arrays[],
                                tess_error *error)
{
    (void)source, (void)error;
    atomic_fetch_add(&copied, 1);
    for (int64_t k = 0; k <= sample->more; k++)
        ((float *)arrays[0])[k] = (float)(1000 * sample->step + sample->index + k);
    return TESS_OK;
}

/* A source that only copies draws a micro-batch by one call, in order, whatever the workers and parts. */
static void test_copies(void)
{
    static const tess_source_table table = {"numbers", no_bytes, begin_nothing, draw_numbers, close_nothing};
    enum { MANY = 200 };
    for (int parts = 1; parts <= 4; parts *= 2) {
        tess_source source = {.table = &table,
                              .arrays = 1,
                              .array = {tess_tensor_2d(TESS_F32, 1, 1, 1, 1)},
                              .items = 1,
                              .copies = true};
        const tess_data_settings settings = {.source = &source,
                                             .device = device,
                                             .batch = BATCH,
                                             .first = 5,
                                             .parts = parts,
                                             .depth = parts + 2,
                                             .workers = 7};
        tess_data_queue *queue = open_queue(&settings);
        tess_error error = {""};
        tess_batch batch;
        atomic_store(&copied, 0);
        for (int b = 0; b < MANY * parts; b++) {
            CHECK(tess_data_take(queue, &batch, &error) == TESS_OK && batch.n == BATCH / parts);
            for (int64_t i = 0; i < batch.n; i++)
                CHECK((int)((const float *)batch.data[0])[i] == 1000 * (b / parts) + (int)(batch.first + i));
            tess_data_release(queue, &batch);
        }
        tess_data_close(queue);
        CHECK(atomic_load(&copied) <= (MANY + 1) * parts + 2);
    }
}

/* Every allocation fails once: no crash, no leak, and a message. */
static void test_no_memory(void)
{
    const uint64_t before = counted_now();
    tess_folder_settings s = folder_settings(3, CROP);
    bool done = false;
    for (uint64_t n = 1; !done && n < 2000; n++) {
        tess_source *source = NULL;
        tess_data_queue *queue = NULL;
        tess_batch batch;
        tess_error error = {""};
        const uint64_t calls = tess_mem_calls();
        tess_mem_fail_at(n);
        tess_status status = tess_folder_open(&s, &source, &error);
        if (status == TESS_OK) {
            const tess_data_settings settings = {
                .source = source, .device = device, .batch = 8, .parts = 1, .depth = 2, .workers = 2};
            status = tess_data_open(&settings, &queue, &error);
        }
        if (status == TESS_OK)
            status = tess_data_take(queue, &batch, &error);
        CHECK(status == TESS_OK || (status == TESS_NO_MEMORY && error.text[0]));
        tess_data_close(queue);
        tess_source_close(source);
        done = tess_mem_calls() - calls < n; /* nothing failed */
        CHECK(counted_now() == before && (!done || status == TESS_OK));
    }
    tess_mem_fail_at(0);
    CHECK(done);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    device = test_device();
    make_four_images();
    test_determinism();
    test_shares();
    test_budget();
    test_stop();
    test_copies();
    test_no_memory();
    tess_registry_close(device);
    sweep_folder(true);
    rmdir(folder);
    return check_end();
}
