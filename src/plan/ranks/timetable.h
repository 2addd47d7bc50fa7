/* timetable.h: predicts a run of a network over ranks, from the steps of the real plan of each strip or block: ops take what the rates
 * say, exchanges what the links say. A rank that begins an exchange goes on with the rows that do not need it, as the plan
 * says, and waits until its neighbours have begun theirs and the rows have arrived.
 *
 * The plan exchanges rows before every convolution. With `avoid` a level of the network is predicted otherwise: rows for
 * several convolutions are exchanged at once, and the convolutions in between are computed on rows of the neighbour, too,
 * so that less time goes into latency and more into computing. */
#ifndef TESS_PLAN_TIMETABLE_H
#define TESS_PLAN_TIMETABLE_H

#include "plan/ranks/links.h"
#include "plan/rates.h"

/* An exchange, and everything that is computed after it and before the next one. */
typedef struct tess_stage {
    tess_op op;            /* the layer that needs the rows, undivided */
    double bytes;          /* that go to each neighbour */
    double beside, corner; /* of a block: the same for those on the left and right, and at its corners */
    double whole;          /* seconds of the layer, undivided */
    double inner, edges; /* or in parts: without the neighbours' rows, and with them; inner 0: not divided */
    double after;        /* seconds of the ops that follow */
    bool ends_level;     /* one of these has another number of rows */
    int rows;            /* that each neighbour sends */
} tess_stage;

typedef struct tess_timetable {
    double before; /* seconds until the first exchange; all of them without neighbours */
    tess_stage *stages;
    int count;
    int sides;  /* neighbours above and below: 0 to 2 */
    int beside; /* of a block: those on the left and right */
    double arena_bytes, workspace_bytes, weight_bytes;
    bool measured; /* all rates behind it were measured */
} tess_timetable;

/* Release it with tess_timetable_clear also if this fails. */
tess_status tess_timetable_make(const tess_bound *bound, const tess_rates *rates, tess_plan_shape shape,
                                tess_timetable *timetable, tess_error *error) TESS_MUST_CHECK;
void tess_timetable_clear(tess_timetable *timetable);
/* How many convolutions each stage's level takes rows for at once, up to `most`: as many as take the least time in this
 * timetable, of an inner strip, with exchanges like that of the ranks `lower` and `lower + 1`. `groups` has an entry for each
 * stage. Returns the most that was chosen. */
int tess_timetable_groups(const tess_timetable *timetable, const tess_rates *rates, const tess_links *links,
                          int ranks, int lower, int most, int *groups);
/* Changes the timetable accordingly; all ranks take the same groups. */
void tess_timetable_avoid(tess_timetable *timetable, const tess_rates *rates, const int *groups);
/* Seconds of computing alone. */
double tess_timetable_compute(const tess_timetable *timetable);

typedef struct tess_timetable_time {
    double seconds;       /* of the rank that ends last */
    double compute;       /* the most of any rank */
    double communication; /* seconds - compute: what exchanges add */
    double sent;          /* the most bytes that a rank sends */
} tess_timetable_time;

/* How fast ranks are beside the rates. */
typedef struct tess_pace {
    const double *of_rank; /* NULL: all 1 */
    /* In each stage, which counts for timetables of so many: rank r's speed before the first stage, and then in each of them, is
     * of_stage[r * (stages + 1)] and following. NULL: as of_rank. */
    const double *of_stage;
    int stages;
} tess_pace;

/* Seconds of a stage without waiting. */
static inline double tess_stage_seconds(const tess_stage *stage)
{
    return (stage->inner > 0 ? stage->inner + stage->edges : stage->whole) + stage->after;
}

/* The timetables of all ranks, which exchange alike. `columns`: of the grid of blocks that they have, numbered row by row; 1:
 * strips. */
tess_status tess_timetable_run(const tess_timetable *const *of_rank, tess_pace pace, int ranks, int columns,
                               const tess_links *links, tess_timetable_time *time,
                               tess_error *error) TESS_MUST_CHECK;

#endif
