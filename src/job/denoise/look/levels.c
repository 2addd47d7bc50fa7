/* Converts the estimated noise to the network's input: one level, or a level for each pixel if one would be wrong.
 * Photon noise gets a level from the brightness around the pixel, which on photographs is 0.8 to 5.1 dB better than
 * the root mean square in linear light, and 0.1 to 0.7 dB where they are encoded in sRGB. The slices of a volume have their own levels. A network has one level for all
 * colours: if their noise differs much, the quietest colour would lose detail, so each is denoised separately. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/denoise/look/levels.h"
#include "job/denoise/look/slices.h"
#include "job/denoise/look/together.h"

/* ratio of the largest to the least level of the channels, from which denoising each separately is better */
static const double MUCH = 4;
/* the same of slices, from which one level for all is not enough */
static const double DIFFER = 1.5;

bool tess_denoise_has_map(const tess_denoise_file *file)
{
    return file->map_info.width > 0 || file->levels == TESS_LEVELS_BY_BRIGHTNESS;
}

/* Factor from the look's scale to the file's, or to that of a slice. */
static double factor_to(const tess_denoise_file *file, tess_scale scale)
{
    return (file->look.unit.high - file->look.unit.low) / (scale.high - scale.low);
}

static double factor_of(const tess_denoise_file *file)
{
    return factor_to(file, file->scale);
}

void tess_denoise_levels_of(const tess_denoise_file *file, int64_t slice, const float *means, float *levels)
{
    const tess_noise_result *noise = &file->look.noise;
    const tess_scale scale = tess_denoise_slice_scale(file, slice);
    const double factor = factor_to(file, scale),
                 shift = (scale.low - file->look.unit.low) / (file->look.unit.high - file->look.unit.low);
    const int64_t colours = tess_denoise_colours(&file->info);
    tess_noise_level of[TESS_NOISE_CHANNELS];
    for (int64_t c = 0; c < tess_min_i64(colours, TESS_NOISE_CHANNELS); c++)
        of[c] = noise->slices ? noise->slices[slice * colours + c] : noise->channel[c];
    for (int64_t x = 0; x < file->info.width; x++) {
        double sum = 0;
        for (int64_t c = 0; c < colours; c++) {
            const tess_noise_level *level = &of[c];
            /* Where no photon was counted the rate is still above zero: a quarter of one photon is assumed. */
            const double value =
                fmax((double)means[x * colours + c] / factor + shift, level->zero + level->gain / 4);
            const double sigma =
                level->confidence == TESS_NOISE_UNKNOWN ? noise->sigma : tess_noise_at(level, value);
            sum += sigma * sigma / (double)colours;
        }
        levels[x] = (float)(sqrt(sum) * factor);
    }
}

void tess_denoise_slice_sigma(const tess_denoise_file *file, int64_t slice, tess_denoise_sigmas *to)
{
    const tess_noise_level *levels = file->look.noise.slices;
    const int64_t colours = tess_min_i64(tess_denoise_colours(&file->info), TESS_NOISE_CHANNELS);
    const double factor = factor_to(file, tess_denoise_slice_scale(file, slice));
    to->all = file->sigma;
    memcpy(to->channel, file->channel_sigma, sizeof to->channel);
    if (!levels || !file->sigma_estimated || file->levels == TESS_LEVELS_ONE)
        return;
    double sum = 0;
    for (int64_t c = 0; c < colours; c++) {
        const tess_noise_level *level = &levels[slice * colours + c];
        to->channel[c] = level->confidence != TESS_NOISE_UNKNOWN ? level->sigma * factor
                                                                 : to->channel[c] * factor / factor_of(file);
        sum += to->channel[c] * to->channel[c] / (double)colours;
    }
    to->all = sqrt(sum);
}

/* Whether levels differ so much that one network run for all channels would remove detail from the quietest. */
static bool channels_differ(const double *sigma, int64_t channels, double *least, double *largest)
{
    *least = INFINITY, *largest = 0;
    for (int64_t c = 0; c < channels && c < TESS_NOISE_CHANNELS; c++) {
        *least = fmin(*least, sigma[c]);
        *largest = fmax(*largest, sigma[c]);
    }
    return *largest > MUCH * *least;
}

/* Number of slices in which channels differ, and the first of them. */
static int64_t slices_differ(const tess_denoise_file *file, int64_t *first)
{
    const int64_t colours = tess_denoise_colours(&file->info);
    int64_t count = 0;
    for (int64_t z = 0; z < file->info.depth; z++) {
        const tess_noise_level *levels = &file->look.noise.slices[z * colours];
        double sigma[TESS_NOISE_CHANNELS], least, largest;
        for (int64_t c = 0; c < colours && c < TESS_NOISE_CHANNELS; c++)
            sigma[c] = levels[c].sigma;
        if (channels_differ(sigma, colours, &least, &largest) && count++ == 0)
            *first = z;
    }
    return count;
}

/* Slices have their own levels, but one model: that which suits most of them. */
static bool to_be_separated(const tess_denoise_settings *s, const tess_denoise_file *file, double *least,
                            double *largest)
{
    const int64_t colours = tess_denoise_colours(&file->info), half = file->info.depth / 2;
    int64_t first = 0;
    const bool differ = channels_differ(file->channel_sigma, colours, least, largest);
    if (file->model->model.channels == 1)
        return false;
    if (!file->look.noise.slices || file->model->model.volume)
        return differ;
    const int64_t count = slices_differ(file, &first);
    if (count > 0 && count <= half)
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: the noise of the channels differs more than fourfold in %lld of %lld slices, the first of "
            "them slice %lld, counted from 0; denoise these by themselves, as images",
            file->input, (long long)count, (long long)file->info.depth, (long long)first);
    return count > half;
}

static tess_status separate_channels(tess_engine *engine, const tess_denoise_settings *s,
                                     tess_denoise_file *file, tess_error *error)
{
    double least, largest;
    if (!to_be_separated(s, file, &least, &largest))
        return TESS_OK;
    if (s->model) {
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: the noise of its channels goes from %.3g to %.3g, and the model takes one level for all; a "
            "gray model, e.g. `model` drunet-gray-small, denoises each by its own",
            file->input, least, largest);
        return TESS_OK;
    }
    tess_note(&s->common, TESS_NOTE_WARNING,
              "%s: the noise of its channels goes from %.3g to %.3g: each is denoised by itself; `model` "
              "drunet-color-small takes them together",
              file->input, least, largest);
    return tess_engine_bundled_of(engine, 1, &file->model, error);
}

/* Notes how much the noise of the slices differs. */
static void report_slices(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    const tess_noise_level *levels = file->look.noise.slices;
    const bool together = file->model->model.volume;
    const int64_t count = file->info.depth * tess_denoise_colours(&file->info);
    double least = INFINITY, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        least = fmin(least, levels[i].sigma * factor_of(file));
        largest = fmax(largest, levels[i].sigma * factor_of(file));
    }
    tess_note(&s->common, together && largest > DIFFER * least ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL,
              "%s: the noise of its slices goes from %.3g to %.3g%s", file->input, least, largest,
              together ? ", but a 3-D model takes one level" : ": each has its own level");
    const int64_t own = tess_denoise_own_scales(file);
    if (own > 0)
        tess_note(&s->common, TESS_NOTE_DETAIL,
                  "%s: %lld of %lld slices fill less than a quarter of the range from %s to %s: each has the "
                  "range of its own samples",
                  file->input, (long long)own, (long long)file->info.depth,
                  tess_denoise_words(file, file->scale.low).text,
                  tess_denoise_words(file, file->scale.high).text);
}

static void choose_levels(tess_denoise_file *file)
{
    const tess_noise_result *noise = &file->look.noise;
    const tess_model_net *model = &file->model->model;
    const int64_t colours = tess_denoise_colours(&file->info);
    bool varies = false; /* in a volume: in some slice */
    for (int64_t c = 0; c < colours && c < TESS_NOISE_CHANNELS; c++)
        varies = varies || noise->channel[c].gain > 0 || noise->channel[c].encoded;
    file->levels = TESS_LEVELS_ONE;
    if (!model->volume && varies && model->channels == colours)
        file->levels = TESS_LEVELS_BY_BRIGHTNESS;
    else if (!model->volume && noise->slices)
        file->levels = TESS_LEVELS_BY_SLICE;
}

/* Why an estimate is rough, and what to do. */
static const char *why_rough(const tess_denoise_file *file)
{
    static const double HARDLY = 0.5 / 255;
    static const int64_t SMALL = 160 * 160;
    const tess_noise_result *noise = &file->look.noise;
    bool uneven = false, mosaic = false, patchy = false;
    for (int c = 0; c < TESS_NOISE_CHANNELS; c++) {
        uneven = uneven || noise->channel[c].uneven;
        mosaic = mosaic || noise->channel[c].mosaic;
        patchy = patchy || noise->channel[c].patchy;
    }
    return mosaic && tess_denoise_colours(&file->info) > 1
               ? " roughly: a pattern repeats every 2 pixels, as demosaicing may leave one, which is not "
                 "counted; look at the result, or give `sigma`"
           : mosaic ? " roughly: a pattern repeats every 2 pixels, as the colours of a raw sensor do, which "
                      "networks take for noise; make an RGB image of it first (demosaic), or give `sigma`"
           : file->look.pattern ? " roughly: it has the strength of the whole image, so that it may be a "
                                  "regular pattern, such as "
                                  "hatching; look at the result, or give `sigma`"
           : patchy ? " roughly: parts of the image have different noise, and this is its root mean square; "
                      "look at the result, or give `sigma` or a map of levels"
           : uneven ? " roughly: dark and bright areas differ; look at the result, or give `sigma`"
           : file->sigma < HARDLY
               ? " roughly: there is hardly any, and texture may be taken for it, or it is not white "
                 "(demosaiced, resampled, JPEG) and stronger than this; look at the result, or give `sigma`"
           : file->info.height * file->info.width < SMALL
               ? " roughly: a small image; look at the result, or give `sigma`"
               : " roughly: few flat areas, parts of the image that differ, or noise that is not white "
                 "(demosaiced, resampled, JPEG) and stronger than this; look at the result, or give `sigma`";
}

static void report(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    const tess_noise_result *noise = &file->look.noise;
    const bool rough = noise->confidence == TESS_NOISE_ROUGH;
    if (file->look.found == 0)
        tess_note(&s->common, TESS_NOTE_WARNING, "%s: it has no data: nothing is changed", file->input);
    else if (file->sigma == 0 && file->look.low == file->look.high)
        tess_note(&s->common, TESS_NOTE_WARNING, "%s: all its samples are equal: nothing is changed",
                  file->input);
    else if (file->sigma == 0)
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%s: no noise was found in it, so nothing is changed; give `sigma` if there is some",
                  file->input);
    else
        tess_note(&s->common, rough ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL,
                  "%s: sigma %.4g = %.3g/255, estimated%s%s", file->input, file->sigma, 255 * file->sigma,
                  file->levels != TESS_LEVELS_BY_BRIGHTNESS ? ""
                  : noise->slices                           ? ", by brightness, in each slice by its own gain"
                  : noise->channel[0].encoded               ? ", by brightness, as in an encoded photograph"
                                                            : ", growing with the brightness",
                  rough ? why_rough(file) : "");
}

bool tess_denoise_is_weak(const tess_denoise_settings *settings, const tess_denoise_file *file, double sigma)
{
    static const double WEAK =
        8.0 / 255; /* stronger noise is worse than what the bundled networks do wrong */
    return file->sigma_estimated && !settings->model && file->look.noise.confidence != TESS_NOISE_UNKNOWN &&
           sigma > 0 && sigma <= WEAK;
}

tess_status tess_denoise_use_estimate(tess_engine *engine, const tess_denoise_settings *settings,
                                      tess_denoise_file *file, tess_error *error)
{
    const tess_denoise_look *look = &file->look;
    if (file->two_values) {
        tess_denoise_keep_two_values(settings, file);
        return TESS_OK;
    }
    if (file->info.depth && tess_denoise_colours(&file->info) > TESS_NOISE_CHANNELS)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "%s: the noise of a volume with more than %d channels is not estimated; give `sigma` "
            "on the [0,1] scale, e.g. `sigma` 25/255, or denoise its slices as images",
            file->input, TESS_NOISE_CHANNELS);
    if (look->noise.confidence == TESS_NOISE_UNKNOWN && look->found > 0)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "%s: its noise level cannot be estimated from the image; give `sigma` on the [0,1] scale, e.g. "
            "`sigma` 25/255",
            file->input);
    file->sigma = look->noise.sigma * factor_of(file);
    for (int64_t c = 0; c < TESS_NOISE_CHANNELS; c++)
        file->channel_sigma[c] = look->noise.channel[c].confidence == TESS_NOISE_UNKNOWN
                                     ? file->sigma
                                     : look->noise.channel[c].sigma * factor_of(file);
    for (int64_t c = 0; file->band_sigma && c < tess_denoise_colours(&file->info); c++)
        file->band_sigma[c] =
            (float)(isnan(file->band_sigma[c]) ? file->sigma : (double)file->band_sigma[c] * factor_of(file));
    TESS_TRY(tess_denoise_choose_together(engine, settings, file, error));
    if (file->sigma > 0)
        TESS_TRY(separate_channels(engine, settings, file, error));
    choose_levels(file);
    if (look->noise.slices)
        report_slices(settings, file);
    report(settings, file);
    return TESS_OK;
}
