/* orthogonal.h: a matrix with orthonormal rows, or columns if there are fewer of them, from one of normal values. */
#ifndef TESS_TRAIN_ORTHOGONAL_H
#define TESS_TRAIN_ORTHOGONAL_H

#include "base/status.h"

/* Replaces `values`, row-major. */
tess_status tess_orthogonal(int64_t rows, int64_t columns, float *values, tess_error *error) TESS_MUST_CHECK;

#endif
