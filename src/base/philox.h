/* philox.h: Philox4x32-10 (Salmon et al., SC 2011) and what is made of its words, as inline functions, so that every
 * device compiles the same arithmetic. No sum of a product is in it, so that nothing can be contracted. */
#ifndef TESS_BASE_PHILOX_H
#define TESS_BASE_PHILOX_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define TESS_PHILOX_INLINE static __forceinline__ __host__ __device__
#else
#define TESS_PHILOX_INLINE static inline
#endif

TESS_PHILOX_INLINE void tess_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
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

/* The four words of elements 4 block .. 4 block + 3. */
TESS_PHILOX_INLINE void tess_philox_block(uint64_t seed, uint32_t item, uint32_t step, int64_t block,
                                          uint32_t words[4])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)((uint64_t)block >> 32), item, step};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tess_philox(counter, key, words);
}

/* Four standard normal values, by Box-Muller in fp32: two words make two values. */
TESS_PHILOX_INLINE void tess_philox_normal(const uint32_t words[4], float four[4])
{
    for (int pair = 0; pair < 2; pair++) {
        float u = ((float)(words[2 * pair] >> 8) + 1.0f) * 0x1p-24f; /* (0,1]: the logarithm is finite */
        float angle = (float)(words[2 * pair + 1] >> 8) * (0x1p-24f * 6.28318530717958648f);
        float radius = sqrtf(-2.0f * logf(u));
        four[2 * pair] = radius * cosf(angle);
        four[2 * pair + 1] = radius * sinf(angle);
    }
}

/* Uniform in [0,1), a multiple of 2^-24. */
TESS_PHILOX_INLINE float tess_philox_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

#endif
