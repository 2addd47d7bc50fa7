/* hidden_rows.h: sets the masks of blurs while they are read, and gives hidden values that others of the picture suggest: missing ones,
 * and those of a frame, get values from the same row, as far as it has any, otherwise from rows before or after it. The first
 * estimate and the looks at range, exposure and outliers use these; the data term does not. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_HIDDEN_ROWS_H
#define TESS_JOB_RECONSTRUCT_MASK_HIDDEN_ROWS_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Initialize with {0}; close it. */
typedef struct tess_hidden_rows {
    const tess_problem *problem;
    tess_workspace *w;
    float *mask;  /* of a row; owned, as are the others */
    float *last;  /* for each value of a row, the last one above it */
    bool *filled; /* of each channel: `last` has values of the blur that is read */
} tess_hidden_rows;

tess_status tess_hidden_rows_open(tess_hidden_rows *rows, const tess_problem *problem,
                                  tess_workspace *workspace, tess_error *error) TESS_MUST_CHECK;
void tess_hidden_rows_close(tess_hidden_rows *rows);
/* Row `y` of the file, in units of the solver; `values` are changed. All rows of a blur must be passed, in order. */
tess_status tess_hidden_rows_take(tess_hidden_rows *rows, int64_t y, float *values,
                                  tess_error *error) TESS_MUST_CHECK;

/* Replaces the hidden values of row `row` of this rank's part of a blur by NaN, for the estimate of the noise. Areas at the ends of the
 * range stay, unless the file is a JPEG: the estimate knows limits, and white paper would leave only edges. */
tess_status tess_hidden_blank(const tess_problem *problem, tess_workspace *workspace, int64_t blur,
                              int64_t row, float *values, tess_error *error) TESS_MUST_CHECK;
/* Writes the frame into the result, vectors[0] of the workspace, where all blurs have one: what it hides is a guess. */
tess_status tess_hidden_restore_frame(const tess_problem *problem, tess_workspace *workspace,
                                      tess_error *error) TESS_MUST_CHECK;

#endif
