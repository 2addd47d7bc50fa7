/* timeline_impl.h: the text of a timeline while it is written, for timeline_text.c and timeline_tracks.c. */
#ifndef TESS_REPORT_TIMELINE_IMPL_H
#define TESS_REPORT_TIMELINE_IMPL_H

#include "report/timeline.h"

typedef struct tess_text {
    char *data;
    size_t used, room;
    bool failed;
} tess_text;

typedef struct tess_writing {
    tess_timeline *of;
    tess_text out;
    uint8_t *levels;
    int32_t *names; /* number in the page of each name plus one; 0: not used yet */
    tess_json *used;
    int64_t drawn, merged, merged_into, undrawn;
} tess_writing;

typedef struct tess_ranked {
    double order[2];
    int64_t busy;
    int32_t number;
} tess_ranked;

void tess_text_put(tess_text *t, const char *data, size_t length);
void tess_text_word(tess_text *t, const char *word);
void tess_text_number(tess_text *t, int64_t value, const char *behind);
void tess_text_json(tess_text *t, tess_json *value); /* frees the value */

/* The number that a name has in the page; 0 is that of several. */
int32_t tess_writing_name(tess_writing *w, int32_t name);
/* For qsort: the busiest first. */
int tess_ranked_by_busy(const void *a, const void *b);

/* timeline_tracks.c: the tracks with their spans. */
void tess_writing_tracks(tess_writing *w);

#endif
