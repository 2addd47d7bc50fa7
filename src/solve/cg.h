/* cg.h: conjugate gradients on the normal equations. From zero: (A^T A + shift I) x = A^T y. From x0, the value of x:
 * the minimum of 1/2 |A x - y|^2 + shift / 2 |x - x0|^2, a data step that goes further than a gradient step. The
 * operator's preconditioner is used if there is one; residuals are then measured in its norm. */
#ifndef TESS_SOLVE_CG_H
#define TESS_SOLVE_CG_H

#include "solve/data_term.h"

typedef struct tess_cg_settings {
    int64_t iterations;
    double tolerance; /* on |residual| / |residual at the start| */
    double shift;
    bool warm; /* start from the value of x */
    tess_tick tick;
} tess_cg_settings;

typedef struct tess_cg_result {
    int64_t iterations;
    double residual; /* relative, at the end */
} tess_cg_result;

enum { TESS_CG_VECTORS = 3 };

/* `vectors`: memory for three images besides x; overwritten. */
tess_status tess_cg(const tess_data_term *term, const tess_cg_settings *settings,
                    void *const vectors[TESS_CG_VECTORS], void *x, tess_cg_result *result,
                    tess_error *error) TESS_MUST_CHECK;

#endif
