/* centre.h: finds the column of a sinogram at which the rotation axis is seen.
 *
 * Two views that differ by half a turn are mirror images about it: view i at column s is view j at column 2 a - s. If
 * there are such pairs, the best mirror is searched in half columns over all pairs at once, then refined by the phase
 * of their cross spectra, which is linear in frequency for a shift (Guizar-Sicairos et al., Optics Letters 33, 2008,
 * explain why spectra are better than interpolated sums). Without pairs, or with few, the centre of mass of a view moves as a + x cos t
 * - y sin t, which is fitted, and near it the spectrum of all views together is searched (centre_waves.c), which noise
 * and a background disturb less. Both require that every view sees the whole object, and next to nothing beside it. */
#ifndef TESS_PHYSICS_CENTRE_H
#define TESS_PHYSICS_CENTRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/stop.h"

typedef struct tess_centre {
    double column;
    int64_t pairs; /* number of opposite views used; 0: found without any */
    bool spectrum; /* without: from the spectrum of all views, not from the centres of mass alone */
    double
        within; /* columns: how far the halves of the pairs differ, or one standard error; infinite if not known */
} tess_centre;

/* (count, columns) values, and angles in degrees. `stop` is polled by long loops; NULL: they run to their end. */
typedef struct tess_centre_views {
    const float *values;
    const double *angles;
    int64_t count, columns;
    tess_stop *stop;
} tess_centre_views;

/* The memory that the search needs. */
size_t tess_centre_bytes(int64_t count, int64_t columns);

/* `memory` has tess_centre_bytes(). Returns TESS_BAD_INPUT and what to do if the centre cannot be found. */
tess_status tess_centre_find(const tess_centre_views *views, void *memory, tess_centre *out,
                             tess_error *error) TESS_MUST_CHECK;

#endif
