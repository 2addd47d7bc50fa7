/* Milliseconds of one core that a training sample of elevation maps costs.
 *
 *     map_rates FOLDER [CROP [SAMPLES [REPEATS]]] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "train/data_dem.h"

enum { LEVELS = 32, BATCH = 64 };

static tess_memory counter;
static tess_error error;

static int fail(void)
{
    fprintf(stderr, "%s\n", error.text);
    return 1;
}

/* Milliseconds of one sample of `count`, beginning with step `first`; negative on failure. */
static double draw(tess_source *source, void *const arrays[], int64_t first, int64_t count)
{
    const clock_t start = clock();
    for (int64_t i = 0; i < count; i += source->group) {
        const tess_sample sample = {
            .seed = 1, .step = first + i / BATCH, .index = i % BATCH, .more = source->group - 1};
        if (tess_dem_draw(source, &sample, NULL, arrays, &error) != TESS_OK)
            return -1;
    }
    return (double)(clock() - start) / CLOCKS_PER_SEC * 1e3 / (double)count;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: map_rates FOLDER [CROP [SAMPLES [REPEATS]]]\n");
        return 2;
    }
    const char *const paths[] = {argv[1]};
    const int64_t count = argc > 3 ? atoll(argv[3]) : 1024;
    const tess_dem_settings settings = {
        .images = {.paths = paths, .path_count = 1, .budget = (size_t)4 << 30, .memory = &counter},
        .crop = argc > 2 ? atoll(argv[2]) : 128,
        .scales = 2,
        .scale = {1, 0.5},
        .share = {0.75, 0.25},
        .levels = LEVELS,
        .repeats = argc > 4 ? atoll(argv[4]) : 1};
    tess_source *source = NULL;
    void *arrays[TESS_DATA_ARRAYS] = {0};
    if (tess_dem_open(&settings, &source, &error) != TESS_OK ||
        source->table->begin(source, 1, &error) != TESS_OK)
        return fail();
    for (int i = 0; i < source->arrays; i++) {
        size_t bytes = 0;
        if (!tess_tensor_bytes(&source->array[i], &bytes) ||
            !(arrays[i] = malloc(bytes * (size_t)source->group)))
            return 1;
    }
    const double first = draw(source, arrays, 0, count), rest = draw(source, arrays, 1 << 20, count);
    if (first < 0 || rest < 0)
        return fail();
    printf("%lld samples of %lld maps: %.2f ms each; with all maps read %.2f ms\n", (long long)count,
           (long long)source->items, first, rest);
    for (int i = 0; i < source->arrays; i++)
        free(arrays[i]);
    tess_source_close(source);
    return 0;
}
