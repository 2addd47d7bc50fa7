/* What the verbs that run networks have in common: the device, the plan, and what was measured. */
#include <string.h>

#include "job/common/summary/summary_impl.h"

/* "choice    cpu: cpu 0.1 s (...), cuda 0.6 s (...)"; each phase, if they differ. */
static void say_choice(tess_summary *w, const tess_json *plan)
{
    const tess_json *chosen = tess_json_get(plan, "chosen");
    const char *reason = tess_json_get_string(plan, "device_reason", NULL),
               *first = tess_json_get_string(tess_json_at(chosen, 0), "device", "?");
    bool same = true;
    if (!reason)
        return;
    for (int64_t i = 1; i < tess_json_length(chosen); i++)
        same = same && strcmp(tess_json_get_string(tess_json_at(chosen, i), "device", "?"), first) == 0;
    tess_say(w, "choice    %s", same ? first : "");
    for (int64_t i = 0; i < tess_json_length(chosen) && !same; i++)
        tess_say(w, "%s%s by %s", i ? ", " : "", tess_json_get_string(tess_json_at(chosen, i), "phase", "?"),
                 tess_json_get_string(tess_json_at(chosen, i), "device", "?"));
    tess_say(w, ": %s\n", reason);
}

void tess_say_device(tess_summary *w, const tess_json *record)
{
    const int64_t ranks = tess_json_get_int(record, "ranks", 1);
    tess_say(w, "device    %s (%s), %s, %lld thread(s)", tess_json_get_string(record, "device", "?"),
             tess_json_get_string(record, "device_name", "?"), tess_json_get_string(record, "precision", "?"),
             (long long)tess_json_get_int(record, "threads", 0));
    if (ranks > 1)
        tess_say(w, " on each of %lld ranks", (long long)ranks);
    tess_say(w, "\n");
    say_choice(w, tess_json_get(record, "plan"));
}

void tess_say_bytes(tess_summary *w, const tess_json *bytes)
{
    tess_say(w, "%.1f MiB (weights %.1f, activations %.1f, workspace %.1f, io %.1f)",
             tess_say_mib(bytes, "total"), tess_say_mib(bytes, "weights"), tess_say_mib(bytes, "activations"),
             tess_say_mib(bytes, "workspace"), tess_say_mib(bytes, "io"));
}

void tess_say_plan(tess_summary *w, const tess_json *record)
{
    const tess_json *plan = tess_json_get(record, "plan"), *tile = tess_json_get(plan, "tile");
    const tess_json *input = tess_json_get(record, "input"), *denoise = tess_json_get(record, "denoise");
    if (!denoise)
        denoise = tess_json_get(record, "reconstruct");
    if (!input)
        return;
    tess_say(w, "input     %lld file(s), up to ", (long long)tess_json_get_int(input, "files", 0));
    if (tess_json_get(input, "depth"))
        tess_say(w, "%lld x ", (long long)tess_json_get_int(input, "depth", 0));
    tess_say(w, "%lld x %lld, %lld channel(s)\n", (long long)tess_json_get_int(input, "height", 0),
             (long long)tess_json_get_int(input, "width", 0),
             (long long)tess_json_get_int(input, "channels", 0));
    if (!plan) /* nothing could be planned */
        return;
    tess_say(w, "model     %s, %s, %.2f million parameters\n", tess_json_get_string(denoise, "model", "?"),
             tess_json_get_string(denoise, "architecture", "?"),
             1e-6 * tess_json_get_double(denoise, "parameters", 0));
    tess_say_device(w, record);
    tess_say(w, "plan      tile ");
    for (int64_t i = 0; i < tess_json_length(tile); i++)
        tess_say(w, "%s%lld", i ? " x " : "", (long long)tess_json_as_int(tess_json_at(tile, i), 0));
    tess_say(w, ", halo %lld, batch %lld: %s\n", (long long)tess_json_get_int(plan, "halo", 0),
             (long long)tess_json_get_int(plan, "batch", 0), tess_json_get_string(plan, "reason", ""));
    if (tess_json_get(plan, "exchanges"))
        tess_say(w, "exchanges %s\n", tess_json_get_string(plan, "exchanges", ""));
    if (tess_json_get(plan, "data_device"))
        tess_say(w, "data step on %s\n", tess_json_get_string(plan, "data_device", ""));
    tess_say(w, "planned   ");
    tess_say_bytes(w, tess_json_get(plan, "peak_bytes"));
    tess_say(w, ", %.2f s%s\n", tess_json_get_double(plan, "seconds", 0),
             tess_json_get_bool(plan, "calibrated", false) ? "" : " (not calibrated)");
    tess_say_elsewhere(w, plan);
}

void tess_say_measured(tess_summary *w, const tess_json *record)
{
    const tess_json *measured = tess_json_get(record, "measured"),
                    *quality = tess_json_get(record, "quality");
    if (measured) {
        tess_say(w, "measured  ");
        tess_say_bytes(w, tess_json_get(measured, "peak_bytes"));
        tess_say(w, ", %.2f s, %.3f megapixels a second\n", tess_json_get_double(measured, "seconds", 0),
                 tess_json_get_double(measured, "megapixels_per_second", 0));
        tess_say(w,
                 "resident  peak %.1f MiB, of which %.1f MiB were there before the "
                 "plan\n",
                 tess_say_mib(measured, "resident_bytes"), tess_say_mib(measured, "overhead_bytes"));
        if (tess_json_get(measured, "gpu_busy"))
            tess_say(w,
                     "device    busy %.0f %% of the time, %.1f MiB by its driver's count, "
                     "%.1f MiB of context; "
                     "%.1f MiB %s the host\n",
                     100 * tess_json_get_double(measured, "gpu_busy", 0),
                     tess_say_mib(measured, "driver_bytes"), tess_say_mib(measured, "context_bytes"),
                     tess_say_mib(measured, "host_bytes"),
                     tess_json_get(tess_json_get(record, "plan"), "data_device") ? "on" : "pinned on");
    }
    if (quality)
        tess_say(w, "quality   PSNR %.3f dB", tess_json_get_double(quality, "psnr_db", 0));
    if (tess_json_get(quality, "ssim"))
        tess_say(w, ", SSIM %.4f", tess_json_get_double(quality, "ssim", 0));
    if (quality)
        tess_say(w, "\n");
}
