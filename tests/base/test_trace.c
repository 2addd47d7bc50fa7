/* The recorder of spans: tracks of threads, the bound on spans, names that come from files. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/trace.h"
#include "check.h"

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

static char *text_of(const tess_trace *trace)
{
    size_t bytes;
    char *text = tess_trace_text(trace, 3, 0, &bytes);
    CHECK(text && strlen(text) == bytes);
    return text;
}

static void test_bound(void)
{
    tess_trace *trace = tess_trace_create(10, false);
    for (int i = 0; i < 25; i++)
        tess_trace_end(trace, TESS_TRACE_READ, "rows", tess_trace_begin(trace));
    CHECK(tess_trace_count(trace) == 10 && tess_trace_left_out(trace) == 15);
    char *text = text_of(trace);
    CHECK(count_of(text, "\"ph\":\"X\"") == 10 && count_of(text, "\"pid\":3") == 12);
    tess_small_free(text);
    tess_trace_destroy(trace);
    /* spans of helper threads take at most half */
    trace = tess_trace_create(10, false);
    for (int i = 0; i < 8; i++)
        tess_trace_end(trace, TESS_TRACE_LOOP, NULL, tess_trace_begin(trace));
    CHECK(tess_trace_count(trace) == 5 && tess_trace_left_out(trace) == 3);
    tess_trace_destroy(trace);
}

static void test_names(void)
{
    tess_trace *trace = tess_trace_create(20000, true);
    CHECK(tess_trace_profiles(trace) && !tess_trace_profiles(NULL));
    tess_trace_add(trace, TESS_TRACE_OP, "a\"b\\c\n\xff<script>", "conv", tess_clock(), tess_clock());
    for (int i = 0; i < 10000; i++) { /* more than there is room for */
        char name[32];
        snprintf(name, sizeof name, "layer %d", i);
        tess_trace_end(trace, TESS_TRACE_OP, name, tess_clock());
    }
    char longest[500];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    tess_trace_end(trace, TESS_TRACE_OP, longest, tess_clock());
    char *text = text_of(trace);
    CHECK(strstr(text, "\"a?b?c?\?<script>\"") && strstr(text, "{\"op\":\"conv\"}"));
    CHECK(strstr(text, "\"layer 0\"") && count_of(text, "\"ph\":\"X\"") == 10002);
    tess_small_free(text);
    tess_trace_destroy(trace);
}

static void test_figures(void)
{
    tess_trace *trace = tess_trace_create(0, false);
    tess_trace_end(trace, TESS_TRACE_OP, "nothing is kept", tess_clock());
    CHECK(tess_trace_count(trace) == 0 && tess_trace_left_out(trace) == 0);
    CHECK(isnan(tess_trace_figure(trace, TESS_FIGURE_LOSS)) &&
          isnan(tess_trace_figure(NULL, TESS_FIGURE_LOSS)));
    tess_trace_set_figure(trace, TESS_FIGURE_LOSS, 0.5);
    tess_trace_set_figure(NULL, TESS_FIGURE_LOSS, 0.5);
    CHECK(tess_trace_figure(trace, TESS_FIGURE_LOSS) == 0.5 &&
          isnan(tess_trace_figure(trace, TESS_FIGURE_PSNR)));
    tess_trace_destroy(trace);
    trace = tess_trace_create(4, false);
    tess_trace_set_figure(trace, TESS_FIGURE_PSNR, 31.25);
    tess_trace_set_figure(trace, TESS_FIGURE_PSNR, NAN); /* JSON has no such number */
    char *text = text_of(trace);
    CHECK(count_of(text, "\"ph\":\"C\"") == 1 && strstr(text, "{\"value\":31.25}"));
    tess_small_free(text);
    tess_trace_destroy(trace);
    tess_trace_destroy(NULL);
}

static tess_status read_once(void *arg, tess_error *error)
{
    tess_trace *trace = arg;
    (void)error;
    tess_trace_end(trace, TESS_TRACE_READ, "rows", tess_trace_begin(trace));
    return TESS_OK;
}

static void add_item(void *arg, int64_t item, int thread)
{
    (void)item, (void)thread;
    tess_trace *trace = arg;
    tess_trace_end(trace, TESS_TRACE_OP, "item", tess_trace_begin(trace));
}

/* Threads of a pool, and workers that come and go. */
static void test_threads(void)
{
    tess_trace *trace = tess_trace_create(100000, false);
    tess_error error;
    for (int i = 0; i < 20; i++) {
        tess_worker *worker = NULL;
        CHECK(tess_worker_create(&worker, &error) == TESS_OK);
        tess_worker_start(worker, read_once, trace);
        CHECK(tess_worker_wait(worker, &error) == TESS_OK);
        tess_worker_destroy(worker);
    }
    char *text = text_of(trace);
    CHECK(count_of(text, "\"tid\":1,\"ts\"") == 20 && !strstr(text, "\"tid\":2"));
    tess_small_free(text);
    tess_pool *pool = NULL;
    CHECK(tess_pool_create(4, &pool, &error) == TESS_OK);
    tess_pool_trace(pool, trace);
    const uint64_t before = tess_mem_calls();
    for (int i = 0; i < 50; i++) {
        tess_trace_label("layer");
        tess_pool_run(pool, 100, add_item, trace);
        tess_trace_label(NULL);
    }
    CHECK(tess_mem_calls() == before); /* recording allocates nothing */
    tess_pool_destroy(pool);
    text = text_of(trace);
    CHECK(count_of(text, "\"cat\":\"op\"") == 5000 &&
          count_of(text, "\"name\":\"layer\",\"cat\":\"loop\"") == 150);
    CHECK(tess_trace_left_out(trace) == 0);
    tess_small_free(text);
    tess_trace_destroy(trace);
}

static void test_hush(void)
{
    tess_trace *trace = tess_trace_create(1, true);
    tess_trace_hush(trace, true);
    tess_trace_hush(trace, true);
    tess_trace_hush(trace, false);
    CHECK(tess_trace_hushed(trace));
    tess_trace_hush(trace, false);
    CHECK(!tess_trace_hushed(trace));
    tess_trace_hush(NULL, true);
    tess_trace_destroy(trace);
    for (uint64_t n = 1; n <= 2; n++) {
        tess_mem_fail_at(n);
        CHECK(!tess_trace_create(10, false));
    }
    tess_mem_fail_at(0);
}

int main(void)
{
    test_bound();
    test_names();
    test_figures();
    test_threads();
    test_hush();
    return check_end();
}
