/* raster_void_watch.h: what all samples of a raster say about the rule of its voids.
 *
 * A file that declares its voids may have others: of a second program, or of a mosaic of files. They count as marks if
 * they are far from all heights. */
#ifndef TESS_IO_RASTER_VOID_WATCH_H
#define TESS_IO_RASTER_VOID_WATCH_H

#include "io/raster_void.h"

typedef struct tess_void_watch {
    /* Samples that the rule takes for heights. */
    int64_t counts[TESS_VOID_MARKS], absurd; /* absurd: TESS_VOID_ABSURD and beyond */
    double farthest;                         /* of these */
    double low, high;                        /* of the others */
} tess_void_watch;

void tess_void_watch_begin(tess_void_watch *watch);
/* A sample that the rule takes for a height. */
void tess_void_watch_count(tess_void_watch *watch, const tess_void_rule *rule, double sample);
/* Leaves the counts of marks that are far from all heights, and says whether there are any. */
bool tess_void_watch_end(tess_void_watch *watch);
/* Makes them void. */
void tess_void_rule_add(tess_void_rule *rule, const tess_void_watch *watch);

#endif
