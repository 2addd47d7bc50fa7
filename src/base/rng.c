#include "base/rng.h"

static void normal_block(tess_rng_key key, int64_t block, float four[4])
{
    uint32_t words[4];
    tess_philox_block(key.seed, key.item, key.step, block, words);
    tess_philox_normal(words, four);
}

static void uniform_block(tess_rng_key key, int64_t block, float four[4])
{
    uint32_t words[4];
    tess_philox_block(key.seed, key.item, key.step, block, words);
    for (int i = 0; i < 4; i++)
        four[i] = tess_philox_uniform(words[i]);
}

static void draw_range(void (*block_of)(tess_rng_key, int64_t, float[4]), tess_rng_key key, int64_t first,
                       int64_t count, float *values)
{
    float four[4];
    for (int64_t i = 0; i < count;) {
        int64_t element = first + i;
        block_of(key, element / 4, four);
        for (int64_t lane = element % 4; lane < 4 && i < count; lane++)
            values[i++] = four[lane];
    }
}

void tess_rng_normal(tess_rng_key key, int64_t first, int64_t count, float *values)
{
    draw_range(normal_block, key, first, count, values);
}

void tess_rng_uniform(tess_rng_key key, int64_t first, int64_t count, float *values)
{
    draw_range(uniform_block, key, first, count, values);
}
