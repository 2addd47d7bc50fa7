/* The summary of `info`. */
#include "job/common/summary/summary_impl.h"

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

void tess_say_info(tess_summary *w, const tess_json *record)
{
    const tess_json *info = tess_json_get(record, "info");
    if (!info)
        return;
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
