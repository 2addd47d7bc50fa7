/* smooth_impl.h: what the files of the smooth fill share. */
#ifndef TESS_TENSOR_TERRAIN_SMOOTH_IMPL_H
#define TESS_TENSOR_TERRAIN_SMOOTH_IMPL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TESS_SMOOTH_LEVELS = 24, TESS_SMOOTH_MARGIN = 4 };

/* A grid of the preconditioner. Level 0 is the raster; a pixel of level l + 1 covers 2 x 2 of level l. */
typedef struct tess_smooth_level {
    int64_t h, w;
    uint8_t *active; /* level 0: void pixels. Coarser: the spline at this pixel lies inside the void */
    float *tension;
    float *inverse;      /* of the energy of the spline at each active pixel; 0 elsewhere */
    int64_t *spans;      /* of each row, first and end of the active columns */
    double *r, *z;       /* residual and its preconditioned form; 0 where not active */
    double plate, slope; /* energies of one spline of this level */
} tess_smooth_level;

typedef struct tess_smooth_system {
    tess_smooth_level levels[TESS_SMOOTH_LEVELS];
    int count;
    double plate;      /* weight of the plate: 0 or 1 */
    double *u, *p, *q; /* as large as level 0: heights, direction, its image */
    double *line;      /* a row of level 0 with TESS_SMOOTH_MARGIN zeros before and behind it */
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
