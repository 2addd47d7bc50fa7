/* The scale on which a network sees an image: which sample means 0 and which means 1. Sigma is given on it. */
#include <math.h>
#include <string.h>

#include "job/denoise.h"
#include "job/note.h"

static bool by_type(tess_dtype dtype)
{
    return dtype == TESS_U8 || dtype == TESS_U16;
}

tess_status tess_denoise_check_samples(const tess_denoise_settings *s, tess_error *error)
{
    if (!(s->strength >= 0 && s->strength <= 1))
        return tess_fail(error, TESS_BAD_OPTION, "--strength %g: use 0 (the input) to 1 (the denoised image)",
                         s->strength);
    if (s->range == TESS_RANGE_GIVEN &&
        !(isfinite(s->range_low) && isfinite(s->range_high) && s->range_high > s->range_low))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "--range %g,%g: the first is the sample that means 0, the second, larger one means 1",
            s->range_low, s->range_high);
    return TESS_OK;
}

bool tess_denoise_scale_needs_look(const tess_denoise_settings *s, const tess_image_info *info)
{
    return s->range == TESS_RANGE_AUTO && !by_type(info->dtype);
}

/* Noise carries an image on [0,1] beyond its ends: the bulk must be near, and nothing far. */
static bool looks_like_unit(const tess_denoise_look *look)
{
    return look->low_tail >= -0.5 && look->high_tail <= 1.5 && look->low >= -2 && look->high <= 3;
}

static void set_scale(tess_denoise_file *file, double low, double high, const char *origin)
{
    file->scale = (tess_scale){low, high};
    file->scale_origin = origin;
}

/* From the data: sigma would be a fraction of a span that the user has not seen. */
static tess_status scale_from_data(const tess_denoise_settings *s, tess_denoise_file *file, bool takes_sigma,
                                   tess_error *error)
{
    const tess_denoise_look *look = &file->look;
    const char *given = s->sigma_map                   ? "the noise levels of --sigma have"
                        : s->add_noise > 0             ? "--add-noise has"
                        : takes_sigma && s->sigma >= 0 ? "--sigma has"
                                                       : NULL;
    if (given)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "%s: its samples go from %.6g to %.6g, so that %s no scale; give --range LOW,HIGH (the "
            "samples that mean 0 and 1), or leave sigma to be estimated",
            file->input, look->low, look->high, given);
    set_scale(file, look->low, look->high > look->low ? look->high : look->low + 1, "data");
    return TESS_OK;
}

tess_status tess_denoise_set_scale(const tess_denoise_settings *s, tess_denoise_file *file, bool takes_sigma,
                                   tess_error *error)
{
    const tess_image_info *info = &file->info;
    const double full = tess_samples_full_scale(info->dtype);
    if (s->range == TESS_RANGE_GIVEN)
        set_scale(file, s->range_low, s->range_high, "given");
    else if (s->range == TESS_RANGE_TYPE || by_type(info->dtype))
        set_scale(file, 0, full, "type");
    else if (file->look.found == 0 || (info->dtype == TESS_F32 && looks_like_unit(&file->look)))
        set_scale(file, 0, full, info->dtype == TESS_F32 ? "as it is" : "type");
    else
        return scale_from_data(s, file, takes_sigma, error);
    const tess_denoise_look *look = &file->look;
    if (look->looked && s->range == TESS_RANGE_AUTO && info->dtype == TESS_U16 && look->high > 0 &&
        look->high * 65535 < 16384)
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "%s: its largest sample is %.0f of 65535; if that is its camera's maximum, give "
                  "--range 0,%.0f",
                  file->input, look->high * 65535, exp2(ceil(log2(rint(look->high * 65535) + 1))) - 1);
    return TESS_OK;
}
