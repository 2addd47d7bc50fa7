/* The diffusion sampler on the CPU: trajectories against fp64, batches, overlaps, memory, interruption, bad input. */
#include "sampler_checks.h"

static tess_device *open_cpu(const char *isa)
{
    const tess_device_options options = {.memory = &test_counter, .threads = 2, .isa = isa};
    tess_device *device = NULL;
    CHECK(tess_registry_open("cpu", &options, &device, NULL) == TESS_OK);
    return device;
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
        tess_device *device = open_cpu(sets[s]);
        small_diffusion net = small_open(device, TESS_F32, CASE_CHANNELS, 0.3f);
        for (int c = 0; c < SAMPLER_CASES; c++)
            check_trajectory(&net, &sampler_cases[c], 1e-5);
        for (int c = 0; c < SAMPLER_CASES; c += s ? 5 : 1)
            check_batches(&net, &sampler_cases[c]);
        if (!s) {
            check_file(device, TESS_F32);
            check_bytes(&net);
            test_memory(&net);
            test_refusals(&net);
            test_broken_network(device);
            check_overlap(device);
        }
        small_close(&net);
        tess_registry_close(device);
    }
    check_stop("cpu");
    return check_end();
}
