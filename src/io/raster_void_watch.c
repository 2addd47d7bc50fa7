#include "io/raster_void_watch.h"

#include <math.h>

void tess_void_watch_begin(tess_void_watch *watch)
{
    *watch = (tess_void_watch){.low = INFINITY, .high = -INFINITY};
}

void tess_void_watch_count(tess_void_watch *watch, const tess_void_rule *rule, double sample)
{
    const int mark = tess_void_mark_of(sample);
    if (rule->avoid && sample == rule->avoided)
        return; /* a height by the caller's word */
    if (mark >= 0)
        watch->counts[mark]++;
    else if (fabs(sample) >= TESS_VOID_ABSURD) {
        watch->absurd++;
        watch->farthest = fabs(sample) > fabs(watch->farthest) ? sample : watch->farthest;
    } else {
        watch->low = fmin(watch->low, sample);
        watch->high = fmax(watch->high, sample);
    }
}

bool tess_void_watch_end(tess_void_watch *watch)
{
    bool any = watch->absurd > 0;
    for (int i = 0; i < TESS_VOID_MARKS; i++) {
        if (!(watch->low <= watch->high) || !tess_void_is_far(i, watch->low, watch->high))
            watch->counts[i] = 0;
        any = any || watch->counts[i] > 0;
    }
    return any;
}

void tess_void_rule_add(tess_void_rule *rule, const tess_void_watch *watch)
{
    rule->absurd = rule->absurd || watch->absurd > 0;
    for (int i = 0; i < TESS_VOID_MARKS; i++)
        rule->marks[i] = rule->marks[i] || watch->counts[i] > 0;
}
