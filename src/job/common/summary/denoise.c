/* The summary of a run of `denoise`. */
#include <math.h>
#include <string.h>

#include "job/common/summary/summary_impl.h"

/* Of an integer all digits, such as those of seconds since 1970. */
static int digits_of(double value)
{
    return value == rint(value) && fabs(value) < 1e15 ? 15 : 9;
}

void tess_say_samples(tess_summary *w, const tess_json *record)
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
    const tess_json *levels = tess_json_get(file, "sigma_range");
    if (levels) {
        const double least = tess_json_as_double(tess_json_at(levels, 0), 0),
                     most = tess_json_as_double(tess_json_at(levels, 1), 0);
        tess_say(w, ", %.4g to %.4g = %.3g to %.3g/255", least, most, 255 * least, 255 * most);
    }
    if (tess_json_get_int(file, "holes", 0))
        tess_say(w, ", %lld hole(s) kept", (long long)tess_json_get_int(file, "holes", 0));
    tess_say(w, "\n");
}

/* Lists files that were not processed; those skipped by a stop only by their number. */
void tess_say_left_out(tess_summary *w, const tess_json *record)
{
    const tess_json *denoise = tess_json_get(record, "denoise"), *files = tess_json_get(denoise, "files");
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
