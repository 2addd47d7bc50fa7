#include "base/rng.h"

#include <math.h>

void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* One block of four words serves elements 4b .. 4b+3. */
static void draw_block(tess_rng_key key, int64_t block, uint32_t words[4])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)((uint64_t)block >> 32), key.item, key.step};
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    tess_philox(counter, seed, words);
}

static void normal_block(tess_rng_key key, int64_t block, float four[4])
{
    uint32_t words[4];
    draw_block(key, block, words);
    for (int pair = 0; pair < 2; pair++) {
        float u = ((float)(words[2 * pair] >> 8) + 1.0f) * 0x1p-24f; /* (0,1]: the logarithm is finite */
        float angle = (float)(words[2 * pair + 1] >> 8) * (0x1p-24f * 6.28318530717958648f);
        float radius = sqrtf(-2.0f * logf(u));
        four[2 * pair] = radius * cosf(angle);
        four[2 * pair + 1] = radius * sinf(angle);
    }
}

static void uniform_block(tess_rng_key key, int64_t block, float four[4])
{
    uint32_t words[4];
    draw_block(key, block, words);
    for (int i = 0; i < 4; i++)
        four[i] = (float)(words[i] >> 8) * 0x1p-24f;
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
