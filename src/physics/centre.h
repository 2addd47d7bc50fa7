/* centre.h: the column of a sinogram at which the axis of rotation is seen.
 *
 * Two views half a turn apart are mirror images about it: view i at column s is view j at column 2 a - s. Where there are
 * such pairs, the best mirror is looked for in half columns over all pairs at once, then refined by the phase of their
 * cross spectra, which is linear in frequency for a shift (Guizar-Sicairos et al., Optics Letters 33, 2008, on why
 * spectra and not interpolated sums). Where there are none, the centre of mass of a view moves as
 * a + x cos t - y sin t, which is fitted; that holds only if every view sees the whole object. */
#ifndef TESS_PHYSICS_CENTRE_H
#define TESS_PHYSICS_CENTRE_H

#include <stdint.h>

#include "base/status.h"

typedef struct tess_centre {
    double column;
    int64_t pairs; /* of opposite views that it was found from; 0: from the centres of mass */
} tess_centre;

/* `views` is (count, columns), `angles` in degrees. TESS_BAD_INPUT where it cannot be found, with what to do. */
tess_status tess_centre_find(const float *views, int64_t count, int64_t columns, const double *angles,
                             tess_centre *out, tess_error *error) TESS_MUST_CHECK;

#endif
