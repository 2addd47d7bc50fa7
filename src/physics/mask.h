/* mask.h: a diagonal operator: multiplies every channel of the image by one map of the image's size. It is its own
 * transpose. */
#ifndef TESS_PHYSICS_MASK_H
#define TESS_PHYSICS_MASK_H

#include "physics/operator.h"

/* `values`: height x width, on the host; copied. */
tess_status tess_mask_create(tess_device *device, int64_t height, int64_t width, int64_t channels,
                             const float *values, tess_operator **out, tess_error *error) TESS_MUST_CHECK;

#endif
