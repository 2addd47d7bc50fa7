/* Whether the channels of a colour image are denoised together. A network for colours was trained on noise that is independent in
 * them: of noise that they share it takes most for detail. With a correlation of 0.5 the bundled gray model, channel by channel, is
 * 0 to 4 dB better, with 1 it is 4 to 8 dB better; at 0 it is 2 dB worse. White noise of 5 of 255 and more
 * has 0 to 0.3 on photographs. Gray pictures that are stored as colours, film grain, and JPEG files with noise and
 * colours at half the resolution have 0.9 and more.
 *
 * Channels that are no colours must not be denoised together either: a network for colours prints the structures of one into the
 * others (heights beside slopes and aspects: 3 dB gained instead of 12, and 5 dB lost instead of 2 gained). */
#include "job/common/together.h"
#include "base/checked.h"
#include "job/common/note.h"
#include "job/denoise/look/together.h"

enum { ROWS = 16, COLOURS = TESS_TOGETHER_COLOURS };
static const double SHARED = 0.6, ALIKE = 0.4;
/* on the [0,1] scale: in weaker noise, texture, which colours share, may be taken for it */
static const double LEAST = 2.5 / 255;

tess_status tess_denoise_find_equal(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error)
{
    const tess_image_info *info = &file->info;
    const int64_t rows = tess_denoise_rows(info);
    const size_t samples = (size_t)(ROWS * info->width * info->channels);
    if (tess_denoise_colours(info) != COLOURS || settings->add_noise > 0)
        return TESS_OK;
    char *values = tess_small_alloc(samples, tess_dtype_size(info->dtype));
    unsigned char *valid = tess_small_alloc(samples, 1);
    tess_reader *reader = NULL;
    tess_status status =
        values && valid
            ? tess_denoise_open(engine->memory, file->input, file->axes, info->dtype, &reader, error)
            : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
    bool gray = true;
    for (int64_t y = 0; y < rows && gray && status == TESS_OK; y += ROWS) {
        const int64_t count = tess_min_i64(ROWS, rows - y);
        status = tess_stop_check(&engine->stop, error);
        if (status == TESS_OK)
            status = tess_denoise_read_rows(info, reader, count, values, valid, error);
        gray = status == TESS_OK && tess_together_equal(values, tess_dtype_size(info->dtype),
                                                        (size_t)info->channels, count * info->width, valid);
    }
    file->look.equal = gray && status == TESS_OK;
    tess_reader_close(reader);
    tess_small_free(values);
    tess_small_free(valid);
    return status;
}

tess_status tess_denoise_choose_together(tess_engine *engine, const tess_denoise_settings *settings,
                                         tess_denoise_file *file, tess_error *error)
{
    const tess_together seen = {.equal = file->look.equal,
                                .shared = file->sigma_estimated && file->sigma > LEAST &&
                                          file->look.noise.shared > SHARED,
                                .correlation = file->look.noise.shared,
                                .unlike = file->look.looked && file->look.alike < ALIKE,
                                .alike = file->look.alike};
    if (file->model->model.channels != COLOURS || file->sigma == 0)
        return TESS_OK;
    if (!tess_together_replace(&seen, file->input, settings->model != NULL, &settings->common)) {
        if (file->look.hidden_alike && !settings->model)
            tess_note(&settings->common, TESS_NOTE_WARNING,
                      "%s: it has too many holes to tell whether its channels are colours, so they are "
                      "denoised together; `model` drunet-gray-small denoises each by itself",
                      file->input);
        return TESS_OK;
    }
    return tess_engine_bundled_of(engine, 1, &file->model, error);
}
