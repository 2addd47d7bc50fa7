/* cg.h: conjugate gradients on the normal equations. From zero: (A^T A + shift I) x = A^T y. From where x is, x0: the
 * minimum of 1/2 |A x - y|^2 + shift / 2 |x - x0|^2, a data step that goes further than a gradient's.
 * An operator's preconditioner is used where there is one; residuals are then measured in its norm. */
#ifndef TESS_SOLVE_CG_H
#define TESS_SOLVE_CG_H

#include "solve/data_term.h"

typedef struct tess_cg_settings {
    int64_t iterations;
    double tolerance; /* on |residual| / |residual at the start| */
    double shift;
    bool warm; /* from where x is */
    tess_tick tick;
} tess_cg_settings;

typedef struct tess_cg_result {
    int64_t iterations;
    double residual; /* relative, where it ended */
} tess_cg_result;

enum { TESS_CG_VECTORS = 3 };

/* `vectors`: memory for three images besides x, written over. */
tess_status tess_cg(const tess_data_term *term, const tess_cg_settings *settings,
                    void *const vectors[TESS_CG_VECTORS], void *x, tess_cg_result *result,
                    tess_error *error) TESS_MUST_CHECK;

#endif
