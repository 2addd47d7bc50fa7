/* swap.c: samples of the other byte order. */
#include "io/format.h"

void tess_swap_samples(void *samples, int64_t count, int sample_bytes)
{
    uint16_t *two = samples;
    uint32_t *four = samples;
    uint64_t *eight = samples;
    for (int64_t i = 0; sample_bytes == 2 && i < count; i++)
        two[i] = __builtin_bswap16(two[i]);
    for (int64_t i = 0; sample_bytes == 4 && i < count; i++)
        four[i] = __builtin_bswap32(four[i]);
    for (int64_t i = 0; sample_bytes == 8 && i < count; i++)
        eight[i] = __builtin_bswap64(eight[i]);
}
