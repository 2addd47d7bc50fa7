/* Traces as timelines: tracks, levels, totals, merging, hostile names, broken files, and every allocation failing once. */
#define _XOPEN_SOURCE 700
#include "report/timelines.h"

#include <unistd.h>

#include "base/mem.h"
#include "check.h"
#include "report/embed.h"

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Children are written before what contains them, as --trace does. */
static const char small[] =
    "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"tessera\",\"left_out\":3},\"traceEvents\":[\n"
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"rank 1\"}},\n"
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"main\"}},\n"
    "{\"ph\":\"X\",\"name\":\"conv\",\"cat\":\"op\",\"pid\":1,\"tid\":0,\"ts\":10,\"dur\":2.5},\n"
    "{\"ph\":\"X\",\"name\":\"conv\",\"cat\":\"op\",\"pid\":1,\"tid\":0,\"ts\":13,\"dur\":4},\n"
    "{\"ph\":\"X\",\"name\":\"batch\",\"cat\":\"batch\",\"pid\":1,\"tid\":0,\"ts\":9,\"dur\":10},\n"
    "{\"ph\":\"X\",\"name\":\"job\",\"cat\":\"job\",\"pid\":1,\"tid\":0,\"ts\":5,\"dur\":100},\n"
    "{\"ph\":\"X\",\"name\":\"conv\",\"cat\":\"loop\",\"pid\":0,\"tid\":7,\"ts\":10,\"dur\":1},\n"
    "{\"ph\":\"C\",\"name\":\"loss\",\"pid\":0,\"ts\":4,\"args\":{\"value\":1}},\n"
    "{\"ph\":\"i\",\"name\":\"mark\",\"pid\":0,\"ts\":4},\n"
    "{\"ph\":\"X\",\"name\":\"no length\",\"pid\":0,\"ts\":4},\n"
    "{\"ph\":\"X\",\"name\":\"far\",\"pid\":0,\"ts\":1e300,\"dur\":1}\n"
    "],\"more\":[{\"a\":\"]}\\\"\"}]}\n";

static tess_json *text_of(tess_timeline *t, size_t most)
{
    tess_json *value = NULL;
    tess_error error;
    CHECK(tess_timeline_write(t, most, &error) == TESS_OK);
    CHECK(tess_embed_json_bytes(t->text, t->bytes) <= most);
    CHECK(tess_json_parse(t->text, t->bytes, &value, &error) == TESS_OK);
    return value;
}

static bool has_numbers(const tess_json *array, const int64_t *wanted, int64_t count)
{
    bool same = tess_json_length(array) == count;
    for (int64_t i = 0; i < count && same; i++)
        same = tess_json_as_int(tess_json_at(array, i), -999) == wanted[i];
    return same;
}

static bool names_it(const tess_json *track, const char *key, const char *name)
{
    return strcmp(tess_json_get_string(tess_json_get(track, "about"), key, ""), name) == 0;
}

static void test_small(const char *path)
{
    tess_timeline t;
    tess_error error;
    write_file(path, small);
    CHECK(tess_events_found(path));
    CHECK(tess_timeline_read(&t, path, NULL, &error) == TESS_OK);
    CHECK(t.all == 5 && t.figures == 1 && t.others == 1 && t.unreadable == 2 && t.resolution == 0);
    CHECK(t.first == 5000 && t.last == 105000 && t.track_names.count == 2);
    tess_json *page = text_of(&t, 1 << 20);
    const tess_json *tracks = tess_json_get(page, "tracks"), *one = tess_json_at(tracks, 1);
    CHECK(tess_json_length(tracks) == 2); /* rank 0 comes first */
    CHECK(names_it(tess_json_at(tracks, 0), "process", "process 0"));
    CHECK(names_it(tess_json_at(tracks, 0), "thread", "thread 7"));
    CHECK(names_it(one, "process", "rank 1"));
    CHECK(names_it(one, "thread", "main"));
    CHECK(tess_json_get_int(one, "levels", 0) == 3);
    /* Kinds in the order of the file: other, op, batch, job, loop. Names in that of the page: of the first track "conv". */
    const int64_t spans[] = {0, 100000, 3, 2, 4000, 10000, 7, 3, 1000, 2500, 11, 4, 3000, 4000, 11, 4};
    CHECK(has_numbers(tess_json_get(one, "spans"), spans, 16));
    const tess_json *totals = tess_json_get(page, "totals");
    const int64_t job[] = {2, 3, 1, 100000, 100000}, conv[] = {4, 1, 2, 6500, 4000};
    CHECK(has_numbers(tess_json_at(totals, 0), job, 5) && has_numbers(tess_json_at(totals, 2), conv, 5));
    CHECK(tess_json_length(totals) == 4);
    CHECK(tess_json_get_int(tess_json_get(page, "facts"), "not_recorded", 0) == 3);
    tess_json_free(page);
    tess_timeline_clear(&t);
}

/* A list alone; its end may be missing. Processes and threads may be texts. */
static void test_list(const char *path)
{
    tess_timeline t;
    tess_error error;
    write_file(path, "[{\"ph\":\"X\",\"pid\":\"GPU\",\"tid\":\"s 1\",\"ts\":1,\"dur\":1,\"name\":\"k\"},\n");
    CHECK(tess_events_found(path));
    CHECK(tess_timeline_read(&t, path, NULL, &error) == TESS_OK && t.all == 1 && t.facts.cut_short);
    tess_timeline_clear(&t);
    write_file(path, "[{\"step\":1,\"loss\":2}]\n");
    CHECK(!tess_events_found(path));
    write_file(path, "{\"command\":\"denoise\",\"text\":\"\\\"traceEvents\\\":[\"}\n{\"traceEvents\":[]}\n");
    CHECK(!tess_events_found(path));
    CHECK(!tess_events_found("/nowhere"));
}

static void write_many(FILE *file, int count)
{
    fputs("{\"traceEvents\":[", file);
    for (int i = 0; i < count; i++) /* 10 us each, of which 2 us lie in a span of 4 */
        fprintf(file,
                "{\"ph\":\"X\",\"name\":\"n%d\",\"cat\":\"op\",\"tid\":0,\"pid\":0,\"ts\":%d,\"dur\":2},\n"
                "{\"ph\":\"X\",\"name\":\"outer\",\"cat\":\"op\",\"tid\":0,\"pid\":0,\"ts\":%d,\"dur\":4},\n",
                i % 3, 10 * i + 1, 10 * i);
    fprintf(file, "{\"ph\":\"X\",\"name\":\"job\",\"cat\":\"job\",\"tid\":0,\"pid\":0,\"ts\":0,\"dur\":%d}]}",
            10 * count);
}

/* What is merged keeps its number, its time, its kind and its level. */
static void test_merged(const char *path, int count, size_t most)
{
    tess_timeline t;
    tess_error error;
    int64_t spans = 0, busy[3] = {0};
    uint8_t *levels;
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    write_many(file, count);
    CHECK(fclose(file) == 0);
    CHECK(tess_timeline_read(&t, path, NULL, &error) == TESS_OK);
    CHECK(t.all == 2 * count + 1 && t.count <= TESS_TIMELINE_SPANS);
    tess_json_free(text_of(&t, most));
    CHECK(t.resolution > 0 && t.count < t.all);
    levels = tess_small_alloc((size_t)t.count, 1);
    CHECK(levels != NULL);
    tess_timeline_levels(&t, levels);
    for (int64_t i = 0; i < t.count; i++) {
        const tess_timeline_span *span = &t.spans[i];
        CHECK(span->extent < 2 * t.resolution || span->count == 1);
        CHECK(levels[i] < 3 && (levels[i] == 0) == (span->kind == 2));
        busy[levels[i] < 3 ? levels[i] : 0] += span->busy;
        spans += span->count;
    }
    CHECK(spans == t.all);
    CHECK(busy[0] == 10000LL * count && busy[1] == 4000LL * count && busy[2] == 2000LL * count);
    CHECK(t.totals[1].count == count && t.totals[1].busy == 4000LL * count && t.totals[1].longest == 4000);
    tess_small_free(levels);
    tess_timeline_clear(&t);
}

/* Names that are markup and all different, a thousand tracks, a hundred kinds, levels without end, times that add up to more
 * than a number holds: the text stays within its bytes. */
static void test_hostile(const char *path)
{
    tess_timeline t;
    tess_error error;
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("[", file);
    for (int i = 0; i < 20000; i++)
        fprintf(file,
                "{\"ph\":\"X\",\"name\":\"%d</script><img src=x "
                "onerror=alert(1)>&&&&\\\"\\u2028\",\"cat\":\"<%d>\","
                "\"pid\":%d,\"tid\":\"<b>%d\",\"ts\":%d,\"dur\":%s},\n",
                i, i % 100, i % 10, i % 1000, i % 7 - 3, i % 2 ? "9e12" : "0");
    CHECK(fclose(file) == 0);
    CHECK(tess_timeline_read(&t, path, NULL, &error) == TESS_OK && t.all == 20000);
    CHECK(t.kinds.count == TESS_TIMELINE_KINDS && t.by_kind[1].busy <= INT64_MAX);
    tess_json *page = text_of(&t, 200000);
    const tess_json *tracks = tess_json_get(page, "tracks");
    CHECK(tess_json_length(tracks) >= 1 && tess_json_length(tracks) <= TESS_TIMELINE_SHOWN);
    CHECK(tess_json_get_int(tess_json_get(page, "facts"), "undrawn", 0) > 0);
    tess_json_free(page);
    tess_timeline_clear(&t);
}

static void check_broken(const char *path, const char *text, const char *word)
{
    tess_timeline t;
    tess_error error = {""};
    write_file(path, text);
    CHECK(tess_events_found(path));
    CHECK(tess_timeline_read(&t, path, NULL, &error) == TESS_BAD_INPUT);
    CHECK(strstr(error.text, path) && strstr(error.text, word) && !strchr(error.text, '\x1b'));
    tess_timeline_clear(&t);
}

static void test_broken(const char *path)
{
    char cut[sizeof small];
    strcpy(cut, small);
    cut[600] = '\0';
    check_broken(path, cut, "ends here, in the middle");
    check_broken(path, "{\"traceEvents\":[\n{\"ph\":\"X\",\x1b}]}", "line 2");
    check_broken(path, "{\"traceEvents\":[{\"ph\":\"X\"} {\"ph\":\"X\"}]}", "comma");
    check_broken(path, "{\"traceEvents\":[{}}", "");
    check_broken(path, "{\"traceEvents\":[]}", "no spans");
    check_broken(path, "{\"traceEvents\":[]} more", "behind the trace");
    check_broken(path, "{\"traceEvents\":[{\"ph\":\"X\"}],17}", "name is missing");
}

static void test_no_memory(const char *path)
{
    bool done = false;
    write_file(path, small);
    for (uint64_t n = 1; n < 2000 && !done; n++) {
        tess_timelines all = {.count = 0};
        tess_error error = {""};
        tess_mem_fail_at(n);
        tess_status status = tess_timelines_read(&all, path, NULL, &error);
        if (status == TESS_OK)
            status = tess_timelines_write(&all, 0, &error);
        done = status == TESS_OK && n > 300;
        tess_mem_fail_at(0);
        CHECK(status == TESS_OK || (status == TESS_NO_MEMORY && error.text[0]));
        tess_timelines_clear(&all);
    }
    CHECK(done);
}

int main(void)
{
    char path[] = "/tmp/tessera-timeline-XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    test_small(path);
    test_list(path);
    test_merged(path, 5000, 60000);
    test_merged(path, TESS_TIMELINE_SPANS / 2 + 1000, 1 << 20); /* merged while it is read */
    test_hostile(path);
    test_broken(path);
    test_no_memory(path);
    unlink(path);
    return check_end();
}
