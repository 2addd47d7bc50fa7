/* A short readable summary of a record, for the terminal. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "job/common/context.h"
#include "job/common/record.h"
#include "job/common/summary_impl.h"

void tess_say(tess_summary *w, const char *format, ...)
{
    if (!w->text)
        return;
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(w->text + w->used, w->size - w->used, format, args);
    va_end(args);
    if (wanted > 0)
        w->used += (size_t)wanted < w->size - w->used ? (size_t)wanted : w->size - w->used - 1;
}

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

static void say_plan(tess_summary *w, const tess_json *record)
{
    const tess_json *plan = tess_json_get(record, "plan"), *tile = tess_json_get(plan, "tile");
    const tess_json *input = tess_json_get(record, "input"), *denoise = tess_json_get(record, "denoise");
    if (!denoise)
        denoise = tess_json_get(record, "reconstruct");
    if (!plan)
        return;
    tess_say(w, "input     %lld file(s), up to ", (long long)tess_json_get_int(input, "files", 0));
    if (tess_json_get(input, "depth"))
        tess_say(w, "%lld x ", (long long)tess_json_get_int(input, "depth", 0));
    tess_say(w, "%lld x %lld, %lld channel(s)\n", (long long)tess_json_get_int(input, "height", 0),
             (long long)tess_json_get_int(input, "width", 0),
             (long long)tess_json_get_int(input, "channels", 0));
    if (tess_json_get_int(plan, "tiles", 1) == 0) /* nothing could be planned */
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
    tess_say(w, "planned   ");
    tess_say_bytes(w, tess_json_get(plan, "peak_bytes"));
    tess_say(w, ", %.2f s%s\n", tess_json_get_double(plan, "seconds", 0),
             tess_json_get_bool(plan, "calibrated", false) ? "" : " (not calibrated)");
}

/* Of an integer all digits, such as those of seconds since 1970. */
static int digits_of(double value)
{
    return value == rint(value) && fabs(value) < 1e15 ? 15 : 9;
}

static void say_samples(tess_summary *w, const tess_json *record)
{
    const tess_json *files = tess_json_get(tess_json_get(record, "denoise"), "files"),
                    *file = tess_json_length(files) == 1 ? tess_json_at(files, 0) : NULL,
                    *range = tess_json_get(file, "range");
    if (!range)
        return;
    const char *axes = tess_json_get_string(file, "axes", NULL),
               *sigma = tess_json_get_string(file, "sigma_from", NULL);
    tess_say(w, "samples   %s", tess_json_get_string(file, "type", "?"));
    if (axes)
        tess_say(w, ", axes %s%s", axes,
                 !tess_json_get(file, "depth") ? ""
                 : strcmp(tess_json_get_string(file, "slices", ""), "together") == 0
                     ? ": a volume, by a 3-D network"
                     : ": a volume, slice by slice");
    const double low = tess_json_as_double(tess_json_at(range, 0), 0),
                 high = tess_json_as_double(tess_json_at(range, 1), 1);
    tess_say(w, ", range %.*g to %.*g (%s)", digits_of(low), low, digits_of(high), high,
             tess_json_get_string(file, "range_from", "?"));
    if (tess_json_get(file, "sigma"))
        tess_say(w, ", sigma %.4g = %.3g/255 (%s)", tess_json_get_double(file, "sigma", 0),
                 255 * tess_json_get_double(file, "sigma", 0), sigma ? sigma : "?");
    else if (sigma)
        tess_say(w, ", sigma from a %s", sigma);
    if (tess_json_get_int(file, "holes", 0))
        tess_say(w, ", %lld hole(s) kept", (long long)tess_json_get_int(file, "holes", 0));
    tess_say(w, "\n");
}

static void say_measured(tess_summary *w, const tess_json *record)
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
                     "%.1f "
                     "MiB pinned on the host\n",
                     100 * tess_json_get_double(measured, "gpu_busy", 0),
                     tess_say_mib(measured, "driver_bytes"), tess_say_mib(measured, "context_bytes"),
                     tess_say_mib(measured, "host_bytes"));
    }
    if (quality)
        tess_say(w, "quality   PSNR %.3f dB", tess_json_get_double(quality, "psnr_db", 0));
    if (tess_json_get(quality, "ssim"))
        tess_say(w, ", SSIM %.4f", tess_json_get_double(quality, "ssim", 0));
    if (quality)
        tess_say(w, "\n");
}

/* Lists files that were not processed; those skipped by a stop only by their number. */
static void say_left_out(tess_summary *w, const tess_json *denoise)
{
    const tess_json *files = tess_json_get(denoise, "files");
    int64_t stopped = 0;
    for (int64_t i = 0; i < tess_json_length(files); i++) {
        const char *trouble = tess_json_get_string(tess_json_at(files, i), "error", NULL);
        if (trouble && strcmp(trouble, "stopped") == 0)
            stopped++;
        else if (trouble)
            tess_say(w, "failed    %s\n", trouble);
    }
    if (stopped)
        tess_say(w, "stopped   %lld file(s) are not done\n", (long long)stopped);
    if (tess_json_get_int(denoise, "skipped", 0))
        tess_say(w, "skipped   %lld file(s) whose output is there\n",
                 (long long)tess_json_get_int(denoise, "skipped", 0));
}

/* Reports the assumptions about measured data. */
static void say_taken(tess_summary *w, const tess_json *own)
{
    const tess_json *range = tess_json_get(own, "range");
    const bool own_blur = tess_json_get(own, "boundary") != NULL;
    const char *from = tess_json_get_string(own, "centre_from", NULL), *of = "";
    if (from) {
        tess_say(w, "geometry  %lld columns, axis at column %.3f: ",
                 (long long)tess_json_get_int(own, "columns", 0), tess_json_get_double(own, "centre", 0));
        if (tess_json_get(own, "centre_pairs"))
            tess_say(w, "found from %lld pairs of opposite views\n",
                     (long long)tess_json_get_int(own, "centre_pairs", 0));
        else
            tess_say(w, "%s\n",
                     strcmp(from, "given") == 0    ? "as given"
                     : strcmp(from, "middle") == 0 ? "the middle, as no \"centre\" is given"
                                                   : "found from the centres of mass");
    }
    from = tess_json_get_string(own, "range_from", "");
    of = strcmp(from, "data") == 0
             ? own_blur ? "from the measurements' values" : "from the data: a filtered backprojection"
         : strcmp(from, "given") == 0 ? "as given"
         : strcmp(from, "type") == 0  ? "of the measurements' type"
                                      : "by default";
    if (range)
        tess_say(w, "range     [%.6g, %.6g] %s\n", tess_json_as_double(tess_json_at(range, 0), 0),
                 tess_json_as_double(tess_json_at(range, 1), 0), of);
    from = tess_json_get_string(own, "noise_from", NULL);
    if (from && tess_json_get(own, "noise"))
        tess_say(w, "noise     %.4g %s\n", tess_json_get_double(own, "noise", 0),
                 strcmp(from, "estimate") == 0 ? "estimated from the measurements"
                 : strcmp(from, "given") == 0  ? "as given"
                                               : "by default: 0.01 of the range");
    if (tess_json_get_int(own, "starved", 0))
        tess_say(w,
                 "          %lld values (%.2g %%) were counted so low that their line integrals are only "
                 "bounded\n",
                 (long long)tess_json_get_int(own, "starved", 0),
                 100 * tess_json_get_double(own, "starved_share", 0));
}

static void say_reconstruct(tess_summary *w, const tess_json *own)
{
    const tess_json *iterations = tess_json_get(own, "iterations");
    tess_say(w, "problem   %s: %s, preset %s, start %s\n", tess_json_get_string(own, "problem", "?"),
             tess_json_get_string(own, "operator", "?"), tess_json_get_string(own, "preset", "?"),
             tess_json_get_string(own, "init", "?"));
    say_taken(w, own);
    if (!iterations)
        return;
    const long long done = tess_json_length(iterations), inner = tess_json_get_int(own, "inner", 0);
    const char *stopped = tess_json_get_string(own, "stopped", "");
    const bool exact = strcmp(tess_json_get_string(own, "data_step", ""), "minimum") == 0;
    tess_say(w, "solver    %lld iteration%s", done, done == 1 ? "" : "s");
    if (inner)
        tess_say(w, ", each of up to %lld step%s of conjugate gradients", inner, inner == 1 ? "" : "s");
    else if (exact)
        tess_say(w, ", each to the minimum of the data term");
    if (tess_json_get(own, "step"))
        tess_say(w, ", %s %.4g", inner || exact ? "relaxed in steps of" : "step",
                 tess_json_get_double(own, "step", 0));
    tess_say(w, "%s\n",
             strcmp(stopped, "tolerance") == 0     ? "; stopped by `tolerance`"
             : strcmp(stopped, "seconds") == 0     ? "; stopped by `max_seconds`"
             : strcmp(stopped, "interrupted") == 0 ? "; interrupted, nothing was written"
                                                   : "");
    if (tess_json_get_int(own, "step_halvings", 0))
        tess_say(w,
                 "          the step made the data term grow and was halved %lld "
                 "time(s)\n",
                 (long long)tess_json_get_int(own, "step_halvings", 0));
    if (tess_json_get(own, "baseline_psnr_db"))
        tess_say(w, "baseline  PSNR %.3f dB (%s)\n", tess_json_get_double(own, "baseline_psnr_db", 0),
                 tess_json_get_string(own, "baseline", "?"));
}

static void say_ranks(tess_summary *w, const tess_json *ranks)
{
    const int64_t count = tess_json_length(ranks);
    if (count)
        tess_say(w, "ranks     %lld\n", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const tess_json *one = tess_json_at(ranks, i);
        tess_say(w, "rank      %lld: %s, pid %lld, %s: %s\n", (long long)i,
                 tess_json_get_string(one, "host", "?"), (long long)tess_json_get_int(one, "pid", 0),
                 tess_json_get_string(one, "device", "?"), tess_json_get_string(one, "device_name", "?"));
    }
}

static void say_info(tess_summary *w, const tess_json *info)
{
    say_ranks(w, tess_json_get(info, "ranks"));
    const tess_json *devices = tess_json_get(info, "devices"), *models = tess_json_get(info, "models");
    for (int64_t i = 0; i < tess_json_length(devices); i++) {
        const tess_json *d = tess_json_at(devices, i);
        tess_say(w, "device    %s: %s, %lld thread(s), %.1f of %.1f GiB free%s\n",
                 tess_json_get_string(d, "kind", "?"), tess_json_get_string(d, "name", "?"),
                 (long long)tess_json_get_int(d, "threads", 0), tess_say_mib(d, "memory_free") / 1024,
                 tess_say_mib(d, "memory_total") / 1024,
                 tess_json_get_bool(d, "fp16", false)   ? ", fp16 by default"
                 : tess_json_get_bool(d, "bf16", false) ? ", bf16 matrix instructions"
                                                        : "");
        if (tess_json_get_int(d, "driver_bytes", 0))
            tess_say(w, "          %.0f MiB taken by context and libraries\n",
                     tess_say_mib(d, "driver_bytes"));
    }
    for (int64_t i = 0; i < tess_json_length(models); i++) {
        const tess_json *m = tess_json_at(models, i);
        tess_say(w, "model     %s: %s, %lld channel(s), %.2f million parameters\n",
                 tess_json_get_string(m, "name", "?"), tess_json_get_string(m, "architecture", "?"),
                 (long long)tess_json_get_int(m, "channels", 0),
                 1e-6 * tess_json_get_double(m, "parameters", 0));
    }
    tess_say(w, "library   GDAL: %s\n",
             tess_json_get_bool(tess_json_get(info, "libraries"), "gdal", false)
                 ? "found"
                 : "missing (PNG and NPY only)");
    tess_say(w, "library   MPI: %s\n",
             tess_json_get_bool(tess_json_get(info, "libraries"), "mpi", false)
                 ? tess_json_get_string(tess_json_get(info, "libraries"), "mpi_name", "module found")
                 : "missing (one process only)");
    const tess_json *calibration = tess_json_get(info, "calibration");
    tess_say(w, "rates     %lld op classes measured, %s\n",
             (long long)tess_json_get_int(calibration, "ops", 0),
             tess_json_get_string(calibration, "path", ""));
}

/* Whether all files were skipped, so that nothing was planned or measured. */
static bool is_idle(const tess_json *record)
{
    const int64_t skipped = tess_json_get_int(tess_json_get(record, "denoise"), "skipped", 0);
    return skipped > 0 && skipped == tess_json_get_int(tess_json_get(record, "input"), "files", 0);
}

tess_status tess_record_summary(tess_context *context, const char *record, char **text)
{
    *text = NULL;
    tess_json *json = NULL;
    TESS_TRY(tess_json_parse(record, strlen(record), &json, &context->error));
    tess_summary w = {.size = strlen(record) + 8192};
    w.text = tess_small_alloc(w.size, 1);
    const bool own = tess_json_get(json, "train") || tess_json_get(json, "fill") ||
                     tess_json_get(json, "detect") || is_idle(json);
    tess_say_training(&w, json);
    tess_say_filling(&w, json);
    tess_say_detecting(&w, json);
    if (!own)
        say_plan(&w, json);
    say_samples(&w, json);
    if (tess_json_get(json, "reconstruct"))
        say_reconstruct(&w, tess_json_get(json, "reconstruct"));
    if (!own)
        say_measured(&w, json);
    tess_say_reporting(&w, json);
    say_left_out(&w, tess_json_get(json, "denoise"));
    if (tess_json_get(json, "info"))
        say_info(&w, tess_json_get(json, "info"));
    const tess_json *convert = tess_json_get(json, "convert");
    if (tess_json_get(convert, "nodes"))
        tess_say(&w, "%s: %lld nodes%s -> %s\n", tess_json_get_string(convert, "input", "?"),
                 (long long)tess_json_length(tess_json_get(convert, "nodes")),
                 tess_json_get_bool(convert, "fitted", false) ? ", fitted" : "",
                 tess_json_get_string(convert, "output", "?"));
    else if (convert)
        tess_say(&w, "%s (%s): %lld tensors, %lld values, %s -> %s\n",
                 tess_json_get_string(convert, "input", "?"), tess_json_get_string(convert, "format", "?"),
                 (long long)tess_json_get_int(convert, "tensors", 0),
                 (long long)tess_json_get_int(convert, "values", 0),
                 tess_json_get_string(convert, "architecture", "unknown architecture"),
                 tess_json_get_string(convert, "output", "?"));
    tess_json_free(json);
    *text = w.text;
    return w.text ? TESS_OK : tess_fail(&context->error, TESS_NO_MEMORY, "no memory for a summary");
}
