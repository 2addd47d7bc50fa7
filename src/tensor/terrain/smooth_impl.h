/* smooth_impl.h: what the files of the smooth fill share. */
#ifndef TESS_TENSOR_TERRAIN_SMOOTH_IMPL_H
#define TESS_TENSOR_TERRAIN_SMOOTH_IMPL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TESS_SMOOTH_LEVELS = 40, TESS_SMOOTH_MARGIN = 4 };

/* Active pixels of a row, one beside the other. All loops go over these, since void pixels are few. */
typedef struct tess_smooth_run {
    int32_t y, from, to;
} tess_smooth_run;

/* Sums over the splines of an axis, one for each place: of squares, of squared first and of squared second differences. */
typedef struct tess_smooth_sums {
    double square, first, second;
} tess_smooth_sums;

/* A grid of the preconditioner. Level 0 is the raster. Spline a of level l + 1 covers the pixels 2a - 3 to 2a of level l with the
 * weights 1/4, 3/4, 3/4, 1/4, in both axes; the outermost ones reach over the edge. */
typedef struct tess_smooth_level {
    int64_t h, w;
    uint8_t *active; /* level 0: void pixels. Coarser: the spline at this pixel lies inside the void */
    float *tension;
    float *inverse; /* of the energy of the spline at each active pixel; 0 elsewhere */
    tess_smooth_run *runs;
    int64_t run_count;
    tess_smooth_sums *rows, *columns; /* h and w */
    double *r, *z;                    /* residual and its preconditioned form; 0 where not active */
} tess_smooth_level;

typedef struct tess_smooth_system {
    tess_smooth_level levels[TESS_SMOOTH_LEVELS];
    int count;
    double plate;      /* weight of the plate: 0 or 1 */
    double *u, *p, *q; /* as large as level 0: heights, direction, its image */
    double *line;      /* the longer side of level 0 with TESS_SMOOTH_MARGIN before and behind it, twice */
} tess_smooth_system;

/* Places the arrays of an h x w raster at `scratch` and returns the bytes; with NULL only counts. */
size_t tess_smooth_place(tess_smooth_system *system, int64_t h, int64_t w, void *scratch);
/* Fills in the coarser levels from `active` and `tension` of level 0, and clears what CG needs clear. */
void tess_smooth_prepare(tess_smooth_system *system);
/* z = M^-1 r on level 0. */
void tess_smooth_precondition(tess_smooth_system *system);
/* Minimises the energy over u at active pixels; returns the iterations. */
int tess_smooth_solve(tess_smooth_system *system, double tolerance);

#endif
