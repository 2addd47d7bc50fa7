/* symmetric.h: eigenvalues of symmetric matrices of some hundred rows, fp64, row-major, and factors of their inverses. */
#ifndef TESS_TENSOR_SYMMETRIC_H
#define TESS_TENSOR_SYMMETRIC_H

#include "base/status.h"

/* Values of workspace that both functions need for n rows. */
size_t tess_symmetric_workspace(int n);

/* Eigenvalues of the n x n matrix `a`, ascending, and orthonormal eigenvectors: row i of `vectors` belongs to values[i],
 * and its component of largest magnitude is positive, so that equal inputs give equal signs. Only the lower half of
 * `a` is read; `vectors` may be `a`. TESS_BAD_INPUT if a value is not finite. */
tess_status tess_symmetric_eigen(const double *a, int n, double *values, double *vectors, double *workspace,
                                 tess_error *error) TESS_MUST_CHECK;

/* F with F'F = the (pseudo-)inverse of `a`: row k is the eigenvector of the k-th largest eigenvalue, divided by its root.
 * Eigenvalues that are not above `cutoff` times the largest one, nor above zero, are dropped: F has `rank` rows, the
 * others of `factor` (n x n) are zero. cutoff 0: the inverse of a positive definite matrix. `values`: n values, the
 * eigenvalues, ascending. */
tess_status tess_symmetric_whiten(const double *a, int n, double cutoff, double *values, double *factor,
                                  int *rank, double *workspace, tess_error *error) TESS_MUST_CHECK;

#endif
