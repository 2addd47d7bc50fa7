/* data_term.h: f(x) = 1/2 |A x - y|^2 as solvers see it: its gradient, and A^T A, whether or not the operator knows a
 * shortcut that lets the measurement be dropped. */
#ifndef TESS_SOLVE_DATA_TERM_H
#define TESS_SOLVE_DATA_TERM_H

#include "physics/operator.h"
#include "solve/vectors.h"

/* Asked before each step of a solver that takes long: anything but TESS_OK ends it, and is what it returns. NULL: nobody
 * is asked. */
typedef struct tess_tick {
    tess_status (*ask)(void *user, tess_error *error);
    void *user;
} tess_tick;

static inline tess_status tess_tick_ask(const tess_tick *tick, tess_error *error)
{
    return tick->ask ? tick->ask(tick->user, error) : TESS_OK;
}

typedef struct tess_data_term {
    tess_operator *op;
    /* the caller's, as long as the term is used; NULL once the operator absorbed it */
    const void *measurement;
    tess_vectors images, measurements;
    void *residual, *scratch;
} tess_data_term;

/* Memory of the device that tess_data_term_open asks for, and the residual, which lies where measurements lie; 0: there is
 * none. */
tess_status tess_data_term_bytes(const tess_operator *op, size_t *bytes, size_t *residual,
                                 tess_error *error) TESS_MUST_CHECK;
/* Close it also when this failed. */
tess_status tess_data_term_open(tess_data_term *term, tess_operator *op, const void *measurement,
                                void *residual, void *memory, tess_error *error) TESS_MUST_CHECK;
void tess_data_term_close(tess_data_term *term);

/* True when the operator takes the measurement in and does all steps from that; then there is room for these alone,
 * not for its forward and adjoint. */
bool tess_data_term_absorbed(const tess_operator *op);
/* True when the operator also divides by what it absorbed: the minimum that a solver wants is one step away. */
bool tess_data_term_exact(const tess_operator *op);
/* Only where it is exact. */
void tess_data_term_step(const tess_data_term *term, tess_normal_step step, const void *x, void *out);
/* out = A^T (A x - y); not x itself. */
tess_status tess_data_term_gradient(const tess_data_term *term, const void *x, void *out,
                                    tess_error *error) TESS_MUST_CHECK;
/* out = A^T A x */
void tess_data_term_normal(const tess_data_term *term, const void *x, void *out);
/* |A x|^2; only where nothing is absorbed. */
tess_status tess_data_term_energy(const tess_data_term *term, const void *x, double *energy,
                                  tess_error *error) TESS_MUST_CHECK;
/* |image|^2 of what came from it; says what to do where that is not finite, which a clamp would turn into black. */
tess_status tess_data_term_square(const tess_data_term *term, const void *image, double *square,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
