#include "tensor/terrain/feather.h"

/* Rises over `overlap` pixels; rise(i) + rise(overlap - 1 - i) = 1. */
static float rise(int64_t i, int64_t overlap)
{
    const float t = ((float)i + 0.5f) / (float)overlap;
    return t < 0.5f ? t * t * (3 - 2 * t) : 1 - (1 - t) * (1 - t) * (1 + 2 * t);
}

void tess_feather(int64_t size, int64_t before, int64_t after, float *weights)
{
    for (int64_t i = 0; i < size; i++)
        weights[i] = 1;
    for (int64_t i = 0; i < before; i++)
        weights[i] = rise(i, before);
    for (int64_t i = 0; i < after; i++)
        weights[size - 1 - i] = rise(i, after);
}
