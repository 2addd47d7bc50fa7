/* Converts the values of a prepared image to samples of the output's type. */
#include <math.h>
#include <string.h>

#include "job/denoise/run/prepared.h"

static bool is_integer(tess_dtype dtype)
{
    return dtype != TESS_F32 && dtype != TESS_F64;
}

bool tess_denoise_rescales(const tess_denoise_file *file)
{
    const tess_image_info *in = &file->info, *out = &file->out_info;
    return is_integer(out->dtype) && (out->dtype != in->dtype || out->full_scale != in->full_scale);
}

/* The network's range serves the network alone: which brightness a sample has in the output must not depend on
 * it. */
tess_scale tess_prepared_out_scale(const tess_prepared_image *image)
{
    const tess_denoise_file *file = image->file;
    const tess_scale *shown = &file->shown;
    if (!tess_denoise_rescales(file))
        return image->scale;
    const double full = file->out_info.full_scale, span = shown->high - shown->low;
    return (tess_scale){(image->scale.low - shown->low) / span * full,
                        (image->scale.high - shown->low) / span * full};
}

/* Samples of a file that has fewer bits than its type end at their own maximum. */
static void limit_to_maximum(const tess_image_info *out, tess_scale scale, float *values, int64_t count)
{
    if (!is_integer(out->dtype) || out->full_scale >= tess_samples_full_scale(out->dtype))
        return;
    const float most = (float)((out->full_scale - scale.low) / (scale.high - scale.low));
    for (int64_t i = 0; i < count; i++)
        values[i] = values[i] > most ? most : values[i];
}

/* Noise in the samples carries what lies between whole numbers, and with the noise it would be lost. Where that is much
 * of the light, samples are dithered unasked; photographs are bright enough. */
bool tess_denoise_dithers(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    static const double MUCH = 0.01, PART = 0.25;   /* of the light; of the variance of counts */
    static const double COARSE = 0.4, LITTLE = 1.5; /* steps, of what varies; noise, in steps */
    const tess_denoise_look *look = &file->look;
    const tess_image_info *info = &file->info;
    const double span = look->unit.high - look->unit.low, mean = look->unit.low + look->mean * span,
                 sigma = file->sigma * (file->scale.high - file->scale.low);
    if (!is_integer(file->out_info.dtype) || settings->dither)
        return is_integer(file->out_info.dtype);
    const bool photograph = info->dtype == TESS_U8 && tess_denoise_colours(info) == 3,
               counts = look->rounding > MUCH && sigma * sigma >= PART * mean,
               coarse = look->coarseness > COARSE && sigma < LITTLE;
    return file->sigma > 0 && (counts || coarse) && !photograph && !tess_denoise_rescales(file);
}

/* Adds uniform noise of one output step, by the position of the sample, so that rounding errors do not follow the
 * image. */
static void dither(const tess_prepared_image *image, int64_t row, tess_scale scale, float *values,
                   float *draws, int64_t colours)
{
    const int64_t count = image->file->info.width * colours;
    const tess_rng_key key = {image->noise.seed, image->noise.item, 1};
    tess_rng_uniform(key, row * count, count, draws);
    const float step = (float)(1 / (scale.high - scale.low));
    for (int64_t i = 0; i < count; i++)
        values[i] += (draws[i] - 0.5f) * step;
}

/* A hole keeps its bytes; if samples are rescaled, and no number is left for holes, it becomes 0. */
static void keep_sample(const tess_denoise_file *file, const char *from, bool alpha, char *to)
{
    const tess_image_info *in = &file->info, *out = &file->out_info;
    if (in->dtype == out->dtype && !tess_denoise_rescales(file)) {
        memcpy(to, from, tess_dtype_size(in->dtype));
        return;
    }
    float value = alpha || in->zeros_are_holes || is_integer(out->dtype) ? 0 : NAN;
    const double opaque = fmin(tess_samples_opaque(in->dtype, file->look.alpha),
                               is_integer(in->dtype) ? in->full_scale : INFINITY);
    if (alpha)
        tess_samples_to_values(in->dtype, (tess_scale){0, opaque}, from, 1, &value);
    tess_samples_from_float(out->dtype, out->full_scale, &value, 1, to);
}

#define STEP_OFF(type, least, most)                                                                          \
    {                                                                                                        \
        type *at = (type *)sample;                                                                           \
        if ((double)*at == nodata)                                                                           \
            *at = (type)(nodata <= (least) || (up && nodata < (most)) ? *at + 1 : *at - 1);                  \
        break;                                                                                               \
    }

/* A restored sample that equals the nodata value would become a hole, so it takes the next value instead. */
static void step_off_nodata(const tess_image_info *info, float value, tess_scale scale, void *sample)
{
    const double nodata = info->nodata;
    const bool up = (double)value * (scale.high - scale.low) + scale.low >= nodata;
    switch (info->dtype) {
    case TESS_U8:
        STEP_OFF(uint8_t, 0, UINT8_MAX)
    case TESS_U16:
        STEP_OFF(uint16_t, 0, UINT16_MAX)
    case TESS_I16:
        STEP_OFF(int16_t, INT16_MIN, INT16_MAX)
    case TESS_U32:
        STEP_OFF(uint32_t, 0, UINT32_MAX)
    case TESS_I32:
        STEP_OFF(int32_t, INT32_MIN, INT32_MAX)
    case TESS_F64:
        if (*(double *)sample == nodata)
            *(double *)sample = nextafter(nodata, up ? INFINITY : -INFINITY);
        break;
    default:
        if (*(float *)sample == (float)nodata)
            *(float *)sample = nextafterf((float)nodata, up ? INFINITY : -INFINITY);
    }
}

/* Counts restored samples that the output clamps. What lies near the ends is not counted: overshoot of the network, and
 * noise that is left. */
static void count_cut_off(tess_prepared_image *image, const float *values)
{
    static const double NEAR = 0.01; /* of the range */
    const tess_denoise_file *file = image->file;
    const int64_t colours = tess_denoise_colours(&file->info), channels = file->info.channels;
    const double span = image->scale.high - image->scale.low,
                 noise = fmax(image->sigmas.all, 0) * (image->settings->strength < 1 ? 3 : 1),
                 near = NEAR * (file->shown.high - file->shown.low) / span + noise,
                 low = (file->shown.low - image->scale.low) / span - near,
                 high = (file->shown.high - image->scale.low) / span + near;
    for (int64_t i = 0; i < file->info.width * colours; i++) {
        const bool valid = image->rows.valid_again[i / colours * channels + i % colours];
        image->written += valid;
        image->cut_off += valid && ((double)values[i] < low || (double)values[i] > high);
    }
}

void tess_prepared_to_samples(tess_prepared_image *image, int64_t y, const float *result)
{
    const tess_denoise_file *file = image->file;
    const tess_image_info *in = &file->info, *out = &file->out_info;
    const int64_t colours = tess_denoise_colours(in), step = tess_prepared_info(file).channels;
    const size_t in_size = tess_dtype_size(in->dtype), out_size = tess_dtype_size(out->dtype);
    const bool same_type = in->dtype == out->dtype && !tess_denoise_rescales(file),
               same = same_type && !(image->settings->add_noise > 0);
    bool keep[TESS_NOISE_CHANNELS] = {false}; /* channels that stay the input, bit for bit */
    bool all = same;
    for (int64_t c = 0; c < colours && same; c++) {
        const bool kept = tess_prepared_strength(image, c) == 0;
        all = all && kept;
        if (c < TESS_NOISE_CHANNELS)
            keep[c] = kept;
    }
    if (all) {
        memcpy(image->rows.out, image->rows.again, (size_t)(in->width * in->channels) * out_size);
        return;
    }
    const tess_scale scale = tess_prepared_out_scale(image);
    float *values = image->rows.blend; /* no longer needed */
    for (int64_t x = 0; x < in->width; x++)
        memcpy(values + x * colours, result + x * step, (size_t)colours * sizeof(float));
    if (tess_denoise_rescales(file))
        count_cut_off(image, values);
    if (file->dithers)
        dither(image, image->slice * in->height + y, scale, values, image->rows.draws_again, colours);
    limit_to_maximum(out, scale, values, in->width * colours);
    for (int64_t x = 0; x < in->width; x++) {
        const char *from = image->rows.again + (size_t)(x * in->channels) * in_size;
        char *to = image->rows.out + (size_t)(x * in->channels) * out_size;
        const unsigned char *valid = image->rows.valid_again + x * in->channels;
        tess_samples_from_values(out->dtype, scale, values + x * colours, colours, to);
        for (int c = 0; c < in->channels; c++)
            if (c >= colours || !valid[c] ||
                (c < TESS_NOISE_CHANNELS ? keep[c] : same && tess_prepared_strength(image, c) == 0))
                keep_sample(file, from + (size_t)c * in_size, c >= colours, to + (size_t)c * out_size);
            else if (in->has_nodata && same_type)
                step_off_nodata(in, values[x * colours + c], scale, to + (size_t)c * out_size);
    }
}
