#include "report/timelines.h"

/* Spans that a timeline keeps while the next one is read: no page shows more. */
enum { KEPT = TESS_TIMELINES_BYTES / 12 };

tess_status tess_timelines_read(tess_timelines *timelines, const char *path, tess_stop *stop,
                                tess_error *error)
{
    if (timelines->count == TESS_TIMELINES_MOST)
        return tess_fail(error, TESS_BAD_INPUT, "%s: a page shows at most %d traces", path,
                         TESS_TIMELINES_MOST);
    tess_timeline *timeline = &timelines->list[timelines->count++];
    TESS_TRY(tess_timeline_read(timeline, path, stop, error));
    tess_timeline_merge(timeline, KEPT / timelines->count);
    return TESS_OK;
}

/* Each gets an equal part of what those before it left. */
tess_status tess_timelines_write(tess_timelines *timelines, size_t records, tess_error *error)
{
    const size_t left = records < TESS_TIMELINES_BYTES ? TESS_TIMELINES_BYTES - records : 0;
    size_t most = left > TESS_TIMELINES_LEAST ? left : TESS_TIMELINES_LEAST;
    for (int i = 0; i < timelines->count; i++) {
        tess_timeline *timeline = &timelines->list[i];
        TESS_TRY(tess_timeline_write(timeline, most / (size_t)(timelines->count - i), error));
        most -= timeline->bytes < most ? timeline->bytes : most;
    }
    return TESS_OK;
}

void tess_timelines_clear(tess_timelines *timelines)
{
    for (int i = 0; i < timelines->count; i++)
        tess_timeline_clear(&timelines->list[i]);
    timelines->count = 0;
}
