/* The summary of a run of `detect`. */
#include "job/common/summary/summary_impl.h"

static void say_phases(tess_summary *w, const tess_json *measured)
{
    const tess_json *phases = tess_json_get(measured, "phases");
    tess_say(w, "measured  ");
    tess_say_bytes(w, tess_json_get(measured, "peak_bytes"));
    for (int64_t i = 0; i < tess_json_length(phases); i++) {
        const tess_json *phase = tess_json_at(phases, i);
        tess_say(w, ", %s %.3f s", tess_json_get_string(phase, "name", "?"),
                 tess_json_get_double(phase, "seconds", 0));
    }
    tess_say(w, "\n");
}

static void say_quality(tess_summary *w, const tess_json *quality)
{
    if (tess_json_get(quality, "auroc"))
        tess_say(w, "quality   AUROC %.4f, average precision %.4f", tess_json_get_double(quality, "auroc", 0),
                 tess_json_get_double(quality, "average_precision", 0));
    else
        tess_say(w, "quality   no AUROC: the truth has %lld anomalies",
                 (long long)tess_json_get_int(quality, "anomalies", 0));
    if (tess_json_get(quality, "f1"))
        tess_say(w, "; precision %.4f, recall %.4f, F1 %.4f, IoU %.4f",
                 tess_json_get_double(quality, "precision", 0), tess_json_get_double(quality, "recall", 0),
                 tess_json_get_double(quality, "f1", 0), tess_json_get_double(quality, "iou", 0));
    tess_say(w, "\n");
}

void tess_say_detecting(tess_summary *w, const tess_json *record)
{
    const tess_json *detect = tess_json_get(record, "detect"), *plan = tess_json_get(record, "plan"),
                    *input = tess_json_get(record, "input"), *measured = tess_json_get(record, "measured");
    if (!detect)
        return;
    tess_say(w, "cubes     %lld x %lld pixels, %lld bands", (long long)tess_json_get_int(input, "width", 0),
             (long long)tess_json_get_int(input, "height", 0),
             (long long)tess_json_get_int(input, "channels", 0));
    if (tess_json_get_int(input, "images", 1) > 1)
        tess_say(w, "; %lld images in %lld file(s)", (long long)tess_json_get_int(input, "images", 1),
                 (long long)tess_json_get_int(input, "files", 1));
    tess_say(w,
             "\npipeline  %s: %lld pass(es) over the data to fit it, each image read %lld time(s), and %lld "
             "to score\n",
             tess_json_get_string(detect, "pipeline", "?"),
             (long long)tess_json_length(tess_json_get(plan, "passes")),
             (long long)tess_json_get_int(plan, "fit_readings", 0),
             (long long)tess_json_get_int(plan, "score_readings", 1));
    tess_say_device(w, record);
    tess_say(w, "planned   ");
    tess_say_bytes(w, tess_json_get(plan, "peak_bytes"));
    tess_say(w, ", blocks of %lld rows, %.3g s%s\n", (long long)tess_json_get_int(plan, "block_rows", 0),
             tess_json_get_double(plan, "seconds", 0),
             tess_json_get_bool(plan, "calibrated", false) ? "" : " (not calibrated)");
    if (!measured)
        return;
    say_phases(w, measured);
    if (tess_json_get_int(detect, "pixels_without_score", 0))
        tess_say(w, "holes     %lld pixels have no value, and no score\n",
                 (long long)tess_json_get_int(detect, "pixels_without_score", 0));
    if (tess_json_get(detect, "anomalous_pixels"))
        tess_say(w, "found     %lld of %lld pixels are anomalies\n",
                 (long long)tess_json_get_int(detect, "anomalous_pixels", 0),
                 (long long)tess_json_get_int(detect, "pixels", 0));
    if (tess_json_get(record, "quality"))
        say_quality(w, tess_json_get(record, "quality"));
}
