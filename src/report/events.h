/* events.h: the events of a trace file, one after the other.
 *
 * A trace in the format of Chrome and Perfetto is an object whose "traceEvents" is a list of events, or the list alone,
 * whose end may then be missing. Files of hundreds of megabytes are usual, so that one event is in memory at a time; what
 * stands beside the events is skipped, except "otherData". */
#ifndef TESS_REPORT_EVENTS_H
#define TESS_REPORT_EVENTS_H

#include "base/json.h"
#include "base/stop.h"

enum { TESS_EVENT_MOST = 1 << 20 }; /* bytes of an event; larger ones are counted and left out */

typedef struct tess_event_facts {
    int64_t events;
    int64_t too_large;
    bool cut_short;   /* a list without its end */
    tess_json *about; /* "otherData", for the caller to free; NULL: none, or none that can be read */
} tess_event_facts;

typedef struct tess_event_visitor {
    tess_status (*take)(void *user, const tess_json *event, tess_error *error);
    void *user;
} tess_event_visitor;

/* Whether a file is a trace, by its beginning. A file that cannot be read is none. */
bool tess_events_found(const char *path);
/* Messages contain the path. */
tess_status tess_events_read(const char *path, const tess_event_visitor *visitor, tess_stop *stop,
                             tess_event_facts *facts, tess_error *error) TESS_MUST_CHECK;

#endif
