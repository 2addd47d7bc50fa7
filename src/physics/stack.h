/* stack.h: operators on one image, one above another: the measurement of a stack is the measurements of its parts, one
 * behind another, and its transpose is the sum of theirs. */
#ifndef TESS_PHYSICS_STACK_H
#define TESS_PHYSICS_STACK_H

#include "physics/operator.h"

/* The parts are on one device, take images of one size, and belong to the stack from then on, also when this fails.
 * Measurement: (1, 1, 1, all elements, 1). */
tess_status tess_stack_create(tess_operator *const *parts, int64_t count, tess_operator **out,
                              tess_error *error) TESS_MUST_CHECK;

#endif
