/* The summary of a run of `reconstruct`. */
#include <string.h>

#include "job/common/summary/summary_impl.h"

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
                     strcmp(from, "given") == 0            ? "as given"
                     : strcmp(from, "middle") == 0         ? "the middle, as no \"centre\" is given"
                     : strcmp(from, "centre of mass") == 0 ? "found from the centres of mass"
                                                           : "found from the spectrum of the views");
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
                 : strcmp(from, "range") == 0 ? "the least for this range, 0.005 of it; the estimate is lower"
                                              : "by default: 0.01 of the range");
    if (tess_json_get_int(own, "starved", 0))
        tess_say(w,
                 "          %lld values (%.2g %%) were counted so low that their line integrals are only "
                 "bounded\n",
                 (long long)tess_json_get_int(own, "starved", 0),
                 100 * tess_json_get_double(own, "starved_share", 0));
}

void tess_say_reconstructing(tess_summary *w, const tess_json *record)
{
    const tess_json *own = tess_json_get(record, "reconstruct"),
                    *iterations = tess_json_get(own, "iterations");
    if (!own)
        return;
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
