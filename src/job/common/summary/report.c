/* The summary of a page. */
#include "job/common/summary/summary_impl.h"

void tess_say_reporting(tess_summary *w, const tess_json *record)
{
    const tess_json *report = tess_json_get(record, "report");
    if (!report)
        return;
    const long long all = tess_json_get_int(report, "records", 0),
                    shown = tess_json_get_int(report, "shown", 0),
                    pictures = tess_json_get_int(report, "pictures", 0),
                    traces = tess_json_get_int(report, "traces", 0);
    tess_say(w, "page      %s: ", tess_json_get_string(report, "output", "?"));
    if (all || !traces)
        tess_say(w, "%lld record%s", all, all == 1 ? "" : "s");
    if (shown < all)
        tess_say(w, ", %lld of them shown", shown);
    if (traces)
        tess_say(w, "%s%lld trace%s", all ? ", " : "", traces, traces == 1 ? "" : "s");
    if (pictures)
        tess_say(w, ", %lld picture%s", pictures, pictures == 1 ? "" : "s");
    tess_say(w, ", %.1f MiB; open it in a browser\n", tess_say_mib(report, "bytes"));
}
