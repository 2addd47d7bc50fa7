/* squares.h: what a JPEG does to values beside those that are cut off. It stores squares of pixels, and in one that holds the rim of a
 * highlight, the steps of its quantisation put waves over all pixels, which are no blur of any picture. So these count less. Beside frames
 * they count: there, leaving them out costs up to 3 dB. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_SQUARES_H
#define TESS_JOB_RECONSTRUCT_MASK_SQUARES_H

#include "job/reconstruct/problem/problem.h"

/* Makes problem->hidden.squares, of which none is hidden; nothing if the file is no JPEG. */
tess_status tess_squares_open(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Hides the square of this value, row `y` of the file. */
void tess_squares_hide(tess_problem *problem, int64_t y, int64_t column, tess_hidden_reason why);
/* Sets problem->hidden.beside. If so much is hidden that too little is left to find the picture from, shows all squares again. */
void tess_squares_end(tess_problem *problem);
/* Why the square of this value is hidden; TESS_HIDDEN_REASONS: it is not. */
tess_hidden_reason tess_square_why(const tess_problem *problem, int64_t y, int64_t column);
/* The weight of its values in the data term. */
float tess_square_weight(const tess_problem *problem, int64_t y, int64_t column);
/* How far values of a JPEG lie from those that were saved, at most, beside a frame; beside highlights. In units of the solver. */
double tess_waves_of_frame(const tess_problem *problem);
double tess_waves_of_highlight(const tess_problem *problem);

#endif
