/* strips.h: how the rows of one image are divided among ranks, or its columns. Strips begin at multiples of `step`, and the largest
 * is as small as possible. */
#ifndef TESS_PLAN_STRIPS_H
#define TESS_PLAN_STRIPS_H

#include "net/bound.h"

typedef struct tess_strips {
    int64_t count; /* ranks beyond have nothing to do */
    int64_t step;  /* rows */
    int64_t each,
        longer; /* steps of a strip; the first `longer` strips have one more, and the last has what is left */
    int64_t height;
} tess_strips;

tess_strips tess_strips_divide(const tess_bound *bound, int64_t grid, int64_t height, int64_t ranks);
/* The same for columns. */
tess_strips tess_strips_divide_columns(const tess_bound *bound, int64_t grid, int64_t width, int64_t ranks);
/* The same where nothing but `step` matters. */
tess_strips tess_strips_of(int64_t step, int64_t height, int64_t ranks);
/* The first row of a strip; of strip `count`: the height. */
int64_t tess_strips_row(const tess_strips *strips, int64_t index);
int64_t tess_strips_rows(const tess_strips *strips, int64_t index);

#endif
