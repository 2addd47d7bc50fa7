/* Images of a set in place that follow one another in memory are one block where only sums are wanted: fewer and longer ops.
 * What is fitted stays the same but for rounding, and planned bytes are the bytes held. */
#include "pixel_arrays.h"

enum { BANDS = 7, WIDTH = 9 };

/* All samples in one block, in the order of the images; returns what the caller frees. */
static float *join_samples(pixel_arrays *a)
{
    size_t values = 0, at = 0;
    for (int64_t i = 0; i < a->images; i++)
        values += (size_t)pixel_count(a, i) * BANDS;
    float *all = calloc(values, sizeof *all);
    for (int64_t i = 0; i < a->images; i++) {
        const size_t count = (size_t)pixel_count(a, i) * BANDS;
        memcpy(all + at, a->samples[i], count * sizeof *all);
        free(a->samples[i]);
        a->samples[i] = all + at;
        at += count;
    }
    a->in_place = true;
    return all;
}

/* Blocks of a walk over images [first, end), with their pixels added up. */
static int64_t count_blocks(pipeline_run *run, pixel_arrays *a, int64_t first, int64_t end, int64_t rows,
                            bool joins, int64_t *pixels)
{
    const tess_pixel_set set = pixel_set_of(a);
    const tess_pixel_stage_settings settings = {
        .device = run->device, .memory = &test_counter, .block_rows = rows};
    const tess_pixel_walk walk = {.set = &set, .image = first, .end = end, .joins = joins};
    const tess_pixel_block *block = NULL;
    tess_pixel_stage stage;
    int64_t blocks = 0;
    *pixels = 0;
    CHECK(tess_pixel_stage_create(&settings, run->plan, &set, &stage, &run->error) == TESS_OK);
    CHECK(tess_pixel_stage_begin(&stage, &walk, &run->error) == TESS_OK);
    while (tess_pixel_stage_next(&stage, &block, &run->error) == TESS_OK && block) {
        CHECK(rows > 0 || stage.at == a->samples[block->image]);
        blocks++;
        *pixels += stage.pixels;
    }
    tess_pixel_stage_destroy(&stage);
    return blocks;
}

static void test_blocks(pipeline_run *run, pixel_arrays *a)
{
    int64_t all = 0, pixels;
    for (int64_t i = 0; i < a->images; i++)
        all += pixel_count(a, i);
    CHECK(count_blocks(run, a, 0, a->images, 0, true, &pixels) == 1 && pixels == all);
    CHECK(count_blocks(run, a, 0, a->images, 0, false, &pixels) == a->images && pixels == all);
    CHECK(count_blocks(run, a, 1, a->images, 0, true, &pixels) == 1 && pixels == all - pixel_count(a, 0));
    CHECK(count_blocks(run, a, 0, a->images, 5, true, &pixels) > a->images && pixels == all);
    /* An image elsewhere ends a run. */
    void *there = a->samples[2];
    void *copy = malloc((size_t)pixel_count(a, 2) * BANDS * sizeof(float));
    memcpy(copy, there, (size_t)pixel_count(a, 2) * BANDS * sizeof(float));
    a->samples[2] = copy;
    CHECK(count_blocks(run, a, 0, a->images, 0, true, &pixels) == 3 && pixels == all);
    a->samples[2] = there;
    free(copy);
}

static void test_fit(const char *kind, const char *json)
{
    pixel_arrays read, placed;
    pipeline_run one, other;
    pixel_arrays_fill(&read, 4, 12, WIDTH, BANDS, TESS_F32);
    pixel_arrays_fill(&placed, 4, 12, WIDTH, BANDS, TESS_F32);
    float *all = join_samples(&placed);
    pipeline_run_fit_on(kind, &one, json, &read, NULL, 0, 2);
    pipeline_run_fit_on(kind, &other, json, &placed, NULL, 0, 2);
    CHECK_MSG(one.status == TESS_OK && other.status == TESS_OK, "%s%s", one.error.text, other.error.text);
    const tess_statistics_report a = tess_statistics_facts(one.statistics),
                                 b = tess_statistics_facts(other.statistics);
    CHECK(a.pixels == b.pixels && a.bytes_read == b.bytes_read);
    for (int64_t i = 0; i < 4; i++) {
        float *want = pipeline_run_scores(&one, &read, i), *got = pipeline_run_scores(&other, &placed, i);
        for (int64_t p = 0; p < pixel_count(&read, i); p++)
            CHECK(fabsf(want[p] - got[p]) <= 1e-4F * (1 + fabsf(want[p])));
        free(want), free(got);
    }
    test_blocks(&other, &placed);
    pipeline_run_close(&one);
    pipeline_run_close(&other);
    pixel_arrays_free(&read);
    free(all);
}

/* Planned bytes are the bytes held, also of the longer ops. */
static void test_bytes(const char *json)
{
    pixel_arrays a;
    pipeline_run run;
    tess_mem_bytes planned;
    tess_mem_usage with, without;
    pixel_arrays_fill(&a, 8, 600, WIDTH, BANDS, TESS_F32);
    float *all = join_samples(&a);
    pipeline_run_fit_on("cpu", &run, json, &a, NULL, 0, 2);
    CHECK_MSG(run.status == TESS_OK, "%s", run.error.text);
    const tess_pixel_set set = pixel_set_of(&a);
    const tess_pixel_stage_settings settings = {.device = run.device, .memory = &test_counter};
    CHECK(tess_statistics_plan(&settings, run.plan, &set, &planned, &run.error) == TESS_OK);
    tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &with);
    tess_statistics_destroy(run.statistics);
    run.statistics = NULL;
    tess_memory_held(&test_counter, TESS_MEM_OF_PROCESS, &without);
    uint64_t sum = 0;
    for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
        sum += planned.by[i];
    CHECK_MSG(with.total - without.total == sum, "%llu held, %llu planned",
              (unsigned long long)(with.total - without.total), (unsigned long long)sum);
    pipeline_run_close(&run);
    free(all);
}

int main(void)
{
    static const char chain[] = "{\"nodes\": [{\"kind\": \"minmax\"}, {\"kind\": \"pca\", \"components\": "
                                "4}, {\"kind\": \"rx\"}]}",
                      trimmed[] = "{\"nodes\": [{\"kind\": \"rx\", \"trim\": 2, \"trims\": 2}]}";
    test_fit("cpu", chain);
    test_fit("separate", chain);
    test_fit("cpu", trimmed); /* scores of a block are kept: nothing is joined */
    test_bytes(chain);
    return check_end();
}
