/* test_mem.c: memory is counted by category in the counter that the caller passed and in no other, also from many
 * threads; exactly the requested allocation fails; and a whole network is opened, bound, loaded, planned and run with
 * the n-th allocation failing, for every n. */
#define _POSIX_C_SOURCE 200809L
#include "base/mem.h"

#include <pthread.h>
#include <unistd.h>

#include "counter.h"
#include "support.h"

static uint64_t live(void)
{
    tess_mem_usage device, process;
    tess_memory_held(&test_counter, TESS_MEM_OF_DEVICE, &device);
    tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &process);
    CHECK(tess_mem_total(&device.bytes) == device.total && tess_mem_total(&process.bytes) == process.total);
    CHECK(process.total == device.total + device.bytes.by[TESS_MEM_HOST]);
    return process.total;
}

static void test_blocks(void)
{
    static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 1000000, (size_t)5 << 20};
    tess_error error = {{0}};
    tess_block block;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t granted = tess_block_granted(sizes[i]);
        CHECK(granted >= sizes[i] && granted - sizes[i] < 4096 && granted % 4096 == 0);
        CHECK(tess_block_alloc(&test_counter, &block, TESS_MEM_IO, sizes[i], &error) == TESS_OK);
        CHECK(block.bytes == granted && block.category == TESS_MEM_IO && (uintptr_t)block.data % 4096 == 0);
        CHECK(live() == granted);
        size_t zeros = 0;
        for (size_t at = 0; at < granted; at++)
            zeros += ((char *)block.data)[at] == 0;
        CHECK(zeros == granted);
        memset(block.data, 1, granted);
        tess_block_free(&block);
        CHECK(!block.data && block.bytes == 0 && live() == 0);
        tess_block_free(&block); /* twice is harmless */
        CHECK(live() == 0);
    }
    uint64_t calls = tess_mem_calls();
    CHECK(tess_block_alloc(&test_counter, &block, TESS_MEM_IO, 0, &error) == TESS_OK && !block.data &&
          block.bytes == 0);
    CHECK(tess_mem_calls() == calls && tess_block_granted(0) == 0);
    static const size_t far[] = {SIZE_MAX, SIZE_MAX - 4095, (size_t)1 << 62};
    for (int i = 0; i < 3; i++)
        CHECK(tess_block_alloc(&test_counter, &block, TESS_MEM_IO, far[i], &error) == TESS_NO_MEMORY &&
              !block.data && live() == 0);
    CHECK(strstr(error.text, "4611686018427387904") && strstr(error.text, "io"));
    tess_block_free(NULL);
}

static void test_peaks(void)
{
    tess_error error = {{0}};
    tess_block a, b, c;
    tess_memory memory = {0};
    tess_mem_usage peak;
    CHECK(tess_block_alloc(&memory, &a, TESS_MEM_WEIGHTS, 10 * 4096, &error) == TESS_OK);
    CHECK(tess_block_alloc(&memory, &b, TESS_MEM_ACTIVATIONS, 20 * 4096, &error) == TESS_OK);
    tess_block_free(&b);
    CHECK(tess_block_alloc(&memory, &c, TESS_MEM_WORKSPACE, 15 * 4096, &error) == TESS_OK);
    tess_memory_count(&memory, TESS_MEM_IO, 60000);
    tess_memory_count(&memory, TESS_MEM_IO, -50000);
    tess_memory_count(&memory, TESS_MEM_IO, 1);
    tess_memory_peak(&memory, TESS_MEM_OF_DEVICE, &peak);
    CHECK(peak.bytes.by[TESS_MEM_WEIGHTS] == 10 * 4096 && peak.bytes.by[TESS_MEM_ACTIVATIONS] == 20 * 4096);
    CHECK(peak.bytes.by[TESS_MEM_WORKSPACE] == 15 * 4096 && peak.bytes.by[TESS_MEM_IO] == 60000);
    /* Of the sum: not the sum of the peaks, nor what the first part had. */
    CHECK(peak.total == 25 * 4096 + 60000);
    tess_block_free(&c);
    tess_memory_count(&memory, TESS_MEM_IO, -10001);
    tess_memory_reset_peak(&memory);
    tess_memory_peak(&memory, TESS_MEM_OF_DEVICE, &peak);
    CHECK(peak.bytes.by[TESS_MEM_WEIGHTS] == 10 * 4096 && peak.total == 10 * 4096 &&
          peak.bytes.by[TESS_MEM_ACTIVATIONS] == 0 && peak.bytes.by[TESS_MEM_IO] == 0);
    tess_block_free(&a);
    tess_memory_held(&memory, TESS_MEM_OF_DEVICE, &peak);
    CHECK(peak.total == 0 && live() == 0);
}

/* The eight categories have separate names and counts; host bytes belong only to the total of the process, where they
 * are io, and the peak of the two together is that of one moment. */
static void test_categories(void)
{
    static const char *const names[] = {"weights",   "activations", "gradients", "optimizer",
                                        "workspace", "halo",        "io",        "host"};
    tess_memory memory = {0};
    tess_mem_usage device, process;
    uint64_t sum = 0;
    CHECK(TESS_MEM_CATEGORIES == sizeof names / sizeof *names);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++) {
        int found = 0;
        for (int n = 0; n < TESS_MEM_CATEGORIES; n++)
            found += strcmp(names[n], tess_mem_category_name((tess_mem_category)c)) == 0;
        CHECK_MSG(found == 1, "%s", tess_mem_category_name((tess_mem_category)c));
        tess_memory_count(&memory, (tess_mem_category)c, (int64_t)1 << (4 * c));
        sum += (uint64_t)1 << (4 * c);
    }
    const uint64_t host = (uint64_t)1 << (4 * TESS_MEM_HOST), io = (uint64_t)1 << (4 * TESS_MEM_IO);
    tess_memory_held(&memory, TESS_MEM_OF_DEVICE, &device);
    tess_memory_held(&memory, TESS_MEM_OF_PROCESS, &process);
    for (int c = 0; c < TESS_MEM_CATEGORIES; c++) {
        const uint64_t own = (uint64_t)1 << (4 * c);
        CHECK(device.bytes.by[c] == own);
        CHECK(process.bytes.by[c] == (c == TESS_MEM_HOST ? 0 : c == TESS_MEM_IO ? io + host : own));
    }
    CHECK(device.total == sum - host && process.total == sum);
    CHECK(tess_mem_total(&device.bytes) == device.total && tess_mem_total(&process.bytes) == process.total);

    memory = (tess_memory){{{0}}};
    tess_memory_count(&memory, TESS_MEM_IO, 100);
    tess_memory_count(&memory, TESS_MEM_IO, -90);
    tess_memory_count(&memory, TESS_MEM_HOST, 70);
    tess_memory_peak(&memory, TESS_MEM_OF_DEVICE, &device);
    tess_memory_peak(&memory, TESS_MEM_OF_PROCESS, &process);
    CHECK(device.bytes.by[TESS_MEM_IO] == 100 && device.bytes.by[TESS_MEM_HOST] == 70 && device.total == 100);
    CHECK(process.bytes.by[TESS_MEM_IO] == 100 && process.total == 100); /* not 170 */
    tess_mem_usage_raise(&device, &(tess_mem_usage){{{[TESS_MEM_IO] = 99, [TESS_MEM_HALO] = 5}}, 101});
    CHECK(device.bytes.by[TESS_MEM_IO] == 100 && device.bytes.by[TESS_MEM_HALO] == 5 &&
          device.bytes.by[TESS_MEM_HOST] == 70 && device.total == 101);
}

/* Two threads a counter, on two counters: every addition arrives, and nothing of the other's. */
enum { ADDITIONS = 200000 };

static void *add_many(void *memory)
{
    for (int i = 0; i < ADDITIONS; i++) {
        tess_memory_count(memory, TESS_MEM_WORKSPACE, 3);
        tess_memory_count(memory, TESS_MEM_HOST, 2);
        tess_memory_count(memory, TESS_MEM_WORKSPACE, -2);
    }
    return NULL;
}

static void test_threads(void)
{
    tess_memory memory[2] = {{{{0}}}};
    pthread_t threads[4];
    for (int t = 0; t < 4; t++)
        CHECK(pthread_create(&threads[t], NULL, add_many, &memory[t % 2]) == 0);
    for (int t = 0; t < 4; t++)
        pthread_join(threads[t], NULL);
    for (int m = 0; m < 2; m++) {
        tess_mem_usage held, peak;
        tess_memory_held(&memory[m], TESS_MEM_OF_DEVICE, &held);
        tess_memory_peak(&memory[m], TESS_MEM_OF_DEVICE, &peak);
        CHECK(held.total == 2 * ADDITIONS && held.bytes.by[TESS_MEM_WORKSPACE] == 2 * ADDITIONS &&
              held.bytes.by[TESS_MEM_HOST] == 4 * ADDITIONS);
        CHECK(peak.bytes.by[TESS_MEM_HOST] == 4 * ADDITIONS && peak.total > 2 * ADDITIONS &&
              peak.total <= 2 * ADDITIONS + 4);
    }
}

static void test_small(void)
{
    uint64_t calls = tess_mem_calls();
    unsigned char *data = tess_small_alloc(10, 3);
    CHECK(data);
    for (int i = 0; i < 30; i++)
        CHECK(data[i] == 0);
    data[29] = 9;
    data = tess_small_realloc(data, 1000, 4);
    CHECK(data && data[29] == 9);
    tess_small_free(data);
    char *text = tess_small_strdup("a text");
    CHECK(text && strcmp(text, "a text") == 0);
    tess_small_free(text);
    CHECK(tess_mem_calls() == calls + 3);
    CHECK(!tess_small_realloc(NULL, SIZE_MAX / 2, 4));
    void *nothing = tess_small_alloc(0, 0);
    CHECK(nothing);
    tess_small_free(nothing);
    tess_small_free(NULL);
}

/* One call of each kind in turn; true when it succeeded. */
static bool allocate(int kind)
{
    tess_block block = {0};
    void *data = NULL;
    if (kind % 4 == 0 && tess_block_alloc(&test_counter, &block, TESS_MEM_IO, 100, NULL) != TESS_OK)
        return false;
    if (kind % 4 == 1)
        data = tess_small_alloc(3, 3);
    else if (kind % 4 == 2)
        data = tess_small_realloc(NULL, 3, 3);
    else if (kind % 4 == 3)
        data = tess_small_strdup("three");
    bool good = block.data || data;
    tess_block_free(&block);
    tess_small_free(data);
    return good;
}

static void test_fail_at(void)
{
    for (int n = 1; n <= 12; n++) {
        tess_mem_fail_at((uint64_t)n);
        for (int call = 1; call <= 20; call++)
            CHECK_MSG(allocate(call) == (call != n), "call %d with the %d-th failing", call, n);
    }
    tess_mem_fail_at(1);
    tess_mem_fail_at(0);
    CHECK(allocate(1));
    CHECK(live() == 0);
}

/* A device that could not count is not opened. */
static void test_unnamed(void)
{
    tess_device *device = NULL;
    tess_error error = {{0}};
    CHECK(tess_registry_open("cpu", &(tess_device_options){.threads = 1}, &device, &error) == TESS_INTERNAL);
    CHECK(!device && error.text[0]);
}

/* From the file to the result, and everything given back. */
static tess_status whole_way(const char *path, float *result, tess_error *error)
{
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    tess_device *device = NULL;
    tess_weights *weights = NULL;
    tess_model_net model = {0};
    ready r = {0};
    float image[16 * 16 * 2];
    for (int i = 0; i < 16 * 16 * 2; i++)
        image[i] = (float)(i % 17) / 17;
    tess_status status = tess_registry_open("cpu", &options, &device, error);
    if (status == TESS_OK)
        status = tess_weights_open(path, &weights, error);
    if (status == TESS_OK)
        status = tess_model_recognise(weights, &model, error);
    if (status == TESS_OK)
        status = ready_make(model.net, device, TESS_F32, weights, (tess_plan_shape){1, 16, 16}, &r, error);
    if (status == TESS_OK)
        ready_run(&r, image, result);
    ready_clear(&r);
    tess_model_clear(&model);
    tess_weights_close(weights);
    tess_registry_close(device);
    return status;
}

static void test_torture(const char *path)
{
    float expected[256], result[256];
    tess_error error = {{0}};
    uint64_t calls = tess_mem_calls();
    CHECK_MSG(whole_way(path, expected, &error) == TESS_OK, "%s", error.text);
    uint64_t all = tess_mem_calls() - calls, n = 1;
    for (; n <= all; n++) {
        error.text[0] = '\0';
        calls = tess_mem_calls();
        tess_mem_fail_at(n);
        tess_status status = whole_way(path, result, &error);
        tess_mem_fail_at(0);
        CHECK_MSG(status == TESS_NO_MEMORY && error.text[0], "call %llu of %llu: status %d, '%s'",
                  (unsigned long long)n, (unsigned long long)all, status, error.text);
        CHECK_MSG(tess_mem_calls() - calls >= n && live() == 0, "call %llu", (unsigned long long)n);
    }
    tess_mem_fail_at(n); /* one more than there are */
    CHECK(whole_way(path, result, &error) == TESS_OK && memcmp(result, expected, sizeof result) == 0);
    tess_mem_fail_at(0);
    printf("%llu allocations refused, one at a time\n", (unsigned long long)all);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    char folder[256], path[512];
    snprintf(folder, sizeof folder, "%s/tessera-mem-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    snprintf(path, sizeof path, "%s/net.safetensors", folder);
    test_blocks();
    test_peaks();
    test_categories();
    test_threads();
    test_unnamed();
    test_small();
    test_fail_at();
    tensor_list list = {0};
    add_drunet(&list, &(drunet_shape){"", 1, {16, 32, 48, 64}, 1, true});
    save_tensors(&list, path);
    test_torture(path);
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
