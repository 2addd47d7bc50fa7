#include "train/data_noise.h"

#include "base/checked.h"

void tess_add_noise_run(const tess_add_noise *noise, const float *clean, float *to)
{
    enum { PIECE = 256 };
    const int channels = noise->channels;
    const float level = (float)noise->level;
    const int64_t values = noise->pixels * channels;
    float normal[PIECE];
    for (int64_t at = 0, count; at < values; at += count) {
        count = tess_min_i64(PIECE, values - at);
        tess_rng_normal(noise->key, at, count, normal);
        for (int64_t i = 0; i < count; i++) {
            *to++ = clean[at + i] + level * normal[i];
            if (noise->level_channel && (at + i + 1) % channels == 0)
                *to++ = level;
        }
    }
}
