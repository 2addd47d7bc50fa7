/* Runs a diffusion sampler over batches of windows and measures it: a JSON line with seconds, tile-steps a second and bytes; used for
 * speed, and by bench/peers/check_sampler.py to compare results with PyTorch.
 *
 *   sampler_rates device=cuda model=random:diffusion precision=bf16 batch=64 side=128 kind=dpmpp steps=20 batches=8
 *
 * Further words: threads=2 seed=7 schedule=linear:0.0001:0.09 schedule_steps=512 eta=0 spacing=lambda|time start=0 (gamma of a
 * start from a guess) everywhere=0 (1: the first step sees noise at known pixels) windows=BATCH;
 * in=FILE: fp32 values of the windows: conditioning (windows, side, side, channels - 1), known values and masks (.., 2) and, with
 * start, guesses (.., 1), one array after the other; out=FILE: fp32 results (windows, side, side) of the first batch. Window i is of sample i % 2,
 * at row 5 + 7 i and column 3 + 9 i of a map whose rows have 100000 pixels. */
#include <string.h>

#include "base/rng.h"
#include "device/device.h"
#include "rates.h"
#include "solve/diffusion_sampler.h"
#include "words.h"

static tess_memory counter;
static tess_error error;
static tess_device *device;

static void *room(int64_t count, size_t size)
{
    void *data = calloc((size_t)count, size);
    if (!data)
        exit(1);
    return data;
}

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s\n", name, what);
    exit(1);
}

static tess_bound *bind(const tess_net *net, tess_weights *file, tess_dtype dtype, tess_block *weights)
{
    tess_bound *bound = NULL;
    need(tess_bound_create(net, device, dtype, &bound, &error), &error);
    if (is("precision", "tf32"))
        tess_bound_allow_tf32(bound);
    need(device->memory->alloc(device, weights, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(bound), &error),
         &error);
    need(tess_bound_load(bound, file, weights->data, &error), &error);
    return bound;
}

/* The windows of a batch, from the file or from nothing: a void of a third of each window. */
static tess_sampler_batch make_batch(const tess_sampler_settings *s, int64_t n)
{
    const int64_t pixels = n * s->height * s->width, others = s->net->channels - 1;
    float *cond = room(pixels * others, sizeof *cond), *known = room(pixels * 2, sizeof *known),
          *guess = s->steps.start_gamma > 0 ? room(pixels, sizeof *guess) : NULL;
    int64_t *items = room(n * TESS_DIFFUSE_ITEMS, sizeof *items);
    const char *name = word("in", NULL);
    for (int64_t i = 0; i < pixels && !name; i++)
        known[2 * i + 1] = i % s->width < s->width / 3;
    if (name) {
        FILE *file = fopen(name, "rb");
        if (!file ||
            fread(cond, sizeof *cond, (size_t)(pixels * others), file) != (size_t)(pixels * others) ||
            fread(known, sizeof *known, (size_t)(pixels * 2), file) != (size_t)(pixels * 2) ||
            (guess && fread(guess, sizeof *guess, (size_t)pixels, file) != (size_t)pixels))
            fail("cannot be read", name);
        fclose(file);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t item[TESS_DIFFUSE_ITEMS] = {i % 2, 5 + 7 * i, 3 + 9 * i, 100000, 0};
        memcpy(items + i * TESS_DIFFUSE_ITEMS, item, sizeof item);
    }
    return (tess_sampler_batch){n, cond, known, guess, items};
}

static void write_result(const float *result, int64_t count)
{
    const char *name = word("out", NULL);
    FILE *file = fopen(name, "wb");
    const bool good = file && fwrite(result, sizeof *result, (size_t)count, file) == (size_t)count;
    if (!file || fclose(file) != 0 || !good)
        fail("cannot be written", name);
}

/* Seconds for batches that follow each other through both slots. */
static double time_batches(tess_sampler *sampler, const tess_sampler_batch *batch, int batches, float *result)
{
    const double start = tess_clock();
    for (int i = 0; i < batches; i++) {
        need(tess_sampler_submit(sampler, i % 2, batch, &error), &error);
        if (i > 0)
            need(tess_sampler_wait(sampler, (i + 1) % 2, result, &error), &error);
    }
    need(tess_sampler_wait(sampler, (batches + 1) % 2, result, &error), &error);
    return tess_clock() - start;
}

static tess_steps_settings steps_settings(tess_diffusion_schedule *schedule)
{
    const char *kind = word("kind", "dpmpp");
    const int64_t steps = (int64_t)number("steps", 20);
    tess_steps_settings s = {.kind = TESS_SAMPLER_KINDS,
                             .schedule = schedule,
                             .count = steps,
                             .eta = number("eta", 0),
                             .spacing = is("spacing", "time") ? TESS_SPACED_TIME : TESS_SPACED_LAMBDA,
                             .start_gamma = number("start", 0),
                             .noise_everywhere = number("everywhere", 0) > 0};
    for (int i = 0; i < TESS_SAMPLER_KINDS; i++)
        if (strcmp(kind, tess_sampler_name((tess_sampler_kind)i)) == 0)
            s.kind = (tess_sampler_kind)i;
    tess_schedule_settings settings = {
        .steps = (int64_t)number("schedule_steps", s.kind == TESS_SAMPLER_DDPM ? (double)steps : 512)};
    need(tess_schedule_parse(word("schedule", "linear"), &settings, &error), &error);
    need(tess_schedule_make(&settings, schedule, &error), &error);
    return s;
}

static void report(tess_sampler *sampler, const tess_sampler_batch *batch, int batches, double seconds,
                   double preparing)
{
    const tess_sampler_steps *steps = tess_sampler_steps_of(sampler);
    const tess_mem_bytes bytes = tess_sampler_bytes(sampler);
    const double tiles = (double)batch->n * batches, flops = batches * tess_sampler_flops(sampler, batch->n);
    printf("{\"study\": \"diffusion sampler\", \"engine\": \"tessera\", \"device\": \"%s\", \"precision\": "
           "\"%s\", \"kind\": \"%s\", \"side\": %s, \"batch\": %lld, \"steps\": %lld, \"batches\": %d, "
           "\"seconds\": %.6f, \"prepare_seconds\": %.3f, \"tile_steps_per_second\": %.3f, \"gflops\": %.1f, "
           "\"planned\": %llu, \"first_gamma\": %.9g, \"last_gamma\": %.9g}\n",
           device->kind, word("precision", "fp32"), word("kind", "dpmpp"), word("side", "128"),
           (long long)batch->n, (long long)steps->count, batches, seconds, preparing,
           tiles * (double)steps->count / seconds, 1e-9 * flops / seconds,
           (unsigned long long)tess_mem_total(&bytes), steps->gammas[0], steps->gammas[steps->count - 1]);
}

int main(int argc, char **argv)
{
    argument_count = argc;
    arguments = argv;
    const tess_device_options options = {.memory = &counter, .threads = (int)number("threads", 0)};
    const int64_t side = (int64_t)number("side", 128), size = (int64_t)number("batch", 1),
                  n = (int64_t)number("windows", (double)size);
    const int batches = (int)number("batches", 1);
    tess_weights *file = NULL;
    tess_diffusion_net net;
    tess_block embedding_weights = {0}, step_weights = {0};
    tess_diffusion_schedule schedule;
    tess_sampler *sampler = NULL;
    need(tess_registry_open(word("device", "cpu"), &options, &device, &error), &error);
    need(tess_model_open(word("model", "random:diffusion"), &file, &error), &error);
    need(tess_diffusion_recognise(file, &net, &error), &error);
    const tess_dtype dtype = is("precision", "bf16")   ? TESS_BF16
                             : is("precision", "fp16") ? TESS_F16
                                                       : TESS_F32;
    tess_bound *embedding = bind(net.embedding, file, TESS_F32, &embedding_weights),
               *step = bind(net.step, file, dtype, &step_weights);
    const tess_sampler_settings settings = {.device = device,
                                            .net = &net,
                                            .embedding = embedding,
                                            .step = step,
                                            .steps = steps_settings(&schedule),
                                            .seed = (uint64_t)number("seed", 7),
                                            .height = side,
                                            .width = side,
                                            .batch = size,
                                            .one_size = n == size};
    const double start = tess_clock();
    need(tess_sampler_create(&settings, &sampler, &error), &error);
    need(tess_sampler_prepare(sampler, embedding_weights.data, step_weights.data, &error), &error);
    const double preparing = tess_clock() - start;
    const tess_sampler_batch batch = make_batch(&settings, n);
    float *result = room(n * side * side, sizeof *result);
    if (!device->host_memory && batches > 1)
        (void)time_batches(sampler, &batch, 1, result); /* clocks and caches settle */
    const double seconds = time_batches(sampler, &batch, batches, result);
    report(sampler, &batch, batches, seconds, preparing);
    if (word("out", NULL))
        write_result(result, n * side * side);
    tess_sampler_destroy(sampler);
    tess_schedule_clear(&schedule);
    tess_bound_destroy(embedding), tess_bound_destroy(step);
    device->memory->free(device, &embedding_weights), device->memory->free(device, &step_weights);
    free((void *)batch.cond), free((void *)batch.known), free((void *)batch.guess), free((void *)batch.items);
    free(result);
    tess_diffusion_clear(&net);
    tess_weights_close(file);
    tess_registry_close(device);
    return 0;
}
