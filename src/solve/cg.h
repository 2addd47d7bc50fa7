/* cg.h: conjugate gradients on the normal equations (A^T A + shift I) x = A^T y, from zero. */
#ifndef TESS_SOLVE_CG_H
#define TESS_SOLVE_CG_H

#include "solve/data_term.h"

typedef struct tess_cg_settings {
    int64_t iterations;
    double tolerance; /* on |residual| / |A^T y| */
    double shift;
} tess_cg_settings;

typedef struct tess_cg_result {
    int64_t iterations;
    double residual; /* relative, where it ended */
} tess_cg_result;

enum { TESS_CG_VECTORS = 4 };

/* `vectors`: memory for four images besides x, written over. */
tess_status tess_cg(const tess_data_term *term, const tess_cg_settings *settings,
                    void *const vectors[TESS_CG_VECTORS], void *x, tess_cg_result *result,
                    tess_error *error) TESS_MUST_CHECK;

#endif
