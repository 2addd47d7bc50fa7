/* sampler_checks.h: whole runs of a diffusion sampler on any device: against fp64, in batches, stopped, counted. */
#ifndef TESS_TESTS_SAMPLER_CHECKS_H
#define TESS_TESTS_SAMPLER_CHECKS_H

#include "base/stop.h"
#include "sampler_cases.h"

/* A batch of three in a sampler for four, against fp64. */
static inline void check_trajectory(const small_diffusion *net, const sampler_case *c, double bound)
{
    tess_error error = {{0}};
    windows w = make_windows(3, c->start_gamma > 0);
    const tess_sampler_batch batch = batch_of(&w, 0, w.n);
    tess_sampler *sampler = open_sampler(net, c, 4);
    double most = 0, want[CASE_PIXELS], changed = 0;
    CHECK_MSG(tess_sampler_run(sampler, &batch, w.result, &error) == TESS_OK, "%s: %s", c->name, error.text);
    for (int64_t i = 0; i < w.n; i++) {
        plain_sample(net->weights, c, tess_sampler_steps_of(sampler), &w, i, want);
        for (int64_t p = 0; p < CASE_PIXELS; p++) {
            const int64_t at = i * CASE_PIXELS + p;
            const double off = fabs((double)w.result[at] - want[p]);
            most = off <= most ? most : off;
            if (w.known[2 * at + 1] <= 0)
                CHECK(w.result[at] == w.known[2 * at]);
            else
                changed = fmax(changed, fabs(want[p]));
        }
    }
    /* One step multiplies the network's rounding by 1 / sqrt(gamma) = 150. */
    CHECK_MSG(most <= (c->count == 1 ? 10 : 1) * bound, "%s: |a-b| %.3g", c->name, most);
    CHECK_MSG(changed > 0.05, "%s: nothing but %g in the void", c->name, changed);
    if (getenv("TESS_TEST_SHOW"))
        printf("%s: |a-b| %.3g\n", c->name, most);
    tess_sampler_destroy(sampler);
    clear_windows(&w);
}

/* Results of nine windows with batches of different sizes, whole or not: the same bits. Both slots in turn. */
static inline void check_batches(const small_diffusion *net, const sampler_case *c)
{
    static const int64_t sizes[] = {1, 2, 5, 8};
    tess_error error = {{0}};
    windows w = make_windows(9, c->start_gamma > 0);
    const size_t bytes = (size_t)w.n * CASE_PIXELS * sizeof(float);
    float *first = small_room(bytes);
    for (int k = 0; k < 4; k++) {
        tess_sampler *sampler = open_sampler(net, c, sizes[k]);
        memset(w.result, 0xff, bytes);
        const uint64_t calls = tess_mem_calls();
        int64_t waits = -1; /* first window of the batch under way */
        int slot = 0;
        for (int64_t at = 0; at < w.n; at += sizes[k], slot = 1 - slot) {
            const tess_sampler_batch batch = batch_of(&w, at, tess_min_i64(sizes[k], w.n - at));
            CHECK_MSG(tess_sampler_submit(sampler, slot, &batch, &error) == TESS_OK, "%s", error.text);
            if (waits >= 0)
                CHECK_MSG(tess_sampler_wait(sampler, 1 - slot, w.result + waits * CASE_PIXELS, &error) ==
                              TESS_OK,
                          "%s", error.text);
            waits = at;
        }
        CHECK(tess_sampler_wait(sampler, 1 - slot, w.result + waits * CASE_PIXELS, &error) == TESS_OK);
        CHECK_MSG(tess_mem_calls() == calls, "%s allocates while it runs", c->name);
        if (k == 0)
            memcpy(first, w.result, bytes);
        CHECK_MSG(memcmp(first, w.result, bytes) == 0, "%s: batch %lld gives other bits", c->name,
                  (long long)sizes[k]);
        tess_sampler_destroy(sampler);
    }
    free(first);
    clear_windows(&w);
}

/* A network that predicts no noise makes each pixel depend on the map's noise alone: windows agree where they overlap. */
static inline void check_overlap(tess_device *device)
{
    static const sampler_case noisy[] = {
        {"ddpm", TESS_SAMPLER_DDPM, 50, 0, 0, 0, true, TESS_SPACED_LAMBDA},
        {"ddim with noise", TESS_SAMPLER_DDIM, 512, 8, 1, 0, true, TESS_SPACED_LAMBDA}};
    small_diffusion net = small_open(device, TESS_F32, CASE_CHANNELS, 0);
    for (int c = 0; c < 2; c++) {
        tess_error error = {{0}};
        windows w = make_windows(2, false);
        const int64_t down = 5, right = 7;
        int64_t *second = w.items + TESS_DIFFUSE_ITEMS;
        memcpy(second, w.items, TESS_DIFFUSE_ITEMS * sizeof *second); /* the same sample */
        second[1] += down, second[2] += right;
        for (int64_t i = 0; i < 2 * CASE_PIXELS; i++)
            w.known[2 * i] = 0, w.known[2 * i + 1] = 1;
        tess_sampler *sampler = open_sampler(&net, &noisy[c], 2);
        const tess_sampler_batch batch = batch_of(&w, 0, 2);
        CHECK_MSG(tess_sampler_run(sampler, &batch, w.result, &error) == TESS_OK, "%s", error.text);
        int64_t same = 0, other = 0;
        for (int64_t y = 0; y < CASE_H - down; y++)
            for (int64_t x = 0; x < CASE_W - right; x++) {
                const float a = w.result[(y + down) * CASE_W + x + right],
                            b = w.result[CASE_PIXELS + y * CASE_W + x], o = w.result[y * CASE_W + x];
                same += memcmp(&a, &b, sizeof a) == 0;
                other += memcmp(&a, &o, sizeof a) == 0 && fabsf(a) < 1;
            }
        CHECK_MSG(same == (CASE_H - down) * (CASE_W - right) && other == 0, "%s: %lld pixels agree, %lld",
                  noisy[c].name, (long long)same, (long long)other);
        tess_sampler_destroy(sampler);
        clear_windows(&w);
    }
    small_close(&net);
}

/* A network with attention, slices and several scales, from a file: batches give the same bits. */
static inline void check_file(tess_device *device, tess_dtype dtype)
{
    small_diffusion net = small_from_file(device, dtype, TESS_TEST_DATA "/networks/diffusion.safetensors");
    CHECK(net.net.channels == CASE_CHANNELS && CASE_H % net.net.grid == 0 && CASE_W % net.net.grid == 0);
    check_batches(&net, &sampler_cases[5]);
    small_close(&net);
}

/* What is planned is what is counted, by category. */
static inline void check_bytes(const small_diffusion *net)
{
    const tess_mem_scope scope = net->device->host_memory ? TESS_MEM_OF_PROCESS : TESS_MEM_OF_DEVICE;
    for (int64_t batch = 1; batch <= 7; batch += 3)
        for (int c = 0; c < SAMPLER_CASES; c++) {
            tess_error error = {{0}};
            tess_diffusion_schedule schedule = schedule_of(&sampler_cases[c]);
            tess_sampler_settings settings = settings_of(net, &sampler_cases[c], &schedule, batch);
            settings.one_size = batch == 4;
            tess_sampler *sampler = NULL;
            tess_mem_usage before, after;
            tess_memory_held(&test_counter, scope, &before);
            CHECK(tess_sampler_create(&settings, &sampler, &error) == TESS_OK);
            tess_memory_held(&test_counter, scope, &after);
            CHECK(after.total == before.total);
            const tess_mem_bytes planned = tess_sampler_bytes(sampler);
            CHECK(tess_sampler_prepare(sampler, net->embedding_weights.data, net->step_weights.data,
                                       &error) == TESS_OK);
            tess_memory_held(&test_counter, scope, &after);
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

static inline bool watch_progress(void *user, int64_t done, int64_t total, double seconds)
{
    (void)total, (void)seconds;
    watch *w = user;
    w->done = done;
    return ++w->calls != w->stop_after;
}

/* Progress is counted by step and window; a run that is stopped ends between steps, and no later one begins. */
static inline void check_stop(const char *kind)
{
    static tess_stop stop;
    watch w = {0};
    tess_error error = {{0}};
    tess_stop_init(&stop, watch_progress, &w);
    const tess_device_options options = {.memory = &test_counter, .threads = 2, .stop = &stop};
    tess_device *device = NULL;
    CHECK(tess_registry_open(kind, &options, &device, &error) == TESS_OK);
    small_diffusion net = small_open(device, TESS_F32, CASE_CHANNELS, 0.3f);
    tess_sampler *sampler = open_sampler(&net, &sampler_cases[0], 4);
    windows images = make_windows(3, false);
    const tess_sampler_batch batch = batch_of(&images, 0, 3);
    tess_stop_begin(&stop, 2 * 50 * 3);
    CHECK(tess_sampler_run(sampler, &batch, images.result, &error) == TESS_OK);
    CHECK_MSG(w.done == 150, "%lld of 150 units", (long long)w.done);
    w.stop_after = w.calls + 3;
    CHECK(tess_sampler_run(sampler, &batch, images.result, &error) == TESS_INTERRUPTED);
    CHECK_MSG(error.text[0] && w.done >= 150 && w.done < 300, "stopped after %lld units", (long long)w.done);
    CHECK(tess_sampler_run(sampler, &batch, images.result, &error) == TESS_INTERRUPTED);
    tess_sampler_destroy(sampler);
    clear_windows(&images);
    small_close(&net);
    tess_registry_close(device);
}

#endif
