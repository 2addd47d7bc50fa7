/* data_term.h: f(x) = 1/2 |A x - y|^2 for solvers: its gradient and A^T A, with or without an operator that absorbs
 * the measurement. */
#ifndef TESS_SOLVE_DATA_TERM_H
#define TESS_SOLVE_DATA_TERM_H

#include "physics/operator.h"
#include "solve/vectors.h"

/* Called before each step of a long solver: any status but TESS_OK ends it and is returned. NULL: not called. */
typedef struct tess_tick {
    tess_status (*ask)(void *user, tess_error *error);
    void *user;
} tess_tick;

typedef struct tess_data_term {
    tess_operator *op;
    /* owned by the caller, must stay valid while the term is used; NULL after the operator absorbed it */
    const void *measurement;
    tess_vectors images, measurements;
    void *residual, *scratch;
} tess_data_term;

/* Returns the device memory that tess_data_term_open needs, and the bytes of the residual, which is stored where
 * measurements are; 0: there is none. */
tess_status tess_data_term_bytes(const tess_operator *op, size_t *bytes, size_t *residual,
                                 tess_error *error) TESS_MUST_CHECK;
/* Close it also if this fails. */
tess_status tess_data_term_open(tess_data_term *term, tess_operator *op, const void *measurement,
                                void *residual, void *memory, tess_error *error) TESS_MUST_CHECK;
void tess_data_term_close(tess_data_term *term);

/* Asks the tick; ranks that share the image agree. */
tess_status tess_data_term_ask(const tess_data_term *term, const tess_tick *tick,
                               tess_error *error) TESS_MUST_CHECK;

/* True if the operator takes in the measurement and computes all steps from that; the memory then suffices for these
 * steps only, not for forward and adjoint. */
bool tess_data_term_absorbed(const tess_operator *op);
/* True if the operator can also divide by what it absorbed: the solver's minimum is then one step. */
bool tess_data_term_exact(const tess_operator *op);
/* Only if the term is exact. */
void tess_data_term_step(const tess_data_term *term, tess_normal_step step, const void *x, void *out);
/* out = A^T (A x - y); out must not be x. */
tess_status tess_data_term_gradient(const tess_data_term *term, const void *x, void *out,
                                    tess_error *error) TESS_MUST_CHECK;
/* out = A^T A x */
void tess_data_term_normal(const tess_data_term *term, const void *x, void *out);
/* |A x|^2; only if nothing is absorbed. */
tess_status tess_data_term_energy(const tess_data_term *term, const void *x, double *energy,
                                  tess_error *error) TESS_MUST_CHECK;
/* Returns |image|^2 of a result; the error says what to do if that is not finite, which a clamp would turn into
 * black. */
tess_status tess_data_term_square(const tess_data_term *term, const void *image, double *square,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
