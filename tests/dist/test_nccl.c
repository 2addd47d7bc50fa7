/* test_nccl.c: exchanges by NCCL on a device whose work is done as late as possible, with a library that is part of this test; its failures;
 * what TESSERA_NCCL says. */
#define _POSIX_C_SOURCE 200809L
#include "counter.h"
#include "late_nccl.h"
#include "nccl_checks.h"

static void test_failures(tess_device *device)
{
    tess_dist alone;
    tess_nccl *nccl = NULL;
    tess_error error;
    char bytes[2] = {0};
    const tess_dist_transfer one = {0, &bytes[0], 1, &bytes[1], 1};
    tess_stream *stream = NULL;
    tess_dist_init_solo(&alone);
    CHECK(device->streams->create(device, &stream, &error) == TESS_OK);
    late_messages.fails_at = late_messages.groups + 1; /* the first message */
    CHECK(tess_nccl_open(&alone, device, &late_nccl, &nccl, &error) == TESS_DEVICE_LOST && !nccl);
    CHECK_MSG(strstr(error.text, "ncclGroupEnd failed: a cable is cut"), "%s", error.text);
    CHECK(late_messages.aborted == 1);
    late_messages.fails_at = 0;
    CHECK(tess_nccl_open(&alone, device, &late_nccl, &nccl, &error) == TESS_OK);
    late_messages.fails_at = late_messages.groups + 1;
    CHECK(tess_nccl_begin(nccl, &one, 1, stream, &error) == TESS_DEVICE_LOST);
    late_messages.fails_at = 0;
    CHECK(device->streams->sync(device, stream, &error) == TESS_OK);
    const int destroyed = late_messages.destroyed;
    tess_nccl_close(nccl);
    CHECK(late_messages.aborted == 2 && late_messages.destroyed == destroyed);
    tess_nccl_close(NULL);
    device->streams->destroy(device, stream);
}

static void test_no_memory(tess_device *device)
{
    tess_dist alone;
    tess_error error;
    tess_dist_init_solo(&alone);
    bool done = false;
    for (int64_t n = 1; !done && n < 20; n++) {
        tess_nccl *nccl = NULL;
        tess_mem_fail_at(n);
        const tess_status status = tess_nccl_open(&alone, device, &late_nccl, &nccl, &error);
        tess_mem_fail_at(0);
        CHECK(status == TESS_OK || (status == TESS_NO_MEMORY && !nccl));
        done = status == TESS_OK;
        tess_nccl_close(nccl);
    }
    CHECK(done);
}

static void test_choice(tess_device *device)
{
    tess_dist alone;
    tess_error error;
    tess_nccl_found found;
    tess_dist_init_solo(&alone);
    setenv("TESSERA_NCCL", "0", 1);
    CHECK(tess_nccl_find(&alone, device, false, &found, &error) == TESS_OK && !found.usable);
    CHECK_MSG(strcmp(found.words, "pinned memory: TESSERA_NCCL=0") == 0, "%s", found.words);
    setenv("TESSERA_NCCL", "/none/libnccl.so.2", 1);
    CHECK(tess_nccl_find(&alone, device, false, &found, &error) == TESS_OK && !found.usable);
    CHECK_MSG(strstr(found.words, "pinned memory: /none/libnccl.so.2: "), "%s", found.words);
    CHECK(tess_nccl_find(&alone, device, true, &found, &error) == TESS_OK && !found.usable);
    CHECK_MSG(strcmp(found.words, "pinned memory: ranks share a card") == 0, "%s", found.words);
    setenv("TESSERA_NCCL", "1", 1);
    CHECK(tess_nccl_find(&alone, device, true, &found, &error) == TESS_UNSUPPORTED);
    CHECK_MSG(strstr(error.text, "TESSERA_NCCL=1: ranks share a card"), "%s", error.text);
    unsetenv("TESSERA_NCCL");
}

int main(void)
{
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    tess_device *device = NULL;
    tess_error error;
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    late_device(device);
    check_nccl(device, &late_nccl);
    CHECK(late_messages.destroyed == 1 && late_messages.aborted == 0);
    test_failures(device);
    test_no_memory(device);
    test_choice(device);
    tess_registry_close(device);
    return check_end();
}
