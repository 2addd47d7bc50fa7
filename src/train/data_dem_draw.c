/* Makes samples of a crop with its void: its conditions, then for each sample a position, noise and a noise level. All but the
 * positions is computed as the map lies. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "model/diffusion.h"
#include "tensor/terrain/conditions.h"
#include "train/data_dem_impl.h"

/* The noise level. Those of a step are spread evenly: each is a golden section of the range farther than the one before. */
static double choose_gamma(const tess_sample *sample)
{
    const uint64_t seed = tess_data_seed(sample->seed, TESS_DATA_CHOICE);
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                   counter[4] = {0, UINT32_MAX, 0, (uint32_t)sample->step};
    uint32_t words[4];
    tess_philox(counter, key, words);
    const double at = (double)words[0] * 0x1p-32 + (double)sample->index * 0.61803398874989485,
                 u = at - floor(at);
    const double low = log(TESS_CONDITIONS_GAMMA_LEAST / (1 - TESS_CONDITIONS_GAMMA_LEAST)),
                 high = log(TESS_CONDITIONS_GAMMA_MOST / (1 - TESS_CONDITIONS_GAMMA_MOST));
    return 1 / (1 + exp(-(low + u * (high - low))));
}

/* What the network is to find at void pixels with a value, in place of the crop; 0 elsewhere. */
static void make_clean(const tess_dem_room *room, int64_t pixels, double scale)
{
    for (int64_t i = 0; i < pixels; i++) {
        const bool known = room->flags[i] && !room->own[i];
        const double y = known ? ((double)room->crop[i] - (double)room->smooth[i]) / scale : 0;
        room->crop[i] = (float)fmin(fmax(y, -1), 1);
    }
}

/* Where pixel (y, x) of a sample lies in the crop. */
static int64_t place_of(int turn, int64_t crop, int64_t y, int64_t x)
{
    const int64_t a = turn & 4 ? x : y, b = turn & 4 ? y : x;
    const int64_t row = turn & 1 ? crop - 1 - a : a, column = turn & 2 ? crop - 1 - b : b;
    return row * crop + column;
}

/* One sample of the crop in the room. */
static void write_sample(const tess_dem *dem, const tess_sample *sample, const tess_dem_room *room,
                         double gamma, int turn, float one, void *const arrays[TESS_DATA_ARRAYS])
{
    const int64_t crop = dem->settings.crop;
    float *input = arrays[TESS_DEM_INPUT], *noise = arrays[TESS_DEM_NOISE], *weight = arrays[TESS_DEM_WEIGHT];
    const tess_rng_key key = {tess_data_seed(sample->seed, TESS_DATA_NOISE), (uint32_t)sample->index,
                              (uint32_t)sample->step};
    const double signal = sqrt(gamma), deviation = sqrt(1 - gamma);
    tess_diffusion_level(gamma, dem->settings.levels, arrays[TESS_DEM_LEVEL]);
    tess_rng_normal(key, 0, crop * crop, noise);
    for (int64_t y = 0; y < crop; y++)
        for (int64_t x = 0; x < crop; x++) {
            const int64_t to = y * crop + x, from = place_of(turn, crop, y, x);
            float *values = input + to * (TESS_CONDITIONS + 1);
            memcpy(values, room->square + from * TESS_CONDITIONS, TESS_CONDITIONS * sizeof(float));
            const double noisy = signal * (double)room->crop[from] + deviation * (double)noise[to];
            values[TESS_CONDITIONS] = room->flags[from] ? (float)noisy : 0;
            weight[to] = room->flags[from] && !room->own[from] ? one : 0;
        }
}

tess_status tess_dem_draw(tess_source *source, const tess_sample *sample, const tess_dem_fixed *fixed,
                          void *const arrays[TESS_DATA_ARRAYS], tess_error *error)
{
    static const int positions[TESS_DEM_POSITIONS] = {0, 5, 3, 6, 1, 2, 4, 7}; /* four turns first */
    tess_dem *dem = (tess_dem *)source;
    const int64_t crop = dem->settings.crop, group = tess_max_i64(source->group, 1);
    tess_dem_room room;
    const size_t bytes = tess_dem_room_at(dem, NULL, &room);
    (void)tess_dem_room_at(dem, (char *)dem->scratch.data + (size_t)sample->worker * bytes, &room);
    tess_sample one = *sample;
    tess_dem_crop drawn;
    one.index = sample->index - sample->index % group;
    TESS_TRY(tess_dem_draw_crop(dem, &one, fixed, &room, &drawn, error));
    tess_conditions conditions = {.smooth = room.smooth, .channels = room.square};
    const tess_conditions_window window = {.values = room.crop,
                                           .flags = room.flags,
                                           .guess = drawn.guided ? room.guess : NULL,
                                           .h = crop,
                                           .w = crop,
                                           .scratch = room.scratch};
    TESS_TRY(tess_conditions_make(&window, &conditions, error));
    make_clean(&room, crop * crop, conditions.scale);
    const float weight = (float)(1 / sqrt((double)drawn.pixels));
    for (int64_t i = 0; i <= sample->more; i++) {
        void *to[TESS_DATA_ARRAYS] = {0};
        for (int k = 0; k < source->arrays; k++) {
            size_t item = 0;
            (void)tess_tensor_bytes(&source->array[k], &item); /* checked by the queue */
            to[k] = (char *)arrays[k] + (size_t)i * item;
        }
        one.index = fixed ? sample->index : sample->index + i;
        write_sample(dem, &one, &room, fixed ? fixed->gammas[i] : choose_gamma(&one),
                     fixed ? 0 : drawn.turn ^ positions[one.index % group], weight, to);
    }
    return TESS_OK;
}
