/* raster_shift.c: how far two rasters of one size are from each other. */
#include <math.h>

#include "io/raster.h"

double tess_raster_shift(const tess_raster_info *info, const double other[6])
{
    const double *own = info->transform, pixel = fmax(hypot(own[1], own[4]), hypot(own[2], own[5]));
    double most = 0;
    for (int corner = 0; corner < 4; corner++) {
        const double x = corner & 1 ? (double)info->width : 0, y = corner & 2 ? (double)info->height : 0;
        const double dx = own[0] - other[0] + x * (own[1] - other[1]) + y * (own[2] - other[2]),
                     dy = own[3] - other[3] + x * (own[4] - other[4]) + y * (own[5] - other[5]);
        most = fmax(most, hypot(dx, dy));
    }
    return pixel > 0 ? most / pixel : most;
}
