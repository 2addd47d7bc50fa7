/* strips.h: how the rows of one image are divided among ranks, or its columns. Strips begin at multiples of `step`, and the largest
 * is as small as possible; or, where the speeds of the ranks are known, the one that takes longest. */
#ifndef TESS_PLAN_STRIPS_H
#define TESS_PLAN_STRIPS_H

#include "net/levels.h"

enum { TESS_STRIPS_BY_SPEED = 256 }; /* the most strips whose lengths follow speeds */

typedef struct tess_strips {
    int64_t count; /* ranks beyond have nothing to do */
    int64_t step;  /* rows */
    int64_t steps; /* strips may begin at so many multiples of it */
    int64_t each,
        longer; /* steps of a strip; the first `longer` strips have one more, and the last has what is left */
    int64_t height;
    tess_levels levels; /* of the network, if they can have borders of their own; only for rows */
    bool by_speed;      /* strips begin at `starts` of level 0 instead */
    bool by_level;      /* and at each level of the network at those of that level */
    int32_t starts[TESS_LEVELS][TESS_STRIPS_BY_SPEED]; /* in rows of the level */
} tess_strips;

tess_strips tess_strips_divide(const tess_bound *bound, int64_t grid, int64_t height, int64_t ranks);
/* The same for columns. */
tess_strips tess_strips_divide_columns(const tess_bound *bound, int64_t grid, int64_t width, int64_t ranks);
/* The same where nothing but `step` matters; where strips may begin at `steps` multiples of it. */
tess_strips tess_strips_of(int64_t step, int64_t height, int64_t ranks);
tess_strips tess_strips_of_steps(int64_t step, int64_t steps, int64_t height, int64_t ranks);
/* The first row of a strip; of strip `count`: the height. */
int64_t tess_strips_row(const tess_strips *strips, int64_t index);
int64_t tess_strips_rows(const tess_strips *strips, int64_t index);
/* The rows of the longest and of the shortest strip. */
int64_t tess_strips_most(const tess_strips *strips);
int64_t tess_strips_least(const tess_strips *strips);

/* The first row of a strip at a level of the network, in rows of that level; of strip `count`: all rows, with the padding of the
 * image. */
int64_t tess_strips_level_row(const tess_strips *strips, int level, int64_t index);
/* The rows of a strip at all levels; all 0: they are the same part of the image at every level. */
tess_level_rows tess_strips_level_rows(const tess_strips *strips, int64_t index);

/* The most rows / speed of a strip, of which `speeds` has one each. Neighbours wait for each other inside of every level, so with levels
 * this is the sum of the most of each, by its share of the operations. */
double tess_strips_longest(const tess_strips *strips, const double *speeds);
/* As many strips of equal length, divided so that the longest time is as short as possible. They stay equal if that would gain less
 * than 3 %, which is about what speeds are known to, or if there are too many. Levels have borders of their own if that gains as
 * much again. */
tess_strips tess_strips_by_speed(const tess_strips *equal, const double *speeds);
/* strips_levels.c: the shortest of these with borders of their own at each level. False: there is none. */
bool tess_strips_by_level(const tess_strips *equal, const double *speeds, tess_strips *strips);

#endif
