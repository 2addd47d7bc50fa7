/* The noise of images with many bands, as spectrometers make them. An estimate keeps patches of every band, so that all
 * bands at once would take gigabytes: TESS_NOISE_CHANNELS bands are estimated in one pass over the file, the next ones in
 * another. A pass takes far less time than the network takes for these bands. */
#include "job/denoise/look/bands.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

typedef struct passes {
    const tess_denoise_settings *settings;
    tess_denoise_file *file;
    int64_t colours;
    char *samples;
    unsigned char *valid;
    float *values, *draws, *some; /* of a row; `some`: of the bands of this pass */
    void *noise_memory;
    double squares;
    int64_t known; /* bands */
} passes;

bool tess_denoise_has_many_bands(const tess_denoise_file *file)
{
    return file->sigma_estimated && tess_denoise_colours(&file->info) > TESS_NOISE_CHANNELS &&
           file->info.depth == 0;
}

double tess_denoise_band_sigma(const tess_denoise_file *file, const double *channel, int64_t band)
{
    if (file->band_sigma)
        return (double)file->band_sigma[band];
    return band < TESS_NOISE_CHANNELS ? channel[band] : file->sigma;
}

/* Hides what the network does not see, and transparent pixels, which are often constant. */
static void hide(passes *p, int64_t row)
{
    const tess_image_info *info = &p->file->info;
    const int64_t start = row * info->width * p->colours;
    const size_t size = tess_dtype_size(info->dtype);
    int64_t first;
    const int64_t defects = tess_denoise_row_defects(p->file, row, &first);
    for (int64_t i = first; i < first + defects; i++)
        p->values[p->file->look.defects[i] - start] = NAN;
    for (int64_t x = 0; x < info->width && info->alpha; x++) {
        float alpha;
        tess_samples_to_float(info->dtype, 1, p->samples + (size_t)((x + 1) * info->channels - 1) * size, 1,
                              &alpha);
        for (int64_t c = 0; c < p->colours && alpha == 0; c++)
            p->values[x * p->colours + c] = NAN;
    }
}

static tess_status read_bands(passes *p, tess_reader *reader, tess_stop *stop, int64_t from,
                              tess_noise *noise, tess_error *error)
{
    const tess_image_info *info = &p->file->info;
    const tess_rng_key key = {p->settings->common.seed, p->file->item, 0};
    const int64_t count = noise->shape.channels;
    for (int64_t y = 0; y < info->height; y++) {
        TESS_TRY(tess_stop_check(stop, error));
        TESS_TRY(tess_denoise_read_rows(info, reader, 1, p->samples, p->valid, error));
        tess_denoise_row_values(info, p->file->look.unit, p->samples, p->valid, p->values);
        tess_denoise_add_noise(key, p->settings->add_noise, y, info->width * p->colours, p->draws, p->values);
        hide(p, y);
        for (int64_t x = 0; x < info->width; x++)
            memcpy(p->some + x * count, p->values + x * p->colours + from, (size_t)count * sizeof(float));
        tess_noise_row(noise, p->some, NULL);
    }
    return TESS_OK;
}

/* Adds the levels of the bands from `from` on to what is known of the file. */
static void take_levels(passes *p, int64_t from, int64_t count, const tess_noise_result *found)
{
    tess_noise_result *all = &p->file->look.noise;
    const tess_noise_confidence before = all->confidence;
    if (from == 0)
        *all = *found;
    else if (before == TESS_NOISE_UNKNOWN || found->confidence == TESS_NOISE_UNKNOWN)
        all->confidence = before > found->confidence ? before : found->confidence;
    else
        all->confidence = before < found->confidence ? before : found->confidence;
    for (int64_t c = 0; c < count; c++) {
        const tess_noise_level *level = &found->channel[c];
        const bool known = level->confidence != TESS_NOISE_UNKNOWN;
        p->file->band_sigma[from + c] = known ? (float)level->sigma : NAN;
        p->squares += known ? level->sigma * level->sigma : 0;
        p->known += known;
    }
    all->shared = 0;
    all->sigma = p->known ? sqrt(p->squares / (double)p->known) : 0;
}

static tess_status pass(passes *p, tess_engine *engine, int64_t from, tess_error *error)
{
    const tess_image_info *info = &p->file->info;
    const int64_t count = tess_min_i64(p->colours - from, TESS_NOISE_CHANNELS);
    const tess_noise_shape shape = {info->height, info->width, 0, (int)count, 0};
    tess_noise noise;
    tess_noise_result found;
    tess_reader *reader = NULL;
    tess_noise_begin(&noise, &shape, p->noise_memory);
    TESS_TRY(tess_denoise_open(engine->memory, p->file->input, p->file->axes, info->dtype, &reader, error));
    const tess_status status = read_bands(p, reader, &engine->stop, from, &noise, error);
    tess_reader_close(reader);
    TESS_TRY(status);
    tess_noise_end(&noise, &found);
    take_levels(p, from, count, &found);
    return TESS_OK;
}

tess_status tess_denoise_look_at_bands(tess_engine *engine, const tess_denoise_settings *settings,
                                       tess_denoise_file *file, tess_error *error)
{
    const tess_image_info *info = &file->info;
    passes p = {.settings = settings, .file = file, .colours = tess_denoise_colours(info)};
    const tess_noise_shape shape = {info->height, info->width, 0, TESS_NOISE_CHANNELS, 0};
    const size_t samples = (size_t)(info->width * info->channels), bytes = tess_noise_bytes(&shape);
    if (bytes == 0)
        return TESS_OK; /* too small: the level stays unknown */
    p.samples = tess_small_alloc(samples, tess_dtype_size(info->dtype));
    p.valid = tess_small_alloc(samples, 1);
    p.values = tess_small_alloc(samples, sizeof *p.values);
    p.draws = tess_small_alloc(samples, sizeof *p.draws);
    p.some = tess_small_alloc((size_t)(info->width * TESS_NOISE_CHANNELS), sizeof *p.some);
    p.noise_memory = tess_small_alloc(bytes, 1);
    file->band_sigma = tess_small_alloc((size_t)p.colours, sizeof *file->band_sigma);
    void *const parts[] = {p.samples, p.valid, p.values, p.draws, p.some, p.noise_memory};
    tess_status status = TESS_OK;
    if (!p.samples || !p.valid || !p.values || !p.draws || !p.some || !p.noise_memory || !file->band_sigma)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to look at the bands");
    for (int64_t from = 0; from < p.colours && status == TESS_OK; from += TESS_NOISE_CHANNELS)
        status = pass(&p, engine, from, error);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        tess_small_free(parts[i]);
    return status;
}
