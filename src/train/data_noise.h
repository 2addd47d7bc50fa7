/* data_noise.h: the op NOISE on the host, for devices without it, for validation and for tests. */
#ifndef TESS_TRAIN_DATA_NOISE_H
#define TESS_TRAIN_DATA_NOISE_H

#include <stdbool.h>

#include "base/rng.h"

/* noisy = clean + level * normal, as the op NOISE; `to` has one channel more with `level_channel`. */
typedef struct tess_add_noise {
    tess_rng_key key;
    double level;
    int64_t pixels;
    int channels;
    bool level_channel;
} tess_add_noise;
void tess_add_noise_run(const tess_add_noise *noise, const float *clean, float *to);

#endif
