/* The summary of a training run. */
#include "job/common/summary/summary_impl.h"

static void say_training_bytes(tess_summary *w, const tess_json *bytes)
{
    tess_say(
        w,
        "%.1f MiB (weights %.1f, activations %.1f, gradients %.1f, optimizer %.1f, workspace %.1f, io %.1f)",
        tess_say_mib(bytes, "total"), tess_say_mib(bytes, "weights"), tess_say_mib(bytes, "activations"),
        tess_say_mib(bytes, "gradients"), tess_say_mib(bytes, "optimizer"), tess_say_mib(bytes, "workspace"),
        tess_say_mib(bytes, "io"));
}

void tess_say_training(tess_summary *w, const tess_json *record)
{
    const tess_json *plan = tess_json_get(record, "plan"), *train = tess_json_get(record, "train"),
                    *result = tess_json_get(train, "result");
    if (!train)
        return;
    tess_say(w, "network   %s, %.2f million parameters; %lld images\n",
             tess_json_get_string(train, "architecture", "?"),
             1e-6 * tess_json_get_double(train, "parameters", 0),
             (long long)tess_json_get_int(train, "images", 0));
    tess_say_device(w, record);
    tess_say(w, "plan      %lld steps, batch %lld in %lld micro-batch(es), crops of %lld, recompute %s: %s\n",
             (long long)tess_json_get_int(train, "steps", 0), (long long)tess_json_get_int(plan, "batch", 0),
             (long long)tess_json_get_int(plan, "micro_batches", 1),
             (long long)tess_json_get_int(plan, "crop", 0), tess_json_get_string(plan, "recompute", "?"),
             tess_json_get_string(plan, "reason", ""));
    tess_say(w, "planned   ");
    say_training_bytes(w, tess_json_get(plan, "peak_bytes"));
    tess_say(w, ", %.4g s a step%s\n", tess_json_get_double(plan, "seconds_per_step", 0),
             tess_json_get_bool(plan, "calibrated", false) ? "" : " (not calibrated)");
    const tess_json *measured = tess_json_get(record, "measured");
    if (measured) {
        tess_say(w, "measured  ");
        say_training_bytes(w, tess_json_get(measured, "peak_bytes"));
        tess_say(w, ", %.1f samples a second\n", tess_json_get_double(measured, "samples_per_second", 0));
    }
    if (result)
        tess_say(w, "result    step %lld, loss %.4e", (long long)tess_json_get_int(result, "steps", 0),
                 tess_json_get_double(result, "loss", 0));
    if (tess_json_get(result, "psnr_db"))
        tess_say(w, ", validation %.3f dB", tess_json_get_double(result, "psnr_db", 0));
    if (result)
        tess_say(w, "\n");
}

/* How the samples of the job's one file were interpreted; for a folder this is in the record. */
