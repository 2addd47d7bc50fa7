/* How the samples of a file were interpreted and its noise estimated, for the record. */
#include "base/checked.h"
#include "job/denoise/look/slices.h"

/* Adds the estimated noise of each channel; if the variance grows with the value it is read^2 + gain * (value -
 * zero). Of an encoded photograph: the levels at three values. */
static void add_noise(tess_json **entry, const tess_denoise_file *file)
{
    static const char *const sure[] = {"unknown", "rough", "sure"};
    const tess_noise_result *noise = &file->look.noise;
    const double scale = (file->look.unit.high - file->look.unit.low) / (file->scale.high - file->scale.low);
    const double shift = (file->look.unit.low - file->scale.low) / (file->scale.high - file->scale.low);
    static const char *const levels[] = {"one", "by brightness", "by slice"};
    if (!file->sigma_estimated)
        return;
    tess_json *channels = tess_json_array();
    for (int64_t c = 0;
         c < tess_denoise_colours(&file->info) && (file->band_sigma || c < TESS_NOISE_CHANNELS); c++) {
        const tess_noise_level *level = &noise->channel[tess_min_i64(c, TESS_NOISE_CHANNELS - 1)];
        tess_json *one = tess_json_object();
        if (file->band_sigma) { /* of many bands, no more is kept */
            tess_json_set_double(&one, "sigma", (double)file->band_sigma[c]);
            tess_json_append(&channels, one);
            continue;
        }
        tess_json_set_double(&one, "sigma", level->sigma * scale);
        if (level->gain > 0) {
            tess_json_set_double(&one, "read", level->read * scale);
            tess_json_set_double(&one, "gain", level->gain * scale);
            tess_json_set_double(&one, "zero", level->zero * scale + shift);
        }
        if (level->encoded) {
            tess_json_set_double(&one, "dark", tess_noise_at(level, 0.1) * scale);
            tess_json_set_double(&one, "middle", tess_noise_at(level, 0.5) * scale);
            tess_json_set_double(&one, "bright", tess_noise_at(level, 0.9) * scale);
        }
        tess_json_append(&channels, one);
    }
    tess_json_set(entry, "noise", channels);
    if (tess_denoise_colours(&file->info) == 3)
        tess_json_set_double(entry, "noise_correlation", noise->shared);
    tess_json_set_string(entry, "levels",
                         file->levels == TESS_LEVELS_BY_BRIGHTNESS && noise->slices
                             ? "by slice and brightness"
                             : levels[file->levels]);
    tess_json_set_string(entry, "confidence", sure[noise->confidence]);
}

/* Where the noise level of a file comes from. */
static const char *sigma_origin(const tess_denoise_settings *s, const tess_denoise_file *file)
{
    return file->sigma_estimated ? "estimate" : s->sigma >= 0 ? "given" : "added";
}

void tess_denoise_record_samples(tess_json **entry, const tess_denoise_settings *s,
                                 const tess_denoise_file *file)
{
    const tess_image_info *info = &file->info;
    if (info->depth)
        tess_json_set_int(entry, "depth", info->depth);
    if (tess_axes_name(info->axes)[0])
        tess_json_set_string(entry, "axes", tess_axes_name(info->axes));
    if (info->depth && file->model)
        tess_json_set_string(entry, "slices", file->model->model.volume ? "together" : "one by one");
    if (tess_denoise_colours(info) > 1 && file->model)
        tess_json_set_string(entry, "channels", file->model->model.channels > 1 ? "together" : "one by one");
    if (file->two_values)
        tess_json_set_bool(entry, "two_values", true);
    if (file->look.equal)
        tess_json_set_bool(entry, "equal_channels", true);
    tess_json_set_string(entry, "type", tess_dtype_word(info->dtype));
    if (tess_denoise_rescales(file)) {
        tess_json_set_string(entry, "written_as", tess_dtype_word(file->out_info.dtype));
        tess_json *shown = tess_json_array();
        tess_json_append_double(&shown, file->shown.low);
        tess_json_append_double(&shown, file->shown.high);
        tess_json_set(entry, "written_range", shown);
        if (file->done)
            tess_json_set_double(entry, "cut_off", file->cut_off);
    }
    if (file->dithers)
        tess_json_set_bool(entry, "dithered", true);
    if (file->done && file->held_back > 0)
        tess_json_set_double(entry, "held_back", file->held_back);
    if (file->lost[0])
        tess_json_set_string(entry, "lost", file->lost);
    if (!file->scale_origin)
        return;
    tess_json *range = tess_json_array();
    tess_json_append_double(&range, file->scale.low);
    tess_json_append_double(&range, file->scale.high);
    tess_json_set(entry, "range", range);
    tess_json_set_string(entry, "range_from", file->scale_origin);
    const int64_t own = tess_denoise_own_scales(file);
    if (own > 0)
        tess_json_set_int(entry, "own_ranges", own);
    if (file->sigma >= 0) {
        tess_json_set_double(entry, "sigma", file->sigma);
        tess_json_set_string(entry, "sigma_from", sigma_origin(s, file));
        add_noise(entry, file);
    } else if (file->map_info.width) {
        tess_json_set_string(entry, "sigma_from", "map");
        if (file->map_levels.low <= file->map_levels.high) {
            tess_json *levels = tess_json_array();
            tess_json_append_double(&levels, file->map_levels.low);
            tess_json_append_double(&levels, file->map_levels.high);
            tess_json_set(entry, "sigma_range", levels);
        }
    }
    if (file->look.looked)
        tess_json_set_int(entry, "holes", file->look.holes);
    if (info->zeros_are_holes)
        tess_json_set_bool(entry, "zeros_are_holes", true);
    if (file->look.defect_count)
        tess_json_set_int(entry, "defects", file->look.defect_count);
}
