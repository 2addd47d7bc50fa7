/* sampler_dump.h: writes a network, windows and what each sampler made of them to a safetensors file, for
 * bench/peers/check_sampler.py. */
#ifndef TESS_TESTS_SAMPLER_DUMP_H
#define TESS_TESTS_SAMPLER_DUMP_H

#include "sampler_cases.h"

enum { DUMP_MOST = 64, DUMP_WINDOWS = 3 };

typedef struct sampler_dump {
    tess_weights *file;
    float *values[DUMP_MOST]; /* of each tensor, in order; owned */
    int64_t count;
} sampler_dump;

static inline tess_status dump_fetch(void *user, int64_t tensor, int64_t first, int64_t count, float *values,
                                     tess_error *error)
{
    (void)error;
    memcpy(values, ((const sampler_dump *)user)->values[tensor] + first, (size_t)count * sizeof *values);
    return TESS_OK;
}

/* Takes the values. */
static inline void dump_add(sampler_dump *d, const char *name, int rank, const int64_t *dims, float *values)
{
    CHECK(d->count < DUMP_MOST &&
          tess_weights_add_fetched(d->file, name, rank, dims, TESS_F32, NULL) == TESS_OK);
    d->values[d->count++] = values;
}

static inline void dump_windows(sampler_dump *d, windows *w)
{
    float *items = small_room((size_t)w->n * TESS_DIFFUSE_ITEMS * sizeof *items);
    for (int64_t i = 0; i < w->n * TESS_DIFFUSE_ITEMS; i++)
        items[i] = (float)w->items[i];
    for (int64_t i = 0; i < w->n * CASE_PIXELS; i++)
        if (isnan(w->known[2 * i]))
            w->known[2 * i] = 0;
    dump_add(d, "windows.cond", 4, (int64_t[]){w->n, CASE_H, CASE_W, CASE_CHANNELS - 1}, w->cond);
    dump_add(d, "windows.known", 4, (int64_t[]){w->n, CASE_H, CASE_W, 2}, w->known);
    dump_add(d, "windows.guess", 3, (int64_t[]){w->n, CASE_H, CASE_W}, w->guess);
    dump_add(d, "windows.items", 2, (int64_t[]){w->n, TESS_DIFFUSE_ITEMS}, items);
    w->cond = w->known = w->guess = NULL;
}

static inline void dump_case(sampler_dump *d, const small_diffusion *net, int which)
{
    const sampler_case *c = &sampler_cases[which];
    char name[32], key[32], text[256], schedule[TESS_SCHEDULE_TEXT];
    const tess_schedule_settings settings = tess_schedule_default(c->schedule_steps);
    tess_schedule_text(&settings, schedule);
    windows w = make_windows(DUMP_WINDOWS, c->start_gamma > 0);
    const tess_sampler_batch batch = batch_of(&w, 0, w.n);
    tess_sampler *sampler = open_sampler(net, c, w.n);
    CHECK(tess_sampler_run(sampler, &batch, w.result, NULL) == TESS_OK);
    tess_sampler_destroy(sampler);
    snprintf(name, sizeof name, "result.%d", which);
    dump_add(d, name, 3, (int64_t[]){w.n, CASE_H, CASE_W}, w.result);
    snprintf(key, sizeof key, "case.%d", which);
    snprintf(text, sizeof text, "%s|%s|%s|%lld|%lld|%.17g|%.17g|%d|%d", c->name, tess_sampler_name(c->kind),
             schedule, (long long)c->schedule_steps, (long long)c->count, c->eta, c->start_gamma,
             c->noise_everywhere, c->spacing == TESS_SPACED_TIME);
    CHECK(tess_weights_set_metadata(d->file, key, text, NULL) == TESS_OK);
    w.result = NULL;
    clear_windows(&w);
}

static inline void dump_samplers(const small_diffusion *net, const char *path)
{
    sampler_dump d = {0};
    tess_error error = {{0}};
    CHECK(tess_weights_fetched(path, dump_fetch, &d, &d.file, &error) == TESS_OK);
    for (int64_t i = 0; i < tess_weights_count(net->weights); i++) {
        const tess_weight *w = tess_weights_at(net->weights, i);
        float *values = small_room((size_t)w->elements * sizeof *values);
        CHECK(tess_weights_read(net->weights, w, 0, w->elements, values, &error) == TESS_OK);
        dump_add(&d, w->name, w->rank, w->dims, values);
    }
    windows w = make_windows(DUMP_WINDOWS, true);
    dump_windows(&d, &w);
    clear_windows(&w);
    for (int c = 0; c < SAMPLER_CASES; c++)
        dump_case(&d, net, c);
    char seed[32];
    snprintf(seed, sizeof seed, "%d", CASE_SEED);
    CHECK(tess_weights_set_metadata(d.file, "seed", seed, NULL) == TESS_OK);
    CHECK(tess_weights_drawn(d.file, &error) == TESS_OK);
    CHECK_MSG(tess_safetensors_write(&test_counter, path, d.file, &error) == TESS_OK, "%s", error.text);
    tess_weights_close(d.file);
    for (int64_t i = 0; i < d.count; i++)
        free(d.values[i]);
}

#endif
