/* timeline.h: the spans of a trace as a page shows them: tracks, levels within a track, kinds, and the total time of
 * each name.
 *
 * Totals are exact. Spans are kept up to a number: above it, those shorter than a resolution are merged with their
 * neighbours, and the resolution doubles until there is room. A merged span stands for the short ones of one track, nesting
 * and kind that begin in one cell of that length; it knows how many they were and how long they took together. */
#ifndef TESS_REPORT_TIMELINE_H
#define TESS_REPORT_TIMELINE_H

#include "report/events.h"
#include "report/names.h"

enum {
    TESS_TIMELINE_SPANS = 1 << 19, /* in memory: all that one rank records, twice */
    TESS_TIMELINE_TRACKS = 4096,   /* read; fewer are drawn */
    TESS_TIMELINE_SHOWN = 128,
    TESS_TIMELINE_LEVELS = 16,
    TESS_TIMELINE_KINDS = 24,
    TESS_TIMELINE_NAMES = 1 << 16,
    TESS_TIMELINE_ROWS = 200, /* of the table of totals */
    TESS_TIMELINE_NAME = 120  /* bytes of a name */
};

enum { TESS_TIMELINE_LONG = 255 };

typedef struct tess_timeline_span {
    int64_t start, extent; /* ns */
    int64_t busy;          /* what the merged ones took together; the extent of a single one */
    int32_t name;          /* in `totals`; -1: several */
    uint32_t count;        /* 1: not merged */
    uint16_t track;
    uint8_t kind;
    uint8_t under; /* TESS_TIMELINE_LONG, or of a short one: how many short ones it lies in */
} tess_timeline_span;

typedef struct tess_timeline_track {
    int32_t process; /* in `processes` */
    double order[2]; /* of the process and within it; NaN: the number is text */
    char *name;      /* owned; NULL: not named */
    int64_t busy;    /* sum of all spans */
} tess_timeline_track;

typedef struct tess_timeline_total {
    int kind;
    int64_t count, busy, longest;
} tess_timeline_total;

/* All zero is empty. */
typedef struct tess_timeline {
    const char *path; /* the caller's */
    tess_event_facts facts;
    int64_t all, figures, others, unreadable, untracked; /* numbers of events */
    int64_t first, last;                                 /* ns */
    int64_t resolution;                                  /* ns, a power of two; 0: nothing was merged */
    tess_timeline_span *spans;
    int64_t count, room;
    tess_names track_names, processes, kinds, names; /* of names: a letter for the kind, then the name */
    tess_timeline_track *tracks;                     /* by the number of its name */
    char **process_names;                            /* by the number of the process; owned */
    tess_timeline_total *totals;                     /* by the number of the name */
    tess_timeline_total others_total;                /* of names beyond the most */
    tess_timeline_total by_kind[TESS_TIMELINE_KINDS];
    int shown, rows; /* at most so many tracks and rows of the table are in the text */
    char *text;      /* JSON for the page, by tess_timeline_write */
    size_t bytes;
} tess_timeline;

/* Durations of a trace may be anything: their sum ends at the largest number. */
static inline int64_t tess_timeline_sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* Reads a trace. `path` must outlive the timeline. Messages contain the path. */
tess_status tess_timeline_read(tess_timeline *timeline, const char *path, tess_stop *stop,
                               tess_error *error) TESS_MUST_CHECK;
void tess_timeline_clear(tess_timeline *timeline);

/* timeline_merge.c: raises the resolution until at most `most` spans are left, or it is as long as the trace. */
void tess_timeline_merge(tess_timeline *timeline, int64_t most);
/* Sorts by track, start and length, and gives each span its level: 0 is the outermost. `levels` has room for each span. */
void tess_timeline_levels(tess_timeline *timeline, uint8_t *levels);

/* timeline_text.c: writes `text`, which has at most about `most` bytes in a page: it merges and leaves out until it fits. */
tess_status tess_timeline_write(tess_timeline *timeline, size_t most, tess_error *error) TESS_MUST_CHECK;

#endif
