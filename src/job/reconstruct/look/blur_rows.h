/* blur_rows.h: the rows of a measured blur one after another, each with two rows above and below it. Ranks tell each other the rows
 * beside the borders between their parts. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_BLUR_ROWS_H
#define TESS_JOB_RECONSTRUCT_LOOK_BLUR_ROWS_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

enum { TESS_BLUR_ROWS_REACH = 2, TESS_BLUR_ROWS = 2 * TESS_BLUR_ROWS_REACH + 1 };

typedef struct tess_blur_rows {
    const tess_problem *problem;
    tess_workspace *w;
    int64_t blur, first, own; /* rows of this rank */
    int64_t samples;          /* of a row */
    float *ring;              /* row y is at y modulo TESS_BLUR_ROWS; owned */
    float *edges;             /* rows on both sides of each border between ranks */
} tess_blur_rows;

/* Collective. Close it also if this fails. */
tess_status tess_blur_rows_open(tess_blur_rows *rows, const tess_problem *problem, tess_workspace *workspace,
                                tess_error *error) TESS_MUST_CHECK;
void tess_blur_rows_close(tess_blur_rows *rows);
/* Collective: chooses a blur, the rows of which must not change while they are visited. */
tess_status tess_blur_rows_choose(tess_blur_rows *rows, int64_t blur, tess_error *error) TESS_MUST_CHECK;
/* Calls `visit` for each row of this rank; tess_blur_row then returns it and those around it. Beyond the picture, rows repeat. */
typedef void (*tess_blur_row_fn)(void *user, const tess_blur_rows *rows, int64_t row);
tess_status tess_blur_rows_visit(tess_blur_rows *rows, tess_blur_row_fn visit, void *user,
                                 tess_error *error) TESS_MUST_CHECK;
const float *tess_blur_row(const tess_blur_rows *rows, int64_t row);

#endif
