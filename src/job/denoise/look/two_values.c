/* Finds images of two values: masks, scanned line art, dithers. A network softens their edges, and what looks like noise in them
 * cannot be told from the picture. */
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/denoise/denoise.h"

enum { ROWS = 16 };

/* The values so far, by their bits. */
typedef struct values {
    uint64_t value[2];
    int count;
    bool more;
} values;

static void add(values *seen, uint64_t value)
{
    for (int i = 0; i < seen->count; i++)
        if (seen->value[i] == value)
            return;
    if (seen->count == 2)
        seen->more = true;
    else
        seen->value[seen->count++] = value;
}

static void add_row(values *seen, const tess_image_info *info, const char *samples,
                    const unsigned char *valid)
{
    const int64_t colours = tess_denoise_colours(info), step = info->channels;
    const size_t size = tess_dtype_size(info->dtype);
    for (int64_t i = 0; i < info->width * step && !seen->more; i++) {
        uint64_t bits = 0;
        if (i % step >= colours || !valid[i])
            continue;
        memcpy(&bits, samples + (size_t)i * size, size);
        add(seen, bits);
    }
}

static tess_status add_rows(values *seen, const tess_image_info *info, tess_reader *reader, tess_stop *stop,
                            tess_error *error)
{
    const int64_t rows = tess_denoise_rows(info), samples = info->width * info->channels;
    const size_t size = tess_dtype_size(info->dtype);
    char *bytes = tess_small_alloc((size_t)(ROWS * samples), size);
    unsigned char *valid = tess_small_alloc((size_t)(ROWS * samples), 1);
    tess_status status =
        bytes && valid ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to look at the samples");
    for (int64_t y = 0, count; y < rows && status == TESS_OK && !seen->more; y += count) {
        count = tess_min_i64(ROWS, rows - y);
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_denoise_read_rows(info, reader, count, bytes, valid, error);
        for (int64_t i = 0; i < count && status == TESS_OK; i++)
            add_row(seen, info, bytes + (size_t)(i * samples) * size, valid + i * samples);
    }
    tess_small_free(bytes);
    tess_small_free(valid);
    return status;
}

tess_status tess_denoise_find_two_values(tess_engine *engine, const tess_denoise_settings *settings,
                                         tess_denoise_file *file, tess_error *error)
{
    values seen = {.count = 0};
    tess_reader *reader = NULL;
    if (!tess_denoise_sigma_is_auto(settings) || settings->add_noise > 0)
        return TESS_OK;
    TESS_TRY(tess_reader_open_doubles(engine->memory, file->input, file->axes, &reader, error));
    const tess_image_info info = *tess_reader_info(reader);
    const tess_status status = add_rows(&seen, &info, reader, &engine->stop, error);
    tess_reader_close(reader);
    TESS_TRY(status);
    file->two_values = seen.count == 2 && !seen.more;
    return TESS_OK;
}

void tess_denoise_keep_two_values(const tess_denoise_settings *settings, tess_denoise_file *file)
{
    const int64_t colours = tess_denoise_colours(&file->info);
    file->look.noise = (tess_noise_result){.confidence = TESS_NOISE_SURE};
    file->levels = TESS_LEVELS_ONE;
    file->sigma = 0;
    memset(file->channel_sigma, 0, sizeof file->channel_sigma);
    if (file->band_sigma)
        memset(file->band_sigma, 0, (size_t)colours * sizeof *file->band_sigma);
    tess_note(
        &settings->common, TESS_NOTE_WARNING,
        "%s: its samples have two values only, as in a mask or a drawing: nothing is changed; give `sigma` "
        "if it has noise",
        file->input);
}
