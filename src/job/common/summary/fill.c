/* The summary of a run of `fill`. */
#include "job/common/summary/summary_impl.h"

static void say_voids(tess_summary *w, const tess_json *voids)
{
    static const struct {
        const char *key, *why;
    } left[] = {{"left_at_edge", "touch the edge"},
                {"left_too_far", "are too far from a valid one"},
                {"left_outside_mask", "are not in the mask"},
                {"left_without_second", "have no value in the second map"}};
    tess_say(w, "voids     %lld, %lld of %lld void pixels are filled",
             (long long)tess_json_get_int(voids, "count", 0),
             (long long)tess_json_get_int(voids, "filled_pixels", 0),
             (long long)tess_json_get_int(voids, "pixels", 0));
    if (tess_json_get(voids, "widest_px"))
        tess_say(w, "; the widest is %.0f px wide", tess_json_get_double(voids, "widest_px", 0));
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        const int64_t pixels = tess_json_get_int(voids, left[i].key, 0);
        if (pixels > 0)
            tess_say(w, "; %lld stay void because they %s", (long long)pixels, left[i].why);
    }
    tess_say(w, "\n");
}

static void say_result(tess_summary *w, const tess_json *record, const tess_json *fill)
{
    const tess_json *measured = tess_json_get(record, "measured"),
                    *quality = tess_json_get(record, "quality");
    if (!measured)
        return;
    tess_say(w, "measured  ");
    tess_say_bytes(w, tess_json_get(measured, "peak_bytes"));
    tess_say(w, ", %.2f s", tess_json_get_double(measured, "seconds", 0));
    if (tess_json_get(fill, "tile_steps_per_second"))
        tess_say(w, ", %.4g tile-steps a second, %.3g TFLOP/s",
                 tess_json_get_double(fill, "tile_steps_per_second", 0),
                 tess_json_get_double(fill, "tflops", 0));
    tess_say(w, "\n");
    if (tess_json_get(measured, "gpu_busy"))
        tess_say(w, "device    busy %.0f %% of the time between the first and the last tile, %.0f joules\n",
                 100 * tess_json_get_double(measured, "gpu_busy", 0),
                 tess_json_get_double(measured, "joules", 0));
    if (tess_json_get(fill, "seam_ratio"))
        tess_say(w, "seams     the slope changes %.3f times as much where tiles meet as elsewhere\n",
                 tess_json_get_double(fill, "seam_ratio", 0));
    if (tess_json_get(fill, "notes"))
        tess_say(w, "output    %s\n", tess_json_get_string(fill, "notes", ""));
    if (quality)
        tess_say(w, "quality   RMSE %.4g, MAE %.4g, bias %.4g over %lld pixels\n",
                 tess_json_get_double(quality, "rmse", 0), tess_json_get_double(quality, "mae", 0),
                 tess_json_get_double(quality, "bias", 0),
                 (long long)tess_json_get_int(quality, "pixels", 0));
}

void tess_say_filling(tess_summary *w, const tess_json *record)
{
    const tess_json *fill = tess_json_get(record, "fill"), *plan = tess_json_get(record, "plan"),
                    *input = tess_json_get(record, "input");
    if (!fill)
        return;
    tess_say(w, "map       %lld x %lld pixels\n", (long long)tess_json_get_int(input, "width", 0),
             (long long)tess_json_get_int(input, "height", 0));
    say_voids(w, tess_json_get(fill, "voids"));
    tess_say(w, "model     %s, %.2f million parameters; %s, %lld steps, %lld sample(s)\n",
             tess_json_get_string(fill, "model", "?"), 1e-6 * tess_json_get_double(fill, "parameters", 0),
             tess_json_get_string(fill, "sampler", "?"), (long long)tess_json_get_int(fill, "steps", 0),
             (long long)tess_json_get_int(fill, "samples", 0));
    tess_say_device(w, record);
    tess_say(w,
             "plan      %lld tiles of %lld, %lld of them around voids that fit, the others with an overlap "
             "of %lld",
             (long long)tess_json_get_int(fill, "tiles", 0),
             (long long)tess_json_as_int(tess_json_at(tess_json_get(plan, "tile"), 0), 0),
             (long long)tess_json_get_int(fill, "placed_tiles", 0),
             (long long)tess_json_get_int(plan, "overlap", 0));
    if (tess_json_get_int(fill, "levels", 1) > 1)
        tess_say(w, " at %lld sizes of the map, %lld of them guided by a coarser one",
                 (long long)tess_json_get_int(fill, "levels", 1),
                 (long long)tess_json_get_int(fill, "guided_tiles", 0));
    tess_say(w, ", batch %lld\nplanned   ", (long long)tess_json_get_int(plan, "batch", 0));
    tess_say_bytes(w, tess_json_get(plan, "peak_bytes"));
    tess_say(w, ", %.2f s%s\n", tess_json_get_double(plan, "seconds", 0),
             tess_json_get_bool(plan, "calibrated", false) ? "" : " (not calibrated)");
    say_result(w, record, fill);
}
