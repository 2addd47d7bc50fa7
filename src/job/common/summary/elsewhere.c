/* The line about ranks on the machine of a file. */
#include "job/common/summary/summary_impl.h"

void tess_say_elsewhere(tess_summary *w, const tess_json *plan)
{
    const tess_json *there = tess_json_get(plan, "elsewhere");
    if (!there)
        return;
    tess_say(
        w,
        "elsewhere %lld rank(s) of %s: %.4g s (communication %.2g), %.1f times as fast as one, %.0f MiB a "
        "rank%s; bound by %s; simulated; checked: %s\n",
        (long long)tess_json_get_int(there, "ranks", 0), tess_json_get_string(there, "machine", "?"),
        tess_json_get_double(there, "seconds", 0), tess_json_get_double(there, "communication_seconds", 0),
        tess_json_get_double(there, "speedup", 0), tess_say_mib(there, "bytes_per_rank"),
        tess_json_get_bool(there, "fits", true) ? "" : ", which do not fit",
        tess_json_get_string(there, "binds", "?"), tess_json_get_string(there, "checked", "?"));
}
