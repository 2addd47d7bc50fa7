/* Draws one crop. Eight 32-bit words by counter choose image, scale, row, column, turn and level. */
#include <string.h>

#include "tensor/samples.h"
#include "train/data_folder_impl.h"
#include "train/data_noise.h"
#include "train/data_resize.h"

static uint32_t below(uint32_t word, int64_t count)
{
    return (uint32_t)((uint64_t)word * (uint64_t)count >> 32);
}

static int choose_scale(const tess_folder *f, const tess_images_file *image, uint32_t word)
{
    double sum = 0;
    int last = 0;
    for (int i = 0; i < f->settings.scales; i++)
        sum += tess_folder_usable(f, image, i) ? f->settings.share[i] : 0;
    double left = (double)word * 0x1p-32 * sum;
    for (int i = 0; i < f->settings.scales; i++) {
        if (!tess_folder_usable(f, image, i) || f->settings.share[i] == 0)
            continue;
        last = i;
        left -= f->settings.share[i];
        if (left < 0)
            break;
    }
    return last;
}

void tess_folder_choose(const tess_source *source, const tess_sample *sample, tess_folder_choice *choice)
{
    const tess_folder *f = (const tess_folder *)source;
    const tess_folder_settings *s = &f->settings;
    const uint64_t seed = tess_data_seed(sample->seed, TESS_DATA_CHOICE);
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[8];
    for (uint32_t block = 0; block < 2; block++) {
        const uint32_t counter[4] = {block, 0, (uint32_t)sample->index, (uint32_t)sample->step};
        tess_philox(counter, key, words + 4 * block);
    }
    choice->image = below(words[0], tess_images_count(f->images));
    const tess_images_file *image = tess_images_at(f->images, choice->image);
    choice->scale = choose_scale(f, image, words[1]);
    choice->y = below(words[2], tess_folder_scaled(f, image->height, choice->scale) - s->crop + 1);
    choice->x = below(words[3], tess_folder_scaled(f, image->width, choice->scale) - s->crop + 1);
    choice->turn = s->upright ? 0 : (int)below(words[4], 8);
    choice->level = s->levels > 0 ? s->level[below(words[5], s->levels)]
                                  : s->low + (s->high - s->low) * ((double)words[5] * 0x1p-32);
}

/* Copies a square in one of the eight ways. */
static void turn_square(const float *from, int64_t side, int channels, int turn, float *to)
{
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            const int64_t a = turn & 4 ? x : y, b = turn & 4 ? y : x;
            const int64_t r = turn & 1 ? side - 1 - a : a, c = turn & 2 ? side - 1 - b : b;
            const float *pixel = from + (r * side + c) * channels;
            for (int i = 0; i < channels; i++)
                *to++ = pixel[i];
        }
}

/* Writes the crop, upright, to `to`. */
static tess_status cut(tess_folder *f, const tess_folder_choice *choice, const tess_sample *sample,
                       char *scratch, float *to, tess_error *error)
{
    const int64_t crop = f->settings.crop;
    const int channels = f->settings.images.channels;
    const tess_images_file *image = tess_images_at(f->images, choice->image);
    const int64_t height = tess_folder_scaled(f, image->height, choice->scale),
                  width = tess_folder_scaled(f, image->width, choice->scale);
    const tess_resize resize = {
        {image->height, height, choice->y, crop}, {image->width, width, choice->x, crop}, channels};
    const bool whole = height == image->height && width == image->width;
    const tess_rect rect = whole ? (tess_rect){choice->y, choice->x, crop, crop} : tess_resize_rect(&resize);
    tess_view view;
    TESS_TRY(tess_images_view(f->images, choice->image, rect, scratch, sample->stop, &view, error));
    if (!whole) {
        tess_resize_run(&resize, &view, (float *)(void *)(scratch + tess_folder_images_room(f)), to);
        return TESS_OK;
    }
    for (int64_t y = 0; y < crop; y++)
        tess_samples_to_float(view.dtype, tess_samples_full_scale(view.dtype),
                              (const char *)view.data +
                                  (size_t)(y * view.stride) * tess_dtype_size(view.dtype),
                              crop * channels, to + y * crop * channels);
    return TESS_OK;
}

tess_status tess_folder_draw(tess_source *source, const tess_sample *sample,
                             void *const arrays[TESS_DATA_ARRAYS], tess_error *error)
{
    tess_folder *f = (tess_folder *)source;
    const int64_t crop = f->settings.crop;
    const int channels = f->settings.images.channels;
    char *scratch = (char *)f->scratch.data + (size_t)sample->worker * tess_folder_worker_room(f);
    float *upright = (float *)(void *)(scratch + tess_folder_images_room(f) + tess_folder_resize_room(f));
    tess_folder_choice choice;
    tess_folder_choose(source, sample, &choice);
    TESS_TRY(cut(f, &choice, sample, scratch, upright, error));
    turn_square(upright, crop, channels, choice.turn, arrays[TESS_FOLDER_CLEAN]);
    const double row[4] = {1, choice.level, (double)sample->index, (double)sample->step};
    memcpy(arrays[TESS_FOLDER_NOISE], row, sizeof row);
    if (f->settings.host_noise) {
        const tess_rng_key key = {tess_data_seed(sample->seed, TESS_DATA_NOISE), (uint32_t)sample->index,
                                  (uint32_t)sample->step};
        const tess_add_noise noise = {key, choice.level, crop * crop, channels, f->settings.level_channel};
        tess_add_noise_run(&noise, arrays[TESS_FOLDER_CLEAN], arrays[TESS_FOLDER_NOISY]);
    }
    return TESS_OK;
}
