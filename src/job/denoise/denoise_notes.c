/* What the user is told of a file: how its samples are interpreted and written, and what of it is lost. */
#include <math.h>
#include <stdio.h>

#include "job/common/note.h"
#include "job/denoise/denoise.h"

static bool has_channel_axis(const tess_image_info *info)
{
    return info->axes == TESS_AXES_HWC || info->axes == TESS_AXES_CHW || info->axes == TESS_AXES_DHWC;
}

tess_axes_words tess_denoise_axes_words(const tess_image_info *info)
{
    const long long depth = info->depth, height = info->height, width = info->width,
                    channels = info->channels;
    const char *axes = tess_axes_name(info->axes);
    tess_axes_words words = {""};
    if (info->axes == TESS_AXES_HWC)
        snprintf(
            words.text, sizeof words.text,
            "its shape (%lld, %lld, %lld) is read as (height, width, channels), `axes` %s; if its first axis "
            "is that of the slices, give `axes` DHW, if it is that of the channels, CHW",
            height, width, channels, axes);
    else if (info->axes == TESS_AXES_CHW)
        snprintf(
            words.text, sizeof words.text,
            "its shape (%lld, %lld, %lld) is read as (channels, height, width), `axes` %s; if its first axis "
            "is that of the slices, give `axes` DHW, if its last is that of the channels, HWC",
            channels, height, width, axes);
    else if (info->axes == TESS_AXES_DHWC)
        snprintf(
            words.text, sizeof words.text,
            "its shape (%lld, %lld, %lld, %lld) is read as (depth, height, width, channels), `axes` %s; move "
            "the axes if they are others",
            depth, height, width, channels, axes);
    return words;
}

/* An image of many bands looks like a volume of narrow slices, and a volume like an image whose bands are its columns. */
void tess_denoise_note_axes(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    const tess_image_info *info = &file->info;
    if (has_channel_axis(info) && info->channels > TESS_NOISE_CHANNELS &&
        (info->channels > info->height || info->channels > info->width))
        tess_note(&settings->common, TESS_NOTE_WARNING, "%s: has %d channels: %s", file->input,
                  info->channels, tess_denoise_axes_words(info).text);
    if (info->depth == 0 || file->axes != TESS_AXES_AUTO)
        return;
    const bool narrow =
        info->axes == TESS_AXES_DHW && 4 * info->width < info->depth && 4 * info->width < info->height;
    tess_note(&settings->common, narrow ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL,
              "%s: read as a volume of %lld slices of %lld x %lld%s", file->input, (long long)info->depth,
              (long long)info->height, (long long)info->width,
              narrow ? "; if its last axis has channels, give `axes` HWC" : "");
}

/* Notes what of the input is different in the output: its colours, its type. */
static void report_output(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    const tess_image_info *in = &file->info, *out = &file->out_info;
    if (in->foreign)
        tess_note(
            &settings->common, TESS_NOTE_WARNING, "%s: its %s colours are read as RGB, and written so%s",
            file->input, in->foreign,
            in->says & TESS_SAYS_INKS
                ? "; it has no marker that says whether 0 is all ink or none, and is read as Adobe writes "
                  "it, 0 as all: if the result is a negative, convert the input to RGB first"
                : "");
    if (in->says & TESS_SAYS_FOURTH)
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: nothing says what its fourth band is, so it is denoised like the others; if it is "
                  "alpha, say so "
                  "(gdal_edit.py -colorinterp_4 alpha)",
                  file->input);
    if (in->channels == 4 && !in->alpha && tess_axes_name(in->axes)[0])
        tess_note(
            &settings->common, TESS_NOTE_WARNING,
            "%s: its four channels are denoised like bands; if the last one is alpha, write the image as "
            "PNG or TIFF with alpha, or leave it out (%s in Python)",
            file->input, in->axes == TESS_AXES_CHW ? "array[:3]" : "array[..., :3]");
    const double most = tess_samples_full_scale(in->dtype);
    if (tess_denoise_rescales(file))
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: written as %s, with %s to %s scaled to 0 to %.7g, %s from %s", file->output,
                  tess_dtype_word(out->dtype), tess_denoise_words(file, file->shown.low).text,
                  tess_denoise_words(file, file->shown.high).text, out->full_scale,
                  settings->dither ? "dithered" : "rounded", tess_dtype_word(in->dtype));
    else if (in->full_scale != most)
        tess_note(
            &settings->common, TESS_NOTE_DETAIL,
            "%s: by the file its samples end at %.0f, not at %.0f of %s; they are written with the same "
            "numbers",
            file->input, in->full_scale, most, tess_dtype_word(in->dtype));
    if (file->dithers && !settings->dither)
        tess_note(
            &settings->common, TESS_NOTE_WARNING,
            "%s: what lies between whole numbers is only in the noise: rounding the restored samples would "
            "err by %.2g of their deviation, and change their sum by about %.3g %%%s, so they are dithered, "
            "which adds noise; convert the input to float32 to avoid both",
            file->output, file->look.coarseness, 100 * file->look.rounding,
            in->depth ? " in some slice" : "");
}

static void report_truth(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    if (!file->truth)
        return;
    const tess_scale scale = tess_denoise_truth_scale(file);
    const bool converted = tess_denoise_truth_has_units(file) &&
                           (scale.low != file->scale.low || scale.high != file->scale.high);
    if (!tess_denoise_truth_has_units(file) && file->truth_info.dtype == file->info.dtype &&
        (scale.low != file->scale.low || scale.high != file->scale.high))
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: compared by fractions: its samples end at %.0f, those of %s at %.0f; `range` 0,%.0f "
                  "compares "
                  "sample by sample",
                  file->truth, scale.high, file->input, file->scale.high, file->scale.high);
    if (!tess_denoise_truth_has_units(file) &&
        ((file->info.says ^ file->truth_info.says) & TESS_SAYS_SCALE) != 0)
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: compared sample by sample, although only %s has a scale or offset; floats would be "
                  "compared in "
                  "its units",
                  file->truth, file->info.says & TESS_SAYS_SCALE ? file->input : file->truth);
    if (converted || (file->truth_info.dtype != file->info.dtype && !tess_denoise_scale_is_of_type(file)))
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: compared in the units of %s%s: its samples %.7g and %.7g mean 0 and 1", file->truth,
                  file->input, converted ? ", by the scale and offset of each" : "", scale.low, scale.high);
}

static void report_defects(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    static const double DENSE = 0.005;
    const tess_denoise_look *look = &file->look;
    if (look->defect_count > 0)
        tess_note(
            &settings->common, TESS_NOTE_WARNING,
            "%s: %lld sample(s) stand alone, far from their surroundings, as hot and dead pixels do; they "
            "are hidden from the network and keep their values%s",
            file->input, (long long)look->defect_count,
            (double)look->defect_count > DENSE * (double)look->found
                ? "; so many may also hide each other: correct them first (dark frame)"
                : "");
    if (look->many_defects)
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: too many samples stand alone, far from their surroundings; if these are hot or dead "
                  "pixels, correct them first (dark frame): they spoil the result around them",
                  file->input);
}

void tess_denoise_note_samples(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    report_defects(settings, file);
    report_output(settings, file);
    report_truth(settings, file);
}

static const double MUCH = 0.001; /* share of the samples that is worth a warning */

static void report_cut_off(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    const tess_denoise_look *look = &file->look;
    const tess_scale *shown = &file->shown;
    if (!file->done || file->cut_off <= MUCH)
        return;
    /* Else the network alone goes beyond white or black, which no range and no other type of integers keeps. */
    if (!(tess_denoise_sample_of(file, look->low) < shown->low ||
          tess_denoise_sample_of(file, look->high) > shown->high))
        return;
    const double low = tess_denoise_sample_of(file, look->outliers ? look->bulk_low : look->low),
                 high = tess_denoise_sample_of(file, look->outliers ? look->bulk_high : look->high);
    tess_note(
        &settings->common, TESS_NOTE_WARNING,
        "%s: %.2g %% of the samples lay outside %s to %s and are cut off; `range` %s,%s keeps them, or a "
        "format of the input's type",
        file->output, 100 * file->cut_off, tess_denoise_words(file, shown->low).text,
        tess_denoise_words(file, shown->high).text, tess_denoise_words(file, fmin(low, shown->low)).text,
        tess_denoise_words(file, fmax(high, shown->high)).text);
}

static void report_held_back(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    static const double A_PART = 0.05;
    if (file->done && file->held_back > A_PART)
        tess_note(
            &settings->common, TESS_NOTE_WARNING,
            "%s: in %.0f %% of the image the network changes more than its weak noise explains; the input is "
            "blended in there; `model` names a network whose result is taken as it is",
            file->output, 100 * file->held_back);
}

void tess_denoise_note_result(const tess_denoise_settings *settings, const tess_denoise_file *file)
{
    if (file->look.holes > 0 && file->done && tess_denoise_rescales(file))
        tess_note(&settings->common, TESS_NOTE_WARNING, "%s: its %lld hole(s) are 0 there", file->output,
                  (long long)file->look.holes);
    report_cut_off(settings, file);
    report_held_back(settings, file);
    if (file->lost[0])
        tess_note(&settings->common, TESS_NOTE_WARNING, "%s: the output cannot hold the %s", file->output,
                  file->lost);
    if (file->done && file->truth_outside > MUCH) {
        const tess_scale scale = tess_denoise_truth_scale(file);
        tess_note(&settings->common, TESS_NOTE_WARNING,
                  "%s: %.2g %% of its samples lie outside %.7g to %.7g; PSNR and SSIM clamp them, and the "
                  "result",
                  file->truth, 100 * file->truth_outside, scale.low, scale.high);
    }
}
