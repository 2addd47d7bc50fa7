/* A short readable summary of a record, for the terminal. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "job/common/context.h"
#include "job/common/record.h"

typedef struct writer {
    char *text;
    size_t used, size;
} writer;

static void say(writer *w, const char *format, ...) TESS_PRINTF(2, 3);

static void say(writer *w, const char *format, ...)
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

static double mib(const tess_json *bytes, const char *key)
{
    return tess_json_get_double(bytes, key, 0) / (1 << 20);
}

static void say_bytes(writer *w, const tess_json *bytes)
{
    say(w, "%.1f MiB (weights %.1f, activations %.1f, workspace %.1f, io %.1f)", mib(bytes, "total"),
        mib(bytes, "weights"), mib(bytes, "activations"), mib(bytes, "workspace"), mib(bytes, "io"));
}

static void say_training_bytes(writer *w, const tess_json *bytes)
{
    say(w,
        "%.1f MiB (weights %.1f, activations %.1f, gradients %.1f, optimizer %.1f, workspace %.1f, io %.1f)",
        mib(bytes, "total"), mib(bytes, "weights"), mib(bytes, "activations"), mib(bytes, "gradients"),
        mib(bytes, "optimizer"), mib(bytes, "workspace"), mib(bytes, "io"));
}

static void say_plan(writer *w, const tess_json *record)
{
    const tess_json *plan = tess_json_get(record, "plan"), *tile = tess_json_get(plan, "tile");
    const tess_json *input = tess_json_get(record, "input"), *denoise = tess_json_get(record, "denoise");
    if (!denoise)
        denoise = tess_json_get(record, "reconstruct");
    if (!plan)
        return;
    say(w, "input     %lld file(s), up to ", (long long)tess_json_get_int(input, "files", 0));
    if (tess_json_get(input, "depth"))
        say(w, "%lld x ", (long long)tess_json_get_int(input, "depth", 0));
    say(w, "%lld x %lld, %lld channel(s)\n", (long long)tess_json_get_int(input, "height", 0),
        (long long)tess_json_get_int(input, "width", 0), (long long)tess_json_get_int(input, "channels", 0));
    if (tess_json_get_int(plan, "tiles", 1) == 0) /* nothing could be planned */
        return;
    say(w, "model     %s, %s, %.2f million parameters\n", tess_json_get_string(denoise, "model", "?"),
        tess_json_get_string(denoise, "architecture", "?"),
        1e-6 * tess_json_get_double(denoise, "parameters", 0));
    say(w, "device    %s (%s), %s, %lld thread(s)\n", tess_json_get_string(record, "device", "?"),
        tess_json_get_string(record, "device_name", "?"), tess_json_get_string(record, "precision", "?"),
        (long long)tess_json_get_int(record, "threads", 0));
    say(w, "plan      tile ");
    for (int64_t i = 0; i < tess_json_length(tile); i++)
        say(w, "%s%lld", i ? " x " : "", (long long)tess_json_as_int(tess_json_at(tile, i), 0));
    say(w, ", halo %lld, batch %lld: %s\n", (long long)tess_json_get_int(plan, "halo", 0),
        (long long)tess_json_get_int(plan, "batch", 0), tess_json_get_string(plan, "reason", ""));
    say(w, "planned   ");
    say_bytes(w, tess_json_get(plan, "peak_bytes"));
    say(w, ", %.2f s%s\n", tess_json_get_double(plan, "seconds", 0),
        tess_json_get_bool(plan, "calibrated", false) ? "" : " (not calibrated)");
}

static void say_training(writer *w, const tess_json *record)
{
    const tess_json *plan = tess_json_get(record, "plan"), *train = tess_json_get(record, "train"),
                    *result = tess_json_get(train, "result");
    if (!train)
        return;
    say(w, "network   %s, %.2f million parameters; %lld images\n",
        tess_json_get_string(train, "architecture", "?"), 1e-6 * tess_json_get_double(train, "parameters", 0),
        (long long)tess_json_get_int(train, "images", 0));
    say(w, "device    %s (%s), %s, %lld thread(s)\n", tess_json_get_string(record, "device", "?"),
        tess_json_get_string(record, "device_name", "?"), tess_json_get_string(record, "precision", "?"),
        (long long)tess_json_get_int(record, "threads", 0));
    say(w, "plan      %lld steps, batch %lld in %lld micro-batch(es), crops of %lld, recompute %s: %s\n",
        (long long)tess_json_get_int(train, "steps", 0), (long long)tess_json_get_int(plan, "batch", 0),
        (long long)tess_json_get_int(plan, "micro_batches", 1), (long long)tess_json_get_int(plan, "crop", 0),
        tess_json_get_string(plan, "recompute", "?"), tess_json_get_string(plan, "reason", ""));
    say(w, "planned   ");
    say_training_bytes(w, tess_json_get(plan, "peak_bytes"));
    say(w, ", %.4g s a step%s\n", tess_json_get_double(plan, "seconds_per_step", 0),
        tess_json_get_bool(plan, "calibrated", false) ? "" : " (not calibrated)");
    const tess_json *measured = tess_json_get(record, "measured");
    if (measured) {
        say(w, "measured  ");
        say_training_bytes(w, tess_json_get(measured, "peak_bytes"));
        say(w, ", %.1f samples a second\n", tess_json_get_double(measured, "samples_per_second", 0));
    }
    if (result)
        say(w, "result    step %lld, loss %.4e", (long long)tess_json_get_int(result, "steps", 0),
            tess_json_get_double(result, "loss", 0));
    if (tess_json_get(result, "psnr_db"))
        say(w, ", validation %.3f dB", tess_json_get_double(result, "psnr_db", 0));
    if (result)
        say(w, "\n");
}

/* How the samples of the job's one file were interpreted; for a folder this is in the record. */
static void say_samples(writer *w, const tess_json *record)
{
    const tess_json *files = tess_json_get(tess_json_get(record, "denoise"), "files"),
                    *file = tess_json_length(files) == 1 ? tess_json_at(files, 0) : NULL,
                    *range = tess_json_get(file, "range");
    if (!range)
        return;
    const char *axes = tess_json_get_string(file, "axes", NULL),
               *sigma = tess_json_get_string(file, "sigma_from", NULL);
    say(w, "samples   %s", tess_json_get_string(file, "type", "?"));
    if (axes)
        say(w, ", axes %s%s", axes,
            !tess_json_get(file, "depth") ? ""
            : strcmp(tess_json_get_string(file, "slices", ""), "together") == 0
                ? ": a volume, by a 3-D network"
                : ": a volume, slice by slice");
    say(w, ", range %.9g to %.9g (%s)", tess_json_as_double(tess_json_at(range, 0), 0),
        tess_json_as_double(tess_json_at(range, 1), 1), tess_json_get_string(file, "range_from", "?"));
    if (tess_json_get(file, "sigma"))
        say(w, ", sigma %.4g = %.3g/255 (%s)", tess_json_get_double(file, "sigma", 0),
            255 * tess_json_get_double(file, "sigma", 0), sigma ? sigma : "?");
    else if (sigma)
        say(w, ", sigma from a %s", sigma);
    if (tess_json_get_int(file, "holes", 0))
        say(w, ", %lld hole(s) kept", (long long)tess_json_get_int(file, "holes", 0));
    say(w, "\n");
}

static void say_measured(writer *w, const tess_json *record)
{
    const tess_json *measured = tess_json_get(record, "measured"),
                    *quality = tess_json_get(record, "quality");
    if (measured) {
        say(w, "measured  ");
        say_bytes(w, tess_json_get(measured, "peak_bytes"));
        say(w, ", %.2f s, %.3f megapixels a second\n", tess_json_get_double(measured, "seconds", 0),
            tess_json_get_double(measured, "megapixels_per_second", 0));
        say(w,
            "resident  peak %.1f MiB, of which %.1f MiB were there before the "
            "plan\n",
            mib(measured, "resident_bytes"), mib(measured, "overhead_bytes"));
        if (tess_json_get(measured, "gpu_busy"))
            say(w,
                "device    busy %.0f %% of the time, %.1f MiB by its driver's count, "
                "%.1f MiB of context; "
                "%.1f "
                "MiB pinned on the host\n",
                100 * tess_json_get_double(measured, "gpu_busy", 0), mib(measured, "driver_bytes"),
                mib(measured, "context_bytes"), mib(measured, "host_bytes"));
    }
    if (quality)
        say(w, "quality   PSNR %.3f dB", tess_json_get_double(quality, "psnr_db", 0));
    if (tess_json_get(quality, "ssim"))
        say(w, ", SSIM %.4f", tess_json_get_double(quality, "ssim", 0));
    if (quality)
        say(w, "\n");
}

/* Lists files that were not processed; those skipped by a stop only by their number. */
static void say_left_out(writer *w, const tess_json *denoise)
{
    const tess_json *files = tess_json_get(denoise, "files");
    int64_t stopped = 0;
    for (int64_t i = 0; i < tess_json_length(files); i++) {
        const char *trouble = tess_json_get_string(tess_json_at(files, i), "error", NULL);
        if (trouble && strcmp(trouble, "stopped") == 0)
            stopped++;
        else if (trouble)
            say(w, "failed    %s\n", trouble);
    }
    if (stopped)
        say(w, "stopped   %lld file(s) are not done\n", (long long)stopped);
    if (tess_json_get_int(denoise, "skipped", 0))
        say(w, "skipped   %lld file(s) whose output is there\n",
            (long long)tess_json_get_int(denoise, "skipped", 0));
}

/* Reports the assumptions about measured data. */
static void say_taken(writer *w, const tess_json *own)
{
    const tess_json *range = tess_json_get(own, "range");
    const bool own_blur = tess_json_get(own, "boundary") != NULL;
    const char *from = tess_json_get_string(own, "centre_from", NULL), *of = "";
    if (from) {
        say(w,
            "geometry  %lld columns, axis at column %.3f: ", (long long)tess_json_get_int(own, "columns", 0),
            tess_json_get_double(own, "centre", 0));
        if (tess_json_get(own, "centre_pairs"))
            say(w, "found from %lld pairs of opposite views\n",
                (long long)tess_json_get_int(own, "centre_pairs", 0));
        else
            say(w, "%s\n",
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
        say(w, "range     [%.6g, %.6g] %s\n", tess_json_as_double(tess_json_at(range, 0), 0),
            tess_json_as_double(tess_json_at(range, 1), 0), of);
    from = tess_json_get_string(own, "noise_from", NULL);
    if (from && tess_json_get(own, "noise"))
        say(w, "noise     %.4g %s\n", tess_json_get_double(own, "noise", 0),
            strcmp(from, "estimate") == 0 ? "estimated from the measurements"
            : strcmp(from, "given") == 0  ? "as given"
                                          : "by default: 0.01 of the range");
    if (tess_json_get_int(own, "starved", 0))
        say(w,
            "          %lld values (%.2g %%) were counted so low that their line integrals are only "
            "bounded\n",
            (long long)tess_json_get_int(own, "starved", 0),
            100 * tess_json_get_double(own, "starved_share", 0));
}

static void say_reconstruct(writer *w, const tess_json *own)
{
    const tess_json *iterations = tess_json_get(own, "iterations");
    say(w, "problem   %s: %s, preset %s, start %s\n", tess_json_get_string(own, "problem", "?"),
        tess_json_get_string(own, "operator", "?"), tess_json_get_string(own, "preset", "?"),
        tess_json_get_string(own, "init", "?"));
    say_taken(w, own);
    if (!iterations)
        return;
    const long long done = tess_json_length(iterations), inner = tess_json_get_int(own, "inner", 0);
    const char *stopped = tess_json_get_string(own, "stopped", "");
    const bool exact = strcmp(tess_json_get_string(own, "data_step", ""), "minimum") == 0;
    say(w, "solver    %lld iteration%s", done, done == 1 ? "" : "s");
    if (inner)
        say(w, ", each of up to %lld step%s of conjugate gradients", inner, inner == 1 ? "" : "s");
    else if (exact)
        say(w, ", each to the minimum of the data term");
    if (tess_json_get(own, "step"))
        say(w, ", %s %.4g", inner || exact ? "relaxed in steps of" : "step",
            tess_json_get_double(own, "step", 0));
    say(w, "%s\n",
        strcmp(stopped, "tolerance") == 0     ? "; stopped by `tolerance`"
        : strcmp(stopped, "seconds") == 0     ? "; stopped by `max_seconds`"
        : strcmp(stopped, "interrupted") == 0 ? "; interrupted, nothing was written"
                                              : "");
    if (tess_json_get_int(own, "step_halvings", 0))
        say(w,
            "          the step made the data term grow and was halved %lld "
            "time(s)\n",
            (long long)tess_json_get_int(own, "step_halvings", 0));
    if (tess_json_get(own, "baseline_psnr_db"))
        say(w, "baseline  PSNR %.3f dB (%s)\n", tess_json_get_double(own, "baseline_psnr_db", 0),
            tess_json_get_string(own, "baseline", "?"));
}

static void say_info(writer *w, const tess_json *info)
{
    const tess_json *devices = tess_json_get(info, "devices"), *models = tess_json_get(info, "models");
    for (int64_t i = 0; i < tess_json_length(devices); i++) {
        const tess_json *d = tess_json_at(devices, i);
        say(w, "device    %s: %s, %lld thread(s), %.1f of %.1f GiB free%s\n",
            tess_json_get_string(d, "kind", "?"), tess_json_get_string(d, "name", "?"),
            (long long)tess_json_get_int(d, "threads", 0), mib(d, "memory_free") / 1024,
            mib(d, "memory_total") / 1024,
            tess_json_get_bool(d, "fp16", false)   ? ", fp16 by default"
            : tess_json_get_bool(d, "bf16", false) ? ", bf16 matrix instructions"
                                                   : "");
        if (tess_json_get_int(d, "driver_bytes", 0))
            say(w, "          %.0f MiB taken by context and libraries\n", mib(d, "driver_bytes"));
    }
    for (int64_t i = 0; i < tess_json_length(models); i++) {
        const tess_json *m = tess_json_at(models, i);
        say(w, "model     %s: %s, %lld channel(s), %.2f million parameters\n",
            tess_json_get_string(m, "name", "?"), tess_json_get_string(m, "architecture", "?"),
            (long long)tess_json_get_int(m, "channels", 0), 1e-6 * tess_json_get_double(m, "parameters", 0));
    }
    say(w, "library   GDAL: %s\n",
        tess_json_get_bool(tess_json_get(info, "libraries"), "gdal", false) ? "found"
                                                                            : "missing (PNG and NPY only)");
    const tess_json *calibration = tess_json_get(info, "calibration");
    say(w, "rates     %lld op classes measured, %s\n", (long long)tess_json_get_int(calibration, "ops", 0),
        tess_json_get_string(calibration, "path", ""));
}

tess_status tess_record_summary(tess_context *context, const char *record, char **text)
{
    *text = NULL;
    tess_json *json = NULL;
    TESS_TRY(tess_json_parse(record, strlen(record), &json, &context->error));
    writer w = {.size = strlen(record) + 8192};
    w.text = tess_small_alloc(w.size, 1);
    const bool training = tess_json_get(json, "train") != NULL;
    say_training(&w, json);
    if (!training)
        say_plan(&w, json);
    say_samples(&w, json);
    if (tess_json_get(json, "reconstruct"))
        say_reconstruct(&w, tess_json_get(json, "reconstruct"));
    if (!training)
        say_measured(&w, json);
    say_left_out(&w, tess_json_get(json, "denoise"));
    if (tess_json_get(json, "info"))
        say_info(&w, tess_json_get(json, "info"));
    const tess_json *convert = tess_json_get(json, "convert");
    if (convert)
        say(&w, "%s (%s): %lld tensors, %lld values, %s -> %s\n", tess_json_get_string(convert, "input", "?"),
            tess_json_get_string(convert, "format", "?"), (long long)tess_json_get_int(convert, "tensors", 0),
            (long long)tess_json_get_int(convert, "values", 0),
            tess_json_get_string(convert, "architecture", "unknown architecture"),
            tess_json_get_string(convert, "output", "?"));
    tess_json_free(json);
    *text = w.text;
    return w.text ? TESS_OK : tess_fail(&context->error, TESS_NO_MEMORY, "no memory for a summary");
}
