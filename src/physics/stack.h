/* stack.h: several operators on one image: the measurement of a stack is the measurements of its parts, one after
 * another, and its transpose is the sum of theirs. */
#ifndef TESS_PHYSICS_STACK_H
#define TESS_PHYSICS_STACK_H

#include "physics/operator.h"

/* The parts must be on one device and take images of one size. The stack takes ownership of them, also if this fails.
 * Measurement: (1, 1, 1, all elements, 1). */
tess_status tess_stack_create(tess_operator *const *parts, int64_t count, tess_operator **out,
                              tess_error *error) TESS_MUST_CHECK;

#endif
