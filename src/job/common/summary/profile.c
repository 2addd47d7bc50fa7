/* The lines of --profile. */
#include "job/common/summary/summary_impl.h"

#include <string.h>

static void say_rate(tess_summary *w, const tess_json *layer)
{
    if (!tess_json_get(layer, "bound")) {
        tess_say(w, "%15s%9s", "", "");
        return;
    }
    const bool bytes = strcmp(tess_json_get_string(layer, "bound", "?"), "bytes") == 0;
    tess_say(w, "%7.1f %-7s",
             1e-9 * tess_json_get_double(layer, bytes ? "bytes_per_second" : "flops_per_second", 0),
             bytes ? "GB/s" : "GFLOP/s");
    tess_say(w, "%8.0f%%", 100 * tess_json_get_double(layer, "of_limit", 0));
}

static void say_ops(tess_summary *w, const tess_json *ops)
{
    tess_say(w, "          all layers of a kind:\n");
    for (int64_t i = 0; i < tess_json_length(ops); i++) {
        const tess_json *op = tess_json_at(ops, i);
        tess_say(w, "        %9.3f %6.1f%% %7lld %15s", tess_json_get_double(op, "seconds", 0),
                 100 * tess_json_get_double(op, "share", 0), (long long)tess_json_get_int(op, "layers", 0),
                 "layers");
        if (tess_json_get(op, "of_limit"))
            tess_say(w, "%8.0f%%", 100 * tess_json_get_double(op, "of_limit", 0));
        else
            tess_say(w, "%9s", "");
        tess_say(w, "  %s\n", tess_json_get_string(op, "op", "?"));
    }
}

void tess_say_profile(tess_summary *w, const tess_json *record)
{
    const tess_json *profile = tess_json_get(record, "profile"), *layers = tess_json_get(profile, "layers"),
                    *limit = tess_json_get(profile, "limit");
    if (!layers)
        return;
    tess_say(w,
             "profile   %lld layers, %.3f s in all; the limit is %.1f GFLOP/s, %.1f GB/s (%s)\n"
             "          seconds   share   calls            rate  of limit  layer\n",
             (long long)tess_json_get_int(profile, "layer_count", 0),
             tess_json_get_double(profile, "seconds", 0),
             1e-9 * tess_json_get_double(limit, "flops_per_second", 0),
             1e-9 * tess_json_get_double(limit, "bytes_per_second", 0),
             tess_json_get_bool(limit, "calibrated", false) ? "calibrated" : "not calibrated");
    for (int64_t i = 0; i < tess_json_length(layers); i++) {
        const tess_json *layer = tess_json_at(layers, i);
        tess_say(w, "        %9.3f %6.1f%% %7lld ", tess_json_get_double(layer, "seconds", 0),
                 100 * tess_json_get_double(layer, "share", 0),
                 (long long)tess_json_get_int(layer, "calls", 0));
        say_rate(w, layer);
        tess_say(w, "  %s (%s)\n", tess_json_get_string(layer, "name", "?"),
                 tess_json_get_string(layer, "op", "?"));
    }
    say_ops(w, tess_json_get(profile, "ops"));
}
