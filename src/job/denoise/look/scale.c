/* Chooses the scale of an image for the network: which sample means 0 and which means 1. Sigma is given on this
 * scale. */
#include <math.h>
#include <string.h>

#include "job/common/note.h"
#include "job/denoise/denoise.h"
#include "job/denoise/look/below.h"
#include "job/denoise/look/outliers.h"

/* largest ratio between ranges of bands, and between their noise, that counts as similar */
static const double ALIKE = 4;

static bool by_type(tess_dtype dtype)
{
    return dtype == TESS_U8 || dtype == TESS_U16;
}

/* Whether values on this scale can be computed: samples up to float32 with floats, doubles with doubles. */
static bool usable(double low, double high, tess_dtype dtype)
{
    const double span = high - low;
    return high > low && isnormal(span) && isnormal(1 / span) &&
           (dtype == TESS_F64 || (isnormal((float)span) && isnormal((float)(1 / span))));
}

static tess_status refuse_range(double low, double high, tess_error *error)
{
    return tess_fail(error, TESS_BAD_OPTION,
                     "`range` %g,%g: the first is the sample that means 0, the second, larger one means 1; "
                     "float32 must be able to hold both and their difference",
                     low, high);
}

tess_status tess_denoise_check_samples(const tess_denoise_settings *s, tess_error *error)
{
    /* Unscaled floats may exceed 1, and so may their noise. */
    const double most = s->range == TESS_RANGE_TYPE ? HUGE_VAL : 1;
    if (s->sigma > most || isnan(s->sigma))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "`sigma` %g: a noise level is at most 1 on the [0,1] scale; write %g/255 for %g of 255", s->sigma,
            s->sigma, s->sigma);
    if (!(s->add_noise >= 0) || s->add_noise > most)
        return tess_fail(error, TESS_BAD_OPTION, "`add_noise` %g: use 0 to 1, on the [0,1] scale",
                         s->add_noise);
    if (!(s->strength >= 0 && s->strength <= 1))
        return tess_fail(error, TESS_BAD_OPTION, "`strength` %g: use 0 (the input) to 1 (the denoised image)",
                         s->strength);
    if (s->range == TESS_RANGE_GIVEN &&
        !(isfinite(s->range_low) && isfinite(s->range_high) && usable(s->range_low, s->range_high, TESS_F64)))
        return refuse_range(s->range_low, s->range_high, error);
    return TESS_OK;
}

bool tess_denoise_scale_needs_look(const tess_denoise_settings *s, const tess_image_info *info)
{
    return s->range == TESS_RANGE_GIVEN || info->dtype != TESS_U8;
}

bool tess_denoise_scale_is_known(const tess_denoise_settings *s, const tess_image_info *info)
{
    return s->range != TESS_RANGE_AUTO || by_type(info->dtype);
}

/* Noise takes an image on [0,1] beyond its ends: most values must be near, within what the noise explains if it is
 * known, and none far. An image centred on 0 does not count as one. */
static bool looks_like_unit(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    const tess_denoise_look *look = &file->look;
    const double sigma = file->sigma_estimated ? look->noise.sigma : s->sigma > 0 ? s->sigma : 0.05;
    return look->low_tail >= fmax(-0.5, -3 * sigma - 0.02) && look->high_tail <= 1.5 && look->low >= -2 &&
           look->high <= 3 && !(file->sigma_estimated && tess_denoise_lies_below(s, file));
}

static void set_scale(tess_denoise_file *file, double low, double high, const char *origin)
{
    file->scale = (tess_scale){low, high};
    file->scale_origin = origin;
}

double tess_denoise_sample_of(const tess_denoise_file *file, double value)
{
    const tess_scale *unit = &file->look.unit;
    const double sample = unit->low + value * (unit->high - unit->low);
    const bool whole = file->info.dtype != TESS_F32 && file->info.dtype != TESS_F64;
    return whole ? rint(sample) : sample; /* not exact: values are floats */
}

static tess_sample_words words_of(const tess_denoise_file *file, double value)
{
    return tess_denoise_words(file, tess_denoise_sample_of(file, value));
}

/* A few samples far from all others would determine the range, and everything else would have almost no contrast. */
static tess_status doubt_outliers(const tess_denoise_file *file, tess_error *error)
{
    const tess_denoise_look *look = &file->look;
    if (!look->outliers && !look->apart)
        return TESS_OK;
    char text[320];
    tess_denoise_outliers_text(file, text, sizeof text);
    return tess_fail(error, TESS_BAD_OPTION, "%s: %s, else give `range` LOW,HIGH", file->input, text);
}

/* Whether all channels have similar noise, as far as it was estimated. */
static bool noise_is_alike(const tess_denoise_look *look, int64_t channels)
{
    double least = INFINITY, most = 0;
    for (int64_t c = 0; c < channels; c++) {
        const tess_noise_level *level = &look->noise.channel[c];
        if (level->confidence == TESS_NOISE_UNKNOWN)
            continue;
        least = fmin(least, level->sigma);
        most = fmax(most, level->sigma);
    }
    return most <= ALIKE * least;
}

/* The three channels of a photograph belong together, however dark one of them is: 8 bits, 16 bits if the file says
 * that they are red, green and blue, and floats on [0,1] with similar noise in each. Channels of other images may
 * have different units. */
static bool is_photograph(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    const tess_image_info *info = &file->info;
    if (tess_denoise_colours(info) != 3)
        return false;
    return info->dtype == TESS_U8 || (info->dtype == TESS_U16 && info->rgb) ||
           (info->dtype == TESS_F32 && looks_like_unit(s, file) && noise_is_alike(&file->look, 3));
}

static double band_low(const tess_denoise_look *look, int64_t band)
{
    return look->bands ? look->bands[band].low : look->channel_low[band];
}

static double band_high(const tess_denoise_look *look, int64_t band)
{
    return look->bands ? look->bands[band].high : look->channel_high[band];
}

/* A band that fills a small part of the common range has almost no contrast for the network, and its noise is far
 * below that of the others. */
static tess_status doubt_bands(const tess_denoise_settings *s, const tess_denoise_file *file,
                               tess_error *error)
{
    const tess_denoise_look *look = &file->look;
    const int64_t bands = tess_denoise_colours(&file->info);
    double least = INFINITY;
    int64_t at = 0;
    for (int64_t c = 0; c < bands && (look->bands || c < TESS_NOISE_CHANNELS) && look->found > 0; c++) {
        const double span = band_high(look, c) - band_low(look, c);
        if (!(span > 0 && span < least)) /* a constant band has nothing to lose */
            continue;
        least = span;
        at = c;
    }
    if (look->high - look->low <= ALIKE * least || is_photograph(s, file))
        return TESS_OK;
    const char *one_band = !tess_axes_name(file->info.axes)[0] ? "gdal_translate -b N"
                           : file->info.axes == TESS_AXES_CHW  ? "array[N - 1] in Python"
                                                               : "array[..., N - 1] in Python";
    return tess_fail(
        error, TESS_BAD_OPTION,
        "%s: its bands have different ranges: samples go from %s to %s, those of band %lld from %s to "
        "%s; denoise them one by one (%s), or give `range` LOW,HIGH if they have one unit",
        file->input, words_of(file, look->low).text, words_of(file, look->high).text, (long long)at + 1,
        words_of(file, band_low(look, at)).text, words_of(file, band_high(look, at)).text, one_band);
}

/* A given sigma would be a fraction of a span that the user has not seen, so it is refused. */
static tess_status scale_from_data(const tess_denoise_settings *s, tess_denoise_file *file, tess_error *error)
{
    const tess_denoise_look *look = &file->look;
    const bool takes_sigma = file->model->model.noise_map;
    const char *given = s->sigma_map                  ? "the noise levels of `sigma_map` have"
                        : s->add_noise > 0            ? "`add_noise` has"
                        : takes_sigma && s->sigma > 0 ? "`sigma` has"
                                                      : NULL;
    const bool exact = file->exact.high > file->exact.low && !file->exact_inside && look->defect_count == 0;
    const double low = exact ? file->exact.low : tess_denoise_sample_of(file, look->low),
                 high = exact ? file->exact.high : tess_denoise_sample_of(file, look->high);
    const tess_sample_words low_words = tess_denoise_words(file, low),
                            high_words = tess_denoise_words(file, high);
    if (given)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s: its samples go from %s to %s, so that %s no scale; give `range` LOW,HIGH (the "
                         "samples that mean 0 and 1), or leave sigma to be estimated",
                         file->input, low_words.text, high_words.text, given);
    TESS_TRY(doubt_bands(s, file, error));
    TESS_TRY(doubt_outliers(file, error));
    if (!takes_sigma)
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%s: the model removes one noise level on the [0,1] scale, here %s to %s; give `range` "
                  "LOW,HIGH if that is not your samples' scale",
                  file->input, low_words.text, high_words.text);
    if (high > low && !usable(low, high, file->info.dtype))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: its samples go from %g to %g, beyond what float32 can scale", file->input, low,
                         high);
    set_scale(file, low, high > low ? high : low + 1, "data");
    return TESS_OK;
}

/* Samples far from all others may mark missing data, which would spoil their surroundings. */
static void note_outliers(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    char text[320];
    tess_denoise_outliers_text(file, text, sizeof text);
    tess_note(&s->common, TESS_NOTE_WARNING, "%s: %s", file->input, text);
}

/* Warns of samples outside a range that was given: markers of missing data, or data below it, because networks were
 * not trained on values below 0. */
static void doubt_ends(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    static const double BELOW = -0.25, ABOVE = 1.5;
    const tess_denoise_look *look = &file->look;
    const bool marks = look->outliers && (look->outlier < BELOW || look->outlier > ABOVE);
    if (marks)
        note_outliers(s, file);
    /* Without the outliers if they are below. */
    const double low = marks && look->outlier < BELOW ? look->bulk_low : look->low;
    if ((!marks && tess_denoise_lies_below(s, file)) ||
        (look->found > 0 && look->low_tail < BELOW && low < BELOW))
        tess_denoise_note_below(s, file, low);
}

/* Highlights of floats on [0,1]: they keep their values, unless the output has integers. */
static void note_highlights(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    static const double NOISE = 6; /* levels that noise alone may lie above white */
    const tess_denoise_look *look = &file->look;
    const double sigma = file->sigma_estimated ? look->noise.sigma : s->sigma > 0 ? s->sigma : 0.05;
    if (file->info.dtype == TESS_F32 && look->high > 1.02 + NOISE * sigma)
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%s: its samples are taken as they are, 1 as white; some go up to %s, and %s; `range` 0,%s "
                  "takes the largest as white",
                  file->input, words_of(file, look->high).text,
                  tess_denoise_rescales(file) ? "are cut off at 1 in the output's integers"
                                              : "are kept above 1",
                  words_of(file, look->high).text);
}

/* Warns if the data does not fit a scale that was not chosen from it. */
static void doubt_contrast(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    const tess_denoise_look *look = &file->look;
    const double full = file->info.full_scale;
    if (file->info.dtype == TESS_U16 && look->high > 0 && look->high < 0.25)
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: its largest sample is %.0f of %.0f; if that is all that there can be, give `range` 0,%.0f",
            file->input, look->high * full, full, exp2(ceil(log2(rint(look->high * full) + 1))) - 1);
    else if (look->outliers)
        note_outliers(s, file);
    else
        note_highlights(s, file);
    if (!look->outliers &&
        tess_denoise_lies_below(s, file)) /* a level is given, else the range would be that of the data */
        tess_denoise_note_below(s, file, look->low);
}

bool tess_denoise_scale_is_of_type(const tess_denoise_file *file)
{
    return strcmp(file->scale_origin, "type") == 0 || strcmp(file->scale_origin, "as it is") == 0;
}

/* What the samples mean: sample * scale + offset. Floats beside samples with a scale mean themselves. */
static bool meaning_of(const tess_image_info *info, const tess_image_info *other, double *scale,
                       double *offset)
{
    const bool says = info->says & TESS_SAYS_SCALE,
               floats = info->dtype == TESS_F32 || info->dtype == TESS_F64;
    *scale = says ? info->scale : 1, *offset = says ? info->offset : 0;
    return (says || (floats && (other->says & TESS_SAYS_SCALE))) && isnormal(*scale) && isfinite(*offset);
}

bool tess_denoise_truth_has_units(const tess_denoise_file *file)
{
    double scale, offset;
    return meaning_of(&file->info, &file->truth_info, &scale, &offset) &&
           meaning_of(&file->truth_info, &file->info, &scale, &offset);
}

tess_scale tess_denoise_truth_scale(const tess_denoise_file *file)
{
    const tess_image_info *input = &file->info, *truth = &file->truth_info;
    double scale, offset, truth_scale, truth_offset;
    if (!tess_denoise_truth_has_units(file))
        return tess_denoise_scale_is_of_type(file) ? (tess_scale){0, truth->full_scale} : file->scale;
    (void)meaning_of(input, truth, &scale, &offset);
    (void)meaning_of(truth, input, &truth_scale, &truth_offset);
    if (truth_scale == scale && truth_offset == offset)
        return file->scale;
    return (tess_scale){(file->scale.low * scale + offset - truth_offset) / truth_scale,
                        (file->scale.high * scale + offset - truth_offset) / truth_scale};
}

tess_status tess_denoise_set_scale(const tess_denoise_settings *s, tess_denoise_file *file, tess_error *error)
{
    static const double LITTLE = 0.25; /* contrast below which networks do poorly */
    const tess_image_info *info = &file->info;
    const tess_denoise_look *look = &file->look;
    const double full = info->full_scale;
    const bool unit =
        by_type(info->dtype) || look->found == 0 || (info->dtype == TESS_F32 && looks_like_unit(s, file));
    if (s->range == TESS_RANGE_GIVEN && !usable(s->range_low, s->range_high, info->dtype))
        return refuse_range(s->range_low, s->range_high, error);
    /* Noise that is added is on the scale of the file. */
    file->own_scales = s->range == TESS_RANGE_AUTO && file->sigma_estimated && s->add_noise <= 0 &&
                       !file->model->model.volume;
    file->shown =
        s->range == TESS_RANGE_GIVEN ? (tess_scale){s->range_low, s->range_high} : (tess_scale){0, full};
    if (s->range == TESS_RANGE_GIVEN)
        set_scale(file, s->range_low, s->range_high, "given");
    else if (s->range == TESS_RANGE_TYPE)
        set_scale(file, 0, full, "type");
    else if (!unit || (file->sigma_estimated && look->found > 0 && !look->outliers &&
                       look->high > look->low && look->high - look->low < LITTLE)) {
        TESS_TRY(scale_from_data(s, file, error));
        file->shown = unit ? file->shown : file->scale;
        return TESS_OK;
    } else if (file->model->model.channels > 1 && look->looked)
        TESS_TRY(doubt_bands(s, file, error)); /* they share one noise level */
    if (s->range == TESS_RANGE_AUTO)
        set_scale(file, 0, full, info->dtype == TESS_F32 ? "as it is" : "type");
    if (look->looked && s->range != TESS_RANGE_AUTO)
        doubt_ends(s, file);
    else if (look->looked && look->found > 0 && info->dtype != TESS_U8)
        doubt_contrast(s, file);
    return TESS_OK;
}
