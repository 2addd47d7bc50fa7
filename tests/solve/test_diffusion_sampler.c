/* The diffusion sampler on the CPU: trajectories against fp64, batches, overlaps, memory, interruption, bad input. */
#include "base/stop.h"
#include "sampler_cases.h"

static tess_device *open_cpu(int threads, const char *isa, tess_stop *stop)
{
    const tess_device_options options = {
        .memory = &test_counter, .threads = threads, .isa = isa, .stop = stop};
    tess_device *device = NULL;
    CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
    return device;
}

/* What is planned is what is counted, by category. */
static void test_bytes(const small_diffusion *net)
{
    for (int64_t batch = 1; batch <= 7; batch += 3)
        for (int c = 0; c < SAMPLER_CASES; c++) {
            tess_error error = {{0}};
            tess_diffusion_schedule schedule = schedule_of(&sampler_cases[c]);
            tess_sampler_settings settings = settings_of(net, &sampler_cases[c], &schedule, batch);
            settings.one_size = batch == 4;
            tess_sampler *sampler = NULL;
            tess_mem_usage before, after;
            tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &before);
            CHECK(tess_sampler_create(&settings, &sampler, &error) == TESS_OK);
            tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &after);
            CHECK(after.total == before.total);
            const tess_mem_bytes planned = tess_sampler_bytes(sampler);
            CHECK(tess_sampler_prepare(sampler, net->embedding_weights.data, net->step_weights.data,
                                       &error) == TESS_OK);
            tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &after);
            for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
                CHECK_MSG(after.bytes.by[i] - before.bytes.by[i] == planned.by[i], "%s: %llu bytes, not %llu",
                          tess_mem_category_name((tess_mem_category)i),
                          (unsigned long long)(after.bytes.by[i] - before.bytes.by[i]),
                          (unsigned long long)planned.by[i]);
            CHECK(tess_sampler_flops(sampler, 2) > 1e5 && tess_sampler_net_plan(sampler) != NULL);
            tess_sampler_destroy(sampler);
            tess_schedule_clear(&schedule);
        }
}

/* Counts progress, and stops after a number of calls. */
typedef struct watch {
    int64_t calls, stop_after, done;
} watch;

static bool progress(void *user, int64_t done, int64_t total, double seconds)
{
    (void)total, (void)seconds;
    watch *w = user;
    w->done = done;
    return ++w->calls != w->stop_after;
}

static void test_stop(void)
{
    static tess_stop stop;
    watch w = {0};
    tess_error error = {{0}};
    tess_stop_init(&stop, progress, &w);
    tess_device *device = open_cpu(2, NULL, &stop);
    small_diffusion net = small_open(device, TESS_F32, CASE_CHANNELS, 0.3f);
    tess_sampler *sampler = open_sampler(&net, &sampler_cases[0], 4);
    windows images = make_windows(3, false);
    const tess_sampler_batch batch = batch_of(&images, 0, 3);
    tess_stop_begin(&stop, 2 * 50 * 3);
    CHECK(tess_sampler_run(sampler, &batch, images.result, &error) == TESS_OK);
    CHECK_MSG(w.done == 150, "%lld of 150 units", (long long)w.done);
    w.stop_after = w.calls + 20;
    CHECK(tess_sampler_submit(sampler, 1, &batch, &error) == TESS_INTERRUPTED);
    CHECK_MSG(error.text[0] && w.done > 150 && w.done < 300, "stopped after %lld units", (long long)w.done);
    CHECK(tess_sampler_wait(sampler, 1, images.result, &error) == TESS_INTERNAL);
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_INTERRUPTED);
    tess_sampler_destroy(sampler);
    clear_windows(&images);
    small_close(&net);
    tess_registry_close(device);
}

/* The n-th allocation fails: one clear status, and nothing stays allocated. */
static void test_memory(const small_diffusion *net)
{
    bool done = false;
    const uint64_t before = counted_now();
    for (uint64_t n = 1; !done && n < 5000; n++) {
        tess_error error = {{0}};
        tess_diffusion_schedule schedule = schedule_of(&sampler_cases[2]);
        const tess_sampler_settings settings = settings_of(net, &sampler_cases[2], &schedule, 5);
        tess_sampler *sampler = NULL;
        tess_mem_fail_at(n);
        tess_status status = tess_sampler_create(&settings, &sampler, &error);
        CHECK((status == TESS_OK) == (sampler != NULL));
        if (status == TESS_OK)
            status =
                tess_sampler_prepare(sampler, net->embedding_weights.data, net->step_weights.data, &error);
        tess_mem_fail_at(0);
        done = status == TESS_OK;
        CHECK_MSG(done || (status == TESS_NO_MEMORY && error.text[0]), "allocation %llu: status %d: %s",
                  (unsigned long long)n, (int)status, error.text);
        tess_sampler_destroy(sampler);
        tess_schedule_clear(&schedule);
        CHECK(counted_now() == before);
    }
    CHECK(done);
}

/* A network that overflows is an error, never a result. */
static void test_broken_network(tess_device *device)
{
    tess_error error = {{0}};
    small_diffusion net = small_open(device, TESS_F32, CASE_CHANNELS, 8e37f);
    for (int c = 0; c < SAMPLER_CASES; c += 5) {
        windows w = make_windows(2, false);
        const tess_sampler_batch batch = batch_of(&w, 0, 2);
        tess_sampler *sampler = open_sampler(&net, &sampler_cases[c], 2);
        CHECK(tess_sampler_run(sampler, &batch, w.result, &error) == TESS_BAD_INPUT);
        CHECK_MSG(strstr(error.text, "not finite") && strstr(error.text, "row 5, column 3"), "%s",
                  error.text);
        tess_sampler_destroy(sampler);
        clear_windows(&w);
    }
    small_close(&net);
}

static void test_refusals(const small_diffusion *net)
{
    tess_error error = {{0}};
    windows w = make_windows(3, false);
    tess_sampler *sampler = open_sampler(net, &sampler_cases[5], 2), *other = NULL;
    tess_sampler_batch batch = batch_of(&w, 0, 3);
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_INTERNAL); /* more than the batch */
    batch.n = 2;
    CHECK(tess_sampler_submit(sampler, 2, &batch, &error) == TESS_INTERNAL);
    CHECK(tess_sampler_wait(sampler, 0, w.result, &error) == TESS_INTERNAL);
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_OK);
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_INTERNAL); /* still busy */
    CHECK(tess_sampler_wait(sampler, 0, w.result, &error) == TESS_OK);
    batch.guess = w.result;
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_INTERNAL);
    batch.guess = NULL;
    w.items[1] = -1;
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_INTERNAL && strstr(error.text, "row -1"));
    w.items[1] = 5, w.items[3] = 10; /* rows shorter than a window */
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_INTERNAL);
    w.items[3] = CASE_MAP, w.cond[7] = NAN;
    CHECK(tess_sampler_submit(sampler, 0, &batch, &error) == TESS_INTERNAL && strstr(error.text, "finite"));
    tess_sampler_destroy(sampler);
    tess_diffusion_schedule schedule = schedule_of(&sampler_cases[5]);
    tess_sampler_settings settings = settings_of(net, &sampler_cases[5], &schedule, 0);
    CHECK(tess_sampler_create(&settings, &other, &error) == TESS_BAD_OPTION && !other);
    settings.batch = 2, settings.steps.count = 0;
    CHECK(tess_sampler_create(&settings, &other, &error) == TESS_BAD_OPTION && !other);
    settings.steps.count = 5, settings.height = 0;
    CHECK(tess_sampler_create(&settings, &other, &error) == TESS_BAD_OPTION && !other);
    tess_schedule_clear(&schedule);
    clear_windows(&w);
}

int main(void)
{
    static const char *const sets[] = {NULL, "reference"};
    for (int s = 0; s < 2; s++) {
        tess_device *device = open_cpu(2, sets[s], NULL);
        small_diffusion net = small_open(device, TESS_F32, CASE_CHANNELS, 0.3f);
        for (int c = 0; c < SAMPLER_CASES; c++)
            check_trajectory(&net, &sampler_cases[c], 1e-5);
        for (int c = 0; c < SAMPLER_CASES; c += s ? 5 : 1)
            check_batches(&net, &sampler_cases[c]);
        if (!s) {
            test_bytes(&net);
            test_memory(&net);
            test_refusals(&net);
            test_broken_network(device);
            check_overlap(device);
        }
        small_close(&net);
        tess_registry_close(device);
    }
    test_stop();
    return check_end();
}
