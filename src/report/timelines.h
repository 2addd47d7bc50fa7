/* timelines.h: the traces among the files of a page. */
#ifndef TESS_REPORT_TIMELINES_H
#define TESS_REPORT_TIMELINES_H

#include "report/timeline.h"

enum {
    TESS_TIMELINES_MOST = 16,
    TESS_TIMELINES_BYTES = 2 << 20,  /* of records and timelines together, as they are in a page */
    TESS_TIMELINES_LEAST = 384 << 10 /* which timelines have, however many records there are */
};

/* All zero is empty. */
typedef struct tess_timelines {
    tess_timeline list[TESS_TIMELINES_MOST];
    int count;
} tess_timelines;

/* Adds a trace. `path` must outlive the timelines. Messages contain the path. */
tess_status tess_timelines_read(tess_timelines *timelines, const char *path, tess_stop *stop,
                                tess_error *error) TESS_MUST_CHECK;
/* Writes their texts, beside records of `records` bytes. */
tess_status tess_timelines_write(tess_timelines *timelines, size_t records,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_timelines_clear(tess_timelines *timelines);

#endif
