/* raster_void_watch.h: what all samples of a raster say about the rule of its voids.
 *
 * A file that declares its voids may have others: of a second program, or of a mosaic of files. They count as marks if
 * they are far from all heights.
 *
 * The other way round, a file that declares nothing may have real heights that look like voids: an island in a map of the
 * sea, which is hundreds of the sea's ranges above it, or a depth of -999 m. Terrain goes on from pixel to pixel where
 * voids and outliers end abruptly, so rows of samples are looked at. */
#ifndef TESS_IO_RASTER_VOID_WATCH_H
#define TESS_IO_RASTER_VOID_WATCH_H

#include "io/raster_void.h"

/* Samples outside the limits of outliers, on one side. */
typedef struct tess_void_beyond {
    int64_t pixels; /* that differ from a neighbour */
    int64_t joined; /* of these, in long runs, on the line of their neighbours */
    double reach;   /* the farthest of the joined */
} tess_void_beyond;

typedef struct tess_void_watch {
    /* Samples that the rule takes for heights. */
    int64_t counts[TESS_VOID_MARKS], absurd; /* absurd: TESS_VOID_ABSURD and beyond */
    double farthest;                         /* of these */
    double low, high;                        /* of the others */
    /* Samples that it takes for voids. */
    tess_void_beyond beyond[2];   /* below and above */
    int64_t ends[TESS_VOID_TOPS]; /* where runs of a mark end */
    int64_t near[TESS_VOID_TOPS]; /* of these, where the terrain goes on to it */
} tess_void_watch;

void tess_void_watch_begin(tess_void_watch *watch);
/* A sample that the rule takes for a height. */
void tess_void_watch_count(tess_void_watch *watch, const tess_void_rule *rule, double sample);
/* A row of samples as the file has them. Does nothing if the rule guesses nothing. */
void tess_void_watch_row(tess_void_watch *watch, const tess_void_rule *rule, const double *row,
                         int64_t count);
/* Leaves the counts of marks that are far from all heights, and says whether the rule has to change. */
bool tess_void_watch_end(tess_void_watch *watch, const tess_void_rule *rule);
/* Changes it. */
void tess_void_rule_add(tess_void_rule *rule, const tess_void_watch *watch);

#endif
