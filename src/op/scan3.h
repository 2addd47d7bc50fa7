/* scan3.h: the volume and the detector of a 3-D ray op, in the form that geometry/ uses. */
#ifndef TESS_OP_SCAN3_H
#define TESS_OP_SCAN3_H

#include "geometry/ray3.h"
#include "op/op.h"

/* `volume` and `views` are the two tensors of the op. */
TESS_BOTH tess_scan3 tess_scan3_of(const tess_op_rays *rays, const tess_tensor *volume,
                                   const tess_tensor *views)
{
    tess_scan3 scan;
    scan.cone = rays->geometry == TESS_CONE_3D;
    scan.size[0] = volume->w;
    scan.size[1] = volume->h;
    scan.size[2] = rays->depth ? rays->depth : volume->d;
    scan.first = rays->depth ? rays->first : 0;
    scan.end = scan.first + volume->d;
    scan.rows = views->h;
    scan.columns = views->w;
    scan.views = views->d;
    scan.spacing = rays->spacing;
    return scan;
}

#endif
