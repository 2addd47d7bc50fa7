/* Records of files within a budget, and every allocation failing once. */
#define _XOPEN_SOURCE 700
#include "report/store.h"

#include <unistd.h>

#include "base/mem.h"
#include "check.h"

static const char *write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    return path;
}

static void test_all_kept(const char *path)
{
    tess_store store = {0};
    tess_error error;
    write_file(path, "{\"a\": 1}\n\n{\"a\": NaN, \"b\": \"NaN \\\\\\\" NaN\"}\n{\"a\"");
    CHECK(tess_store_read(&store, path, NULL, &error) == TESS_OK);
    CHECK(store.count == 2 && store.files[0].stride == 1 && store.files[0].facts.cut_short);
    CHECK(strcmp(store.records[0].text, "{\"a\":1}") == 0 && store.records[0].line == 1);
    CHECK(strstr(store.records[1].text, "\"a\":null") && strstr(store.records[1].text, "NaN \\\\\\\" NaN"));
    CHECK(store.records[1].line == 3 && store.files[0].facts.not_numbers == 1);
    tess_store_clear(&store);
}

/* 30,000 records of 200 bytes, and 80 more of each in a page, are four times the budget and a little more. */
static void test_thinned(const char *path)
{
    tess_store store = {0};
    tess_error error;
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 0; i < 30000; i++)
        fprintf(file, "{\"index\":%d,\"text\":\"%0180d\"}\n", i, i);
    CHECK(fclose(file) == 0);
    CHECK(tess_store_read(&store, path, NULL, &error) == TESS_OK);
    CHECK(store.bytes <= TESS_STORE_BYTES && store.files[0].facts.lines == 30000);
    CHECK(store.files[0].stride == 8 && store.count == 3750);
    for (int64_t i = 0; i < store.count; i++)
        CHECK(store.records[i].index == 8 * i);
    tess_store_clear(&store);
}

static void test_no_memory(const char *path)
{
    write_file(path, "{\"a\": [1, 2.5, {\"b\": NaN}], \"c\": \"text\"}\n{\"d\": true}\n");
    bool done = false;
    for (uint64_t n = 1; n < 500 && !done; n++) {
        tess_store store = {0};
        tess_error error = {""};
        tess_mem_fail_at(n);
        const tess_status status = tess_store_read(&store, path, NULL, &error);
        tess_mem_fail_at(0);
        CHECK(status == TESS_OK || (status == TESS_NO_MEMORY && error.text[0]));
        done = status == TESS_OK && store.count == 2 && n > 10;
        tess_store_clear(&store);
    }
    CHECK(done);
}

static void test_shorten(void)
{
    tess_json *record = NULL;
    tess_error error;
    const char text[] = "{\"list\":[0,1,2,3,4,5,6,7,8,9],\"text\":\"ab\xc3\xa9zzzz\",\"deep\":[[1,2,3,4,5]]}";
    CHECK(tess_json_parse(text, strlen(text), &record, &error) == TESS_OK);
    record = tess_shorten(record, 4, 4);
    char *shorter = tess_json_dump(record, false);
    CHECK(shorter &&
          strcmp(shorter, "{\"list\":[0,3,6,9],\"text\":\"ab\xc3\xa9\xe2\x80\xa6\",\"deep\":[[1,2,3,5]]}") ==
              0);
    tess_small_free(shorter);
    tess_json_free(record);
}

int main(void)
{
    char path[] = "/tmp/tessera-store-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    test_all_kept(path);
    test_thinned(path);
    test_no_memory(path);
    test_shorten();
    unlink(path);
    return check_end();
}
