/* What one image asks for: its header, its model, and the bytes that the job will hold for it. */
#include "base/checked.h"
#include "base/process.h"
#include "job/denoise.h"
#include "tensor/quality.h"

static const int64_t WIDEST = (int64_t)1 << 40; /* samples of a row: all byte counts stay far from overflow */

int64_t tess_denoise_colours(const tess_image_info *info)
{
    return info->channels - info->alpha;
}

size_t tess_denoise_row_bytes(const tess_image_info *info)
{
    return tess_align_size((size_t)(info->width * info->channels) * tess_dtype_size(info->dtype), 64);
}

/* Host rows and stages, where the device's memory is its own. */
static void wish_apart(const tess_pixels *pixels, tess_denoise_file *file)
{
    const tess_image_info *info = &file->info;
    tess_denoise_wish *w = &file->wish;
    const bool noisy = pixels->add_noise > 0;
    w->apart = true;
    w->row_scratch_bytes = 0;
    if (noisy) { /* noise is added as rows are read */
        w->in_row_bytes = (size_t)(info->width * info->channels) * sizeof(float);
        w->fixed_io_bytes = tess_align_size(w->fixed_io_bytes, 64) + tess_denoise_row_bytes(info) +
                            (size_t)(info->width * pixels->colours) * sizeof(float);
    }
    w->in_pixel_bytes = w->in_row_bytes / (size_t)info->width;
    w->out_pixel_bytes = w->out_row_bytes / (size_t)info->width;
    w->host_limit = tess_host_memory_left() / 4;
}

size_t tess_denoise_carve_sink(const tess_denoise_file *file, char *at, tess_denoise_sink *sink)
{
    *sink = (tess_denoise_sink){0};
    if (!file->truth)
        return 0;
    const tess_image_info *info = &file->info;
    const int64_t most =
        info->channels > file->truth_info.channels ? info->channels : file->truth_info.channels;
    const size_t row = tess_align_size((size_t)(info->width * most) * sizeof(float), 64);
    if (at)
        *sink =
            (tess_denoise_sink){at, at + row, (float *)(at + 2 * row), (float *)(at + 3 * row), at + 4 * row};
    return 4 * row + tess_quality_bytes(info->width, tess_denoise_colours(info));
}

static tess_status model_of(tess_engine *engine, const tess_denoise_settings *settings,
                            tess_denoise_file *file, tess_error *error)
{
    const int64_t colours = tess_denoise_colours(&file->info);
    TESS_TRY(settings->model ? tess_engine_model_of(engine, settings->model, &file->model, error)
                             : tess_engine_bundled_of(engine, colours, &file->model, error));
    const char *name = file->model->path;
    const tess_model *model = &file->model->model;
    if (model->channels != colours && model->channels != 1)
        return tess_fail(error, TESS_BAD_INPUT, "%s: has %lld colour channels, but the model %s takes %lld",
                         file->input, (long long)colours, name, (long long)model->channels);
    if (model->noise_map && settings->sigma < 0 && settings->add_noise <= 0)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "the model %s needs the noise level: give --sigma on the [0,1] scale, e.g. --sigma 25/255", name);
    return TESS_OK;
}

tess_pixels tess_denoise_pixels(const tess_engine *engine, const tess_denoise_settings *settings,
                                const tess_denoise_file *file)
{
    const tess_model *model = &file->model->model;
    tess_pixels pixels = {.image = file->info, .colours = tess_denoise_colours(&file->info), .planes = 1};
    if (model->channels == 1)
        pixels.planes = pixels.colours;
    pixels.noise_map = model->noise_map;
    pixels.float_out = file->truth != NULL;
    pixels.sigma = (float)(settings->sigma >= 0 ? settings->sigma : settings->add_noise);
    pixels.add_noise = (float)settings->add_noise;
    pixels.noise = (tess_rng_key){settings->common.seed, file->item, 0};
    pixels.pool = engine->host;
    return pixels;
}

tess_status tess_denoise_describe(tess_engine *engine, const tess_denoise_settings *settings,
                                  tess_denoise_file *file, tess_error *error)
{
    tess_reader *reader = NULL;
    TESS_TRY(tess_reader_open(file->input, &reader, error));
    file->info = *tess_reader_info(reader);
    tess_reader_close(reader);
    int64_t row;
    if (!tess_mul_i64(file->info.width, file->info.channels, &row) || row > WIDEST)
        return tess_fail(error, TESS_BAD_INPUT, "%s: rows of %lld pixels are more than can be planned for",
                         file->input, (long long)file->info.width);
    TESS_TRY(tess_writer_check(file->output, &file->info, error));
    size_t held = file->info.held_bytes + tess_writer_held_bytes(file->output, &file->info);
    if (file->truth) {
        TESS_TRY(tess_reader_open(file->truth, &reader, error));
        tess_image_info truth = file->truth_info = *tess_reader_info(reader);
        tess_reader_close(reader);
        held += truth.held_bytes;
        if (truth.height != file->info.height || truth.width != file->info.width ||
            tess_denoise_colours(&truth) != tess_denoise_colours(&file->info))
            return tess_fail(
                error, TESS_BAD_INPUT, "%s: is %lld x %lld with %lld channels, %s is %lld x %lld with %lld",
                file->truth, (long long)truth.height, (long long)truth.width,
                (long long)tess_denoise_colours(&truth), file->input, (long long)file->info.height,
                (long long)file->info.width, (long long)tess_denoise_colours(&file->info));
    }
    TESS_TRY(model_of(engine, settings, file, error));
    tess_denoise_sink sink;
    tess_pixels pixels = tess_denoise_pixels(engine, settings, file);
    const size_t samples = (size_t)(file->info.width * file->info.channels),
                 size = tess_dtype_size(file->info.dtype);
    file->wish = (tess_denoise_wish){.height = file->info.height,
                                     .width = file->info.width,
                                     .planes = pixels.planes,
                                     .in_row_bytes = samples * size,
                                     .out_row_bytes = samples * (pixels.float_out ? sizeof(float) : size),
                                     .row_scratch_bytes =
                                         tess_pixels_scratch(&pixels, tess_pool_threads(engine->host)),
                                     .fixed_io_bytes = tess_denoise_carve_sink(file, NULL, &sink),
                                     .held_bytes = held,
                                     .tile_height = settings->tile_height,
                                     .tile_width = settings->tile_width,
                                     .halo = settings->halo,
                                     .batch = settings->batch,
                                     .asked_limit = settings->common.memory_limit};
    if (engine->apart)
        wish_apart(&pixels, file);
    return TESS_OK;
}
