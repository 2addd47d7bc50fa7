/* What one image needs: its header, its model, and the bytes that the job will hold for it. */
#include <stdio.h>

#include "base/checked.h"
#include "base/process.h"
#include "job/denoise/look/bands.h"
#include "job/denoise/look/together.h"
#include "job/denoise/run/prepared.h"
#include "tensor/quality.h"

/* samples of a row: keeps all byte counts far from overflow */
static const int64_t WIDEST = (int64_t)1 << 40;

int64_t tess_denoise_colours(const tess_image_info *info)
{
    return info->channels - info->alpha;
}

int64_t tess_denoise_rows(const tess_image_info *info)
{
    return info->height * tess_max_i64(info->depth, 1);
}

size_t tess_denoise_row_bytes(const tess_image_info *info)
{
    return tess_align_size((size_t)(info->width * info->channels) * tess_dtype_size(info->dtype), 64);
}

/* Host rows and stages, for a device with separate memory. */
static void request_separate_memory(const tess_pixels *pixels, tess_denoise_file *file)
{
    const tess_image_info *info = &file->info;
    tess_cut_request *w = &file->request;
    const bool noisy = pixels->add_noise > 0;
    w->separate_memory = true;
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
    const int64_t most = tess_max_i64(info->channels, file->truth_info.channels) + tess_denoise_has_map(file);
    const size_t sample = file->truth_info.dtype == TESS_F64 ? sizeof(double) : sizeof(float),
                 row = tess_align_size((size_t)(info->width * most) * sample, 64);
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
    const tess_model_net *model = &file->model->model;
    if (model->channels != colours && model->channels != 1) {
        const tess_axes_words axes = tess_denoise_axes_words(&file->info);
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has %lld colour channels, but the model %s takes %lld%s%s", file->input,
                         (long long)colours, name, (long long)model->channels, axes.text[0] ? "; " : "",
                         axes.text);
    }
    if (model->volume && file->info.depth == 0)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: is an image, but the kernels of the model %s are 3-D; it takes volumes, arrays of "
            "(depth, height, width)",
            file->input, name);
    if (settings->sigma_map && model->volume)
        return tess_fail(error, TESS_BAD_OPTION, "`sigma_map` %s: a 3-D model takes one noise level",
                         settings->sigma_map);
    if (settings->sigma_map && !model->noise_map)
        return tess_fail(error, TESS_BAD_OPTION, "`sigma_map` %s: the model %s takes no noise level",
                         settings->sigma_map, name);
    return TESS_OK;
}

void tess_denoise_set_slice(const tess_denoise_file *file, int64_t slice, tess_pixels *pixels)
{
    tess_denoise_sigmas sigmas;
    tess_denoise_slice_sigma(file, slice, &sigmas);
    for (int c = 0; c < TESS_NOISE_CHANNELS; c++)
        pixels->sigma[c] =
            (float)(file->sigma_estimated && pixels->planes > 1 ? sigmas.channel[c] : sigmas.all);
    pixels->all_sigma = pixels->planes > 1 ? file->band_sigma : NULL;
}

tess_pixels tess_denoise_pixels(const tess_engine *engine, const tess_denoise_settings *settings,
                                const tess_denoise_file *file)
{
    const tess_model_net *model = &file->model->model;
    tess_pixels pixels = {.image = file->prepared ? tess_prepared_info(file) : file->info,
                          .colours = tess_denoise_colours(&file->info),
                          .planes = 1};
    if (model->channels == 1)
        pixels.planes = pixels.colours;
    pixels.noise_map = model->noise_map;
    pixels.float_out = file->prepared || file->truth != NULL;
    tess_denoise_set_slice(file, 0, &pixels);
    pixels.sigma_channel = tess_denoise_has_map(file);
    pixels.add_noise = file->prepared ? 0 : (float)settings->add_noise;
    pixels.noise = (tess_rng_key){settings->common.seed, file->item, 0};
    pixels.pool = engine->host;
    return pixels;
}

/* Chooses the output's type: the input's, or the widest type of the format if that does not support it. */
static tess_status choose_output(tess_denoise_file *file, tess_error *error)
{
    static const tess_dtype narrower[] = {TESS_U16, TESS_U8};
    file->out_info = file->info;
    const tess_image_info *in = &file->info;
    const bool numbers = in->has_nodata || in->says & TESS_SAYS_SCALE; /* mean something by themselves */
    if (tess_writer_is_picture(file->output) || (in->fractions && !numbers))
        file->out_info.full_scale = tess_samples_full_scale(in->dtype);
    const tess_status status = tess_writer_check(file->output, &file->out_info, error);
    for (int i = 0; i < 2 && status == TESS_BAD_OPTION; i++) {
        tess_image_info trial = file->info;
        trial.dtype = narrower[i];
        trial.full_scale = tess_samples_full_scale(trial.dtype);
        if (tess_dtype_size(trial.dtype) > tess_dtype_size(file->info.dtype) ||
            trial.dtype == file->info.dtype || tess_writer_check(file->output, &trial, NULL) != TESS_OK)
            continue;
        file->out_info = trial;
        return TESS_OK;
    }
    return status;
}

/* "3 x 480 x 640 with 1 channel(s)". */
static void size_words(const tess_image_info *info, char *words, size_t bytes)
{
    char depth[32] = "";
    if (info->depth)
        snprintf(depth, sizeof depth, "%lld x ", (long long)info->depth);
    snprintf(words, bytes, "%s%lld x %lld with %lld channel(s)", depth, (long long)info->height,
             (long long)info->width, (long long)tess_denoise_colours(info));
}

static tess_status describe_truth(const tess_engine *engine, tess_denoise_file *file, tess_error *error)
{
    tess_reader *reader = NULL;
    TESS_TRY(tess_denoise_open(engine->memory, file->truth, file->axes, file->info.dtype, &reader, error));
    const tess_image_info truth = file->truth_info = *tess_reader_info(reader), *info = &file->info;
    tess_reader_close(reader);
    if (truth.height != info->height || truth.width != info->width || truth.depth != info->depth ||
        tess_denoise_colours(&truth) != tess_denoise_colours(info)) {
        char theirs[96], mine[96];
        size_words(&truth, theirs, sizeof theirs);
        size_words(info, mine, sizeof mine);
        return tess_fail(error, TESS_BAD_INPUT, "%s: is %s, %s is %s", file->truth, theirs, file->input,
                         mine);
    }
    return TESS_OK;
}

/* A map has no axis of channels, or one of size 1 at the place where the image has its channels. */
static tess_status open_map(const tess_engine *engine, const tess_denoise_settings *settings,
                            const tess_denoise_file *file, tess_reader **reader, tess_error *error)
{
    const tess_axes without = file->info.depth ? TESS_AXES_DHW : TESS_AXES_HW;
    if (file->axes != TESS_AXES_AUTO &&
        tess_reader_open_axes(engine->memory, settings->sigma_map, without, reader, NULL) == TESS_OK)
        return TESS_OK;
    return tess_reader_open_axes(engine->memory, settings->sigma_map, file->axes, reader, error);
}

static tess_status describe_map(tess_engine *engine, const tess_denoise_settings *settings,
                                tess_denoise_file *file, tess_error *error)
{
    if (!settings->sigma_map)
        return TESS_OK;
    tess_reader *reader = NULL;
    TESS_TRY(open_map(engine, settings, file, &reader, error));
    const tess_image_info map = file->map_info = *tess_reader_info(reader), *info = &file->info;
    tess_reader_close(reader);
    if (map.height != info->height || map.width != info->width || map.depth != info->depth ||
        map.channels != 1) {
        char theirs[96], mine[96];
        tess_image_info wanted = *info;
        wanted.channels = 1, wanted.alpha = false;
        size_words(&map, theirs, sizeof theirs);
        size_words(&wanted, mine, sizeof mine);
        return tess_fail(error, TESS_BAD_INPUT, "`sigma_map` %s: is %s; a map of noise levels for %s is %s",
                         settings->sigma_map, theirs, file->input, mine);
    }
    return tess_denoise_check_map(engine, settings, file, error);
}

bool tess_denoise_sigma_is_auto(const tess_denoise_settings *settings)
{
    return !settings->sigma_map &&
           (settings->sigma == TESS_SIGMA_AUTO || (settings->sigma < 0 && settings->add_noise <= 0));
}

/* Finds scale, noise level and holes, with a pass over the samples if the header does not say. */
static tess_status describe_samples(tess_engine *engine, const tess_denoise_settings *settings,
                                    tess_denoise_file *file, tess_error *error)
{
    const bool takes_sigma = file->model->model.noise_map;
    file->sigma_estimated = takes_sigma && tess_denoise_sigma_is_auto(settings);
    if (file->info.masked || file->info.zeros_are_holes || file->info.dtype == TESS_F32 ||
        file->sigma_estimated || tess_denoise_scale_needs_look(settings, &file->info))
        TESS_TRY(tess_denoise_look_at(engine, settings, file, error));
    else
        TESS_TRY(tess_denoise_find_equal(engine, settings, file, error));
    TESS_TRY(tess_denoise_set_scale(settings, file, error));
    if (!takes_sigma || settings->sigma_map)
        file->sigma = -1;
    else if (!file->sigma_estimated)
        file->sigma = settings->sigma >= 0 ? settings->sigma : settings->add_noise;
    if (file->sigma_estimated)
        TESS_TRY(tess_denoise_use_estimate(engine, settings, file, error));
    else
        TESS_TRY(tess_denoise_choose_together(engine, settings, file, error));
    bool quiet = file->sigma == 0, weak = false; /* quiet: something has no noise, and must not change */
    for (int64_t c = 0; c < tess_denoise_colours(&file->info) && file->sigma_estimated; c++) {
        const double level = tess_denoise_band_sigma(file, file->channel_sigma, c);
        quiet = quiet || level == 0;
        weak = weak || tess_denoise_is_weak(settings, file, level);
    }
    file->dithers = tess_denoise_dithers(settings, file);
    file->prepared = quiet || weak || tess_denoise_rgb_order(file) || file->dithers || file->info.masked ||
                     file->info.zeros_are_holes || tess_denoise_has_hidden(file) || file->info.depth > 0 ||
                     tess_denoise_has_map(file) || settings->strength < 1 || file->info.dtype == TESS_F64 ||
                     file->out_info.dtype != file->info.dtype || file->scale.low != 0 ||
                     file->scale.high != tess_samples_full_scale(file->info.dtype) ||
                     file->info.full_scale != tess_samples_full_scale(file->info.dtype);
    return TESS_OK;
}

void tess_denoise_request(const tess_engine *engine, const tess_denoise_settings *settings,
                          tess_denoise_file *file)
{
    tess_denoise_sink sink;
    tess_prepared_rows rows;
    const tess_pixels pixels = tess_denoise_pixels(engine, settings, file);
    const size_t samples = (size_t)(pixels.image.width * pixels.image.channels),
                 size = tess_dtype_size(pixels.image.dtype),
                 sink_bytes = tess_denoise_carve_sink(file, NULL, &sink),
                 prepared_bytes = tess_prepared_carve(file, NULL, &rows);
    file->request = (tess_cut_request){
        .size = {1, file->info.height, file->info.width},
        .planes = pixels.planes,
        .in_row_bytes = samples * size,
        .out_row_bytes = samples * (pixels.float_out ? sizeof(float) : size),
        .row_scratch_bytes = tess_pixels_scratch(&pixels, tess_pool_threads(engine->host)),
        .fixed_io_bytes = prepared_bytes ? tess_align_size(sink_bytes, 64) + prepared_bytes : sink_bytes,
        .held_bytes = file->info.held_bytes + tess_writer_held_bytes(file->output, &file->out_info) +
                      file->truth_info.held_bytes + tess_prepared_held(file),
        .tile = {0, settings->tile_height, settings->tile_width},
        .halo = {0, settings->halo, settings->halo},
        .batch = settings->batch,
        .asked_limit = settings->common.memory_limit};
    if (engine->separate_memory)
        request_separate_memory(&pixels, file);
}

tess_status tess_denoise_describe(tess_engine *engine, const tess_denoise_settings *settings,
                                  tess_denoise_file *file, tess_error *error)
{
    tess_reader *reader = NULL;
    TESS_TRY(tess_axes_of(settings->axes, &file->axes, error));
    TESS_TRY(tess_reader_open_axes(engine->memory, file->input, file->axes, &reader, error));
    file->info = *tess_reader_info(reader);
    tess_reader_close(reader);
    int64_t row, pixels;
    if (!tess_mul_i64(file->info.width, file->info.channels, &row) || row > WIDEST ||
        !tess_mul_i64(tess_denoise_rows(&file->info), file->info.width, &pixels))
        return tess_fail(error, TESS_BAD_INPUT, "%s: rows of %lld pixels are more than can be planned for",
                         file->input, (long long)file->info.width);
    if (file->info.several_nodata)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "%s: its bands have different nodata values, which the result could not hold; give them one "
            "(gdalwarp -dstnodata), or denoise them one by one (gdal_translate -b N)",
            file->input);
    TESS_TRY(tess_denoise_find_two_values(engine, settings, file, error));
    TESS_TRY(tess_denoise_find_zeros(engine, settings, file, error));
    TESS_TRY(tess_denoise_find_exact(engine, settings, file, error)); /* of the samples that are no holes */
    TESS_TRY(choose_output(file, error));
    if (file->truth)
        TESS_TRY(describe_truth(engine, file, error));
    TESS_TRY(model_of(engine, settings, file, error));
    TESS_TRY(describe_map(engine, settings, file, error));
    tess_denoise_note_axes(settings, file); /* before an error that a wrong order of axes may cause */
    TESS_TRY(describe_samples(engine, settings, file, error));
    tess_denoise_note_samples(settings, file);
    tess_denoise_request(engine, settings, file);
    return TESS_OK;
}
