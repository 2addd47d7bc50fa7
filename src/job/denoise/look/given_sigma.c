/* Compares a noise level that was given with the noise of the first rows: a level far above it removes detail, and nothing else
 * would show it. A pass over the whole file would take too long for that. */
#include <math.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/denoise/denoise.h"

enum { LEAST_ROWS = 32, ROWS = 256, SAMPLES = 40000 }; /* an estimate needs 14000 to be sure */

typedef struct memory {
    char *samples;
    unsigned char *valid;
    float *values;
    void *noise;
} memory;

static void release(memory *m)
{
    tess_small_free(m->samples);
    tess_small_free(m->valid);
    tess_small_free(m->values);
    tess_small_free(m->noise);
}

static tess_status estimate(tess_engine *engine, const tess_denoise_file *file, const tess_noise_shape *shape,
                            memory *m, tess_noise_result *found, tess_error *error)
{
    const tess_image_info *info = &file->info;
    tess_noise noise;
    tess_reader *reader = NULL;
    TESS_TRY(tess_denoise_open(engine->memory, file->input, file->axes, info->dtype, &reader, error));
    tess_noise_begin(&noise, shape, m->noise);
    tess_status status = TESS_OK;
    for (int64_t y = 0; y < shape->height && status == TESS_OK; y++) {
        status = tess_stop_check(&engine->stop, error);
        if (status == TESS_OK)
            status = tess_denoise_read_rows(info, reader, 1, m->samples, m->valid, error);
        if (status != TESS_OK)
            break;
        tess_denoise_row_values(info, file->scale, m->samples, m->valid, m->values);
        tess_noise_row(&noise, m->values, NULL);
    }
    tess_reader_close(reader);
    if (status == TESS_OK)
        tess_noise_end(&noise, found);
    return status;
}

tess_status tess_denoise_doubt_given_sigma(tess_engine *engine, const tess_denoise_settings *settings,
                                           const tess_denoise_file *file, tess_error *error)
{
    static const double FAR = 6; /* times */
    const tess_image_info *info = &file->info;
    const int64_t colours = tess_denoise_colours(info);
    const size_t samples = (size_t)(info->width * info->channels);
    const bool whole = info->dtype != TESS_F32 && info->dtype != TESS_F64;
    const int64_t rows = tess_min_i64(tess_max_i64(SAMPLES / info->width, LEAST_ROWS), ROWS);
    const tess_noise_shape shape = {tess_min_i64(info->height, rows), info->width, 0, (int)colours,
                                    whole ? 1 / (file->scale.high - file->scale.low) : 0};
    if (!(file->sigma > 0) || file->sigma_estimated || settings->add_noise > 0 || file->two_values ||
        colours > TESS_NOISE_CHANNELS || tess_noise_bytes(&shape) == 0)
        return TESS_OK;
    memory m = {tess_small_alloc(samples, tess_dtype_size(info->dtype)), tess_small_alloc(samples, 1),
                tess_small_alloc(samples, sizeof(float)), tess_small_alloc(tess_noise_bytes(&shape), 1)};
    tess_noise_result found = {.sigma = 0};
    /* Without memory for it the job goes on, without the note. */
    const tess_status status = m.samples && m.valid && m.values && m.noise
                                   ? estimate(engine, file, &shape, &m, &found, error)
                                   : TESS_OK;
    release(&m);
    if (status == TESS_OK && found.confidence == TESS_NOISE_SURE && found.sigma > 0 &&
        file->sigma > FAR * found.sigma)
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: `sigma` %.4g is %.0f times the noise of its first rows, which is estimated as %.3g = "
                  "%.3g/255: detail will be lost; without `sigma` the level is estimated",
                  file->input, file->sigma, file->sigma / found.sigma, found.sigma, 255 * found.sigma);
    return status;
}
